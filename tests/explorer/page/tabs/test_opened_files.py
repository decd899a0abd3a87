"""Every kind of file that can be imported: opened, drawn in every view and tab, saved, and opened again."""

import json

import gradio as gr
import pytest

from decoders.trace.events import Cell
from decoders.trace.trace import Trace
from explorer.catalog import recorded_runs
from explorer.export import run_file
from explorer.export.comparison import LIKELIHOODS
from explorer.export.lane_picture import picture, slide
from explorer.page.save_and_open import open_file, save_file
from explorer.page_requests import Save
from explorer.runs.offered_views import offered_views
from explorer.runs.view_cache import Fold
from tests.decoders.trace.imports import samples
from tests.decoders.trace.imports.test_openai import named, of, response
from tests.explorer.page.tabs.conftest import ME
from tests.helpers.bad_files import small_trace

NUMBERS = [3000, 900, 20, 40, 0.7, 8, 2, 131, 0.5, 2, 12]  # of the first device, target and draft
ODD = {  # parameters of a program that is not this one
    "num_beams": [4, 2],
    "num_steps": {"first": 3},
    "constraint": ["json"],
    "memory": {"kind": "h2o"},
    "temperature": "hot",
    "widths": 3,
    "labels": [["a"], None],
    "block_length": None,
    "num_beam_groups": 10**12,
    "max_new_tokens": 10**12,
    "fork_entropy": "none",
    "greedy": True,
}


def foreign() -> dict:
    """A trace of a program that is not this one, with every kind of event."""
    trace = small_trace() | {"strategy": "of another program", "title": "Another program", "parameters": ODD}
    levels = [
        {"type": "Cell", "position": 1, "iteration": 1, "token": 1, "state": "changed"} for _ in range(3)
    ]
    for cell, level in zip(levels, ("layer x", "3 of 4", "²"), strict=True):
        cell["level"] = level
    trace["steps"].append({"index": 3, "seconds": 0.4, "events": levels})
    return trace


FILES = {
    "trace": lambda: json.dumps(recorded_runs.traces()[0].to_json()),
    "foreign trace": lambda: json.dumps(foreign()),
    "run": lambda: run_file.pack(run_file.container(recorded_runs.traces()), compressed=False).decode(),
    "answer": lambda: json.dumps(response(4)),
    "answer without likely tokens": lambda: json.dumps(of(named("a", -3.0), named("b", -9999.0))),
    "answer with one likely token": lambda: json.dumps(of(named("a", -3.0, ("a", -3.0)))),
    "answer with rounds": lambda: json.dumps(response(7, [3, 3, 1], [2, 0, 1])),
    "untrusted answer": lambda: json.dumps(samples.LLAMA | {"content": "The cow sat."}),
    "answer with the draft's probabilities": lambda: json.dumps(samples.FASTDEPLOY),
    "options of an evaluation": lambda: json.dumps(samples.HARNESS),
    "rollout": lambda: json.dumps(samples.PRIME),
}


@pytest.fixture(scope="module", params=FILES)
def data(request) -> bytes:
    return FILES[request.param]().encode()


@pytest.fixture(scope="module")
def opened(runs, data):
    return open_file(runs, data, ME)


@pytest.fixture(scope="module")
def said(runs, opened) -> str:
    """What the page with this run reports to its tabs."""
    lanes = [
        {"lane": at, "number": at + 1, "shown": 99} for at in range(len(runs.find(opened["run"]).records))
    ]
    return json.dumps({"session": ME, "run": opened["run"], "state": "done", "lanes": lanes})


def lanes(runs, opened) -> list[Trace]:
    return [record.trace for record in runs.find(opened["run"]).records]


def test_every_view_of_every_lane_is_drawn(runs, opened):
    for trace in lanes(runs, opened):
        for view in dict.fromkeys([*offered_views(trace), "text"]):
            fold = Fold(view, trace)
            drawn = [fold.ops(step) for step in range(len(trace.steps))]
            assert any(drawn) and fold.problem is None, view
            assert picture(trace, view).startswith("<svg") and slide(trace, view).startswith("<svg")


def test_every_tab_that_follows_the_run_is_drawn(events, runs, opened, said):
    for name, more in {
        "show_machine": ("light", False, *NUMBERS),
        "show_comparison": ("light", "seconds", next(iter(LIKELIHOODS)), None),
        "show_lane": ("light", None, None),
        "show_rejections": (None, None, None, None, None),
    }.items():
        answer = events[name](said, *more)
        assert answer and all(isinstance(component, gr.blocks.Block) for component in answer), name


def test_what_was_opened_is_saved_and_opened_again(runs, opened):
    run = runs.find(opened["run"])
    wanted = [trace.to_json() for trace in lanes(runs, opened)]
    views = [lane["view"] for lane in opened["setup"]["lanes"]]
    for form in ("run", "page"):
        saved = save_file(runs, run, Save(run=run.id, form=form, views=views))
        again = open_file(runs, saved.data, ME)
        assert [trace.to_json() for trace in lanes(runs, again)] == wanted
        assert again["setup"]["lanes"] == opened["setup"]["lanes"]
    for form in ("trace", "costs", "figure"):
        assert save_file(runs, run, Save(run=run.id, form=form, lane=0)).data


def test_an_untrusted_lane_says_so_wherever_it_is_drawn(runs):
    data = json.dumps(samples.LLAMA | {"content": "The cow sat."}).encode()
    opened = open_file(runs, data, ME)
    (lane,), (trace,) = opened["answer"]["lanes"], lanes(runs, opened)
    assert not lane["trust"]["trusted"] and "do not spell the text" in lane["trust"]["sentence"]
    figure = trace.figure("entropy")
    assert "Untrusted" in figure.layout.title.subtitle.text
    trusted = open_file(runs, json.dumps(samples.LLAMA).encode(), ME)
    (sound,) = lanes(runs, trusted)
    assert trusted["answer"]["lanes"][0]["trust"]["trusted"]
    assert len(figure.data) == len(sound.figure("entropy").data) + 4  # a hatch over each panel
    assert "Untrusted" in picture(trace, "text") and "Untrusted" not in picture(sound, "text")
    assert open_file(runs, json.dumps(foreign()).encode(), ME)["answer"]["lanes"][0]["trust"] is None


def test_parameters_that_no_field_holds_are_shown_as_text(runs):
    opened = open_file(runs, json.dumps(foreign()).encode(), ME)
    (lane,), (trace,) = opened["setup"]["lanes"], lanes(runs, opened)
    assert trace.parameters == ODD
    assert lane["parameters"]["num_beams"] == "[4, 2]" and lane["parameters"]["block_length"] == "null"
    assert lane["parameters"]["temperature"] == "hot" and lane["parameters"]["greedy"] is True
    assert any(isinstance(event, Cell) and event.level == "layer x" for event in trace.steps[-1].events)


def test_a_lane_without_forwards_has_no_time_on_another_machine(events, runs):
    opened = open_file(runs, FILES["answer"]().encode(), ME)
    lane = {"lane": 0, "number": 1, "shown": 99}
    value = json.dumps({"session": ME, "run": opened["run"], "state": "done", "lanes": [lane]})
    answer = events["show_machine"](value, "light", False, *NUMBERS)
    (table,) = [shown for component, shown in answer.items() if isinstance(component, gr.Dataframe)]
    assert table == [["1 Imported: some/model", *["—"] * 5]]
    words = " ".join(shown for component, shown in answer.items() if isinstance(component, gr.Markdown))
    assert "records no forward, so its time there is not known" in words
