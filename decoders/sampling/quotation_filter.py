"""Keeps a text from quoting others: no run of tokens longer than a limit may occur in a given set of texts.

Carlsson et al. (2024), The Hyperfitting Phenomenon, section on citations. A processor in the form of
transformers' `generate`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import torch
from transformers import LogitsProcessor


class CitationBlocker(LogitsProcessor):
    """Forbids each token that would complete an (m + 1)-gram of the texts; m quoted tokens are allowed."""

    def __init__(self, texts: Iterable[Sequence[int]], m: int):
        self.m = m
        self.after: dict[tuple[int, ...], set[int]] = defaultdict(set)  # m tokens -> what follows them
        for text in texts:
            for at in range(len(text) - m):
                self.after[tuple(text[at : at + m])].add(text[at + m])

    def forbidden(self, text: Sequence[int]) -> set[int]:
        """The tokens that must not follow `text`."""
        return self.after.get(tuple(text[len(text) - self.m :]), set()) if len(text) >= self.m else set()

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [N, V] after texts [N, T], -inf where a token is forbidden."""
        scores = scores.clone()
        for row, text in enumerate(input_ids.tolist()):
            scores[row, list(self.forbidden(text))] = -torch.inf
        return scores


def citation(text: Sequence[int], texts: Iterable[Sequence[int]]) -> range:
    """Where in `text` the longest run lies that also occurs in one of the texts; the first on ties."""
    own, *held = ("".join(map(chr, tokens)) for tokens in (text, *texts))  # searching strings is fast
    best = range(0)
    for at in range(len(own)):
        while at + len(best) < len(own) and any(own[at : at + len(best) + 1] in other for other in held):
            best = range(at, at + len(best) + 1)
    return best


def longest_citation(text: Sequence[int], texts: Iterable[Sequence[int]]) -> int:
    """The length of the longest run of `text` that also occurs in one of the texts."""
    return len(citation(text, texts))
