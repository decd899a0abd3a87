"""Sparse pre-training: every seed trains anew; the stored answer compares sparse with dense seed by seed."""

import torch

from explorer import experiments
from explorer.experiments.small_trainings import sparse_pretraining
from explorer.experiments.small_trainings.sparse_pretraining import LENGTHS, SEEDS, losses


def test_a_seed_changes_weights_masks_and_order(monkeypatch):
    for name, value in dict(WIDTH=8, LAYERS=1, HEADS=2, HELD_OUT=2, FINE=1, BATCH=2, FREQUENT=15).items():
        monkeypatch.setattr(sparse_pretraining, name, value)
    rows = torch.randint(16, (8, 6), generator=torch.Generator().manual_seed(0))
    first, again, other = (losses(rows, rows, seed, 1, 0.75) for seed in (0, 0, 1))
    assert first == again != other
    assert first.keys() == {"masks kept", "all free"}
    assert first["masks kept"][0] == first["all free"][0]  # the same model before fine-tuning
    assert losses(rows, rows, 0, 1, 0.0).keys() == {"all free"}


def test_the_stored_answer_has_three_seeds_two_lengths_and_an_interval_for_each_claim():
    answer = experiments.find_stored("sparse-pretraining")
    assert answer["stands"]["trained"] == SEEDS == 3
    assert {row[1] for row in answer["rows"]} == {0, *LENGTHS} and max(LENGTHS) >= 5 * min(LENGTHS)
    compared = [one["what"] for one in answer["stands"]["compared"]]
    assert [what.removesuffix(", sparse against dense") for what in compared] == [
        "loss on stories after 200 steps",
        "loss on stories after 1,000 steps",
        "loss on problems after 1,000 steps",
    ]
