"""A shorter view of a lane's text for the same model: chosen chunks of the prompt, and all that follows.

Knows token ids, trees and scorers; nothing of text, laws or how a draft is tested.
"""

import math
from collections import Counter
from collections.abc import Sequence

import torch

from decoders.lane import Lane
from decoders.tree import Tree

SATURATION, LENGTH_WEIGHT = 1.2, 0.75  # BM25's k1 and b, at their usual values


def chunked(tokens: Sequence[int], size: int, ends: frozenset[int]) -> list[tuple[int, int]]:
    """`tokens` cut into chunks (start, end) of at most `size`: behind the last token of `ends` that fits, if
    there is one.
    """
    found, start = [], 0
    while start < len(tokens):
        stop = min(start + size, len(tokens))
        if stop < len(tokens):
            stop = next((i + 1 for i in range(stop - 1, start, -1) if tokens[i] in ends), stop)
        found.append((start, stop))
        start = stop
    return found


def bm25(query: Sequence[int], documents: list[Sequence[int]]) -> list[float]:
    """How well each document fits the query: rare tokens that both have count most (Robertson and Zaragoza
    2009).
    """
    counts = [Counter(d) for d in documents]
    mean = sum(map(len, documents)) / max(1, len(documents))
    scores = [0.0] * len(documents)
    for token in set(query):
        having = sum(token in c for c in counts)
        weight = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        for i, count in enumerate(counts):
            often = count[token]
            long = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * len(documents[i]) / mean
            scores[i] += weight * often * (SATURATION + 1) / (often + SATURATION * long)
    return scores


def best(scores: list[float], count: int) -> list[int]:
    """The `count` chunks with the highest scores, none with 0, in their own order."""
    ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:count]
    return sorted(i for i in ranked if scores[i] > 0.0)


class ShortView:
    """A scorer of the lane's tree whose model reads `start` [T] in place of the prompt. It has a tree of its
    own: what hangs below the prompt is copied when it is first asked for.
    """

    def __init__(self, lane: Lane, start: list[int]):
        self.lane, self.tree = lane, Tree(start)
        self.scorer = lane.models["target"].engine.attach(self.tree)
        self.node_of = {lane.tree.trunk - 1: len(start) - 1}  # node of the lane's tree -> node of this one

    @property
    def work(self):
        """What the last `score` call computed."""
        work = self.scorer.work
        work.scope = f"{self.tree.trunk:,} of the prompt's {self.lane.tree.trunk:,} tokens"
        return work

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Logits [N, V] after each node of the lane's tree, none of them inside the prompt."""
        for node in nodes:
            self._copy(node)
        return self.scorer.score([self.node_of[n] for n in nodes], hidden)

    def _copy(self, node: int) -> None:
        new = []
        while node not in self.node_of:
            new.append(node)
            node = self.lane.tree.parents[node]
        for node in reversed(new):
            above = self.node_of[self.lane.tree.parents[node]]
            self.node_of[node] = self.tree.add(above, self.lane.tree.tokens[node])

    def forget(self, nodes: list[int]) -> None:
        """As `engine.Scorer.forget`."""
        self.scorer.forget([self.node_of[n] for n in nodes if n in self.node_of])

    def release(self, nodes: list[int]) -> None:
        """As `engine.Scorer.release`."""
        self.scorer.release([self.node_of[n] for n in nodes if n in self.node_of])

    def close(self) -> None:
        """As `engine.Scorer.close`."""
        self.scorer.close()
