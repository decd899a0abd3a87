"""Axis scales for numbers that are not known beforehand: they only grow, and end at round numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

ROOM = 0.15  # of the numbers' span, above and below them
TICKS = 5  # at most


@dataclass
class Scale:
    """The range of a panel's numbers. `min_span`: its least span; `floor`, `top`: bounds on the numbers."""

    min_span: float
    floor: float = -math.inf
    top: float = math.inf
    low: float = 0.0
    high: float = 0.0

    def grow(self, numbers: Sequence[float]) -> bool:
        """Makes room for these numbers; returns whether the range changed."""
        few, many = min(numbers), max(numbers)
        if self.low == self.high:
            room = ROOM * (many - few)
            room += max(0.0, self.min_span - (many - few) - 2 * room) / 2
            few, many = few - room, many + room
        elif self.low <= few and many <= self.high:
            return False
        else:
            room = ROOM * (max(many, self.high) - min(few, self.low))
            few = self.low if self.low <= few else few - room
            many = self.high if many <= self.high else many + room
        unit = step(many - few)
        self.low = max(self.floor, math.floor(few / unit + 1e-9) * unit)
        self.high = min(self.top, math.ceil(many / unit - 1e-9) * unit)
        return True

    def panel(self) -> dict:
        """The fields of a panel's mark; with some room so that no dot is cut."""
        edge = 0.06 * (self.high - self.low)
        return {"y0": round(self.high + edge, 6), "y1": round(self.low - edge, 6), "ticks": self.ticks()}

    def ticks(self) -> list[list]:
        """[value, text] at round numbers."""
        unit = step(self.high - self.low)
        places = max(0, -math.floor(math.log10(unit) + 1e-9))
        first, last = math.ceil(self.low / unit - 1e-9), math.floor(self.high / unit + 1e-9)
        values = [round(n * unit, 9) for n in range(first, last + 1)]
        return [[value, f"{value or 0.0:.{places}f}".replace("-", "−")] for value in values]


def step(span: float) -> float:
    """A round distance such that at most TICKS of them fit into a span."""
    power = 10.0 ** math.floor(math.log10(span))
    return next(power * n for n in (0.2, 0.5, 1, 2) if span / (power * n) <= TICKS)
