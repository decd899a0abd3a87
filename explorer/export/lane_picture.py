"""A view of a lane as a picture: an SVG with its heading, its legend and what the lane cost so far.

It is the view's Plotly figure drawn without a browser (visualizers/figures/svg.py). Knows traces, no runs.
"""

from decoders.trace.costs import Costs
from decoders.trace.trace import Trace
from visualizers.analysis.cost_summary import strip


def picture(trace: Trace, view: str, step: int | None = None, look: str = "light") -> str:
    """A view after `step` steps (None: all). ValueError with one sentence if it cannot draw this trace."""
    from visualizers.figures.svg import svg  # only where one is asked for: plotly takes its time to load

    at = None if step is None else min(step, len(trace.steps))
    return svg(trace.figure(view, at, look), paid(trace, at))


def slide(trace: Trace, view: str, step: int | None = None, look: str = "light") -> str:
    """The same in 16:9, for a lecture. ValueError with one sentence if the view cannot draw this trace."""
    from visualizers.figures import slide  # only where one is asked for

    at = None if step is None else min(step, len(trace.steps))
    return slide.slide(trace.figure(view, at, look), paid(trace, at))


def paid(trace: Trace, steps: int | None) -> str:
    """What the first `steps` steps cost, as the strip below a lane says it."""
    costs = Costs()
    for step in trace.steps[:steps]:
        costs.add(step)
    return " · ".join(f"{entry['label']} {entry['name']}" for entry in strip(costs))
