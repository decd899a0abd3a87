"""Stochastic beams, value-guided beams, tree search with a value: laws by counting, limits by equality."""

import math
import random
from collections import Counter
from itertools import product

import pytest
import torch

from decoders.callbacks import Callbacks
from decoders.chooser import Random
from decoders.lane import Lane, Limits
from decoders.logits.gumbel import perturbed
from decoders.models.table_model import TableModel
from decoders.search.beam.beam_state import Beams
from decoders.search.beam.hypotheses import returned
from decoders.search.stepwise import scorers
from decoders.search.tree_search.mcts import Edge, State
from decoders.search.tree_search.value_mcts import Search, gamma
from decoders.trace.events import Verdict
from decoders.trace.scores import Rank, Score
from tests.decoders.search.beam.test_diverse_beam import random_table
from tests.decoders.search.tree_search.test_pg_td import table
from tests.helpers import tiny_models

LEAVES = TableModel(lambda past: (0.5, 0.3, 0.2) if len(past) == 1 else (1.0, 0.0, 0.0), 3)


def run(model, strategy, prompt=(0,), new_tokens=3, seed=0, callbacks=None, **parameters):
    asked = (strategy, list(prompt), {"target": model}, parameters, seed, Limits(max_new_tokens=new_tokens))
    return Lane(*asked, callbacks=callbacks).run()


def texts(trace) -> list[tuple[int, ...]]:
    return [tuple(tokens) for tokens, _ in returned(trace)]


# ---- stochastic beams --------------------------------------------------------------------------------------


def test_the_largest_child_has_its_parents_value_exactly():
    logs = torch.tensor([0.5, 0.3, 0.2, 0.0], dtype=torch.float64).log()
    for seed in range(20):
        found = perturbed(Random(seed), -0.7 - seed, logs, ("sample", 1))
        assert float(found.max()) == pytest.approx(-0.7 - seed, abs=1e-12)
        assert found[3] == -math.inf


def test_as_many_beams_as_leaves_return_all_of_them():
    assert sorted(texts(run(LEAVES, "stochastic_beam", new_tokens=1, num_beams=3))) == [(0,), (1,), (2,)]


@pytest.mark.parametrize("beams", [1, 2])
def test_the_first_text_is_a_sample_and_the_second_one_of_the_rest(beams):
    trials = 400
    found = [
        texts(run(LEAVES, "stochastic_beam", new_tokens=1, seed=s, num_beams=beams)) for s in range(trials)
    ]
    first = Counter(one[0][0] for one in found)
    for token, p in enumerate((0.5, 0.3, 0.2)):
        assert first[token] / trials == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / trials))
    if beams == 2:
        both = sum(one[1][0] == 1 for one in found if one[0][0] == 0) / first[0]
        assert both == pytest.approx(0.6, abs=4 * math.sqrt(0.24 / first[0]))  # .3 of what 0 leaves


def test_texts_of_two_tokens_keep_their_law_and_never_repeat():
    rows = {(): (0.5, 0.3, 0.2), (0,): (0.1, 0.6, 0.3), (1,): (0.8, 0.1, 0.1)}  # 2 ends the text
    model = TableModel(lambda past: rows[past[1:]], 3, eos=frozenset({2}))
    law, trials = {(2,): 0.2}, 400
    law |= {(a, b): rows[()][a] * rows[a,][b] for a, b in product((0, 1), range(3))}
    found = [texts(run(model, "stochastic_beam", new_tokens=2, seed=s, num_beams=2)) for s in range(trials)]
    assert all(len(set(one)) == len(one) == 2 for one in found)
    first = Counter(one[0] for one in found)
    assert sum(abs(first[text] / trials - p) for text, p in law.items()) / 2 < 0.1


def test_without_temperature_it_is_a_plain_beam():
    for model, start in ((random_table(1), (0,)), (tiny_models.make(endings=0.5), (5, 6, 7))):
        noisy = run(model, "stochastic_beam", start, 5, num_beams=3, temperature=0.0)
        plain = run(model, "beam", start, 5, num_beams=3, length_penalty=0.0, num_return_sequences=3)
        assert texts(noisy) == texts(plain)


# ---- values ------------------------------------------------------------------------------------------------


def test_a_value_alone_spoils_with_its_noise():
    luck = random.Random(0)
    true, errors = [0.0, 0.3, 1.0], []
    for deviation in (0.01, 0.1, 0.5, 5.0):
        off = [abs(scorers.noisy_score(v, deviation, luck.random()) - v) for v in true for _ in range(300)]
        assert all(0.0 <= v + 0.0 <= 1.0 for v in off)
        errors.append(sum(off) / len(off))
    assert errors == sorted(errors) and errors[0] < 0.02


def test_likelihood_alone_is_beam_search():
    for seed in range(4):
        model = random_table(seed)
        guided = run(model, "value_beam", new_tokens=4, num_beams=3, candidates=6, likelihood_weight=1.0)
        plain = run(model, "beam", new_tokens=4, num_beams=3, length_penalty=0.0, num_return_sequences=3)
        assert texts(guided) == texts(plain)


@pytest.mark.parametrize("combine", ["weighed sum", "product"])
def test_never_goes_on_while_a_value_may_still_rise(combine):
    """The empty text finishes first; a later one has the keywords and ranks higher."""
    words = ["<end>", "a", " c", " d"]
    rows = {(): (0.55, 0.45, 0, 0), (1,): (0.05, 0, 0.95, 0), (1, 2): (0.05, 0, 0, 0.95)}
    model = TableModel(lambda past: rows.get(past[1:], (1.0, 0, 0, 0)), 4, frozenset({0}), words=words)
    given = {"scorer": "keyword", "keywords": "d", "num_beams": 1, "combine": combine, "candidates": 4}
    for length_penalty in (0.0, 1.0, -1.0):
        extra = {"early_stopping": "never", "length_penalty": length_penalty}
        assert run(model, "value_beam", (1,), 6, **given, **extra).output() == [1, 2, 3, 0]
    assert run(model, "value_beam", (1,), 6, **given, early_stopping="true").output() == [0]


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, -0.5])
def test_never_gives_what_a_search_to_the_last_position_gives(length_penalty, monkeypatch):
    given = {"scorer": "keyword", "keywords": "b, c", "num_beams": 2, "candidates": 4}
    given |= {"likelihood_weight": 0.3, "length_penalty": length_penalty, "early_stopping": "never"}
    models = [table(seed) for seed in range(6)]
    stopped = [run(model, "value_beam", (1,), 5, **given) for model in models]
    monkeypatch.setattr(Beams, "_open", lambda beams: bool(beams.live))
    full = [run(model, "value_beam", (1,), 5, **given) for model in models]
    assert [returned(trace) for trace in stopped] == [returned(trace) for trace in full]
    if not length_penalty:  # some had nothing to gain any more
        assert sum(len(trace.steps) for trace in stopped) < sum(len(trace.steps) for trace in full)


def test_only_the_likeliest_candidates_are_looked_at():
    model = TableModel(lambda past: (0.4, 0.35, 0.25), 3, words=[" a", " b", " c"])
    given = {"scorer": "keyword", "keywords": "c", "num_beams": 2, "likelihood_weight": 0.0}
    assert 2 not in run(model, "value_beam", new_tokens=2, candidates=2, **given).output()
    assert 2 in run(model, "value_beam", new_tokens=2, candidates=3, **given).output()


def test_a_guided_sum_is_made_of_likelihood_and_value():
    model = table(2)
    trace = run(model, "value_beam", (1,), 4, scorer="keyword", keywords="b", likelihood_weight=0.3)
    nodes = trace.nodes()
    told = [e for s in trace.steps for e in s.of(Rank) if e.name == "augmented_sum" and e.rank]
    assert told
    logprob = {e.node: e.logprob for s in trace.steps for e in s.events if type(e).__name__ == "Propose"}
    for score in told:
        node, total, words = score.node, 0.0, []
        while node >= len(trace.prompt):
            total += logprob[node]
            node, token = nodes[node]
            words.append(token)
        value = float(2 in words)  # " b"
        assert score.parts["sum_logprob"] == pytest.approx(total, abs=1e-5)
        assert score.total == pytest.approx(0.3 * total + 0.7 * value, abs=1e-5)


def test_every_candidate_that_was_scored_gets_a_verdict_or_goes_on():
    trace = run(table(4), "value_beam", (1,), 4, scorer="length", words=2, num_beams=2)
    judged = {v.node for s in trace.steps for v in s.of(Verdict)}
    proposed = {e.node: e.parent for s in trace.steps for e in s.events if type(e).__name__ == "Propose"}
    assert all(node in judged or node in proposed.values() for node in proposed)


def test_noise_needs_no_other_text_than_its_own_seed():
    runs = [
        run(table(1), "value_beam", (1,), 5, seed=s, scorer="length", words=3, value_noise=1.0)
        for s in (0, 0, 1, 2, 3)
    ]
    told = [[e.total for s in trace.steps for e in s.of(Score)] for trace in runs]
    assert told[0] == told[1]
    assert any(one != told[0] for one in told[2:])


# ---- tree search -------------------------------------------------------------------------------------------


def test_simulations_find_what_the_scorer_wants():
    model = TableModel(
        lambda past: (0.05, 0.5, 0.35, 0.1), 4, frozenset({0}), words=["<end>", " a", " b", " c"]
    )
    given = {"scorer": "keyword", "keywords": "c", "root_noise": 0.0, "simulations": 60, "c": 1.0}
    assert 3 in run(model, "value_mcts", (1,), 3, **given).output()
    assert run(model, "value_mcts", (1,), 3, **given | {"simulations": 1}).output() == [
        1,
        1,
        1,
    ]  # the most likely


def edge_of(node: int, prior: float, visits: int, total: float) -> Edge:
    """An edge whose values add up to `total`."""
    return Edge(node, prior, visits=visits, total=total, value=total / visits)


def valued(lane: Lane, worth: float) -> Search:
    """A search whose state at node 1 is worth this much itself."""
    search = Search(lane)
    search.worth[1] = worth
    return search


def test_the_choice_by_hand():
    lane = Lane("value_mcts", [1], {"target": table(0)}, {"c_base": 0.0, "c": 3.0}, 0, Limits(4))
    search = valued(lane, 0.0)
    edges = [
        edge_of(2, 0.6, visits=3, total=0.6),
        edge_of(3, 0.3, visits=1, total=0.5),
        Edge(4, 0.1),
    ]
    # N = 5: .2 + 3 * .6 * sqrt 5 / 4 = 1.206; .5 + 3 * .3 * sqrt 5 / 2 = 1.506; 3 * .1 * sqrt 5 = .671
    assert search.choose(State(1, edges, visits=5)) is edges[1]


def test_siblings_are_rescaled_between_the_least_and_the_largest_value():
    """mctx's qtransform_by_parent_and_siblings by hand: the parent counts too, what was never tried has 0."""
    given = {"c_base": 0.0, "c": 0.0}
    edges = [
        edge_of(2, 0.6, visits=2, total=0.8),
        edge_of(3, 0.3, visits=1, total=0.5),
        Edge(4, 0.1),
    ]
    state = State(1, edges, visits=4)
    lane = Lane("value_mcts", [1], {"target": table(0)}, given | {"c": 0.1}, 0, Limits(4))
    # Q .4 and .5 beside the parent's .5: rescaled 0 and 1. N = 4: 0 + .1 * .6 * 2 / 3 and 1 + .1 * .3 * 2 / 2
    search = valued(lane, 0.7)
    assert search.value(state) == pytest.approx(2.0 / 4)
    assert search.choose(state) is edges[1]
    # as scored the difference is .1, and a larger bonus outweighs it; rescaled it does not
    for q_values, chosen in (("between siblings", 1), ("as scored", 0)):
        more = given | {"c": 1.0, "q_values": q_values}
        lane = Lane("value_mcts", [1], {"target": table(0)}, more, 0, Limits(4))
        state = State(1, [edge_of(2, 0.8, visits=2, total=0.8), *edges[1:]], visits=4)
        assert valued(lane, 0.7).choose(state) is state.edges[chosen]


def test_equal_values_are_not_blown_up():
    """The most likely is taken where all values are the same, as if there were none."""
    lane = Lane("value_mcts", [1], {"target": table(0)}, {"c": 1.0}, 0, Limits(4))
    edges = [edge_of(2, 0.5, visits=1, total=0.3), edge_of(3, 0.4, visits=1, total=0.3)]
    assert valued(lane, 0.3).choose(State(1, edges, visits=3)) is edges[0]


def test_the_noise_is_dirichlets():
    lane = Lane("value_mcts", [1], {"target": table(0)}, {}, 0, Limits(4))
    for shape in (0.3, 2.0):
        drawn = [gamma(lane, shape, ("test", i)) for i in range(4000)]
        mean = sum(drawn) / len(drawn)
        assert mean == pytest.approx(shape, abs=4 * math.sqrt(shape / len(drawn)))
        assert sum((x - mean) ** 2 for x in drawn) / len(drawn) == pytest.approx(shape, rel=0.2)


def test_visits_are_told_and_a_tree_is_kept():
    trace = run(table(3), "value_mcts", (1,), 4, scorer="length", words=3, simulations=8, root_noise=0.0)
    totals = trace.costs.totals()
    told = [e for s in trace.steps for e in s.of(Rank) if e.name == "visits"]
    assert told and max(e.total for e in trace.steps[0].of(Score)) <= 8
    assert totals["target_forwards"] <= 1 + 8 * totals["steps"]


# ---- the product: conditional beam search ------------------------------------------------------------------


def test_a_value_that_is_always_the_same_leaves_beam_search():
    for seed in range(3):
        model = table(seed)
        given = {"scorer": "keyword", "keywords": "zebra", "combine": "product", "candidates": 4}
        found = run(model, "value_beam", (1,), 4, num_beams=3, **given)
        plain = run(model, "beam", (1,), 4, num_beams=3, length_penalty=0.0, num_return_sequences=3)
        assert texts(found) == texts(plain)


def test_the_mode_given_an_attribute_is_another_text():
    """p / chance of the attribute: empty .30/.02, aaaa .25/.05, the cat sat .04/.90, a dog ran .03/.95."""
    words = ["<end>", "aaaa", "the cat sat", "a dog ran", "other"]
    first, chance = (0.30, 0.25, 0.04, 0.03, 0.38), (0.02, 0.05, 0.90, 0.95, 0.001)
    model = TableModel(
        lambda past: first if len(past) == 1 else (1.0, 0, 0, 0, 0), 5, frozenset({0}), words=words
    )
    known = {"": chance[0]} | dict(zip(words[1:], chance[1:], strict=True))
    tests = Callbacks(lambda prompt, written: known.get(written, 0.001))
    given = {"scorer": "tests", "num_beams": 4, "candidates": 5}
    found = run(model, "value_beam", (1,), 3, combine="product", callbacks=tests, **given)
    products = {texts(found)[at]: math.exp(returned(found)[at][1]) for at in range(4)}
    wanted = {(0,): 0.0060, (1, 0): 0.0125, (2, 0): 0.0360, (3, 0): 0.0285}
    assert products == pytest.approx(wanted)
    assert found.output() == [2, 0]
    assert run(model, "beam", (1,), 3, num_beams=5, length_penalty=0.0).output() != [2, 0]
