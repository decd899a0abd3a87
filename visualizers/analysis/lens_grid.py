"""A lens's frame as a grid: what each level predicts at each position, and how far that is from the last
level.
"""

from dataclasses import dataclass, field

from decoders.lenses.frame import LensFrame
from decoders.trace.events import Distribution
from decoders.trace.scores import Score, ScoreName


@dataclass
class Square:
    """One level at one position. `rank`: of the token that was chosen there."""

    top: list[list[float]]  # [token, logprob] pairs, most likely first
    entropy: float
    far: float | None = None  # KL(p || q) in nats, p the last level's
    parts: dict[str, float] = field(default_factory=dict)  # other distances
    chosen: float | None = None  # the log-probability of the token that was chosen
    rank: int | None = None


@dataclass
class Grid:
    """Squares by (level, position), both counted from 0; `depth`: position -> the level from which on the
    most likely token stays the last one's.
    """

    levels: list[str]
    positions: list[int]
    squares: dict[tuple[int, int], Square]
    depth: dict[int, int]


def grid_of(frame: LensFrame) -> Grid:
    """Folds the events of a lens that reads distributions by depth."""
    level = {name: at for at, name in enumerate(frame.levels)}
    squares, depth = {}, {}
    for event in frame.of(Distribution, view=frame.lens):
        squares[level[event.level], event.node] = Square(event.top, event.entropy)
    for event in frame.of(Score):
        square = squares.get((level[event.level], event.node))
        if event.name == ScoreName.DECISION_DEPTH:
            depth[event.node] = int(event.total)
        elif event.name == ScoreName.KL_TO_FINAL:
            square.far, square.parts = event.total, event.parts
        elif event.name == ScoreName.CHOSEN:
            square.chosen, square.rank = event.total, event.rank
    return Grid(frame.levels, sorted({place for _, place in squares}), squares, depth)
