"""Proof live: cells and chances by hand, the band, and a verifier that is caught."""

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.registry import strategies
from decoders.speculative.losslessness import (
    OTHER,
    WIDTH,
    Proof,
    broken,
    cells,
    checkpoints,
    distance,
    simulate,
)
from decoders.testing import random_table
from decoders.trace.events import Distribution, Verdict

V = 6
TARGET = TableModel(random_table(1, V), V)
DRAFT = TableModel(random_table(2, V), V)
MODELS = {"target": TARGET, "draft": DRAFT}
PLAIN = {"temperature": 1.0}


def test_the_chances_of_the_cells_are_sums_of_the_exact_law():
    found, law = cells(TARGET, [0], PLAIN, 3), exact_distribution(TARGET, [0], 3)
    assert sum(found.probabilities) == pytest.approx(1.0, abs=1e-12)
    added = [0.0] * len(found.probabilities)
    for text, chance in law.items():
        added[found.of(list(text))] += chance
    assert added == pytest.approx(found.probabilities, abs=1e-12)
    assert len({len(beginning) for beginning in found.index}) == 3, "some texts are told apart to their end"


def test_a_table_by_hand():
    """One token of six: four have cells of their own, the least likely two share one."""
    table = TableModel(lambda tokens: [0.3, 0.25, 0.2, 0.15, 0.06, 0.04], V)
    found = cells(table, [0], PLAIN, 1)
    assert dict(zip(found.index, found.probabilities, strict=True)) == pytest.approx(
        {(0,): 0.3, (1,): 0.25, (2,): 0.2, (3,): 0.15, (OTHER,): 0.1}
    )
    assert len(found.index) == WIDTH + 1 and found.of([5]) == found.of([4]) == found.index[(OTHER,)]


def test_texts_that_end_early_have_cells():
    ending = TableModel(random_table(3, V), V, eos=frozenset({1, 2, 3}))
    found = cells(ending, [0], {"temperature": 1.0, "top_k": 3}, 3)
    law = exact_distribution(ending, [0], 3, lambda rows: rows.exp())
    assert all(0 <= found.of(list(text)) < len(found.probabilities) for text in law)
    assert sum(found.probabilities) == pytest.approx(1.0, abs=1e-12)


def test_distance_by_hand_and_the_band_falls_with_the_root_of_the_samples():
    chances = torch.tensor([0.5, 0.3, 0.2])
    assert float(distance(torch.tensor([8.0, 1.0, 1.0]), chances)) == pytest.approx(0.3)
    found = simulate([0.5, 0.3, 0.2], [100, 1600])
    small, large = found.mean(0).tolist()
    assert small / large == pytest.approx(4.0, rel=0.1)
    # The mean of |share - chance| of n draws is sqrt(2 x (1 - x) / (pi n)) in the limit.
    limit = sum((2 * x * (1 - x) / (torch.pi * 1600)) ** 0.5 for x in (0.5, 0.3, 0.2)) / 2
    assert large == pytest.approx(limit, rel=0.1)
    assert torch.equal(found, simulate([0.5, 0.3, 0.2], [100, 1600])), "the band is the same every time"


def test_a_lossless_lane_stays_inside_and_the_broken_verifier_is_caught():
    proof = Proof("speculative", [0], MODELS, {"temperature": 1.0}, 3, 1000, with_broken=True)
    before = proof.state()
    assert before["done"] == 0 and [way["distance"] for way in before["ways"]] == [None, None]
    proof.advance(600.0)
    state = proof.state()
    right, wrong = state["ways"]
    assert state["done"] == 1000 and right["curve"][-1][0] == 1000 == state["band"][-1][0]
    assert right["inside"] and right["beyond"] > 0.01
    assert not wrong["inside"] and wrong["beyond"] == 0.0 and wrong["distance"] > 1.5 * wrong["edge"]


def test_the_broken_verifier_bends_the_law_by_what_its_mistake_says():
    """Its first token has the law min(p, q) + (1 - beta) p, beta being the sum of min(p, q)."""
    p, q = (torch.tensor(model.table((0,)), dtype=torch.float64) for model in (TARGET, DRAFT))
    shared = torch.minimum(p, q)
    wanted = shared + (1 - shared.sum()) * p
    found = Proof("speculative", [0], MODELS, PLAIN, 2, 1200, with_broken=True)
    counts = torch.zeros(V, dtype=torch.float64)
    for seed in range(1200):
        counts[found.ways[1].write(seed)[0]] += 1
    assert float(distance(counts, wanted)) < 0.03 < float(distance(counts, p))


def test_a_lane_that_records_no_offers_writes_the_same():
    proof = Proof("speculative", [0], MODELS, PLAIN, 3, 20, with_broken=False)
    for seed in range(20):
        lanes = [Lane("speculative", [0], MODELS, PLAIN, seed, Limits(3)) for _ in range(2)]
        lanes[1].records_offers = False
        shown, bare = (lane.run() for lane in lanes)
        assert proof.ways[0].write(seed) == shown.output() == bare.output()
        assert any(step.of(Distribution) for step in shown.steps)
        assert not any(step.of(Distribution) for step in bare.steps)
        assert [step.of(Verdict) for step in shown.steps] == [step.of(Verdict) for step in bare.steps]


def test_no_strategy_can_be_made_of_the_broken_verifier():
    assert all(one.run is not broken for one in strategies().values())
    lane = Lane("speculative", [0], MODELS, PLAIN, limits=Limits(4)).run()
    assert lane.badge == "exact in distribution"


def test_checkpoints_and_unusable_parameters():
    assert checkpoints(100) == list(range(4, 101, 4)) and checkpoints(3) == [1, 2, 3]
    with pytest.raises(ValueError, match="At temperature 0 every seed writes the same text"):
        Proof("speculative", [0], MODELS, {"temperature": 0.0}, 3, 10, with_broken=False)
