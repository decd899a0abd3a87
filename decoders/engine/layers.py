"""A subset of a model's layers: which attention and MLP blocks run, as numbers and as a trace words it."""

import re
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Layers:
    """The blocks that run, by layer (counted from 0), of a model with `total` layers."""

    total: int
    attention: frozenset[int]
    mlp: frozenset[int]
    group: int = 1  # size of groups whose attentions read one input; not the first and the last layer

    @classmethod
    def grouped(cls, group: int, total: int) -> "Layers":
        """All layers, with those between the first and the last in groups of this size."""
        every = frozenset(range(total))
        return cls(total, every, every, group)

    @classmethod
    def only(cls, layers: Collection[int], total: int) -> "Layers":
        """Both blocks of these layers."""
        return cls(total, frozenset(layers), frozenset(layers))

    @classmethod
    def first(cls, count: int, total: int) -> "Layers":
        """The first `count` layers: an early exit."""
        return cls.only(range(count), total)

    @classmethod
    def after(cls, count: int, total: int) -> "Layers":
        """The layers after the first `count`."""
        return cls.only(range(count, total), total)

    @classmethod
    def without(cls, attention: Collection[int], mlp: Collection[int], total: int) -> "Layers":
        """All but these blocks."""
        every = frozenset(range(total))
        return cls(total, every - frozenset(attention), every - frozenset(mlp))

    @classmethod
    def read(cls, scope: str) -> "Layers | None":
        """Parses what `str` writes, perhaps after other words; None if `scope` names no layers."""
        if match := re.search(r"(\d+) layers in groups of (\d+)$", scope):
            return cls.grouped(int(match[2]), int(match[1]))
        if match := re.search(r"layers ([-, 0-9]+|none) of (\d+)$", scope):
            return cls.only(unspanned(match[1]), int(match[2]))
        if match := re.search(r"attention (.*) and MLP (.*) of (\d+) layers$", scope):
            return cls(int(match[3]), unspanned(match[1]), unspanned(match[2]))
        return None

    @property
    def early(self) -> frozenset[int]:
        """The layers whose attention reads the input of the first layer of their group."""
        return frozenset(i for i in range(1, self.total - 1) if (i - 1) % self.group)

    @property
    def share(self) -> float:
        """The share of all blocks that run, with attention and MLP weighted equally."""
        return (len(self.attention) + len(self.mlp)) / (2 * self.total)

    @property
    def exit(self) -> int | None:
        """How many layers run if they are exactly the first ones, whose states are the whole model's own;
        None otherwise.
        """
        count = len(self.attention)
        if self.early:
            return None
        return count if self.attention == self.mlp == frozenset(range(count)) else None

    def __str__(self) -> str:
        """`layers 1-3 of 12`, counted from 1."""
        if self.early:
            return f"{self.total} layers in groups of {self.group}"
        if self.attention == self.mlp:
            return f"layers {spans(self.attention)} of {self.total}"
        return f"attention {spans(self.attention)} and MLP {spans(self.mlp)} of {self.total} layers"


def spans(layers: Collection[int]) -> str:
    """{0, 1, 2, 5} as `1-3, 6`."""
    runs: list[list[int]] = []
    for layer in sorted(layers):
        if runs and runs[-1][1] == layer:
            runs[-1][1] = layer + 1
        else:
            runs.append([layer + 1, layer + 1])
    return ", ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in runs) or "none"


def unspanned(spans: str) -> frozenset[int]:
    """`1-3, 6` as {0, 1, 2, 5}."""
    ends = [[int(n) for n in one.split("-")] for one in spans.split(", ") if one != "none"]
    return frozenset(layer for first, *last in ends for layer in range(first - 1, (last or [first])[0]))
