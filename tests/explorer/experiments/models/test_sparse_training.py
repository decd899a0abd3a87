"""Masked training: what counts, what learns, and how masks fade."""

import pytest
import torch
from torch import nn

from explorer.experiments.models.small_llama import small_llama
from explorer.experiments.models.sparse_training import (
    DECAY,
    Gradual,
    Masked,
    fading,
    mask,
    n_of_m,
    random_mask,
    removed,
    training_flops,
    unmask,
    zeros,
)

W = torch.tensor([[4.0, -1.0, 2.0, 0.5]])


def gradient(masked: Masked) -> list[float]:
    """Of the sum of a weight as it counts."""
    weight = nn.Parameter(W.clone())
    masked(weight).sum().backward()
    return weight.grad[0].tolist()


def test_two_of_four_count_and_only_they_learn():
    cut = Masked(n_of_m(2, 4))
    assert cut(W).tolist() == [[4.0, 0.0, 2.0, 0.0]] and gradient(cut) == [1, 0, 1, 0]


def test_a_fading_weight_counts_and_learns_by_its_factor():
    half = Masked(n_of_m(2, 4), factor=0.5)
    assert half(W).tolist() == [[4.0, -0.5, 2.0, 0.25]] and gradient(half) == [1, 0.5, 1, 0.5]


def test_sr_ste_lets_the_gradient_through_and_pulls_masked_weights_to_zero():
    straight = Masked(n_of_m(2, 4), straight=True)
    assert straight(W).tolist() == [[4.0, 0.0, 2.0, 0.0]]
    assert gradient(straight) == pytest.approx([1, 1 - DECAY, 1, 1 + 0.5 * DECAY])


def test_a_factor_falls_from_one_to_nothing():
    factors = [fading(step, 10, 30) for step in range(40)]
    assert factors == sorted(factors, reverse=True)
    assert factors[10] == 1.0 and factors[30] == 0.0 and 0 < factors[29] < 0.01


def test_static_masks_are_fixed_while_all_else_learns_and_are_free_afterwards():
    model = small_llama(20, 16, 2, 2)

    def fixed(at, weight):
        kept = random_mask(weight, 0.75, at)
        return Masked(lambda _: kept)

    masks = mask(model, fixed)
    rows = torch.randint(20, (2, 8), generator=torch.Generator().manual_seed(0))
    assert len(masks) == 14 and zeros(model) == pytest.approx(0.75, abs=1e-3)
    where = [layer.weight == 0 for layer in linear(model)]

    def step():
        adam = torch.optim.AdamW(model.parameters(), 1e-2)
        model(rows, labels=rows).loss.backward()
        adam.step()

    before = model.model.layers[0].mlp.up_proj.weight.clone()
    step()
    assert all(torch.equal(layer.weight == 0, zero) for layer, zero in zip(linear(model), where, strict=True))
    assert not torch.equal(model.model.layers[0].mlp.up_proj.weight, before)
    unmask(model)
    assert zeros(model) == pytest.approx(0.75, abs=1e-3) and not hasattr(linear(model)[0], "parametrizations")
    step()
    assert zeros(model) < 0.05  # but where the gradient was nothing


def linear(model) -> list[nn.Linear]:
    return [m for layer in model.model.layers for m in layer.modules() if isinstance(m, nn.Linear)]


def test_flops_count_what_counts():
    assert training_flops(100, 10) == 6000 and training_flops(100, 10, 0.75) == 1500


def test_weights_that_are_removed_step_by_step_are_the_smallest_and_never_return():
    weight = W.clone()
    kept = Gradual(weight)
    assert kept(weight).tolist() == [[True] * 4]
    kept.share = 0.5
    assert kept(weight).tolist() == [[True, False, True, False]]
    weight[0, 3] = 9.0  # grows after it was removed
    kept.share = 0.75
    assert kept(weight).tolist() == [[True, False, False, False]]


def test_the_journey_prunes_from_a_quarter_to_three_quarters():
    shares = [removed(step, 100, 0.8) for step in (0, 25, 50, 75, 100)]
    assert shares == pytest.approx([0, 0, 0.4, 0.8, 0.8])
