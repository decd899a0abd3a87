"""Pruned, rounded and low-rank matrices: by hand, and for a whole model."""

import pytest
import torch

from decoders.models.editing.matrices import (
    edited,
    input_norms,
    linear_layers,
    low_rank,
    own_rows,
    pruned,
    rounded_weight,
)

W = torch.tensor([[4.0, -1.0, 2.0, 0.5], [0.1, 0.2, -0.3, 0.4]])


def test_magnitude_prunes_the_smallest_of_the_whole_matrix():
    assert pruned(W, 0.5).tolist() == [[4.0, -1.0, 2.0, 0.5], [0, 0, 0, 0]]
    assert torch.equal(pruned(W, 0.0), W) and not pruned(W, 1.0).any()


def test_wanda_prunes_each_row_by_weight_times_input_norm():
    found = pruned(W, 0.5, torch.tensor([0.1, 5.0, 1.0, 10.0]))
    torch.testing.assert_close(found, torch.tensor([[0, -1.0, 0, 0.5], [0, 0.2, 0, 0.4]]))


def test_two_of_four_keeps_the_largest_two_of_every_four():
    kept = pruned(W, (2, 4))
    torch.testing.assert_close(kept, torch.tensor([[4.0, 0, 2.0, 0], [0, 0, -0.3, 0.4]]))
    torch.manual_seed(0)
    some = pruned(torch.randn(6, 24), (1, 8))
    assert (some.unflatten(-1, (-1, 8)).ne(0).sum(-1) == 1).all()
    with pytest.raises(ValueError, match="no groups of 3"):
        pruned(W, (1, 3))


def test_rounding_to_three_bits_has_seven_levels_and_errs_by_half_a_step():
    found = rounded_weight(W, 3)
    assert torch.allclose(found[0], torch.tensor([4.0, -4 / 3, 8 / 3, 0.0]))
    torch.manual_seed(0)
    some = torch.randn(5, 100)
    for bits in (2, 3, 4, 8):
        steps = some.abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
        levels = (rounded_weight(some, bits) / steps).round()
        assert len(levels.unique()) <= 2**bits - 1
        assert ((rounded_weight(some, bits) - some).abs() <= steps / 2 + 1e-6).all()


def test_low_rank_is_the_nearest_of_its_rank():
    torch.manual_seed(0)
    some = torch.randn(8, 6)
    assert torch.linalg.matrix_rank(low_rank(some, 0.5)) == 3
    torch.testing.assert_close(low_rank(some, 1.0), some)
    error = (low_rank(some, 0.5) - some).square().sum()
    torch.testing.assert_close(error, torch.linalg.svdvals(some)[3:].square().sum())


def test_norms_are_those_of_what_a_layer_reads(tiny_model):
    model = tiny_model().model
    rows = torch.tensor([[40, 41, 42], [50, 51, 52]])
    seen = []
    layer = model.model.layers[1].mlp.down_proj
    hook = layer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    norms = input_norms(model, rows)
    hook.remove()
    torch.testing.assert_close(norms["model.layers.1.mlp.down_proj"], seen[0].flatten(0, 1).norm(dim=0))
    assert norms.keys() == linear_layers(model).keys() and not any("lm_head" in name for name in norms)


def test_an_edit_leaves_the_model_and_others_luck_alone(tiny_model):
    model = tiny_model().model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    same = edited(model, lambda name, weight: pruned(weight, 0.0))
    none = edited(model, lambda name, weight: torch.zeros_like(weight))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(torch.equal(value, before[name]) for name, value in same.state_dict().items())
    assert not any(layer.weight.any() for layer in linear_layers(none).values())
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    rows = own_rows(model, 0, rows=2, length=4)
    assert torch.equal(torch.rand(1), expected) and torch.equal(rows, own_rows(model, 0, rows=2, length=4))
    assert rows.shape == (2, 4)
