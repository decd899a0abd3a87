"""Two tokens that were filled in one forward and do not go together: found by running the model again.

Knows traces and canvases; which task or rule is not its to say.
"""

from dataclasses import dataclass

from decoders.models.loaded_model import LoadedModel
from decoders.trace.events import Cell
from decoders.trace.trace import Trace
from visualizers.views.diffusion.cell_states import FILLED


@dataclass(frozen=True)
class Conflict:
    """Positions (from 1, behind the prompt) and tokens that one iteration filled together; `pmi`: their
    pointwise mutual information in nats, log p(second | first) - log p(second), before it.
    """

    iteration: int
    positions: tuple[int, int]
    tokens: tuple[int, int]
    pmi: float


def conflict(model: LoadedModel, trace: Trace) -> Conflict | None:
    """The pair of a lane's text with the lowest pointwise mutual information; None if none is negative."""
    prompt, length = trace.prompt, len(trace.prompt)
    cells = [cell for step in trace.steps for cell in step.of(Cell)]
    canvas = [*prompt, *[model.engine.mask] * sum(cell.state == "mask" for cell in cells)]
    last, best = length + len(trace.output()), None
    for iteration in range(1, 1 + max(cell.iteration for cell in cells)):
        now = [c for c in cells if c.iteration == iteration and c.state in FILLED]
        inside = [c for c in now if c.position < last]
        for first, second, pmi in pairs(model, canvas, inside):
            if pmi < (best.pmi if best else 0.0):
                places = first.position - length + 1, second.position - length + 1
                best = Conflict(iteration, places, (first.token, second.token), pmi)
        for cell in now:
            canvas[cell.position] = cell.token
    return best


def pairs(model: LoadedModel, canvas: list[int], cells: list[Cell]) -> list[tuple[Cell, Cell, float]]:
    """(first, second, pointwise mutual information) of all ordered pairs of cells, in one forward."""
    if len(cells) < 2:
        return []
    canvases = [list(canvas) for _ in range(len(cells) + 1)]
    for row, cell in zip(canvases[1:], cells, strict=True):
        row[cell.position] = cell.token
    low, high = min(c.position for c in cells), max(c.position for c in cells) + 1
    logprobs = model.engine.attach(None).denoise(canvases, low, high).double().log_softmax(-1)
    found = []
    for at, one in enumerate(cells, 1):
        for other in cells:
            before, after = (float(logprobs[row, other.position - low, other.token]) for row in (0, at))
            found += [(one, other, after - before)] if other is not one else []
    return found
