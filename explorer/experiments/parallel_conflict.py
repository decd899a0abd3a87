"""The two tokens filled in one forward that go together least, in a lane that measured conflicts."""

from dataclasses import dataclass

from decoders.trace.events import Cell, Depend
from decoders.trace.trace import Trace
from visualizers.views.diffusion.cell_states import FILLED


@dataclass(frozen=True)
class Conflict:
    """Positions (from 1, after the prompt) and tokens that one iteration filled together; `pmi`: their
    pointwise mutual information in nats, log p(second | first) - log p(second), before it.
    """

    iteration: int
    positions: tuple[int, int]
    tokens: tuple[int, int]
    pmi: float


def conflict(trace: Trace) -> Conflict | None:
    """The pair of a lane's text with the lowest pointwise mutual information; None if none is negative."""
    length = len(trace.prompt)
    last = length + len(trace.output())
    cells = {cell.position: cell for step in trace.steps for cell in step.of(Cell) if cell.state in FILLED}
    pairs = [
        link
        for step in trace.steps
        for link in step.of(Depend)
        if link.kind == "conflict" and max(link.source, link.target) < last
    ]
    if not pairs:
        return None
    worst = min(pairs, key=lambda link: link.weight)
    first, second = cells[worst.source], cells[worst.target]
    places = first.position - length + 1, second.position - length + 1
    return Conflict(first.iteration, places, (first.token, second.token), worst.weight)
