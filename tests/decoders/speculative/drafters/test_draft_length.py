"""Length policies: the dossier's traces and numbers, and that none of them bends the law of the text, but the
one that throws drawn tokens away.
"""

import pytest

from decoders import registry
from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.drafters import draft_length
from decoders.speculative.methods.smartspec import CostModel, best_goodput, goodput
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Note, Verdict
from tests.helpers.losslessness import law_of_rounds

P, Q = (0.3, 0.4, 0.3), (0.6, 0.3, 0.1)
SPECULATION = registry.get("speculation")
POLICIES = next(p.choices for p in SPECULATION.parameters if p.name == "length")
EXACT = [name for name in POLICIES if name != "cut before doubt"]


def tables(first: int = 1, sharpness: float = 1.5) -> dict[str, TableModel]:
    return {
        "target": TableModel(random_table(first, 3, sharpness), 3),
        "draft": TableModel(random_table(first + 1, 3, sharpness), 3),
    }


def followed(length: draft_length.Length, rounds: list[tuple[int, int]]) -> list[int]:
    """How many guesses a policy allows at first and after each (drafted, accepted)."""
    found = [length.max_tokens(None)]
    for drafted, accepted in rounds:
        length.observe(drafted, accepted)
        found.append(length.max_tokens(None))
    return found


def test_plus_two_minus_one():
    rounds = [(5, 5), (7, 3), (6, 6), (8, 0), (7, 0)]
    assert followed(draft_length.plus_two_minus_one(5), rounds) == [5, 7, 6, 8, 7, 6]
    assert followed(draft_length.plus_two_minus_one(1), [(1, 0), (1, 1)]) == [1, 1, 3]


def test_the_batch_heuristic_falls_faster_the_second_time():
    """The largest accepted counts of the dossier's batch of two."""
    accepted = [7, 9, 5, 2, 0, 5, 6]
    drafted = [7, 9, 11, 9, 7, 5, 7]
    rounds = list(zip(drafted, accepted, strict=True))
    assert followed(draft_length.batch_heuristic(), rounds) == [7, 9, 11, 9, 7, 5, 7, 6]
    assert followed(draft_length.batch_heuristic(), [(n, n) for n in range(7, 40, 2)])[-1] == 32


def test_the_best_goodput_of_the_dossier_s_model():
    costs = CostModel()
    assert [best_goodput(0.7, texts, 100, costs, 8) for texts in (1, 8, 32, 128)] == [4, 3, 2, 1]
    found = [goodput(k, 0.7, 1, 100, costs) for k in range(6)]
    assert found == pytest.approx([0.1053, 0.1476, 0.1739, 0.1854, 0.1883, 0.1861], abs=5e-5)
    assert best_goodput(0.0, 1, 100, costs, 8) == 0
    chosen = [best_goodput(0.7, texts, 100, costs, 8) for texts in range(1, 300)]
    assert chosen == sorted(chosen, reverse=True)
    assert [best_goodput(0.7, 1, 100, costs, 8, capacity) for capacity in (110, 113, 200)] == [0, 1, 4]


def test_smartspec_decides_every_twenty_rounds_and_says_so():
    by_itself = {"temperature": 1.0, "prompts": ""}
    trace = Lane("smartspec", [0], tables(), by_itself, limits=Limits(120)).run()
    told = [step.index for step in trace.steps if step.of(Note)]
    assert told == list(range(0, len(trace.steps), 20)) and len(told) > 1
    drafted = trace.costs.per_step_drafted
    assert len(set(drafted[:20])) == 1 and drafted[0] == 4
    assert "For 1 text at once and an acceptance of .7, 4 guesses" in trace.steps[0].of(Note)[0].text


def test_under_load_smartspec_does_not_speculate():
    trace = Lane("smartspec", [0], tables(), {"load": 1020}, limits=Limits(30)).run()
    assert not trace.costs.proposed and len(trace.output()) == 30


# ---- in the loop -----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", EXACT)
@pytest.mark.parametrize("verifier", ["token rejection", "block"])
def test_a_policy_that_does_not_look_leaves_the_law_alone(length, verifier):
    models, parameters = tables(), {"length": length, "verifier": verifier, "depth": 2, "temperature": 1.3}
    found = law_of_rounds(Exhaustive(), "speculation", models, parameters, 3, 1)
    assert distance(found, exact_distribution(models["target"], (0,), 3, shape_of(parameters))) < 1e-12
    assert SPECULATION.badge(SPECULATION.check(parameters)) == "exact in distribution"


def test_over_several_rounds_the_law_of_smartspec_is_the_target_s():
    models, parameters = tables(9), {"temperature": 1.0, "prompts": ""}
    found = law_of_rounds(Exhaustive(), "smartspec", models, parameters, 3)
    assert distance(found, exact_distribution(models["target"], (0,), 3, shape_of(parameters))) < 1e-12


def constant() -> dict[str, TableModel]:
    return {"target": TableModel(lambda text: P, 3), "draft": TableModel(lambda text: Q, 3)}


def test_throwing_drawn_tokens_away_bends_the_law_and_the_badge_says_so():
    """At .4 only the first token is ever submitted: .6 x .5 of it, all else drawn by the target."""
    parameters = {"length": "cut before doubt", "verifier": "token rejection", "depth": 1, "temperature": 1.0}
    pairs = law_of_rounds(Exhaustive(), "speculation", constant(), parameters, 2, 1)
    found = [sum(mass for said, mass in pairs.items() if said[0] == t) for t in range(3)]
    # kept .6 x .5; refused .6 x .5, drawn from (0, 1/3, 2/3); not submitted .4, drawn from p
    assert found == pytest.approx([0.3 + 0.4 * 0.3, 0.3 / 3 + 0.4 * 0.4, 0.3 * 2 / 3 + 0.4 * 0.3])
    assert SPECULATION.badge(SPECULATION.check(parameters)) == "relaxed"
    submits = {**parameters, "length": "confident"}
    pairs = law_of_rounds(Exhaustive(), "speculation", constant(), submits, 2, 1)
    assert [sum(mass for said, mass in pairs.items() if said[0] == t) for t in range(3)] == pytest.approx(P)


def test_a_draw_that_ignores_the_draft_stays_exact_although_tokens_are_thrown_away():
    parameters = {"length": "cut before doubt", "verifier": "node sampling", "depth": 2, "temperature": 1.0}
    models = tables(5)
    found = law_of_rounds(Exhaustive(), "speculation", models, parameters, 3, 1)
    assert distance(found, exact_distribution(models["target"], (0,), 3)) < 1e-12
    assert SPECULATION.badge(SPECULATION.check(parameters)) == "exact in distribution"


def test_what_is_thrown_away_is_told():
    parameters = {"length": "cut before doubt", "depth": 3, "temperature": 1.0}
    trace = Lane("speculation", [0], tables(), parameters, 3, Limits(30)).run()
    pruned = [e for step in trace.steps for e in step.of(Verdict) if e.status == "pruned"]
    assert pruned and all(e.q < 0.4 and e.reason for e in pruned)


@pytest.mark.parametrize("length", POLICIES)
@pytest.mark.parametrize("first", [1, 5])
def test_at_temperature_0_every_policy_is_greedy(length, first):
    models = tables(first)
    greedy = Lane("greedy", [0], {"target": models["target"]}, limits=Limits(30)).run().output()
    parameters = {"length": length, "depth": 4, "temperature": 0.0}
    lane = Lane("speculation", [0], models, parameters, limits=Limits(30))
    assert lane.trace.badge == "lossless: equal to greedy" and lane.run().output() == greedy


def test_a_confident_draft_is_long_and_stops_after_doubt():
    sure = {"target": TableModel(lambda text: P, 3), "draft": TableModel(lambda text: (0.9, 0.05, 0.05), 3)}
    parameters = {"length": "confident", "depth": 5, "temperature": 0.0}
    trace = Lane("speculation", [0], sure, parameters, limits=Limits(30)).run()
    assert trace.costs.per_step_drafted[0] == 5
    unsure = {**sure, "draft": TableModel(lambda text: (0.35, 0.33, 0.32), 3)}
    trace = Lane("speculation", [0], unsure, parameters, limits=Limits(30)).run()
    assert set(trace.costs.per_step_drafted[:-1]) == {1}


def test_parts_that_do_not_fit_are_refused_with_the_reason():
    with pytest.raises(ValueError, match="Only a chain has a length to choose: choose the shape chain"):
        SPECULATION.check({"shape": "widths", "length": "goodput"})
    with pytest.raises(ValueError, match="if guesses are thrown away before: choose another length"):
        SPECULATION.check({"verifier": "lenient", "length": "cut before doubt", "temperature": 1.0})
    assert SPECULATION.check({"verifier": "lenient", "length": "cut before doubt", "temperature": 0.0})
