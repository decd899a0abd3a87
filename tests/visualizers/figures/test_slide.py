"""A slide: all of a run in 16:9, every column in one of its lines, in letters as large as there is room."""

from xml.etree import ElementTree

import pytest

from decoders.registry import strategies
from decoders.trace.trace import load
from explorer.catalog import method_cards, recorded_runs
from explorer.export.lane_picture import slide
from visualizers.figures.run_lines import bands, points, rounds, windows
from visualizers.figures.scene_figure import figure
from visualizers.figures.slide import FOOT, HIGH, INNER, MARGIN, TOP, WIDE, best
from visualizers.figures.svg import axes, frame

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
    lines: dict[tuple[float, float], list[tuple[float, ...]]] = {}  # columns -> pieces, downwards
    for cut in root.findall(f"{SPACE}svg"):
        x, y, wide, high = (float(cut.get(key)) for key in ("x", "y", "width", "height"))
        assert x >= MARGIN - 1 and x + wide <= WIDE - MARGIN + 1 and y >= TOP and y + high <= HIGH - 60
        left, _, across, _ = map(float, cut.get("viewBox").split())
        lines.setdefault((left, left + across), []).append((y, x, high, wide))
    starts = sorted(lines)
    if len(starts) > 1 and starts[1][0] == 0:
        del lines[starts[0]]  # the gutter, which stands before all lines but the first
    parts = list(lines)
    assert parts[0][0] == 0 and parts == sorted(parts, key=lambda part: lines[part][0][:2])
    in_rounds = view in ("draft_rounds", "target_top_tokens") and strategies()[name].family == "speculative"
    for (_, end), (start, _) in zip(parts, parts[1:], strict=False):
        assert end >= start - 0.11 if in_rounds else end == pytest.approx(start, abs=0.11)  # both are rounded
    boxes = [(p[0][1], p[0][0], p[0][1] + p[0][3], p[-1][0] + p[-1][2]) for p in lines.values()]
    for i, (x0, y0, x1, y1) in enumerate(boxes):
        assert not any(x0 < b[2] and b[0] < x1 and y0 < b[3] and b[1] < y1 for b in boxes[:i])
    for pieces in lines.values():
        for (y, _, high, _), (below, *_) in zip(pieces, pieces[1:], strict=False):
            assert below == pytest.approx(y + high, abs=0.2)


@pytest.mark.parametrize("name", ["speculative", "specinfer", "typical_acceptance", "beam"])
def test_everything_that_a_figure_draws_is_in_one_of_the_lines_of_its_slide(name):
    made = figure(load(method_cards.file_of(name)))
    plan, made.layout.width, made.layout.height = best(frame(made))
    at = frame(made)
    for axis in axes(made):
        for x, y in points(at, axis):
            lines = [line for line in windows(at, plan.lines) if line.start <= x <= line.end]
            assert any(top <= y <= bottom for line in lines for top, bottom in bands(at, line))


@pytest.mark.parametrize("name", ["speculative", "specinfer", "eagle2", "typical_acceptance"])
def test_no_round_is_split_over_two_lines_of_a_slide(name):
    made = figure(load(method_cards.file_of(name)), "draft_rounds")
    plan, made.layout.width, made.layout.height = best(frame(made))
    at = frame(made)
    lines = windows(at, plan.lines)
    assert len(lines) <= plan.lines
    for one in rounds(at):
        (home,) = [line for line in lines if line.first <= one.first < line.last]
        assert one.last <= home.last and home.start <= one.start and one.end <= home.end


def test_rounds_are_large_on_a_slide_as_a_line_shows_its_own_alone():
    made = figure(recorded_runs.traces()[1], "draft_rounds")
    at = frame(made)
    plan, _, _ = best(at)
    whole = (HIGH - TOP - FOOT) / (at.bottom - at.top)
    assert plan.side_by_side > 1 and plan.size > 1.2 * min(whole, INNER / made.layout.width)


def test_a_long_run_is_broken_between_columns_so_that_its_letters_are_larger():
    made = figure(load(method_cards.file_of("beam")), "beam_tree")
    low, high = made.layout.xaxis.range
    made.layout.width *= 3
    made.update_xaxes(range=[low, low + 3 * (high - low)])
    at = frame(made)
    plan, _, _ = best(at)
    assert plan.lines > 1 and plan.size > 1.3 * INNER / made.layout.width
    for line in windows(at, plan.lines)[:-1]:
        column = (line.end - at.left) / at.scales["x"][1] + at.scales["x"][0]
        assert column % 1 == pytest.approx(0.5)
