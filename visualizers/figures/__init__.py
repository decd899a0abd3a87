"""Plotly figures: every view of a trace at any step, in light and dark.

    figure(trace, "beam_tree", step=12).write_html("beams.html")

Charts of analyses lie beside it, one subject a file: `comparison`, `first_differences`, `costs`,
`microscope`, `calibration`, `what_if`, `losslessness`, `other_machine`, `losses`. `caption` says in words
what a figure shows.

Knows traces, scenes and analyses; starts nothing.
"""

from visualizers.figures.charts import caption
from visualizers.figures.export import page, save
from visualizers.figures.scene_figure import figure

__all__ = ["caption", "figure", "page", "save"]
