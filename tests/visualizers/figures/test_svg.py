"""A figure as SVG: every mark and every word of it is there, at its place, and words are only words."""

import re
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest

from decoders.registry import strategies
from decoders.trace import trace as traces
from decoders.trace.trace import from_json, load
from explorer.catalog import method_cards
from tests.helpers.bad_files import small_trace
from visualizers.figures.scene_figure import figure
from visualizers.figures.svg import clean, frame, svg
from visualizers.registry import names

SPACE = "{http://www.w3.org/2000/svg}"
SOME = ["greedy", "beam", "speculative", "specinfer", "jacobi", "lattice", "momentum", "topic_plan", "sample"]


def seen(trace: go.Scatter) -> bool:
    return not ("markers" in trace.mode and trace.marker.opacity == 0)


def pieces(trace: go.Scatter) -> int:
    """The lines of a trace: there is a gap between two."""
    return list(trace.x).count(None) + 1


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("look", ["light", "dark"])
def test_all_of_a_figure_is_drawn(name, look):
    trace = load(method_cards.file_of(name))
    for view in strategies()[name].views:
        made = figure(trace, view, look=look)
        root = ElementTree.fromstring(svg(made, foot="12 tokens & more"))
        texts = ["".join(element.itertext()) for element in root.iter(f"{SPACE}text")]
        words = [clean(said) for one in made.data if "text" in one.mode for said in one.text]
        assert {w for w in words if w} <= {clean(said) for said in texts}
        assert "12 tokens & more" in texts and any(trace.title in said for said in texts)
        drawn = [path.get("d") for path in root.iter(f"{SPACE}path")]
        lines = sum(pieces(one) for one in made.data if "lines" in one.mode)
        assert sum(d.count("M") for d in drawn) >= lines
        symbols = [one for one in made.data if "markers" in one.mode and seen(one)]
        circles = sum(len(one.x) for one in symbols if one.marker.symbol.startswith("circle"))
        assert len(list(root.iter(f"{SPACE}circle"))) >= circles
        wide, high = float(root.get("width")), float(root.get("height"))
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", "".join(d for d in drawn if "l" not in d)):
            assert -20 <= float(y) <= high + 20 and float(x) >= -20
        assert wide == pytest.approx(made.layout.width) and high > made.layout.height


def test_a_notebook_shows_a_trace_as_its_text_and_a_picture(monkeypatch):
    beams = load(method_cards.file_of("beam"))
    shown = beams._repr_mimebundle_()
    assert shown == {"text/plain": f"Beam search: {beams.text()!r}", "image/svg+xml": svg(figure(beams))}
    monkeypatch.setattr(traces, "FIGURES", "visualizers.absent:figure")  # only `decoders` is installed
    assert list(beams._repr_mimebundle_()) == ["text/plain"]


def test_marks_lie_where_the_figure_has_them():
    made = figure(load(method_cards.file_of("beam")), "beam_tree")
    root = ElementTree.fromstring(svg(made))
    nodes = next(one for one in made.data if "markers" in one.mode and seen(one) and len(one.x) > 1)
    left, right = made.layout.margin.l, made.layout.width - made.layout.margin.r
    low, high = made.layout.xaxis.range
    places = {round(float(c.get("cx")), 1) for c in root.iter(f"{SPACE}circle")}
    assert {round(left + (x - low) / (high - low) * (right - left), 1) for x in nodes.x} <= places


def test_words_are_words_and_characters_that_no_xml_may_hold_are_left_out():
    assert (
        clean("&lt;img src=x&gt; <b>bold</b> a\x00b\ud800c &amp;amp;")
        == "&lt;img src=x&gt; bold abc &amp;amp;"
    )


@pytest.mark.parametrize("name", ["diverse_beam", "lattice"])
def test_a_figure_is_as_wide_as_what_is_drawn(name):
    """Bands without an end, and changes of what was never drawn, are no reason to be wide or to fail."""
    made = figure(load(method_cards.file_of(name)))
    assert made.layout.width < 1500 and len(made.layout.xaxis.tickvals) < 40


def test_a_panel_in_which_nothing_is_drawn_keeps_its_words():
    """Names of rows stand beside panels that have no marks: pictures of a trace without anything special."""
    trace = from_json(small_trace())
    for view in names():
        at = frame(trace.figure(view))
        assert svg(trace.figure(view)).startswith("<svg"), view
        assert {one.yref for one in at.figure.layout.annotations} <= set(at.scales), view
