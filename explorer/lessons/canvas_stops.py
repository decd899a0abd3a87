"""Places in lanes that fill a canvas of masks in any order. Positions count the new text from 1."""

from decoders.trace.events import Cell
from explorer.lessons.facts import Reading, fact
from explorer.lessons.stops import Lanes, Place, place
from visualizers.views.diffusion.cell_states import FILLED


def fillings(own: Reading) -> dict[int, tuple[int, Cell]]:
    """Position -> (step, cell) that filled it, in the order of filling."""
    start = len(own.trace.prompt) - 1
    return {cell.position - start: (step, cell) for step, cell in own.cells if cell.state in FILLED}


@place
def first_filled(lanes: Lanes, lane: int) -> Place | None:
    """The first position that was filled while earlier ones were open; `open`: how many of them."""
    own, filled = lanes[lane], fillings(lanes[lane])
    for at, (step, cell) in filled.items():
        still = sum(filled[p][1].iteration > cell.iteration for p in range(1, at) if p in filled)
        if still:
            values = {"place": at, "token": own.word(cell.token), "p": cell.confidence, "open": still}
            return Place(lane, step, {}, values | {"iteration": cell.iteration})
    return None


@place
def filled_twice(lanes: Lanes, lane: int) -> Place | None:
    """Two neighbouring positions that one forward filled with the same token, each with its probability."""
    own, filled = lanes[lane], fillings(lanes[lane])
    for at in range(1, len(own.tokens)):
        (step, cell), (_, other) = filled.get(at, (0, None)), filled.get(at + 1, (0, None))
        if cell and other and (other.iteration, other.token) == (cell.iteration, cell.token):
            values = {"place": at, "next": at + 1, "token": own.word(cell.token), "p": cell.confidence}
            return Place(lane, step, {}, values | {"p_next": other.confidence, "iteration": cell.iteration})
    return None


@fact
def filled_in(lanes: Lanes, lane: int, position: int) -> int | None:
    """The iteration in which a position was filled."""
    filled = fillings(lanes[lane])
    return filled[position][1].iteration if position in filled else None


@fact
def filled_with(lanes: Lanes, lane: int, position: int) -> float | None:
    """The probability of the token with which a position was filled."""
    filled = fillings(lanes[lane])
    return filled[position][1].confidence if position in filled else None
