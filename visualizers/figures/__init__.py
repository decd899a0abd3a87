"""Plotly figures: every view of a trace at any step, in light and dark.

    figure(trace, "beam_tree", step=12).write_html("beams.html")

Charts of analyses are in one file per subject: `comparison`, `first_differences`, `costs`, `microscope`,
`calibration`, `what_if`, `losslessness`, `other_machine`, `losses`. `caption` describes a figure in words.
`for_print` makes a view a figure for a paper, as many millimetres wide as its column.
"""

from visualizers.figures.charts import caption
from visualizers.figures.export import page, save
from visualizers.figures.for_print import for_print
from visualizers.figures.scene_figure import figure

__all__ = ["caption", "figure", "for_print", "page", "save"]
