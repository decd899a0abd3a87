"""Speculation on densities: the dossier's numbers, the target's law, and the limits."""

import math

import pytest
import torch

from explorer.experiments.models.continuous import Process, decode, overlap, ratio, residual
from explorer.experiments.without_decoding.continuous import DRAWS, distance, one_step

P, Q = Process(0.0, 1.0, 1.0), Process(0.0, 0.0, 1.0)


def column(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_ratios_and_overlap_of_two_normal_laws():
    x = column(0.0, 0.5, 1.0, 2.0)
    assert ratio(x, torch.zeros(4), P, Q).tolist() == pytest.approx([0.6065, 1.0, 1.6487, 4.4817], abs=5e-5)
    assert overlap(P, Q, 0.0) == pytest.approx(0.61708, abs=1e-5)
    assert 1 / (1 - overlap(P, Q, 0.0)) == pytest.approx(2.6115, abs=1e-4)


def test_one_drafted_number_has_the_target_s_law():
    values, accepted, proposals = one_step(1.0, 1.0)
    bound = 4 * math.sqrt(0.617 * 0.383 / DRAWS)
    assert accepted == pytest.approx(0.61708, abs=bound)
    assert proposals == pytest.approx(2.6115, abs=0.1)
    assert distance(values, 1.0)[1] > 0.001
    assert distance(values, 1.05)[1] < 0.001  # the test has teeth


def test_equal_models_accept_always():
    assert one_step(0.0, 1.0)[1:] == (1.0, None)
    wrote = decode(P, P, 40, 4, torch.Generator().manual_seed(0))
    assert wrote.accepted == wrote.tested and wrote.evaluations == 8 and len(wrote.values) == 40


def test_a_large_inner_temperature_accepts_with_the_ratio_of_the_sigmas():
    wide = Process(0.0, 0.0, 2.0)
    far = ratio(column(-3.0, 0.0, 3.0), torch.zeros(3), wide, Q, 1e9)
    assert far.tolist() == pytest.approx([0.5] * 3, abs=1e-6)
    values, accepted, _ = one_step(1.0, 1e9)
    assert accepted == 1.0 and distance(values, 0.0)[1] > 0.001 > distance(values, 1.0)[1]


def test_the_residual_lies_where_the_target_has_more():
    y, proposals = residual(torch.zeros(2000, dtype=torch.float64), P, Q, torch.Generator().manual_seed(1))
    assert float(y.min()) > 0.5 and int(proposals.min()) == 1


def test_a_process_keeps_its_law_and_its_length():
    """The stationary law of the target's process, drafted by another; thinned to be nearly independent."""
    target, draft = Process(0.5, 0.0, math.sqrt(0.75)), Process(0.3, 0.2, 1.0)
    wrote = decode(target, draft, 1200, 4, torch.Generator().manual_seed(2), prefilled=0.05)
    assert len(wrote.values) == 1200 and 0 < wrote.accepted < wrote.tested
    assert wrote.evaluations < 1200 and len(wrote.proposals) > 0
    assert distance(column(*wrote.values[::8]), 0.0)[1] > 0.001
    alone = decode(target, draft, 30, 4, torch.Generator().manual_seed(2), prefilled=1.0)
    assert alone.evaluations == 30 and alone.tested == 0
