"""Limits that end a lane cleanly."""

from dataclasses import dataclass

MEMORY_VARIABLE = "EXPLORER_KV_GB"  # the environment variable with the gigabytes of each model's KV pool


class AtLimit(Exception):
    """Ends the lane in the middle of a step; the message is what the user reads."""


class NoNumbers(Exception):
    """Ends the lane in the middle of a step, since scores cannot be compared; the message is what the user
    reads.
    """


@dataclass(frozen=True)
class Limits:
    """Limits that end a lane cleanly: tokens written, nodes in its tree, seconds of its own computing."""

    max_new_tokens: int = 64
    max_nodes: int = 50_000
    max_seconds: float = 600.0

    def reached(self, nodes: int, seconds: float) -> str | None:
        """The message that ends a lane with this many nodes after `seconds`; None if it may continue."""
        if nodes > self.max_nodes:
            return f"Stopped at the limit of {self.max_nodes:,} nodes; ask for fewer tokens."
        if seconds > self.max_seconds:
            return f"Stopped at the limit of {self.max_seconds:g} seconds of computing; the text is kept."
        return None
