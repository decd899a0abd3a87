"""A view of a lane as a picture: an SVG with a heading, a legend and the lane's costs so far.

It is the view's Plotly figure, drawn without a browser (visualizers/figures/svg.py).
"""

from decoders.trace.costs import costs_of
from decoders.trace.trace import Trace
from visualizers.analysis.cost_summary import in_words


def picture(trace: Trace, view: str, step: int | None = None, look: str = "light") -> str:
    """A view after `step` steps (None: all). Refusal with one sentence if it cannot draw this trace."""
    from visualizers.figures.svg import svg  # on demand: plotly is slow to import

    at = None if step is None else min(step, len(trace.steps))
    return svg(trace.figure(view, at, look), costs_text(trace, at))


def slide(trace: Trace, view: str, step: int | None = None, look: str = "light") -> str:
    """The same in 16:9, for a lecture. Refusal with one sentence if the view cannot draw this trace."""
    from visualizers.figures import slide  # on demand: plotly is slow to import

    at = None if step is None else min(step, len(trace.steps))
    return slide.slide(trace.figure(view, at, look), costs_text(trace, at))


def print_figure(trace: Trace, view: str, step: int | None = None, width_mm: float = 84) -> str:
    """The same for a paper, its caption as the picture's description. Refusal with one sentence if the view
    cannot draw this trace.
    """
    from visualizers.figures.for_print import for_print  # on demand: plotly is slow to import

    at = None if step is None else min(step, len(trace.steps))
    return for_print(trace, view, at, width_mm).svg


def costs_text(trace: Trace, steps: int | None) -> str:
    """The costs of the first `steps` steps, as in the strip below a lane."""
    return in_words(costs_of(trace.steps[:steps]))
