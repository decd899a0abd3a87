"""The algebra of contrasts: worked numbers, the same rule under four names, and what a constant changes."""

import math

import pytest
import torch

from decoders.sampling.contrastive.contrast_algebra import (
    Contrast,
    amplified,
    guided,
    plausible,
    ratio,
    reduced,
    styled,
)

Z_C, Z_U = torch.tensor([[2.0, 1.0, 0.0]]).double(), torch.tensor([[2.0, 0.0, 0.0]]).double()


def law(contrast: Contrast, *rows: torch.Tensor) -> list[float]:
    return contrast.combine(list(rows)).softmax(-1)[0].tolist()


def rows(count: int, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [3 * torch.randn(20, 12, generator=generator, dtype=torch.float64) for _ in range(count)]


@pytest.mark.parametrize(
    "contrast, want",
    [
        (amplified(0.0), [0.6652, 0.2447, 0.0900]),
        (amplified(0.5), [0.5741, 0.3482, 0.0777]),
        (guided(1.5), [0.5741, 0.3482, 0.0777]),
        (guided(2.0), [0.4683, 0.4683, 0.0634]),
        (reduced(0.3), [0.5217, 0.3497, 0.1286]),
    ],
)
def test_worked_numbers(contrast, want):
    assert law(contrast, Z_C, Z_U) == pytest.approx(want, abs=5e-5)


def test_guidance_of_two_doubles_the_difference():
    """(2, 2, 0) up to a constant."""
    found = guided(2.0).combine([Z_C, Z_U])[0]
    assert (found - found[2]).tolist() == pytest.approx([2.0, 2.0, 0.0])
    assert law(guided(1.0), Z_C, Z_U) == pytest.approx(Z_C.softmax(-1)[0].tolist())
    assert law(guided(0.0), Z_C, Z_U) == pytest.approx(Z_U.softmax(-1)[0].tolist())


@pytest.mark.parametrize("e", [0.0, 0.1, 0.3, 0.9])
def test_three_rules_have_one_argmax_but_not_one_law(e):
    a, b = rows(2)
    alpha = e / (1 - e)
    assert math.isclose(0.3 / 0.7, 0.428571, abs_tol=1e-6)
    cad, cfg, reduction = (c.combine([a, b]) for c in (amplified(alpha), guided(1 + alpha), reduced(e)))
    assert torch.allclose(cad.softmax(-1), cfg.softmax(-1))
    assert torch.equal(cad.argmax(-1), reduction.argmax(-1))
    assert torch.allclose(reduction.softmax(-1), ((1 - e) * cad).softmax(-1))  # temperature 1 / (1 - e)
    if e:
        assert not torch.allclose(reduction.softmax(-1), cad.softmax(-1))


def test_views_that_agree():
    (z,) = rows(1)
    same = [z, z]
    for contrast in (amplified(0.7), guided(3.0), amplified(0.5, alpha=0.0)):
        assert torch.allclose(contrast.combine(same).softmax(-1), z.softmax(-1))
    flatter = reduced(0.3).combine(same)
    assert torch.equal(flatter.argmax(-1), z.argmax(-1))
    assert torch.allclose(flatter.softmax(-1), (0.7 * z).softmax(-1))
    masked = ratio(0.1).combine(same)
    assert set(masked.unique().tolist()) == {-math.inf, 0.0}
    assert torch.equal(masked == 0.0, plausible(z, 0.1))


@pytest.mark.parametrize(
    "contrast", [amplified(0.5), guided(2.0), reduced(0.3), ratio(0.1), amplified(0.5, 0.1)]
)
def test_a_constant_on_any_view_changes_nothing(contrast):
    a, b = rows(2, 1)
    want = contrast.combine([a, b])
    for shifted in ([a + 5.0, b], [a, b - 3.0], [a.log_softmax(-1), b.log_softmax(-1)]):
        found = contrast.combine(shifted)
        assert torch.equal(found == -math.inf, want == -math.inf)
        assert torch.allclose(found.softmax(-1), want.softmax(-1))


def test_the_plausibility_mask_by_hand():
    strong = torch.tensor([[3.0, 2.5, 0.2, -2.0]]).double()
    weak = torch.tensor([[3.0, 1.0, 1.0, -4.0]]).double()
    assert 3.0 + math.log(0.1) == pytest.approx(0.6974, abs=1e-4)
    found = amplified(0.5, 0.1).combine([strong, weak])[0]
    assert (found[:2] - found[0]).tolist() == pytest.approx([0.0, 0.25])  # (3.0, 3.25)
    assert found[2:].tolist() == [-math.inf, -math.inf]
    assert int(found.argmax()) == 1 and int(strong.argmax()) == 0
    only = amplified(0.5, 1.0).combine([strong, weak])[0]
    assert only.isfinite().tolist() == [True, False, False, False]
    free, no_mask = amplified(0.5, 0.0), guided(1.5)
    assert torch.allclose(free.combine([strong, weak]), no_mask.combine([strong, weak]))


def test_three_views_by_hand():
    q, p_c, p_u = (
        torch.tensor([p]).double().log() for p in ([0.5, 0.4, 0.1], [0.2, 0.5, 0.3], [0.4, 0.2, 0.4])
    )
    found = styled(1.0, 0.6).combine([p_c, p_u, q])[0].tolist()
    assert found == pytest.approx([-1.7528, -0.6438, -2.9568], abs=5e-5)


def test_tokens_that_a_view_rules_out():
    wanted = torch.tensor([[0.5, 0.5, 0.0]]).double().log()
    unwanted = torch.tensor([[1.0, 0.0, 0.0]]).double().log()
    found = amplified(0.5).combine([wanted, unwanted])[0]
    assert found[2] == -math.inf and int(found.argmax()) == 1 and not found.isnan().any()
