"""AWRS: a token has the law of a mask, weights are right on average, particles find the conditional."""

import math
from collections import Counter
from itertools import permutations

import pytest
import torch

from decoders.chooser import Exhaustive, Random, Script
from decoders.constraints.trie import Trie
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.sampling.adaptive_rejection import first_allowed, geometric, recursive
from decoders.testing import random_table
from decoders.trace.events import Note, Propose, Verdict
from decoders.trace.scores import Measure, Score
from decoders.trace.trace import malformed
from explorer.runs.view_cache import Fold
from tests.helpers import tiny_models

P = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
allowed = {1, 2}.__contains__


class Walked(Exhaustive):
    """Geometric numbers are walked too, as far as their probabilities count in float64."""

    def phantoms(self, success: float, tag: tuple) -> int:
        count = 1 + int(math.log(1e-17) / math.log1p(-success))
        weights = (1.0 - success) ** torch.arange(count, dtype=torch.float64)
        return self.categorical(weights, tag).value


def expectations(estimator) -> tuple[dict, dict]:
    """(law of the token, expectation of the estimate where it is this token)."""
    outcomes = Walked().distribution(lambda c: (o := estimator(c)) and (o.token, o.estimate))
    law, weight = Counter(), Counter()
    for (token, estimate), probability in outcomes.items():
        law[token] += probability
        weight[token] += probability * estimate
    return dict(law), dict(weight)


def drawing(chooser):
    return lambda weights, tried: chooser.categorical(weights, ("draw", tried)).value


def phantoms(chooser):
    return lambda success, tried: chooser.phantoms(success, ("phantoms", tried))


def test_the_recursive_estimate_in_each_of_the_six_orders():
    want = {"abc": 0.5, "acb": 0.5, "bac": 0.3, "bca": 1.0, "cab": 0.2, "cba": 1.0}
    for order in permutations(range(3)):
        outcome = recursive(P, allowed, lambda weights, tried, order=order: order[tried])
        assert outcome.estimate == pytest.approx(want["".join("abc"[i] for i in order)], abs=1e-12)
        assert outcome.token == next(token for token in order if token)


@pytest.mark.parametrize(
    "estimator",
    [
        lambda c: recursive(P, allowed, drawing(c)),
        lambda c: geometric(P, allowed, drawing(c), phantoms(c)),
    ],
    ids=["recursive", "geometric"],
)
def test_the_token_has_the_masked_law_and_the_estimate_is_unbiased(estimator):
    law, weight = expectations(estimator)
    assert law == pytest.approx({1: 0.6, 2: 0.4}, abs=1e-12)
    assert weight == pytest.approx({1: 0.3, 2: 0.2}, abs=1e-12)


def test_more_accepts_have_less_variance_and_the_same_mean():
    rare, variance = torch.tensor([0.02, 0.58, 0.4], dtype=torch.float64), []
    for accepts in (2, 3):
        outcomes = Walked().distribution(
            lambda c, n=accepts: geometric(rare, allowed, drawing(c), phantoms(c), n).estimate
        )
        assert sum(p * z for z, p in outcomes.items()) == pytest.approx(0.98, abs=1e-12)
        variance.append(sum(p * (z - 0.98) ** 2 for z, p in outcomes.items()))
    assert variance[1] < variance[0]


def test_random_rows_are_unbiased_too():
    for seed in range(6):
        p = torch.tensor(random_table(seed, 4, 1.5)(()), dtype=torch.float64)
        kept = {seed % 4, (seed + 1 + seed // 4) % 4}
        mask = torch.tensor([float(t in kept) for t in range(4)], dtype=torch.float64)
        law, weight = expectations(lambda c, p=p, kept=kept: recursive(p, kept.__contains__, drawing(c)))
        for token in kept:
            assert law[token] == pytest.approx(float((p * mask / (p * mask).sum())[token]), abs=1e-12)
            assert weight[token] == pytest.approx(float(p[token]), abs=1e-12)


def test_where_all_is_allowed_the_weight_is_one_after_two_checks():
    for draws in ([0, 1], [2, 0]):
        for outcome in (
            recursive(P, lambda token: True, lambda w, tried, d=draws: d[tried]),
            geometric(P, lambda token: True, lambda w, tried, d=draws: d[tried], lambda *a: 1 / 0),
        ):
            assert outcome.estimate == 1.0 and len(outcome.drawn) == 2
    assert first_allowed(P, lambda token: True, lambda w, tried: 2).drawn == [(2, pytest.approx(0.2), True)]


def test_a_cap_on_rejections_loses_the_text_and_lowers_the_weight():
    for estimator in (
        lambda c: recursive(P, allowed, drawing(c), 1),
        lambda c: first_allowed(P, allowed, drawing(c), 1),
        lambda c: geometric(P, allowed, drawing(c), phantoms(c), 2, 1),
    ):
        law, weight = expectations(estimator)
        assert law[None] == pytest.approx(0.5) and weight[None] == 0.0
    assert expectations(lambda c: recursive(P, {2}.__contains__, drawing(c), 2))[1][2] < 0.2 - 1e-3


def test_nothing_allowed_and_the_last_token_left():
    outcome = recursive(P, lambda token: False, lambda w, tried: tried)
    assert outcome.token is None and outcome.estimate == 0.0 and len(outcome.drawn) == 3
    outcome = recursive(P, {2}.__contains__, lambda w, tried: tried)
    assert outcome.token == 2 and outcome.estimate == pytest.approx(0.2)


# --- lanes -----------------------------------------------------------------------------------------------

LANGUAGE = [(0, 0, 0), *((1, a, b) for a in (0, 1) for b in (0, 1))]
BITS = TableModel(
    lambda past: {(): [0.5, 0.5], (0,): [0.1, 0.9], (0, 0): [0.1, 0.9]}.get(past[1:], [0.5, 0.5]), 2
)


def lane_of(model, texts, new_tokens=3, chooser=None, seed=0, **parameters) -> Lane:
    """A lane whose text is one of `texts`."""
    lane = Lane("awrs", [0], {"target": model}, parameters, seed, Limits(new_tokens), chooser)
    lane.constrain(Trie(map(list, texts), model.vocabulary))
    return lane


def weight_of(trace) -> float:
    scores = [e for s in trace.steps for e in s.of(Measure) if e.name == "log weight"]
    return math.exp(scores[-1].total) if scores else 0.0


def masked_law(model, texts, new_tokens=3) -> dict:
    def run(chooser):
        lane = Lane("sample", [0], {"target": model}, {}, 0, Limits(new_tokens), chooser)
        lane.constrain(Trie(map(list, texts), model.vocabulary))
        return tuple(lane.run().output())

    return Exhaustive().distribution(run)


def random_language(seed):
    model = TableModel(random_table(seed), 3)
    draw = torch.Generator().manual_seed(seed)
    texts = {tuple(torch.randint(3, (3,), generator=draw).tolist()) for _ in range(7)}
    return model, sorted(texts)


@pytest.mark.parametrize("model,texts", [(BITS, LANGUAGE), random_language(2), random_language(5)])
@pytest.mark.parametrize("estimate", ["recursive", "none"])
def test_one_text_has_the_law_of_a_mask_and_an_honest_weight(model, texts, estimate):
    def run(chooser):
        trace = lane_of(model, texts, chooser=chooser, estimate=estimate).run()
        return tuple(trace.output()), round(weight_of(trace), 15)

    law, weight = Counter(), Counter()
    for (text, w), probability in Exhaustive().distribution(run).items():
        law[text] += probability
        weight[text] += probability * w
    assert dict(law) == pytest.approx(masked_law(model, texts), abs=1e-12)
    exact = {t: math.prod(model.table((0, *t[:i]))[t[i]] for i in range(3)) for t in texts}
    want = exact if estimate == "recursive" else law
    assert dict(weight) == pytest.approx({t: p for t, p in want.items() if p}, abs=1e-12)


def test_several_texts_come_near_the_conditional():
    """With four texts the output is nearer to the model's own law among allowed texts than under a mask."""
    conditional = {t: p / 0.505 for t, p in zip(LANGUAGE, [0.005, *[0.125] * 4], strict=True)}

    def far(count: int, seeds: int) -> float:
        runs = (lane_of(BITS, LANGUAGE, seed=seed, population=count).run() for seed in range(seeds))
        seen = Counter(tuple(run.output()) for run in runs)
        return sum(abs(seen[t] / seeds - p) for t, p in conditional.items()) / 2

    assert far(1, 120) > 0.35 and far(8, 120) < 0.16


def test_a_thousand_particles_are_the_conditional():
    """By their weights, without drawing one: total variation below .05, under a mask above .2."""
    chooser, seen = Random(3), Counter()
    for number in range(1000):
        text, weight = (), 1.0
        while len(text) < 3:

            def check(token, text=text):
                return any(t[: len(text) + 1] == (*text, token) for t in LANGUAGE)

            def draw(weights, tried, number=number, text=text):
                return chooser.categorical(weights, (number, len(text), tried)).value

            row = torch.tensor(BITS.table((0, *text)), dtype=torch.float64)
            outcome = recursive(row, check, draw)
            text, weight = (*text, outcome.token), weight * outcome.estimate
        seen[text] += weight
    total = sum(seen.values())
    conditional = {t: p / 0.505 for t, p in zip(LANGUAGE, [0.005, *[0.125] * 4], strict=True)}
    assert sum(abs(seen[t] / total - p) for t, p in conditional.items()) / 2 < 0.05
    masked = masked_law(BITS, LANGUAGE)
    assert sum(abs(masked[t] - p) for t, p in conditional.items()) / 2 > 0.2


def test_draws_are_recorded_with_what_became_of_them():
    lane = lane_of(BITS, LANGUAGE, chooser=Script([0, 1, 1, 0, 1, 1, 0]), estimate="recursive")
    step = lane.advance()  # 0 allowed, then 1 for the estimate
    first, extra = step.of(Propose)
    assert [v.reason for v in step.of(Verdict) if v.node == extra.node] == [
        "allowed, and drawn for the estimate alone"
    ]
    step = lane.advance()  # 1 rejected, then 0, the last token
    wrong, right = step.of(Propose)
    assert [(v.node, v.status) for v in step.of(Verdict)] == [(wrong.node, "rejected")]
    (score,) = [e for e in step.of(Score) if e.node == right.node]
    assert score.total == pytest.approx(math.log(0.1)) and score.parts["checks"] == 2
    lane.close()


def test_a_population_draws_the_places_of_light_texts_again():
    traces = [lane_of(BITS, LANGUAGE, seed=seed, population=4).run() for seed in range(20)]
    notes = [e.text for t in traces for s in t.steps for e in s.of(Note)]
    assert any("they are resampled" in note for note in notes)
    assert all(tuple(t.output()) in LANGUAGE for t in traces)


def test_texts_that_part_stand_in_rows_of_their_own():
    trace = lane_of(BITS, LANGUAGE, seed=1, population=4, estimate="none").run()
    assert malformed((e for s in trace.steps for e in s.events), 1) is None
    fold = Fold("beam_tree", trace)
    marks = [op for i in range(len(trace.steps)) for op in fold.ops(i) if op.get("kind") == "node"]
    places = [(op["x"], op["y"]) for op in marks]
    assert len(set(places)) == len(places) > 4


def test_where_nothing_is_allowed_a_sentence_ends_the_lane():
    trace = lane_of(TableModel(lambda past: [1.0, 0.0], 2), [(1, 1)], population=2).run()
    assert (
        trace.ended.startswith("No text was left: the constraint rejected all draws") and not trace.output()
    )


@pytest.mark.parametrize("seed", range(3))
def test_without_a_constraint_it_writes_what_sampling_writes(prompt, seed):
    model = tiny_models.make()
    plain = Lane("sample", prompt, {"target": model}, {"temperature": 0.8}, seed, Limits(12)).run()
    found = Lane("awrs", prompt, {"target": model}, {"temperature": 0.8}, seed, Limits(12)).run()
    assert found.output() == plain.output() and weight_of(found) == pytest.approx(1.0)


@pytest.mark.parametrize("chooser", [Random(0), Random(1)])
def test_temperature_0_takes_the_likeliest_allowed_token_and_draws_nothing(chooser, prompt):
    model, given = tiny_models.make(), {"constraint": "regex", "constraint_text": "[a-m ]+", "temperature": 0}
    greedy = Lane("sample", prompt, {"target": model}, given, 0, Limits(8)).run()
    found = Lane("awrs", prompt, {"target": model}, given, 0, Limits(8), chooser).run()
    assert found.output() == greedy.output()
    with pytest.raises(ValueError, match="At temperature 0 all texts are the same; choose population 1"):
        Lane("awrs", prompt, {"target": model}, given | {"population": 2})


def test_of_many_rejected_draws_the_first_are_recorded_and_all_are_counted():
    model = TableModel(lambda past: [1 / 200] * 200, 200)
    trace = lane_of(model, [(199,)], 1).run()
    rejected = [v for s in trace.steps for v in s.of(Verdict) if v.status == "rejected"]
    (score,) = (e for s in trace.steps for e in s.of(Score) if "checks" in e.parts)
    assert trace.output() == [199]
    assert len(rejected) == min(32, score.parts["checks"] - 1) and score.parts["checks"] > 33
