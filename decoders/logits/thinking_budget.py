"""A budget of thinking as a processor: it forces the end of reasoning."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from decoders.refusal import Refusal
from decoders.trace.spans import Delimiters, Part, Spans, delimiters_of


@dataclass(frozen=True)
class ThinkingBudget:
    """Forces the end of reasoning, one of its tokens after the other, once so many tokens of it are written.
    closing: opening delimiter -> the tokens that spell what closes it.

    Muennighoff et al. (2025), "s1: Simple test-time scaling", which calls it budget forcing.
    """

    budget: int
    delimiters: tuple[Delimiters, ...]
    closing: dict[str, list[int]]
    bytes_of: Callable[[int], bytes]

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        spans = Spans(self.delimiters, map(self.bytes_of, ids[0].tolist()))
        over = spans.open_spent - self.budget
        closing = self.closing[spans.opened.opens] if spans.opened else []
        if not spans.reasoning or not 0 <= over < len(closing):
            return scores
        return torch.full_like(scores, -math.inf).index_fill(
            -1, torch.tensor([closing[over]], device=scores.device), 0.0
        )


def made(
    parameters: dict, cut: Callable[[str], list[int]] | None, bytes_of: Callable[[int], bytes] | None
) -> ThinkingBudget:
    """The processor of these parameters; cut: text -> token ids. Raises Refusal without a tokenizer."""
    if cut is None or bytes_of is None:
        raise Refusal("A thinking_budget needs a model with a tokenizer; set it to 0.")
    found = delimiters_of(parameters)
    closing = {one.opens: cut(one.closes) for one in found if one.part is Part.REASONING}
    return ThinkingBudget(parameters["thinking_budget"], found, closing, bytes_of)
