"""What ends a lane politely, and the places inside a step where that is looked at and others may compute.

Knows numbers and one function, no lane: whoever steps many lanes in turn gives that function (`give_way`),
and may leave a lane in it and come back later on the same thread.
"""

from collections.abc import Callable
from dataclasses import dataclass


class AtLimit(Exception):
    """The lane ends here, in the middle of a step; the message is the sentence for the person."""


@dataclass(frozen=True)
class Limits:
    """What ends a lane politely: tokens written, nodes in its tree, seconds of its own computing."""

    max_new_tokens: int = 64
    max_nodes: int = 50_000
    max_seconds: float = 600.0

    def reached(self, nodes: int, seconds: float) -> str | None:
        """The sentence to end with if a lane has so many nodes and has computed for so long."""
        if nodes > self.max_nodes:
            return f"Stopped at the limit of {self.max_nodes:,} nodes; ask for fewer tokens."
        if seconds > self.max_seconds:
            return f"Stopped at the limit of {self.max_seconds:g} seconds of computing; the text is kept."
        return None


_given: list[Callable[[], None]] = []


def give_way(between: Callable[[], None]) -> None:
    """From now on every lane calls this between two pieces of a step; its time is not the lane's."""
    _given[:] = [between]


def others_turn() -> bool:
    """Lets others compute, if somebody wants that; whether there was anybody to ask."""
    if not _given:
        return False
    _given[0]()
    return True
