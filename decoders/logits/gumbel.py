"""Gumbel noise on log-probabilities: the argmax is a sample, and the top k are k samples without replacement
(Kool, van Hoof and Welling 2019).
"""

import torch

from decoders.chooser import Chooser, Tag


def noise(chooser: Chooser, count: int, tag: Tag) -> torch.Tensor:
    """Independent standard Gumbel numbers [count] (float64)."""
    return -(-chooser.uniforms(count, tag).log()).log()


def below(value: float, scores: torch.Tensor) -> torch.Tensor:
    """Perturbed scores [V], shifted so that the largest of them is `value` (Kool et al., appendix B.3)."""
    gap = value - scores + torch.log1p(-(scores - scores.max()).exp())
    return value - gap.clamp(min=0.0) - torch.log1p((-gap.abs()).exp())


def perturbed(chooser: Chooser, value: float, logprobs: torch.Tensor, tag: Tag) -> torch.Tensor:
    """Perturbed log-probabilities [V] (float64) of a node's children, with the largest equal to the node's
    own perturbed `value`, so that the tree stays consistent.
    """
    return below(value, logprobs + noise(chooser, len(logprobs), tag).to(logprobs.device))
