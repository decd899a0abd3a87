"""Monte Carlo tree search: select, expand, evaluate, back up.

Each search chooses how it represents a state's text: as a node of a lane's tree, or as tokens.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False, slots=True)
class State:
    """A prefix of a text. Without edges its text is whole, or as long as the search looks ahead.

    `visits` (N) counts the simulations that reached it; the one that opened it is the first.
    """

    node: Any
    edges: list["Edge"] = field(default_factory=list)
    visits: int = 1


@dataclass(eq=False, slots=True)
class Edge:
    """A next token: its prior (P) among its siblings, the state after it once that is open, how many
    simulations went through it (n), the sum of their values, and the resulting value (Q).
    """

    node: Any
    prior: float
    below: State | None = None
    visits: int = 0
    total: float = 0.0
    value: float = 0.0


class TreeSearch(ABC):
    """The three operations in which searches differ, and the simulation that they share."""

    @abstractmethod
    def open(self, node: Any) -> State:
        """A new state with its edges."""

    @abstractmethod
    def choose(self, state: State) -> Edge:
        """The edge to follow."""

    @abstractmethod
    def evaluate(self, state: State) -> float:
        """The value of the state at the end of the path."""

    def back_up(self, edge: Edge, value: float) -> None:
        """Q of an edge through which a value came back: the mean of all."""
        edge.total += value
        edge.value = edge.total / edge.visits

    def simulate(self, root: State) -> tuple[list[Edge], float]:
        """Goes down the tree to a state that is new or has no edges, and backs up its value. Returns the
        edges on the path and that value.
        """
        state, way = root, []
        while state.edges:
            edge = self.choose(state)
            way.append((state, edge))
            if edge.below is None:
                state = edge.below = self.open(edge.node)
                break
            state = edge.below
        value = self.evaluate(state)
        for parent, edge in way:
            parent.visits += 1
            edge.visits += 1
            self.back_up(edge, value)
        return [edge for _, edge in way], value
