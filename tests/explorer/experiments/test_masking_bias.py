"""Masking bias: the laws on a language that is worked out by hand, and the repair by weights."""

import pytest
import torch

from explorer.experiments.masking_bias import distance, distributions, weighted

TEXTS = [(0, 0, 0), *((1, a, b) for a in (0, 1) for b in (0, 1))]
HALF = torch.tensor([0.5, 0.5], dtype=torch.float64)
RARE = torch.tensor([0.1, 0.9], dtype=torch.float64)
ROWS = {text[:i]: HALF for text in TEXTS for i in range(3)} | {(0,): RARE, (0, 0): RARE}


def test_the_language_of_the_paper():
    """{000, 1xx} over bits: masked sampling gives 000 half of the time; wanted is .0099."""
    local, wanted, kept = distributions(ROWS, TEXTS)
    assert local[0, 0, 0] == pytest.approx(0.5) and kept[0, 0, 0] == pytest.approx(0.01)
    assert wanted[0, 0, 0] == pytest.approx(0.005 / 0.505)
    assert sum(local.values()) == pytest.approx(1) and sum(wanted.values()) == pytest.approx(1)
    assert distance(local, wanted) == pytest.approx(0.5 - 0.005 / 0.505)


def test_weights_lead_from_one_law_to_the_other():
    local, wanted, kept = distributions(ROWS, TEXTS)
    far = [distance(weighted(local, kept, count), wanted) for count in (1, 4, 32)]
    assert far[0] == pytest.approx(distance(local, wanted), abs=0.01)
    assert far[0] > far[1] > far[2] and far[2] < 0.02
