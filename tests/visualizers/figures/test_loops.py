"""Figures of loops and reasoning show the numbers that they are given."""

import pytest

from decoders.trace.repetition import Exits
from tests.visualizers.analysis.test_loops_and_thinking import trace_of
from visualizers.analysis.loops_and_thinking import NOT_STORED, loops_and_thinking
from visualizers.figures import caption, loops

MADE = [
    Exits("none", "no processor", [0.25, 0.5], None),
    Exits("temperature", "temperature 2", [0.5, 1.0], 0),
]


@pytest.mark.parametrize("look", ["light", "dark"])
def test_a_row_for_each_processor_and_a_column_for_each_token(look):
    figure = loops.leaving(MADE, ["␣a", "b"], 7, look)
    [cells] = figure.data
    assert [list(row) for row in cells.z] == [[0.25, 0.5], [0.5, 1.0]] and list(cells.x) == [7, 8]
    assert list(cells.y) == ["no processor", "temperature 2"]
    assert caption(figure).endswith("no processor: .38; temperature 2: .75.")
    assert list(figure.layout.xaxis.ticktext) == ["␣a", "b"]


def test_how_long_a_text_stays_is_the_product_of_what_stays():
    figure = loops.staying(MADE, 7, 2)
    plain, hot, *_ = figure.data
    assert list(plain.y) == [0.75, 0.375] and list(hot.y) == [0.5, None]  # 0 has no place on a log axis
    assert "no processor: .375; temperature 2: 0." in caption(figure)


def test_the_end_of_thinking_with_its_forced_end():
    trace = trace_of([0, 1, 1, 2, 3])
    report = loops_and_thinking(trace)
    report.forced = [3]
    figure = loops.end_of_thinking(report)
    line = figure.data[0]
    assert list(line.x) == [2, 3, 4] and list(line.y) == [report.ends[at] for at in (1, 2, 3)]
    assert figure.layout.shapes[0].x0 == 4


def test_what_is_not_stored_is_not_drawn():
    trace = trace_of([1, 1], prompt=0)
    for step in trace.steps:
        step.events[0].top.pop()
    assert NOT_STORED in caption(loops.end_of_thinking(loops_and_thinking(trace)))
