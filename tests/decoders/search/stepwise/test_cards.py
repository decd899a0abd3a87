"""Cascade reward sampling: the dossier's numbers, segments, thresholds, the draw, and what is thrown away."""

import math

import pytest

from decoders.chooser import Random
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.stepwise import cards as module
from decoders.search.stepwise import scorers
from decoders.search.stepwise.cards import acceptance, threshold
from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Rank, Score
from tests.helpers import tiny_models

END = 0


def run(model, prompt, new_tokens=24, seed=0, strategy="cards", **parameters):
    limits = Limits(max_new_tokens=new_tokens)
    return Lane(strategy, prompt, {"target": model}, parameters, seed, limits).run()


def words(row: list[float]) -> TableModel:
    """A table model that says one of three words, always with the same law; it has no end."""
    return TableModel(lambda past: row, 3, words=[" ant", " bee", " cat"])


def attempts(trace) -> list[Score]:
    return [e for step in trace.steps for e in step.of(Rank) if e.name == "reward"]


def segments(trace) -> list[int]:
    return [len(e.nodes) for step in trace.steps for e in step.of(Commit)]


def test_thresholds_and_acceptance_are_the_paper_s():
    start = 0.5 * -2 + 0.5 * 1
    found = [threshold(start, 1.0, t, 128) for t in (8, 64, 128, 200)]
    assert found == pytest.approx([-0.40625, 0.25, 1.0, 1.0])
    assert acceptance(0.2, 0.25, 0.8) == pytest.approx(0.9394, abs=5e-5)
    assert acceptance(0.2, 0.25, 0.0) == 0.0 and acceptance(0.25, 0.25, 0.0) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_where_all_is_good_enough_it_is_plain_sampling(prompt, seed):
    model, settings = tiny_models.make(endings=0.05), {"temperature": 0.9, "top_k": 20}
    plain = run(model, prompt, seed=seed, strategy="sample", **settings)
    found = run(model, prompt, seed=seed, target_reward=-100.0, entropy_threshold=2.0, **settings)
    assert found.output() == plain.output()
    assert all(e.parts["accepted_with"] == 1.0 for e in attempts(found))


def test_the_entropy_says_where_segments_end():
    """Threshold 0: after min_segment; out of reach: after max_segment; between: where uncertain."""
    settings = {"target_reward": -100.0, "min_segment": 4, "max_segment": 10}
    model = words([0.5, 0.3, 0.2])
    assert segments(run(model, [1], 24, entropy_threshold=0.0, **settings)) == [4] * 6
    assert segments(run(model, [1], 24, entropy_threshold=100.0, **settings)) == [10, 10, 4]
    sure, unsure = [0.0, 1.0, 0.0], [0.4, 0.3, 0.3]
    every_sixth = TableModel(lambda past: unsure if len(past) % 6 == 1 else sure, 3)
    found = run(every_sixth, [1], 24, entropy_threshold=1.0, **settings)
    assert segments(found) == [6] * 4  # token 7, the first after six, is the unsure one


def test_a_segment_is_accepted_as_often_as_the_formula_says():
    chance = acceptance(0.2, 0.25, 0.1)
    count = 10_000
    drawn = [Random(seed).bernoulli(chance, ("segment", 5, 0)).value for seed in range(count)]
    assert sum(drawn) / count == pytest.approx(chance, abs=0.015)
    lane = Lane("cards", [1], {"target": words([1.0, 0, 0])}, {"acceptance_temperature": 0.1}, 7)
    nodes = [lane.propose(lane.tip, 0, 0.0)]
    accepted = module.judge(lane, module.Segment(nodes, [0.0], 0.2), 0.25, 0)
    told = [e for e in lane.events if isinstance(e, Score)][-1]
    assert told.parts["accepted_with"] == pytest.approx(chance)
    assert accepted == (told.parts["u"] < chance)


def test_a_rejected_segment_is_redrawn_and_the_best_is_taken_in_the_end():
    """ " bee" is wanted and rare: with a hard threshold segments without it are thrown away."""
    settings = {"scorer": "keyword", "keywords": "bee", "target_reward": 1.0, "alpha": 1.0}
    settings |= {"acceptance_temperature": 0.0, "max_segment": 2, "min_segment": 1}
    found = run(words([0.45, 0.1, 0.45]), [0], 4, seed=3, **settings, max_rejections=200)
    assert 1 in found.output()[:2]
    rejected = [e for s in found.steps for e in s.of(Verdict) if e.status == "rejected"]
    assert rejected and "reward 0.000, threshold 1.000" in rejected[0].reason
    never = run(words([0.5, 0.0, 0.5]), [0], 4, seed=3, **settings, max_rejections=3)
    assert len(never.output()) == 4
    assert len(attempts(never)) == 2 * 4  # two segments, each drawn four times
    last = [e for s in never.steps for e in s.of(Verdict) if e.status == "accepted"]
    assert last[0].reason.startswith("the best of 4 that were rejected")


def test_of_the_rejected_the_best_is_remembered_and_forgotten_after_it_was_taken(monkeypatch):
    """Rewards .1 .5 .3 then .2 .1 .15: the second and, in the next round, the first are taken."""
    said = iter([0.0, 0.1, 0.5, 0.3, 0.2, 0.1, 0.15])
    monkeypatch.setattr(scorers.Scorer, "score", lambda self, node, whole: next(said))
    found = run(
        words([0.4, 0.3, 0.3]),
        [1],
        4,
        entropy_threshold=100.0,
        max_segment=2,
        min_segment=1,
        acceptance_temperature=0.0,
        target_reward=1.0,
        alpha=1.0,
        max_rejections=2,
    )
    slots = {e.node: e.slot for s in found.steps for e in s.of(Propose)}
    taken = [[slots[n] for n in e.nodes] for s in found.steps for e in s.of(Commit)]
    assert taken == [[1, 1], [0, 0]]


def test_rewards_are_asked_once_more_than_segments_are_drawn(monkeypatch):
    asked = []
    real = scorers.Scorer.score
    monkeypatch.setattr(
        scorers.Scorer, "score", lambda self, *rest, **named: asked.append(1) or real(self, *rest, **named)
    )
    found = run(
        tiny_models.make(endings=0.05),
        tiny_models.tokenizer()("the cat")["input_ids"],
        scorer="length",
        words=3,
    )
    assert len(asked) == len(attempts(found)) + 1


def test_texts_have_a_higher_reward_than_plain_samples():
    """On 100 seeds, the share of " bee" among keywords: never lower on average, and clearly higher."""
    model, wanted = words([0.6, 0.05, 0.35]), {"scorer": "keyword", "keywords": "bee"}

    def mean(strategy: str, **settings) -> float:
        runs = [run(model, [0], 6, seed, strategy, **settings) for seed in range(100)]
        return sum(1 in r.output() for r in runs) / len(runs)

    guided = mean(
        "cards", **wanted, entropy_threshold=0.0, min_segment=2, acceptance_temperature=0.1, max_rejections=5
    )
    plain = mean("sample")
    assert plain == pytest.approx(1 - 0.95**6, abs=0.1)
    assert guided > plain + 0.4


def test_temperature_0_draws_each_segment_once(prompt):
    model = tiny_models.make(endings=0.05)
    found = run(model, prompt, temperature=0.0, target_reward=1.0, acceptance_temperature=0.0, words=1)
    assert found.output() == run(model, prompt, strategy="greedy").output()
    assert [e.nodes for s in found.steps for e in s.of(Commit)]
    assert all(math.isfinite(e.total) for e in attempts(found))


def test_what_cannot_be_is_said(prompt):
    with pytest.raises(ValueError, match="min_segment is 9, but max_segment only 5"):
        run(tiny_models.make(), prompt, min_segment=9, max_segment=5)
