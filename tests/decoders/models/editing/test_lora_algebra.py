"""Arithmetic with low-rank modules: the worked numbers, and sums of adapters in files."""

import pytest
import torch

from decoders.models import lora
from decoders.models.catalog import SHIPPED
from decoders.models.editing.lora_algebra import (
    added,
    analogy,
    averaged,
    change,
    combined,
    negated,
    negated_ia3,
    scaled,
)
from decoders.models.lora import Adapter

ONE = {"W": (torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0], [0.0]]))}
TWO = {"W": (torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0], [1.0]]))}


def test_a_sum_averages_both_factors_so_that_cross_terms_arise():
    torch.testing.assert_close(change(added([ONE, TWO], [0.5, 0.5]))["W"], torch.full((2, 2), 0.25))
    torch.testing.assert_close(averaged([ONE, TWO], [0.5, 0.5])["W"], 0.5 * torch.eye(2))


def test_the_weights_one_and_nothing_give_the_first_module():
    whole = added([ONE, TWO], [1.0, 0.0])
    assert torch.equal(whole["W"][0], ONE["W"][0]) and torch.equal(whole["W"][1], ONE["W"][1])


def test_negation_is_that_of_b_alone():
    both = {"W": tuple(-factor for factor in ONE["W"])}
    assert torch.equal(change(both)["W"], change(ONE)["W"])  # negating both changes nothing
    assert torch.equal(change(negated(ONE))["W"], -change(ONE)["W"])
    assert torch.equal(change(negated(negated(ONE)))["W"], change(ONE)["W"])
    torch.testing.assert_close(change(scaled(ONE, -0.3))["W"], -0.3 * change(ONE)["W"])
    assert negated_ia3(torch.tensor([1.3, 1.0])).tolist() == pytest.approx([0.7, 1.0])


def test_an_analogy_of_a_module_with_itself_leaves_the_third():
    """A - A has no B, so that C's own A and B, each halved, remain beside A's A."""
    same = analogy(ONE, TWO, TWO, weight=1.0)
    assert torch.equal(change(same)["W"], change(ONE)["W"])
    found = analogy(ONE, TWO, TWO)["W"]
    torch.testing.assert_close(found[1], 0.5 * ONE["W"][1])
    torch.testing.assert_close(found[0], 0.5 * (ONE["W"][0] + TWO["W"][0]))


def test_what_cannot_be_added_is_refused():
    with pytest.raises(ValueError, match="sum to 1.2; choose weights that sum to 1"):
        added([ONE, TWO], [0.5, 0.7])
    wider = {"W": (torch.zeros(2, 2), torch.zeros(2, 2))}
    with pytest.raises(ValueError, match="one rank on the same matrices"):
        added([ONE, wider], [0.5, 0.5])


def adapter(tmp_path, module, scale, tokens, value) -> Adapter:
    rows = torch.full((len(tokens), 2), value)
    return Adapter(tmp_path, scale, module, tokens, rows, {})


def test_adapters_are_summed_with_their_tokens(tmp_path):
    first = adapter(tmp_path, ONE, 2.0, ["<a>", "<b>"], 1.0)
    second = adapter(tmp_path, TWO, 2.0, ["<b>", "<c>"], 5.0)
    both = combined([(0.75, first), (-0.25, second)])
    assert both.tokens == ["<a>", "<b>", "<c>"] and both.scale == 1.0
    assert both.rows[:, 0].tolist() == [1.0, 2.0, 5.0]
    expected = torch.tensor([[1.5 * 0.75, 1.5 * 0.25], [-0.5 * 0.75, -0.5 * 0.25]])
    torch.testing.assert_close(change(both.matrices)["W"], expected)
    alone = combined([(0.5, first)])
    torch.testing.assert_close(change(alone.matrices)["W"], change(ONE)["W"])  # 0.5 of twice the product
    with pytest.raises(ValueError, match="different models"):
        combined([(0.5, first), (0.5, adapter(tmp_path / "other", TWO, 2.0, [], 0.0))])


def test_an_adapter_of_weight_one_is_the_shipped_model():
    read = lora.read_adapter(SHIPPED / "llama-tiny-flaws")
    alone = combined([(1.0, read)])
    for name, (a, b) in read.matrices.items():
        torch.testing.assert_close(change(alone.matrices)[name], read.scale * (b @ a))
    assert alone.tokens == ["<flaw>"] and torch.equal(alone.rows, read.rows)
