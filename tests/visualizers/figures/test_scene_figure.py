"""A view as a Plotly figure shows the scene that the player draws: the same marks, places and states."""

import json

import plotly.graph_objects as go
import pytest

from decoders.lane import Lane, Limits
from decoders.registry import strategies
from decoders.trace.trace import Trace
from tests.helpers import tiny_models
from visualizers.figures import page, save
from visualizers.figures.marks import DRAWERS
from visualizers.figures.scene_figure import figure, picture
from visualizers.figures.theme import theme

WRITTEN = {  # strategy -> parameters; together they fill most views
    "beam": {"num_beams": 3},
    "speculative_tree": {"widths": [3, 2]},
    "jacobi": {"block_size": 6},
    "sample": {"top_k": 20},
    "best_first": {"max_expansions": 40},
    "lookahead": {},
    "momentum": {},
    "value_mcts": {"simulations": 8},
    "pearl": {},
    "contrastive_decoding": {},
}
PLACE = {  # kind -> where a figure's point of a mark lies
    "edge": lambda m: ((m["x0"] + m["x1"]) / 2, (m["y0"] + m["y1"]) / 2),
    "bar": lambda m: (m["x"], (m["y0"] + m["y1"]) / 2),
    "arc": lambda m: ((m["x0"] + m["x1"]) / 2, m["y"] + m["height"]),
    "stem": lambda m: (m["x"], m["y1"]),
}


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    models = {"target": tiny_models.make(), "draft": tiny_models.make(seed=1)}
    return {
        name: Lane(name, [40, 41, 42, 40, 41], models, given, 0, Limits(10)).run()
        for name, given in WRITTEN.items()
    }


def drawn_points(made: go.Figure) -> dict[str, tuple[dict, float, float]]:
    """Id of a mark -> (kind and state, x, y) of its point; each mark has one."""
    found = {}
    for one in made.data:
        for at, mark in enumerate(one.customdata if one.customdata is not None else ()):
            assert mark not in found
            found[mark] = (one.meta, one.x[at], one.y[at])
    return found


@pytest.mark.parametrize("name", WRITTEN)
def test_the_same_marks_stand_at_the_same_places_in_the_same_states(traces, name):
    trace, filled = traces[name], 0
    for view in [view for view in strategies()[name].views if view != "text"]:
        for step in (len(trace.steps) // 2, None):
            shown = picture(trace, view, step)
            panels = [m for m in shown.marks if m["kind"] == "panel"]
            there = {m["id"] for m in panels if not m.get("below_px")}  # not those of a low picture
            expected = {
                m["id"]: m
                for m in shown.marks
                if m["kind"] in DRAWERS
                and m.get("drawn") is not False
                and (m.get("panel") is None or m["panel"] in there)
                and not (m["kind"] == "tick" and m["index"] >= 5)
                and not (m["kind"] == "label" and (m.get("side") or not m.get("text")))
            }
            found = drawn_points(figure(trace, view, step))
            assert found.keys() == expected.keys()
            filled += len(found) > 0
            for mark, (meta, x, y) in found.items():
                known = expected[mark]
                assert meta["kind"] == known["kind"]
                assert meta["state"] == (known.get("state") or known.get("role"))
                place = PLACE.get(known["kind"])
                if place or known["kind"] in ("node", "cell", "symbol", "step"):
                    assert (x, y) == pytest.approx(place(known) if place else (known["x"], known["y"]))
    assert filled >= 3


def test_these_strategies_show_most_views():
    assert len({view for name in WRITTEN for view in strategies()[name].views}) >= 12


def test_a_view_that_is_not_made_for_a_trace_says_so():
    trace = Lane("value_beam", [40, 41, 42], {"target": tiny_models.make()}, limits=Limits(4)).run()
    with pytest.raises(ValueError, match="The view Branches cannot draw a trace of "):
        figure(trace, "branches")


def test_the_text_is_whole_and_tinted_by_state(traces):
    trace = traces["speculative_tree"]
    made = trace.figure("text")
    chips = [m for m in picture(trace, "text").marks if m["kind"] == "chip"]
    assert {m["id"]: m["state"] for m in chips} == {
        mark: meta["state"] for mark, (meta, _, _) in drawn_points(made).items()
    }
    boxes = [one for one in made.data if one.fill == "toself"]
    tints = {one.fillcolor for one in boxes}
    assert tints == {theme("light").state[m["state"]]["tint"] for m in chips}


@pytest.mark.parametrize("look", ["light", "dark"])
def test_the_looks_are_the_palette_s(traces, look):
    made = traces["beam"].figure("beam_tree", look=look)
    colours = theme(look)
    assert made.layout.template.layout.paper_bgcolor == colours.surface["bg"]
    for one in made.data:
        if one.customdata is not None and one.meta["kind"] == "node":
            assert one.marker.color == colours.state[one.meta["state"]]["color"]


def test_a_strategy_opens_with_its_first_view_and_a_figure_says_the_step(traces):
    trace = traces["beam"]
    first = strategies()["beam"].views[0]
    title = picture(trace, first).head["title"]
    assert title in trace.figure().layout.title.text
    assert f"after 2 of {len(trace.steps)} steps" in trace.figure(step=2).layout.title.text
    assert trace.figure(step=3).layout.meta["caption"] == picture(trace, first, 3).says


def test_words_of_a_model_are_no_markup():
    prompt, words = [0], [b"<b>", b"</script><img src=x>", b"a&amp;b"]
    trace = Trace("greedy", "Greedy <i>", {}, 0, {}, prompt, dict(enumerate(words)))
    made = trace.figure("text")
    assert "Greedy &lt;i&gt;" in made.layout.title.text
    said = json.dumps([[list(one.text or ()), list(one.hovertext or ())] for one in made.data])
    assert "&lt;b&gt;" in said and "<b>" not in said.replace("<br>", "")
    assert "</script><img" not in page(made)


def test_what_there_is_not_is_said(traces, tmp_path):
    trace = traces["beam"]
    with pytest.raises(ValueError, match="no view named 'wings'; choose one of"):
        trace.figure("wings")
    with pytest.raises(ValueError, match=f"has {len(trace.steps)} steps; choose one of 0 to"):
        trace.figure(step=99)
    with pytest.raises(ValueError, match="no theme 'grey'; choose one of light, dark"):
        trace.figure(look="grey")
    with pytest.raises(ValueError, match="saved as .html.* ends in none of them"):
        save(trace.figure(), tmp_path / "beams.doc")


def test_a_picture_needs_kaleido_and_says_so(traces, tmp_path, monkeypatch):
    monkeypatch.setattr("visualizers.figures.export.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="need kaleido: pip install -r requirements-kaleido.txt"):
        save(traces["beam"].figure(), tmp_path / "beams.png")


def test_a_picture_needs_a_browser_and_says_so(traces, tmp_path, monkeypatch):
    def refused(figure, path):
        raise RuntimeError("Kaleido requires Google Chrome to be installed.\n\nEither download it ...")

    monkeypatch.setattr("visualizers.figures.export.importlib.util.find_spec", lambda name: name)
    monkeypatch.setattr("plotly.graph_objects.Figure.write_image", refused)
    with pytest.raises(ValueError, match="name it in BROWSER_PATH, or save as .html"):
        save(traces["beam"].figure(), tmp_path / "beams.png")


def test_a_saved_figure_needs_no_network(traces, tmp_path):
    path = tmp_path / "beams.html"
    save(traces["beam"].figure(), path)
    text = path.read_text("utf-8")
    assert (
        len(text) > 10**6 and "<script src=" not in text and "cdn.plot.ly" not in text.split("</script>")[-2]
    )
