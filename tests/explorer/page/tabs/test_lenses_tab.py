"""The tab Lenses without a browser: what it draws of a lane, of a token, with options; what it refuses."""

import json

import gradio as gr
import pytest

from decoders.lane import Lane, Limits
from decoders.lenses.registry import lenses, look
from decoders.trace.costs import Costs
from decoders.trace.events import Commit, Distribution
from explorer.page.tabs import lenses as tab
from explorer.page.tabs import on_screen
from explorer.runs.scheduler import GONE
from visualizers.figures import caption

ALL = [(0, 1, 99), (1, 2, 99)]


@pytest.fixture
def show(events):
    """show(value, lens, {option: value}, asked=..., lane=..., source=...): what a person then sees."""

    def show(value: str, lens: str, options: dict, asked: str = "", lane=None, source: str = "") -> dict:
        fields = [(name, p) for name, one in lenses().items() for p in (*one.parameters, *one.shows)]
        given = [options.get(p.name, p.default) if name == lens else p.default for name, p in fields]
        updates = events["show"](value, "light", asked, lens, lane, source, *given)
        words = [v for c, v in updates.items() if isinstance(c, gr.Markdown)]
        plots = [v for c, v in updates.items() if isinstance(c, gr.Plot)]
        return {"says": words[0], "captions": words[1:], "plots": plots}

    return show


def test_the_grid_follows_the_step_on_screen(show, value_of, run):
    trace = run.records[0].trace
    for steps in (2, 99):
        seen = show(value_of([(0, 1, steps)]), "logit", {"positions": 64, "colour": "entropy"})
        (plot,) = seen["plots"]
        tokens = len(trace.prompt) + min(steps, len(trace.output()))
        assert len(plot.data[0].z[0]) == min(64, tokens) and len(plot.data[0].z) == 3
        assert f"1 lens forward over {tokens} tokens" in seen["says"]
        assert seen["captions"] == [tab.escaped(caption(plot))] and "entropy" in caption(plot)


def test_of_a_search_the_best_text_so_far_is_read(tiny_model, prompt):
    trace = Lane("beam", prompt, {"target": tiny_model()}, {}, 0, Limits(max_new_tokens=8)).run()
    token, costs = trace.index().token, Costs()
    for count, step in enumerate(trace.steps, 1):
        costs.add(step)
        best = tab.best_so_far(trace, trace.steps[:count])
        assert len(best) == costs.new_tokens + len(costs.ahead) >= 1
    assert [token[n] for n in best] == trace.output()
    assert tab.best_so_far(trace, []) == []


def test_options_of_a_picture_cost_no_forward(show, value_of, monkeypatch):
    first = show(value_of(ALL), "flow", {"positions": 8, "tau": 0.0})
    assert len(first["plots"]) == 3
    monkeypatch.setattr(tab, "look", None)  # another forward would fail
    other = show(value_of(ALL), "flow", {"positions": 8, "tau": 0.3, "layer": 2})
    edges = [int(caption(seen["plots"][0]).split(": ")[1].split(" ")[0]) for seen in (first, other)]
    assert edges[1] < edges[0] and "Layer 2" in other["plots"][1].layout.title.text


def test_a_token_of_the_inspector_is_read_from_what_stands_before_it(show, value_of, run):
    trace = run.records[1].trace
    node = next(iter(trace.nodes())) + len(trace.prompt) + 3
    asked = json.dumps({"run": run.id, "lane": 1, "node": node})
    seen = show(value_of(ALL), "logit", {"positions": 64}, asked=asked)
    before, text = tab.before_token(trace, node)
    assert len(seen["plots"][0].data[0].z[0]) == len(before) >= len(trace.prompt)
    assert f"in lane 2, at position {len(before)}." in seen["says"]
    assert tab.before_token(trace, 2)[0] == trace.prompt[:2]
    first = json.dumps({"run": run.id, "lane": 1, "node": 0})
    assert show(value_of(ALL), "logit", {}, asked=first)["says"] == tab.NOTHING_BEFORE


def test_what_cannot_be_looked_at_is_said(show, value_of):
    assert show(on_screen.NO_RUN, "logit", {})["says"] == tab.NONE
    assert show("", "logit", {})["says"] == on_screen.READING  # nobody knows yet whether there is a lane
    assert show(value_of([], {"run": "gone"}), "logit", {})["says"] == tab.escaped(GONE)
    assert show(value_of(ALL), "logit", {"positions": 0})["says"].startswith(
        "positions must be a whole number"
    )
    assert "No tuned lens is trained for" in show(value_of(ALL), "tuned", {})["says"]
    assert "DecoderLens reads an encoder-decoder, and none" in show(value_of(ALL), "decoder", {})["says"]


def test_chips_hear_after_how_many_layers_their_token_is_settled(runs, loader, run):
    """Each token of the greedy lane is the target's own: from its depth on the lens shows it for good."""
    trace, model = run.records[0].trace, loader.models["target"]
    depths = tab.depths(runs, loader, run, trace)
    tokens = [*trace.prompt, *trace.output()]
    frame = look("logit", model, tokens, {"positions": 512})
    nodes = [node for step in trace.steps for commit in step.of(Commit) for node in commit.nodes]
    assert list(depths) == nodes and {layers for _, layers in depths.values()} == {2}
    for at, (deep, _) in enumerate(depths.values(), len(trace.prompt) - 1):
        tops = [one.top[0][0] for one in frame.of(Distribution) if one.node == at]
        assert set(tops[deep:]) == {tokens[at + 1]} and (not deep or tops[deep - 1] != tokens[at + 1])
