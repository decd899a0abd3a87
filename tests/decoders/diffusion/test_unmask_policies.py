"""The rules of masked-diffusion decoding, by the worked examples of their papers."""

import pytest
import torch

from decoders.diffusion import unmask_policies as policies


def scores(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_ties_go_to_the_lower_position():
    assert policies.surest_first(scores(0.5, 0.9, 0.5, 0.9)) == [1, 3, 0, 2]


@pytest.mark.parametrize("masks, per_forward, want", [(8, 1, [1] * 8), (10, 3, [3, 3, 2, 2]), (3, 8, [3])])
def test_a_quota_shares_evenly_and_gives_the_rest_to_the_first(masks, per_forward, want):
    assert policies.quotas(masks, per_forward) == want


@pytest.mark.parametrize("masks, per_forward", [(32, 1), (32, 4), (7, 2), (1, 1)])
def test_falling_times_fill_everything_in_no_more_forwards(masks, per_forward):
    counts = policies.quotas_in_time(masks, per_forward)
    assert sum(counts) == masks and all(counts) and len(counts) <= -(-masks // per_forward)


def test_a_threshold_fills_all_above_it_or_the_surest():
    assert policies.threshold(scores(0.95, 0.2, 0.9), 0.9) == [0, 2]
    assert policies.threshold(scores(0.5, 0.7, 0.6), 0.9) == [1]


def test_the_factor_of_the_worked_example_and_its_off_by_one():
    """c = .99 .97 .85 .79, f = 1: values .02 .09 .60 1.05, so three; a copied loop takes four."""
    assert policies.factor(scores(0.99, 0.97, 0.85, 0.79), 1.0) == [0, 1, 2]
    assert policies.factor(scores(0.97, 0.99, 0.85), 1.0) == [1, 0, 2]
    assert policies.factor(scores(0.1, 0.2), 0.5) == [1]


def test_the_entropy_bound_of_the_worked_example():
    """H = .05 .10 .30 .60, gamma .2: values 0, .05, .15, .45, so three; without "- max" there are two."""
    entropies = scores(0.05, 0.10, 0.30, 0.60)
    assert policies.entropy_bound(-entropies, entropies, 0.2) == [0, 1, 2]
    assert policies.entropy_bound(-entropies, entropies, 0.0) == [0]
    assert policies.entropy_bound(-entropies, entropies, 100.0) == [0, 1, 2, 3]
    shuffled = entropies[[2, 0, 3, 1]]
    assert policies.entropy_bound(-shuffled, shuffled, 0.2) == [1, 3, 0]


def test_the_worked_example_of_local_leap():
    c = scores(0.95, 0.80, 0.72, 0.78, 0.60, 0.76)
    assert policies.near_anchors(c, list(range(6)), 0.9, 0.75, 2) == ([0], [1])


@pytest.mark.parametrize("seed", range(20))
def test_without_reach_or_slack_local_leap_is_the_threshold(seed):
    generator = torch.Generator().manual_seed(seed)
    c = torch.rand(12, generator=generator, dtype=torch.float64)
    places = sorted(torch.randperm(40, generator=generator)[:12].tolist())
    want = set(policies.threshold(c, 0.8))
    for tau_low, radius in ((0.8, 5), (0.3, 0)):
        anchors, others = policies.near_anchors(c, places, 0.8, tau_low, radius)
        assert {*anchors, *others} == want
    sizes = [len(sum(policies.near_anchors(c, places, 0.8, 0.5, r), [])) for r in range(8)]
    assert sizes == sorted(sizes)
