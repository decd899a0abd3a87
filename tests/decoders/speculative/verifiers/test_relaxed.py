"""Relaxed verifiers: the dossier's worked numbers, the limits at which nothing is lost, and that the distance
they report is the true one.
"""

import math
from functools import partial

import pytest
import torch

from decoders import registry
from decoders.chooser import Exhaustive, Random, Script
from decoders.engine.tree import Tree
from decoders.explain.verdicts import reason_of
from decoders.lane import Lane, Limits
from decoders.logits.distributions import one_hot
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.interfaces import Draft, VerifierInput
from decoders.speculative.methods import fuzzy, lantern, lenient, typical_acceptance
from decoders.speculative.verifiers.recursive_rejection import RECURSIVE_REJECTION
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Note, Verdict
from decoders.trace.reasons import Code
from decoders.trace.scores import Measure, ScoreName
from tests.helpers import tiny_models
from tests.helpers.losslessness import first_token, law_of_rounds, position
from visualizers.analysis.cost_summary import strip

P, Q = (0.3, 0.4, 0.3), (0.6, 0.3, 0.1)
TOKENS = 4
METRIC = torch.tensor([[0.0], [1.0], [2.5], [4.5]])  # the nearest to 0 is 1, to 1 is 0, to 2 is 1, to 3 is 2
DEFAULTS = {
    "lenient": {"lenience": 0.4},
    "typical_acceptance": {"epsilon": 0.3, "delta": 0.5},
    "fuzzy": {"limit": 0.1},
    "lantern": {"delta": 0.3, "neighbours": 2},
}
LOSSLESS = {
    "lenient": {"lenience": 1.0},
    "typical_acceptance": {"epsilon": 1.0, "delta": 1e6},
    "fuzzy": {"limit": 0.0},
    "lantern": {"delta": 0.0},
}


def tensor(law) -> torch.Tensor:
    return torch.tensor(law, dtype=torch.float64)


def tables(first: int = 1, eos: frozenset[int] = frozenset()) -> dict[str, TableModel]:
    target = TableModel(random_table(first, TOKENS, 1.5), TOKENS, eos, embedding=METRIC)
    return {"target": target, "draft": TableModel(random_table(first + 1, TOKENS, 1.5), TOKENS, eos)}


def law_of_token(verifier, p=P, q=Q) -> dict[int, float]:
    """The law of the token at one place whose guess was drawn from q."""

    def run(chooser):
        drawn = chooser.categorical(tensor(q), ("draft",)).value
        tree, draft = Tree([0]), Draft(0)
        node = tree.add(0, drawn)
        draft.nodes, draft.children = [node], {0: [node]}
        draft.q[0], draft.scores[0] = tensor(q), tensor(q).log()
        verification = verifier.verify(VerifierInput(draft, tree.tokens, {0: tensor(p)}, chooser, 0))
        return first_token((verification, tree))

    return Exhaustive().distribution(run)


def inputs(p, q, paths: list[str], greedy: bool = False) -> VerifierInput:
    """A drafted tree of tokens a, b, c, d below a one-token prompt, with the same laws everywhere."""
    tree, draft, node_of = Tree([0]), Draft(0), {"": 0}
    for path in paths:
        parent = node_of[path[:-1]]
        node_of[path] = node = tree.add(parent, "abcd".index(path[-1]))
        draft.nodes.append(node)
        draft.children.setdefault(parent, []).append(node)
    places = [0, *draft.nodes]
    draft.scores = {n: tensor(q).log() for n in places}
    soft = {n: tensor(p) for n in places}
    laws = {n: one_hot(tensor(p)[None])[0] for n in places} if greedy else soft
    if not greedy:
        draft.q = {n: tensor(q) for n in draft.children}
    return VerifierInput(draft, tree.tokens, laws, Script([1] * 9), 0, soft)


# ---- the distance that is told ---------------------------------------------------------------------


@pytest.mark.parametrize("strategy", DEFAULTS)
@pytest.mark.parametrize("first", [1, 11, 21])
@pytest.mark.parametrize("top_p", [1.0, 0.8])
def test_the_distance_that_a_lane_tells_is_that_of_the_law_of_its_tokens(strategy, first, top_p):
    models, shape = tables(first), {"temperature": 1.2, "top_p": top_p}
    parameters = {**DEFAULTS[strategy], "num_assistant_tokens": 1, **shape}
    pairs = law_of_rounds(Exhaustive(), strategy, models, parameters, 2, 1)
    found = [0.0] * TOKENS
    for said, mass in pairs.items():
        found[said[0]] += mass
    wanted = exact_distribution(models["target"], (0,), 1, shape_of(shape))
    true = sum(abs(found[t] - wanted.get((t,), 0.0)) for t in range(TOKENS)) / 2
    lane = Lane(strategy, [0], models, parameters, limits=Limits(2))
    told = [
        e for e in lane.advance().events if isinstance(e, Measure) and e.name == ScoreName.TOTAL_VARIATION
    ]
    assert [e.total for e in told] == [pytest.approx(true, abs=1e-12)]
    assert sum(found) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("strategy", DEFAULTS)
def test_at_temperature_0_the_distance_counts_tokens_that_are_not_the_target_s(strategy):
    models = tables(5)
    lane = Lane(strategy, [0], models, {**DEFAULTS[strategy], "temperature": 0.0}, limits=Limits(40))
    trace = lane.run()
    said, other = (0, *trace.output()), 0
    tested = [e.node for s in trace.steps for e in s.of(Measure) if e.name == ScoreName.TOTAL_VARIATION]
    for node in tested:
        row = models["target"].table(tuple(said[: node_depth(trace, node) + 1]))
        other += said[node_depth(trace, node) + 1] != row.index(max(row))
    assert trace.costs.variations.count(1.0) == other and set(trace.costs.variations) <= {0.0, 1.0}
    assert trace.costs.metrics()["mean_total_variation"] == other / len(tested)
    notes = [e.text for s in trace.steps for e in s.of(Note)]
    assert notes[-1].startswith(f"Lossy: {other} of {len(tested)} positions tested")


def node_depth(trace, node: int) -> int:
    depth, nodes = 0, trace.nodes()
    while node >= len(trace.prompt):
        node, depth = nodes[node][0], depth + 1
    return depth


# ---- the limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", LOSSLESS)
@pytest.mark.parametrize("shape", [{"temperature": 1.0}, {"temperature": 0.7, "top_k": 3}])
@pytest.mark.parametrize("eos", [frozenset(), frozenset({2})])
def test_at_the_limit_of_its_parameter_the_law_is_the_target_s(strategy, shape, eos):
    models = tables(31, eos)
    parameters = {**LOSSLESS[strategy], "num_assistant_tokens": 2, **shape}
    found = law_of_rounds(Exhaustive(), strategy, models, parameters, 3, 1)
    assert distance(found, exact_distribution(models["target"], (0,), 3, shape_of(shape))) < 1e-12


@pytest.mark.parametrize("strategy", LOSSLESS)
def test_at_the_limit_temperature_0_is_greedy(strategy):
    for first in range(1, 9):
        models = tables(first)
        greedy = Lane("greedy", [0], {"target": models["target"]}, limits=Limits(20)).run().output()
        parameters = {**LOSSLESS[strategy], "temperature": 0.0}
        assert Lane(strategy, [0], models, parameters, limits=Limits(20)).run().output() == greedy


@pytest.mark.parametrize("strategy", DEFAULTS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_away_from_the_limit_it_is_lossy_and_the_badge_says_so(strategy, temperature):
    relaxed = {**DEFAULTS[strategy], "temperature": temperature}
    assert registry.get(strategy).badge({**registry.get(strategy).check(relaxed)}) == "relaxed"
    divergence_estimate = [
        Lane(strategy, [0], tables(first), relaxed, first, Limits(30)).run().costs.mean_total_variation
        for first in range(1, 9)
    ]
    assert max(divergence_estimate) > 0.05 and all(0.0 <= x <= 1.0 for x in divergence_estimate)


@pytest.mark.parametrize(
    ("strategy", "temperature", "badge"),
    [
        ("lenient", 1.0, "exact in distribution"),
        ("lantern", 0.0, "lossless: equal to greedy"),
        ("fuzzy", 1.0, "exact in distribution"),
        ("typical_acceptance", 1.0, "relaxed"),
    ],
)
def test_the_badge_at_the_limit(strategy, temperature, badge):
    strategy = registry.get(strategy)
    values = strategy.check({**LOSSLESS[strategy.name], "temperature": temperature})
    assert strategy.badge(values) == badge


@pytest.mark.parametrize("strategy", ["lenient", "lantern"])
def test_the_lossless_limit_is_token_rejection_draw_for_draw(strategy):
    for seed in range(5):
        parameters = {"num_assistant_tokens": 3, "temperature": 1.0}
        plain = Lane("speculative", [0], tables(7), parameters, seed, Limits(20)).run()
        found = Lane(strategy, [0], tables(7), {**parameters, **LOSSLESS[strategy]}, seed, Limits(20)).run()
        assert found.output() == plain.output()
        assert not any(s.of(Note) for s in found.steps)


def test_with_no_limit_the_draft_writes():
    assert law_of_token(fuzzy.fuzzy_acceptance(1e6, "kl", 1.0)) == pytest.approx(dict(enumerate(Q)))
    assert law_of_token(typical_acceptance.typical(0.0, 0.3, 1.0)) == pytest.approx(dict(enumerate(Q)))


# ---- worked numbers --------------------------------------------------------------------------------


def test_lenience_makes_no_token_more_than_1_over_l_times_as_likely():
    for lenience in (0.1, 0.5, 0.9, 1.0):
        law = law_of_token(lenient.lenient_rejection(lenience, 1.0))
        assert all(law.get(t, 0.0) <= P[t] / lenience + 1e-12 for t in range(3))
        passes = sum(min(q, p / lenience) for p, q in zip(P, Q, strict=True))
        wanted = [max(p - lenience * q, 0) for p, q in zip(P, Q, strict=True)]
        for t in range(3):
            assert law.get(t, 0.0) == pytest.approx(
                min(Q[t], P[t] / lenience) + (1 - passes) * wanted[t] / sum(wanted)
            )
    assert law_of_token(lenient.lenient_rejection(1.0, 1.0)) == pytest.approx(dict(enumerate(P)))


@pytest.mark.parametrize(("lenience", "kept"), [(1.0, 0), (0.76, 0), (0.74, 1), (0.1, 1)])
def test_lenience_at_temperature_0_asks_for_a_share_of_the_best(lenience, kept):
    verification = lenient.lenient_rejection(lenience, 0.0).verify(inputs(P, Q, ["a"], greedy=True))
    assert len(verification.path) == kept and verification.token == 1


def test_the_entropy_lowers_medusa_s_threshold():
    assert typical_acceptance.threshold(tensor((0.7, 0.2, 0.1)), 0.09, 0.3) == 0.09
    assert typical_acceptance.threshold(
        torch.full((20,), 0.05, dtype=torch.float64), 0.09, 0.3
    ) == pytest.approx(0.015)
    sure = tensor((0.99, 0.01, 0.0))
    assert typical_acceptance.threshold(sure, 0.09, 0.3) == 0.09
    verification = typical_acceptance.typical(0.09, 0.3, 0.0).verify(inputs(sure, Q, ["b"], greedy=True))
    assert not verification.path and verification.token == 0


def test_typical_acceptance_keeps_the_longest_path_and_of_equals_the_likeliest():
    rule = typical_acceptance.typical(0.25, 1.0, 0.0)
    asked = inputs((0.1, 0.3, 0.4, 0.2), Q + (0.0,), ["c", "b", "cc", "bb", "cb", "ba"], greedy=True)
    verification = rule.verify(asked)
    c, b, cc, bb, cb, ba = asked.draft.nodes
    assert verification.path == [c, cc] and verification.token == 2
    passed = {t.node: t.accepted for t in verification.tests}
    assert passed == {c: True, b: False, cc: True, cb: False, bb: False, ba: False}
    codes = {t.node: [reason.code for reason in t.reasons] for t in verification.tests}
    assert codes[b] == [Code.TYPICAL, Code.OTHER_PATH] and codes[c] == [Code.TYPICAL]


@pytest.mark.parametrize(
    ("parameter", "values"), [("epsilon", (0.0, 0.1, 0.3, 0.6)), ("delta", (0.1, 0.5, 1.0, 9.0))]
)
def test_typical_acceptance_keeps_less_the_higher_its_thresholds(parameter, values):
    kept = []
    for value in values:
        settings = {"epsilon": 0.5, "delta": 0.5, parameter: value, "temperature": 1.0}
        kept.append(rates("typical_acceptance", settings))
    assert kept == sorted(kept, reverse=True) and kept[0] > kept[-1]


def rates(strategy: str, settings: dict) -> float:
    """The chance that a guess is kept at the first place, over several pairs of models."""
    total = 0.0
    for first in range(1, 9):
        models = tables(first)

        def run(chooser, models=models) -> bool:
            lane = Lane(
                strategy,
                [0],
                models,
                {**settings, "num_assistant_tokens": 1},
                limits=Limits(2),
                chooser=chooser,
            )
            lane.advance()
            return bool(lane.trace.costs.accepted)

        total += Exhaustive().distribution(run).get(True, 0.0)
    return total


@pytest.mark.parametrize(
    ("p", "q", "wanted"),
    [
        (P, Q, {"tv": 0.3, "kl": 0.23671, "kl_reversed": 0.21972, "js": 0.05523, "js_reversed": 0.05888}),
        ((0.98, 0.01, 0.01), (0.01, 0.98, 0.01), {"js": 0.63032, "js_reversed": 1.59339}),
    ],
)
def test_the_divergences(p, q, wanted):
    for name, value in wanted.items():
        assert fuzzy.DIVERGENCES[name](tensor(p), tensor(q)) == pytest.approx(value, abs=1e-5)
    assert fuzzy.js(tensor(p), tensor(q)) < math.log(2)


def test_an_infinite_divergence_is_said_in_words():
    """At temperature 0.8 with two tokens left, the draft gives 0 to one that the target may write."""
    models = {"target": tiny_models.make(), "draft": tiny_models.make(seed=1)}
    asked = {"divergence": "kl", "temperature": 0.8, "top_k": 2, "limit": 1e6}
    found = Lane("fuzzy", [5, 6, 7], models, asked, 1, Limits(10)).run()
    judged = [
        v for step in found.steps for v in step.of(Verdict) if v.why and v.why[0].code == Code.DIVERGENCE
    ]
    said = [reason_of(v, found.vocabulary) for v in judged if v.why[0].numbers["apart"] is None]
    assert "Target and draft are infinitely far apart here (kl): every token is rejected." in said[0]


@pytest.mark.parametrize("divergence", fuzzy.DIVERGENCES)
def test_the_fuzzy_law_is_the_draft_s_up_to_the_limit_and_the_target_s_beyond(divergence):
    apart = fuzzy.DIVERGENCES[divergence](tensor(P), tensor(Q))
    near, far = (law_of_token(fuzzy.fuzzy_acceptance(apart * x, divergence, 1.0)) for x in (1.001, 0.999))
    assert near == pytest.approx(dict(enumerate(Q)))
    assert far == pytest.approx(dict(enumerate(P)))
    assert fuzzy.DIVERGENCES[divergence](tensor(P), tensor(P)) == 0.0


def test_fuzzy_keeps_more_the_higher_its_limit():
    kept = [rates("fuzzy", {"limit": limit, "temperature": 1.0}) for limit in (0.0, 0.05, 0.2, 0.6, 9.0)]
    assert kept == sorted(kept) and kept[0] < kept[-1]


def test_neighbours_lend_what_fits_below_delta():
    """p(x) .02, neighbours .05, .10, .30 by distance, delta .2: the first two count, p~ = .17."""
    p = tensor((0.02, 0.05, 0.10, 0.30, 0.53))
    near = torch.tensor([[1, 2, 3]])
    assert lantern.support(p, near, 0.2).tolist() == [[True, True, False]]
    verifier = lantern.neighbour_support(0.2, lambda tokens: near, 1.0)
    verification, _ = position(p.tolist(), [0], (0.5, 0.1, 0.1, 0.1, 0.2), Random(0), verifier.verify)
    assert verification.tests[0].p == pytest.approx(0.17) and verification.tests[0].q == 0.5
    assert verification.tests[0].reasons[0].numbers["probability"] == pytest.approx(0.34)
    plain, _ = position(p.tolist(), [0], (0.5, 0.1, 0.1, 0.1, 0.2), Random(0), RECURSIVE_REJECTION.verify)
    assert (plain.tests[0].p, plain.tests[0].q) == pytest.approx((0.02, 0.5))


def test_neighbours_are_the_nearest_and_never_the_token_itself():
    near = lantern.Neighbours(torch.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0], [0.0, 2.0]]), 2)
    assert near(torch.tensor([0, 1])).tolist() == [[2, 3], [3, 2]]
    assert near(torch.tensor([1, 2, 0])).tolist() == [[3, 2], [0, 3], [2, 3]]
    assert lantern.Neighbours(torch.zeros(3, 2), 50)(torch.tensor([1])).shape == (1, 2)


@pytest.mark.parametrize(
    ("parameter", "values"), [("delta", (0.0, 0.1, 0.3, 1.0)), ("neighbours", (1, 2, 3))]
)
def test_lantern_keeps_more_with_more_support(parameter, values):
    settings = {"delta": 0.5, "neighbours": 2, "temperature": 1.0}
    kept = [rates("lantern", {**settings, parameter: value}) for value in values]
    assert kept == sorted(kept) and kept[0] < kept[-1]


def test_no_more_than_delta_is_moved():
    for delta in (0.05, 0.2, 0.5):
        rule = lantern.neighbour_support(delta, lantern.Neighbours(METRIC, 3), 1.0)
        p = (0.1, 0.2, 0.3, 0.4)
        for token in range(TOKENS):
            verification, _ = position(p, [token], (0.25,) * 4, Random(0), rule.verify)
            assert p[token] - 1e-12 <= verification.tests[0].p <= p[token] + delta + 1e-12


def test_lantern_at_temperature_0_takes_what_its_neighbours_make_the_likeliest():
    near = lantern.Neighbours(METRIC, 3)
    for delta, kept in ((0.0, 0), (0.15, 0), (0.2, 1)):
        rule = lantern.neighbour_support(delta, near, 0.0)
        verification = rule.verify(inputs((0.3, 0.2, 0.35, 0.15), (0.25,) * 4, ["a"], greedy=True))
        assert len(verification.path) == kept and verification.token == 2


# ---- part by part ----------------------------------------------------------------------------------

fits = partial(registry.get("speculation").check)


@pytest.mark.parametrize("verifier", ["lenient", "typical", "fuzzy", "neighbours"])
def test_relaxed_verifiers_judge_chains_and_say_why_they_do_not_judge_drawn_trees(verifier):
    for temperature in (0.0, 1.0):
        values = fits({"verifier": verifier, "temperature": temperature})
        assert registry.get("speculation").badge(values) == "relaxed"
        trace = Lane("speculation", [0], tables(3), values, limits=Limits(12)).run()
        assert len(trace.output()) == 12 and trace.costs.variations
    for shape in ("widths", "chains", "best slots"):
        with pytest.raises(ValueError, match="choose the shape chain, or temperature 0"):
            fits({"verifier": verifier, "shape": shape, "temperature": 1.0})


@pytest.mark.parametrize("verifier", ["lenient", "typical", "neighbours"])
@pytest.mark.parametrize("shape", ["widths", "best slots", "good slots", "best paths", "expand and rerank"])
def test_at_temperature_0_they_judge_trees(verifier, shape):
    values = fits({"verifier": verifier, "shape": shape, "temperature": 0.0})
    trace = Lane("speculation", [0], tables(3), values, limits=Limits(12)).run()
    assert len(trace.output()) == 12 and set(trace.costs.variations) <= {0.0, 1.0}


def test_fuzzy_judges_no_tree():
    with pytest.raises(ValueError, match="it can judge no siblings: choose the shape chain"):
        fits({"verifier": "fuzzy", "shape": "best paths", "temperature": 0.0})


def test_the_cost_strip_says_how_lossy_a_relaxed_lane_is_and_of_others_nothing():
    relaxed = Lane("lenient", [0], tables(), {"temperature": 1.0}, limits=Limits(12)).run().costs
    said = {entry["name"]: entry["value"] for entry in strip(relaxed)}
    assert said["lossy"] == relaxed.mean_total_variation > 0.0
    exact = Lane("speculative", [0], tables(), {"temperature": 1.0}, limits=Limits(12)).run().costs
    assert "lossy" not in {entry["name"] for entry in strip(exact)}
