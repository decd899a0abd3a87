"""Scores one text on two sides, place by place, and compares what they say."""

import torch

from decoders.refusal import Refusal
from decoders.trace.token_text import visible
from decoders.trace.trace import Trace
from explorer.experiments import progress
from explorer.twin.recordings import Recording
from explorer.twin.sides import Side, tokens_of
from visualizers.analysis.twin import Twin, twin


def compared(text: str | Trace | Recording, a: Side, b: Side) -> Twin:
    """The text's tokens from the first on of which both sides say something. Raises Refusal with one
    sentence; goes through `progress.each`.
    """
    tokens, bytes_of = tokens_of(text, (a, b))
    texts = list(map(bytes_of, tokens))
    for one in (a, b):
        one.check(tokens, texts)
    first = max(a.first, b.first)
    if first >= len(tokens):
        raise Refusal("The text has too few tokens to compare; give one of at least two tokens.")
    both, divergences = [], []
    scored = zip(a.score(tokens, first), b.score(tokens, first), strict=True)
    for _ in progress.each(range(first, len(tokens))):
        (of_a, whole_a), (of_b, whole_b) = next(scored)
        both.append((of_a, of_b))
        divergences.append(None if whole_a is None or whole_b is None else divergence(whole_a, whole_b))
    before = b"".join(texts[:first]).decode("utf-8", "replace")
    best = {one.top[0][0] for pair in both for one in pair if one.top}
    words = {token: visible(bytes_of(token)) for token in sorted(best.union(tokens))}
    return twin((a.name, b.name), (a.format, b.format), before, tokens[first:], words, both, divergences)


def divergence(a: torch.Tensor, b: torch.Tensor) -> float:
    """The Kullback-Leibler divergence of A from B, in nats, over the rows that both have."""
    rows = min(len(a), len(b))
    a, b = a[:rows].cpu(), b[:rows].cpu()
    return max(0.0, float((a.exp() * (a - b)).sum()))
