"""The code that ran: a strategy's own functions with their source, and the places in them at which a lane's
events were recorded.

own_code.py finds the places.
"""

from dataclasses import dataclass, field
from typing import Any

NOWHERE = -1  # the place of an event that none of the strategy's own functions recorded
MAX_FUNCTIONS, MAX_PLACES = 1000, 20_000
MAX_SOURCE = 40_000  # characters of a function; a file with a longer one is read without its code
Line = list[int]  # [function, first line, last line] of what runs


@dataclass(frozen=True)
class Function:
    """A function of a strategy. `first`: the number of the source's first line in its file."""

    name: str
    file: str
    first: int
    source: str


@dataclass
class Code:
    """`algorithm`: the strategy's docstring, with its numbered steps. A place is a stack of lines, outermost
    function first; an event has the number of its place in `Step.places`.
    """

    algorithm: str = ""
    functions: list[Function] = field(default_factory=list)
    places: list[list[Line]] = field(default_factory=list)

    def to_json(self, steps: list[list[int]]) -> dict[str, Any]:
        """With the places of the events of each step."""
        functions = [vars(function) for function in self.functions]
        return {"algorithm": self.algorithm, "functions": functions, "places": self.places, "steps": steps}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Code":
        """The inverse of `to_json`, without the steps."""
        functions = [Function(**function) for function in record["functions"]]
        return cls(record["algorithm"], functions, record["places"])


def fits(record: dict[str, Any], events: list[int]) -> bool:
    """Whether the code of a trace, as JSON, has a usual size and belongs to its steps, which have this many
    events each. Whoever cuts steps out of a file may have left the code as it was.
    """
    functions, places = range(len(record["functions"])), range(NOWHERE, len(record["places"]))
    return (
        [len(step) for step in record["steps"]] == events
        and all(len(function["source"]) <= MAX_SOURCE for function in record["functions"])
        and all(at in places for step in record["steps"] for at in step)
        and all(len(line) == 3 and line[0] in functions for place in record["places"] for line in place)
    )
