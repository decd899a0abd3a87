"""phi-Decoding: the dossier's numbers, plain sampling with one beam, pruning that keeps enough, agreement."""

import pytest

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.stepwise import lookahead_weights
from decoders.trace.events import Forward, Note, Propose, Verdict
from decoders.trace.scores import Rank
from tests.helpers import tiny_models

A, C = (0.2, 0.0, -0.1), (2 / 3, 2 / 3, 1 / 3)
END, STOP = 0, 1
WORDS = ["<end>", ".", "a", "b"]


def run(model, prompt=(2,), new_tokens=12, seed=0, chooser=None, strategy="phi_decoding", **parameters):
    limits = Limits(max_new_tokens=new_tokens)
    return Lane(strategy, list(prompt), {"target": model}, parameters, seed, limits, chooser).run()


def talk(past) -> list[float]:
    """Words and full stops; the text ends only after a full stop."""
    return [0.3, 0.0, 0.35, 0.35] if past[-1] == STOP else [0.0, 0.4, 0.4, 0.2]


@pytest.fixture
def table():
    return TableModel(talk, 4, frozenset({END}), words=WORDS)


@pytest.fixture
def model():
    return tiny_models.make(endings=0.05)


def of(trace, kind) -> list:
    return [event for step in trace.steps for event in step.of(kind)]


def test_the_dossiers_numbers():
    assert lookahead_weights.softmax(A, 0.6) == pytest.approx((0.4305, 0.3084, 0.2611), abs=1e-4)
    assert lookahead_weights.softmax(C, 0.6) == pytest.approx((0.3885, 0.3885, 0.2229), abs=1e-4)
    assert lookahead_weights.values(A, C, 0.6, 0.6) == pytest.approx((0.8190, 0.6970, 0.4840), abs=1e-4)
    assert lookahead_weights.probabilities(A, C, 0.6, 0.6, 0.6) == pytest.approx(
        (0.4187, 0.3417, 0.2396), abs=1e-4
    )
    assert lookahead_weights.probabilities_of_code(A, C) == pytest.approx((0.6060, 0.2412, 0.1529), abs=1e-4)


def test_clusters_hold_what_says_alike():
    cats, dogs = [[1, 1, 2], [1, 2, 2], [2, 1]], [[7, 8], [8, 7, 7]]
    assert lookahead_weights.clusters([*cats, *dogs], 2) == [0, 0, 0, 1, 1]
    assert lookahead_weights.clusters([[3, 4]] * 5, 3) == [0] * 5
    assert lookahead_weights.shares([0, 0, 1]) == pytest.approx(C)
    assert len(set(lookahead_weights.clusters([[i] for i in range(9)], 3))) == 3


@pytest.mark.parametrize("seed", range(4))
def test_one_beam_with_one_rollout_is_plain_sampling(table, model, prompt, seed):
    given = {"num_beams": 1, "num_rollouts": 1, "temperature": 0.8, "delta": 1.0, "max_steps": 3}
    given["foresight_temperature"] = 0.8
    for target, start in ((table, (2,)), (model, prompt)):
        alone = run(target, start, 20, seed, **given)
        assert alone.output() == run(target, start, 20, seed, strategy="sample", temperature=0.8).output()


def test_one_beam_with_one_rollout_has_the_models_own_law(table):
    given = {"num_beams": 1, "num_rollouts": 1, "temperature": 1.0, "max_steps": 1, "min_steps": 1}
    law = Exhaustive().distribution(
        lambda chooser: tuple(run(table, new_tokens=3, chooser=chooser, foresight_tokens=1, **given).output())
    )
    assert law[STOP, END] == pytest.approx(0.4 * 0.3, abs=1e-12)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("form", ["paper", "code"])
@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_pruning_leaves_enough_and_different_candidates_are_drawn(table, form, sigma):
    trace = run(
        table, new_tokens=24, delta=1.0, num_beams=3, num_rollouts=3, sigma=sigma, form=form, temperature=1.0
    )
    ranked = 0
    for step in trace.steps:
        scores = [e for e in step.of(Rank) if e.name == "foresight"]
        ranks = sorted(e.rank for e in scores if e.rank)
        if step is trace.steps[-1]:
            assert ranks == [1] and len(scores) == 3
        else:
            assert len(scores) >= 3 and ranks == [1, 2, 3]
            assert len({e.node for e in scores if e.rank}) == 3
        assert sum(e.total for e in scores) == pytest.approx(1.0)
        ranked += len(scores)
    assert ranked > 6


def test_the_code_drops_everything_in_its_first_step(table):
    """What was seen before counts as 0 there, and every log-probability is below that."""
    for form in ("code", "paper"):
        trace = run(table, new_tokens=24, form=form, temperature=1.0)
        scores = [e for e in trace.steps[0].of(Rank) if e.name == "foresight"]
        assert scores and all((e.level is None) == (form == "code") for e in scores)


def test_steps_are_drawn_cooler_than_foresights():
    """The rarest token has .15 at temperature 1, as in foresights; steps draw at 0.6."""
    model = TableModel(lambda past: [0.0, 0.25, 0.6, 0.15], 4, frozenset({END}), words=WORDS)
    given = {"delta": 1.0, "min_steps": 4, "foresight_tokens": 12, "sigma": 10.0}
    drawn = {"target": [], "lookahead": []}
    for seed in range(3):
        for event in of(run(model, new_tokens=40, seed=seed, **given), Propose):
            drawn[event.source].append(event.token)
    count, shares = len(drawn["lookahead"]), {s: tokens.count(3) / len(tokens) for s, tokens in drawn.items()}
    assert shares["lookahead"] == pytest.approx(0.15, abs=4 * (0.15 * 0.85 / count) ** 0.5)
    assert shares["target"] < 0.11  # 0.076, and the ends of texts, which are drawn as foresights are


def test_foresights_that_agree_end_the_search_at_the_least_step(table):
    """At temperature 0 all foresights are one."""
    for least in (1, 3):
        given = {"temperature": 0.0, "foresight_temperature": 0.0, "min_steps": least, "max_steps": 5}
        trace = run(table, new_tokens=30, **given)
        said = [note.text for note in of(trace, Note)]
        assert len(trace.steps) == least + 1 and "agree" in said[-1]
    assert trace.output() == run(table, new_tokens=30, strategy="greedy").output()


def test_foresight_tokens_are_never_output_and_their_luck_is_their_own(table):
    trace = run(table, new_tokens=30, num_beams=2, num_rollouts=2)
    seen = {e.node for e in of(trace, Propose) if e.source == "lookahead"}
    judged = {e.node: e.status for e in of(trace, Verdict)}
    assert seen and all(judged[n] == "pruned" for n in seen)
    assert {e.kind for e in of(trace, Forward)} == {"prefill", "decode", "lookahead"}
    assert trace.costs.totals()["proposed"] == 0

    def first_steps(tokens: int) -> list[int]:
        trace = run(table, new_tokens=30, num_beams=2, num_rollouts=2, foresight_tokens=tokens)
        return [e.token for e in trace.steps[0].of(Propose) if e.source == "target"]

    assert first_steps(1) == first_steps(5)


def test_what_makes_no_sense_is_refused(table):
    with pytest.raises(ValueError, match="min_steps is 9, but max_steps only 8"):
        run(table, min_steps=9)
