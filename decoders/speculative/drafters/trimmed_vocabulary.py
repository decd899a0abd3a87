"""VocabTrim: any draft, restricted to the tokens that the target often writes. Nothing is trained.

Goel et al. (2025). The verifier keeps the whole vocabulary and is given q', the softmax over the tokens that
are left, so the output keeps its distribution.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from decoders.datastore import END, encoded
from decoders.engine.engine import Scorer
from decoders.engine.trimmed_head import TrimmedHead
from decoders.lane import Lane
from decoders.speculative.interfaces import Source

Logits = Callable[[Lane, list[int]], torch.Tensor]  # a drafter's own, before any processor: [N, V]


def most_frequent(tokens: Iterable[int], count: int, always: Iterable[int] = ()) -> list[int]:
    """The `count` most frequent tokens and those that are kept `always`, which count towards `count`; ties go
    to the smaller id. Sorted by id.
    """
    kept = set(always)
    ranked = sorted(Counter(tokens).items(), key=lambda pair: (-pair[1], pair[0]))
    for token, _ in ranked:
        if len(kept) >= count:
            break
        kept.add(token)
    return sorted(kept)


def coverage(tokens: Sequence[int], kept: Iterable[int]) -> float:
    """The share of some tokens that are among the kept ones."""
    inside = set(kept)
    return sum(token in inside for token in tokens) / len(tokens) if tokens else 0.0


def calibrated(store: str, model: Any, count: int, always: frozenset[int]) -> tuple[list[int], float]:
    """The tokens to keep by how often they occur in a store of texts, and what share of it they cover."""
    tokens = [token for token in encoded(store, model) if token != END]
    kept = most_frequent(tokens, count, always)
    return kept, coverage(tokens, kept)


def outside(logits: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Logits [N, V] with minus infinity for all tokens that are not kept."""
    few = torch.full_like(logits, -torch.inf)
    few[:, kept] = logits[:, kept]
    return few


def trimmed(logits: Logits, kept: Sequence[int], name: str) -> Source:
    """`TrimmedVocab`: the source that `logits` gives, restricted to the tokens `kept`.

    Where a constraint or a processor leaves none of them at a position, the source drafts from the whole
    vocabulary.
    """
    index = torch.tensor(sorted(kept))

    def scores(lane: Lane, nodes: list[int]) -> torch.Tensor:
        own = logits(lane, nodes)
        scores = lane.process(outside(own, index.to(own.device)), nodes)
        empty = ~scores.isfinite().any(-1)
        if bool(empty.any()):
            whole = lane.process(untrimmed(lane, nodes, own, logits), nodes)
            scores = torch.where(empty[:, None], whole, scores)
        return scores

    says = (
        f"{name[0].upper()}{name[1:]} guesses, one forward per level; its vocabulary has {len(index):,} "
        "tokens."
    )
    return Source(scores, f"{name} with a trimmed vocabulary", says, ("draft",))


def untrimmed(lane: Lane, nodes: list[int], own: torch.Tensor, logits: Logits) -> torch.Tensor:
    """The logits [N, V] of the whole vocabulary, asked for again if the head is trimmed itself."""
    scorer = lane.scorers.get("draft")
    head = getattr(scorer, "head", None)
    if head is None:
        return own
    scorer.head = None
    scorer.forget(nodes)
    whole = logits(lane, nodes)
    scorer.head = head
    return whole


def trim_head(lane: Lane, kept: Sequence[int], role: str = "draft") -> None:
    """Leaves out the other rows of a draft model's output matrix for this lane, where its engine can."""
    scorer = lane.scorers[role]
    if isinstance(scorer, Scorer):
        scorer.head = TrimmedHead(scorer.engine.model, kept)
