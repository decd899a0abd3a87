"""A slide: all of a run in 16:9, every column in one of its lines, in letters as large as there is room."""

from xml.etree import ElementTree

import pytest

from decoders.registry import strategies
from decoders.trace.trace import load
from explorer.catalog import method_cards
from explorer.export.lane_picture import slide
from visualizers.figures.scene_figure import figure
from visualizers.figures.slide import HIGH, INNER, MARGIN, TOP, WIDE, best, windows
from visualizers.figures.svg import frame

SPACE = "{http://www.w3.org/2000/svg}"
CASES = [
    (name, view)
    for name in ("greedy", "beam", "speculative", "specinfer", "jacobi", "topic_plan", "mbr")
    for view in strategies()[name].views
]


@pytest.mark.parametrize(("name", "view"), CASES)
def test_all_lines_of_a_slide_lie_on_it_and_together_show_the_whole_run(name, view):
    root = ElementTree.fromstring(slide(load(method_cards.file_of(name)), view))
    assert (root.get("width"), root.get("height")) == (str(WIDE), str(HIGH))
    lines: dict[float, list[tuple[float, float]]] = {}
    for cut in root.findall(f"{SPACE}svg"):
        x, y, wide, high = (float(cut.get(key)) for key in ("x", "y", "width", "height"))
        assert x >= MARGIN - 1 and x + wide <= WIDE - MARGIN + 1 and y >= TOP and y + high <= HIGH - 60
        left, _, across, _ = map(float, cut.get("viewBox").split())
        lines.setdefault(y, []).append((left, left + across))
    parts = [pieces[-1] for _, pieces in sorted(lines.items())]  # what stands before them are gutters
    assert parts[0][0] == 0
    for (_, end), (start, _) in zip(parts, parts[1:], strict=False):
        assert end == start
    lowest = [low for low, pieces in sorted(lines.items())]
    assert lowest == sorted(set(lowest))


def test_a_long_run_is_broken_between_columns_so_that_its_letters_are_larger():
    made = figure(load(method_cards.file_of("beam")), "beam_tree")
    low, high = made.layout.xaxis.range
    made.layout.width *= 3
    made.update_xaxes(range=[low, low + 3 * (high - low)])
    at = frame(made)
    lines, size, _, _ = best(at)
    assert lines > 1 and size > 1.3 * INNER / made.layout.width
    for _, end in windows(at, lines)[:-1]:
        column = (end - at.left) / at.scales["x"][1] + at.scales["x"][0]
        assert column % 1 == pytest.approx(0.5)
