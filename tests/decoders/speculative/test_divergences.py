"""The divergences of DistillSpec: worked numbers, gradients, and what they have to do with acceptance."""

import pytest
import torch

from decoders.speculative.divergences import DIVERGENCES, divergence_named, forward_kl, jsd, reverse_kl, tvd

P = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log()
Q = torch.tensor([0.4, 0.4, 0.2], dtype=torch.float64).log()


@pytest.mark.parametrize(
    ("divergence", "value"),
    [(forward_kl, 0.02527), (reverse_kl, 0.02582), (jsd, 0.006367), (tvd, 0.1)],
)
def test_worked_values(divergence, value):
    assert float(divergence(P, Q)) == pytest.approx(value, abs=5e-6)


@pytest.mark.parametrize(
    ("divergence", "gradient"),
    [
        (forward_kl, (-0.1, 0.1, 0.0)),
        (reverse_kl, (-0.0996, 0.1047, -0.0052)),
        (tvd, (-0.2, 0.2, 0.0)),
    ],
)
def test_worked_gradients_of_the_drafts_logits(divergence, gradient):
    q = Q.clone().requires_grad_(True)
    divergence(P, q).backward()
    assert q.grad.tolist() == pytest.approx(gradient, abs=5e-5)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_a_divergence_is_0_where_the_two_are_equal_and_nowhere_else(name):
    generator = torch.Generator().manual_seed(0)
    p, q = (torch.randn(50, 7, generator=generator, dtype=torch.float64) for _ in range(2))
    divergence = divergence_named(name)
    assert divergence(p, p + 3.0).abs().max() < 1e-12  # a constant on all logits changes nothing
    assert divergence(p, q).min() > 1e-4


def test_acceptance_is_what_the_total_variation_leaves():
    assert (
        1 - float(tvd(P, Q))
        == pytest.approx(float(torch.minimum(P.exp(), Q.exp()).sum()))
        == pytest.approx(0.9)
    )


def test_measured_acceptance_is_the_mean_overlap():
    """Within .01 over 50,000 draws of q, each accepted with probability min(1, p / q)."""
    generator = torch.Generator().manual_seed(0)
    p, q = (torch.randn(100, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    probs, drawn_from = p.softmax(-1), q.softmax(-1)
    drawn = torch.multinomial(drawn_from, 500, replacement=True, generator=generator)
    passes = (probs.gather(1, drawn) / drawn_from.gather(1, drawn)).clamp(max=1.0)
    accepted = (torch.rand(drawn.shape, generator=generator, dtype=torch.float64) < passes).double().mean()
    assert float(accepted) == pytest.approx(1 - float(tvd(p, q).mean()), abs=0.01)


def test_an_unknown_divergence_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match="There is no divergence 'KL'; choose one of: forward KL"):
        divergence_named("KL")
