"""Plotly figures: every view of a trace at any step, in light and dark.

    figure(trace, "beam_tree", step=12).write_html("beams.html")

Knows traces and scenes; starts nothing.
"""

from visualizers.figures.export import page, save
from visualizers.figures.scene_figure import figure

__all__ = ["figure", "page", "save"]
