"""SWIFT's search for the blocks that a draft can skip: random sets, evaluated on text already written.

Xia et al. (2024), SWIFT, section 4. Every 25th set is not random. As in the authors' code, a Gaussian process
is fitted to the sets tried so far; of many points with coordinates from 0 to 1, one per block, the point with
the largest upper confidence bound is rounded to a set. Blocks are numbered: first the attentions, then the
MLPs of all layers but the first and the last.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

import torch

from decoders.chooser import Chooser
from decoders.engine.layers import Layers

PLANNED_EVERY = 25
POINTS = 1000  # at which the bound is computed, besides the neighbours of the best set
KAPPA, NOISE = 2.5, 1e-2
ENOUGH = 0.95  # a score above which the search ends
MAX_FRUITLESS, MAX_TRIES = 300, 1000


def start_set(total: int, size: int) -> frozenset[int]:
    """Both blocks of every second layer from the second on; none if none may be skipped."""
    half = max(total - 2, 0)
    return frozenset(b + kind for b in range(0, half, 2) for kind in (0, half)) if size else frozenset()


def layers_of(skipped: Collection[int], total: int) -> Layers:
    """The layers that run without these blocks."""
    half = max(total - 2, 0)
    attention = [1 + b for b in skipped if b < half]
    return Layers.without(attention, [1 + b - half for b in skipped if b >= half], total)


@dataclass
class Search:
    """`best` is skipped now, and matched the share `score` of the text (None before anything was tried)."""

    total: int  # layers
    ratio: float
    best: frozenset[int] = frozenset()
    score: float | None = None
    tried: list[tuple[frozenset[int], float]] = field(default_factory=list)
    fruitless: int = 0  # tries since the last better one

    def __post_init__(self) -> None:
        self.blocks = 2 * max(self.total - 2, 0)
        self.size = int(self.blocks * self.ratio)
        self.best = start_set(self.total, self.size)

    @property
    def over(self) -> bool:
        """Whether nothing more is tried."""
        enough = self.score is not None and self.score > ENOUGH
        return not self.size or enough or self.fruitless >= MAX_FRUITLESS or len(self.tried) >= MAX_TRIES

    def candidate(self, chooser: Chooser) -> frozenset[int]:
        """The next set to try; the first is the one that is in use."""
        if not self.tried:
            return self.best
        if len(self.tried) % PLANNED_EVERY == 0:
            return self.planned(chooser)
        left, blocks = torch.ones(self.blocks), set()
        for place in range(self.size):
            block = chooser.categorical(left, ("plan", len(self.tried), place)).value
            left[block] = 0.0
            blocks.add(block)
        return frozenset(blocks)

    def planned(self, chooser: Chooser) -> frozenset[int]:
        """The set to which the point with the largest upper confidence bound is rounded: its `size` largest
        coordinates. Points are drawn all over the space, and around the best set, each coordinate of which is
        exchanged for another.
        """
        drawn = chooser.uniforms(POINTS * self.blocks, ("plan", len(self.tried), "points"))
        out = [b for b in range(self.blocks) if b not in self.best]
        near = [self.best - {a} | {b} for a in sorted(self.best) for b in out]
        points = torch.cat([drawn.reshape(POINTS, self.blocks).float(), self.vectors(near)])
        best = int(self.bound(points).argmax())
        if best >= POINTS:
            return near[best - POINTS]
        return frozenset(points[best].topk(self.size).indices.tolist())

    def bound(self, points: torch.Tensor) -> torch.Tensor:
        """The upper confidence bound [n] of the score at points [n, blocks], by the sets tried so far."""
        seen, scores = self.vectors([s for s, _ in self.tried]), torch.tensor([x for _, x in self.tried])
        across, among = self.kernel(points, seen), self.kernel(seen, seen)
        solved = torch.linalg.solve(among + NOISE * torch.eye(len(seen)), across.t())  # [tried, n]
        mean = scores.mean() + solved.t() @ (scores - scores.mean())
        spread = (1.0 - (across * solved.t()).sum(-1)).clamp(min=0.0).sqrt()
        return mean + KAPPA * scores.std().clamp(min=1e-6) * spread

    def vectors(self, sets: list[frozenset[int]]) -> torch.Tensor:
        """Sets as rows of zeros and ones [n, blocks]."""
        rows = [[float(b in s) for b in range(self.blocks)] for s in sets]
        return torch.tensor(rows).reshape(-1, self.blocks)

    def kernel(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """The similarity of points [n, m]: exp(-d / (blocks / 2)), d the number of blocks in which two
        differ.
        """
        return torch.exp(-2.0 * torch.cdist(a, b, p=1) / self.blocks)

    def learn(self, skipped: frozenset[int], score: float) -> bool:
        """Notes how well a set did; True if it is strictly better than the best so far and is now in use."""
        self.tried.append((skipped, score))
        if self.score is not None and score <= self.score:
            self.fruitless += 1
            return False
        self.best, self.score, self.fruitless = skipped, score, 0
        return True
