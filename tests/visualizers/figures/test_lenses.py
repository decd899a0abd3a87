"""Figures of lenses: what stands in them is what the frame says, and each has a caption."""

import math
from urllib.parse import unquote
from xml.etree import ElementTree

import networkx as nx
import plotly.graph_objects as go
import pytest

from decoders.lenses.frame import LensFrame
from decoders.lenses.logit import COLOURS
from decoders.lenses.registry import lenses, look
from decoders.trace.events import Cell, Distribution
from decoders.trace.scores import Measure, Score
from tests.helpers import tiny_models
from visualizers.figures import caption
from visualizers.figures import lens_grid as drawn
from visualizers.figures.cell_words import set_words
from visualizers.figures.lenses import figures, known
from visualizers.figures.theme import theme
from visualizers.graphs import save
from visualizers.graphs.flow_routes import routes

TEXT = "the cat <b>sat</b>; the cat"


@pytest.fixture(scope="module")
def frames(tiny_model):
    """Name of a lens -> its frame of TEXT."""
    model = tiny_model("llama")
    return {name: look(name, model, model.encode(TEXT), {"positions": 12}) for name in ("logit", "flow")}


def test_every_figure_that_a_lens_names_is_there(frames):
    for name, one in lenses().items():
        assert set(one.figures) <= known().keys(), name
    assert tuple(drawn.COLOURS) == COLOURS


@pytest.mark.parametrize("colour", COLOURS)
def test_the_grid_shows_the_likeliest_tokens(frames, colour):
    frame = frames["logit"]
    figure = drawn.grid(frame, "dark", colour)
    cells, last = figure.data[0], frame.of(Distribution, level="layer 2")
    assert len(cells.text) == 3 and [len(row) for row in cells.text] == [12] * 3
    assert list(cells.text[2]) == [drawn.word(frame, one.top[0][0]) for one in last]
    if colour == "probability":
        assert list(cells.z[2]) == pytest.approx([math.exp(one.top[0][1]) for one in last])
    if colour == "total variation":
        assert list(cells.z[2]) == pytest.approx([0] * 12, abs=1e-6)
    depth = {e.node: e.total for e in frame.of(Score, name="decision depth")}
    border = figure.data[-1]  # six points a cell
    settled = {(round(x + 0.5), round(y + 0.5)) for x, y in zip(border.x[::6], border.y[::6], strict=True)}
    first = min(depth)
    assert settled == {(node - first, int(total)) for node, total in depth.items()}
    assert drawn.COLOURS[colour] in caption(figure)
    assert "<b>sat" not in " ".join(figure.layout.xaxis.ticktext)  # a token is text, never markup
    (picture,) = figure.layout.images  # of the words, as large as the cells
    assert picture.sizex * drawn.CELL == figure.layout.width - drawn.LEFT - drawn.RIGHT
    assert picture.sizey * drawn.ROW == figure.layout.height - drawn.ABOVE - drawn.BELOW


def test_words_of_cells_stand_in_their_cells_whatever_they_are():
    figure, words = go.Figure(), [["a", "&lt;b>\x00"], ["'\"", "␣%20#"]]
    set_words(figure, words, 10, 20, theme("dark"))
    (picture,) = figure.layout.images
    kind, _, source = picture.source.partition(",")
    set_ones = ElementTree.fromstring(unquote(source))
    places = [(float(one.get("x")), float(one.get("y")), one.text) for one in set_ones]
    assert places == [(5, 30, "a"), (15, 30, "<b>�"), (5, 10, "'\""), (15, 10, "␣%20#")]
    assert kind == "data:image/svg+xml" and (picture.x, picture.y) == (-0.5, 1.5)
    assert set_ones.get("fill") == theme("dark").surface["text"]


def test_a_route_is_what_can_be_walked_to(frames):
    frame = frames["flow"]
    whole, cut = routes(frame, tau=0.0), routes(frame, tau=0.1)
    at = len(frame.tokens) - 1
    for graph in (whole, cut):
        assert graph.nodes[f"state 2 {at}"]["kind"] == "state"
        assert set(graph) == {f"state 2 {at}"} | nx.ancestors(graph, f"state 2 {at}")
        for node, about in graph.nodes(data=True):
            into = [e for _, _, e in graph.in_edges(node, data=True)]
            if about["kind"] == "attention" or (about["kind"] == "state" and about["layer"]):
                assert sum(e["weight"] for e in into) == pytest.approx(1, abs=1e-4), node
            assert bool(into) == (about["layer"] > 0)
    assert cut.number_of_edges() < whole.number_of_edges()
    same = [(a, b) for a, b, e in whole.edges(data=True) if e["kind"] == "residual"]
    assert any(whole.number_of_edges(a, b) == 2 for a, b in same)  # a position also attends to itself


def test_without_renormalising_a_larger_tau_leaves_a_subset(frames):
    few, many = (set(routes(frames["flow"], tau=tau, renormalise=False).edges()) for tau in (0.15, 0.03))
    assert few and few < many
    with pytest.raises(ValueError, match="choose a position from 0 to"):
        routes(frames["flow"], position=999)


def test_a_route_survives_graphml(frames, tmp_path):
    graph = routes(frames["flow"])
    save(graph, tmp_path / "route.graphml")
    again = nx.read_graphml(tmp_path / "route.graphml")
    assert set(again) == set(graph) and again.number_of_edges() == graph.number_of_edges()
    assert again.is_multigraph() == any(graph.number_of_edges(a, b) > 1 for a, b in graph.edges())


def test_flow_figures_show_heads_and_tokens(frames):
    frame = frames["flow"]
    shown = {"tau": 0.01, "renormalise": True, "layer": 2, "colour": "entropy"}
    route, heads, tokens = figures(lenses()["flow"].figures, frame, "light", shown)
    assert "tau 0.01" in caption(route) and "Layer 2" in heads.layout.title.text
    attended, brought = heads.data
    assert list(attended.z[0]) == pytest.approx(frame.data["pattern"][1, 0, -1, -12:].tolist())
    assert list(brought.z[3]) == pytest.approx(frame.data["flow"].attention[1, 3, -1, -12:].tolist())
    assert tokens.data[0].z[0][1] is None and caption(tokens)
    assert all("<b>sat" not in str(trace.hovertext) for trace in route.data)


def test_sentences_are_told_apart_by_agreement():
    words, levels = {1: "", 5: " a", 6: " <i>b"}, ["embeddings", "layer 1"]
    cells = [Cell(1, 0, 6, "changed", level=levels[0]), Cell(1, 1, 5, "kept", level=levels[1])]
    scores = [Measure(1, "final sentence", x, level=one) for x, one in zip((-3.0, -1.0), levels, strict=True)]
    frame = LensFrame("decoder", "DecoderLens", [1, 5], levels, cells + scores, [], "So.", words)
    (figure,) = figures(("sentences",), frame, "light", {})
    grid = figure.data[0]
    assert [row[0] for row in grid.z] == [0.0, 1.0]
    assert [row[0] for row in grid.text] == ["<i>␣&lt;i&gt;b</i>", "␣a"]
    assert list(figure.layout.yaxis.ticktext) == ["embeddings  −3.0", "layer 1  −1.0"]
    assert "From the embeddings alone, 0 of 1 tokens are." in caption(figure)


def test_the_command_line_writes_a_figure_and_a_graph(tmp_path, capsys):
    from explorer import cli

    folder, out, graph = tmp_path / "tiny", tmp_path / "route.html", tmp_path / "route.graphml"
    tiny_models.save(folder)
    same = ["--model", str(folder), "--prompt", "the cat sat"]
    cli.main(["lens", "flow", *same, "--out", str(out), "--graph", str(graph), "--set", "tau=0.02", "--json"])
    said = capsys.readouterr().out
    assert '"lens": "flow"' in said and out.stat().st_size > 1e6 and len(nx.read_graphml(graph)) > 3
    for bad in (
        ["logit", *same, "--graph", "x.graphml"],
        ["logit", "--prompt", ""],
        ["flow", *same, "--set", "tau"],
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main(["lens", *bad])
        assert ended.value.code == 2
