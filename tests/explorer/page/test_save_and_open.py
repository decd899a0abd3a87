"""What the page saves and opens, without a browser: forms, names, limits; a run that goes on meanwhile."""

import base64
import codecs
import csv
import io
import json
import time
from xml.etree import ElementTree

import networkx
import pytest

from explorer.catalog import recorded_runs
from explorer.export import run_file
from explorer.page import save_and_open
from explorer.runs.scheduler import Runs
from explorer.runs.validation import check
from tests.explorer.runs.test_scheduler import wait_for
from tests.helpers.scripted_lane import ScriptedLane
from tests.helpers.server_calls import ask

SESSION = "a session of a test"
REQUEST = {"prompt": "Once", "max_new_tokens": 4, "lanes": [{"strategy": "scripted"}]}


def call(runs: Runs, name: str, **request) -> dict:
    functions = {function.__name__: function for function in save_and_open.functions(runs, None)}
    return ask(functions[name], {"session": SESSION, **request})


def opened(runs: Runs, data: bytes) -> dict:
    return save_and_open.open_file(runs, data, SESSION)


@pytest.fixture
def runs():
    """Runs whose lanes write four tokens, slowly enough to be looked at."""
    made = Runs(lambda request: [ScriptedLane([b" a", b" b", b" c", b" d"], pause=0.05)])
    made.show(recorded_runs.traces(), run_id="example", asked=recorded_runs.setup())
    yield made
    made.close()


def test_every_form_is_saved_and_read_again(runs):
    files = {form: call(runs, "explorer_save", run="example", form=form) for form in ("run", "page", "costs")}
    assert files["run"]["name"] == "once-upon-a-time.run.json.gz"
    for form in ("run", "page"):
        setup, traces = run_file.unpack(base64.b64decode(files[form]["data"]))
        assert (
            setup["prompt"] == recorded_runs.PROMPT
            and setup["max_new_tokens"] == recorded_runs.MAX_NEW_TOKENS
        )
        assert [t.to_json() for t in traces] == [t.to_json() for t in recorded_runs.traces()]
    costs = base64.b64decode(files["costs"]["data"])
    assert not costs.startswith(codecs.BOM_UTF8)  # it would be part of the first column's name
    rows = list(csv.DictReader(io.StringIO(costs.decode())))
    assert [row["strategy"] for row in rows] == ["beam", "speculative"]


def test_one_lane_alone_is_a_trace_or_a_page_with_the_view_it_shows(runs):
    views = ["entropy", "one_round"]
    trace = call(runs, "explorer_save", run="example", form="trace", lane=1, views=views)
    assert trace["name"] == "once-upon-a-time.lane-2.trace.json.gz"
    _, (alone,) = run_file.unpack(base64.b64decode(trace["data"]))
    assert alone.strategy == "speculative"
    page = call(runs, "explorer_save", run="example", form="page", lane=1, views=views)
    setup, _ = run_file.unpack(base64.b64decode(page["data"]))
    assert [lane["view"] for lane in setup["lanes"]] == ["one_round"]


@pytest.mark.parametrize("ending", ["graphml", "gexf", "dot", "json"])
def test_a_lane_is_saved_as_a_graph(runs, ending, tmp_path):
    asked = {"run": "example", "form": "graph", "lane": 1, "kind": "drafts", "ending": ending}
    file = call(runs, "explorer_save", **asked)
    assert file["name"] == f"once-upon-a-time.lane-2.graph.{ending}"
    wanted, text = recorded_runs.traces()[1].graph("drafts"), base64.b64decode(file["data"]).decode()
    if ending == "dot":
        assert text.startswith("digraph") and text.count(" -> ") == wanted.number_of_edges()
        return
    read = {
        "graphml": lambda: networkx.parse_graphml(text),
        "gexf": lambda: networkx.read_gexf(io.BytesIO(text.encode())),
        "json": lambda: networkx.node_link_graph(json.loads(text), edges="links"),
    }
    found = read[ending]()
    assert (len(found), found.number_of_edges()) == (len(wanted), wanted.number_of_edges())


def test_a_graph_that_is_not_there_or_too_large_is_one_sentence(runs, monkeypatch):
    asked = {"run": "example", "form": "graph", "lane": 1}
    assert "no graph of kind 'wood'" in call(runs, "explorer_save", **asked, kind="wood")["error"]
    assert "nothing for a graph of" in call(runs, "explorer_save", **asked, kind="dependencies")["error"]
    monkeypatch.setattr(save_and_open, "MAX_GRAPH_NODES", 10)
    assert "the app writes at most 10" in call(runs, "explorer_save", **asked)["error"]


def test_a_run_that_goes_on_is_saved_as_far_as_it_is(runs):
    run = runs.start(check(REQUEST), SESSION)
    while not run.records[0].rows:
        time.sleep(0.01)
        run.heard = time.monotonic()
    file = call(runs, "explorer_save", run=run.id, form="run")
    setup, (so_far,) = run_file.unpack(base64.b64decode(file["data"]))
    assert setup["prompt"] == "Once" and 1 <= len(so_far.steps) < 4 and so_far.ended is None
    assert file["steps"] == [len(so_far.steps)]
    assert so_far.costs.totals()["steps"] == len(so_far.steps)


def test_a_run_that_was_stopped_says_so_in_its_file(runs):
    run = runs.start(check(REQUEST), SESSION)
    wait_for(lambda: run.records[0].rows)
    runs.control(run.id, "stop")
    wait_for(lambda: run.shown_state == "stopped")
    _, (trace,) = run_file.unpack(
        base64.b64decode(call(runs, "explorer_save", run=run.id, form="run")["data"])
    )
    assert trace.ended == "Stopped by hand."


def test_a_page_that_was_killed_learns_what_it_needs_to_show_its_run_again(runs):
    run = runs.start(check(REQUEST), SESSION, "paused")
    found = call(runs, "explorer_again", run=run.id)
    assert found["state"] == "paused" and found["setup"]["prompt"] == "Once"
    (lane,) = found["setup"]["lanes"]
    assert lane["strategy"] == found["strategies"][0]["name"] == "scripted" and lane["view"]
    assert "is gone" in call(runs, "explorer_again", run="guess")["error"]


def test_an_opened_run_is_a_run_of_this_session_only(runs):
    file = call(runs, "explorer_save", run="example", form="run")
    found = opened(runs, base64.b64decode(file["data"]))
    assert runs.find(found["run"]).session == SESSION
    assert [lane["count"] for lane in found["answer"]["lanes"]] == [
        len(t.steps) for t in recorded_runs.traces()
    ]
    assert [d["name"] for d in found["strategies"]] == ["beam", "speculative"]
    again = call(runs, "explorer_save", run=found["run"], form="run")
    (setup, traces), (_, before) = (
        run_file.unpack(base64.b64decode(saved["data"])) for saved in (again, file)
    )
    assert setup["prompt"] == recorded_runs.PROMPT
    assert [t.to_json() for t in traces] == [t.to_json() for t in before]


def test_a_strategy_that_is_not_known_here_opens_too(runs):
    lane = ScriptedLane([b"<b>", b" x"])
    while lane.advance():
        pass
    found = opened(runs, run_file.pack(lane.trace.to_json()))
    assert found["strategies"][0]["family"] == "elsewhere"
    assert found["setup"]["lanes"][0]["view"] in found["strategies"][0]["views"]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"run": "example", "form": "trace"}, "no such lane"),
        ({"run": "example", "form": "trace", "lane": 7}, "no such lane"),
        ({"run": "nobody's", "form": "run"}, "is gone"),
    ],
)
def test_what_cannot_be_saved_is_one_sentence(runs, request_, says):
    assert says in call(runs, "explorer_save", **request_)["error"]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (
            {"run": "example", "form": "film"},
            "form must be one of trace, run, page, costs, drafted, figure, picture, slide, print, graph, "
            "not 'film'.",
        ),
        ({"run": "example", "form": "run", "lane": "first"}, "lane must be a whole number, not 'first'."),
    ],
)
def test_what_no_page_asks_for_is_refused(runs, request_, says):
    assert call(runs, "explorer_save", **request_) == {"refused": says, "status": 422}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"hello", "not JSON"),
        (b"hello 5", "not JSON"),
        (
            b'{"speculative_decoding": {"per_step_drafted": [3]}}',
            "not recognised: it is not a trace",
        ),
        (b'{"metrics": {"speculative_decoding": {}}}', "not recognised: it is not a trace"),
        (b"[]", "not recognised"),
        (
            b"# HELP vllm:spec_decode_num_drafts_total Number of drafts.\n",
            "These are a server's counts",
        ),
        (b'vllm:spec_decode_num_drafts_total{engine="0"} 10.0\n', "The tab Traces shows what they count"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence_and_makes_no_run(runs, data, says):
    before = set(runs.runs)
    with pytest.raises(ValueError, match=says) as told:
        opened(runs, data)
    assert set(runs.runs) == before and "property" not in str(told.value) and str(told.value).endswith(".")


@pytest.mark.parametrize("width_mm", [84, 174])
def test_a_figure_for_print_has_the_width_that_was_asked_for_and_the_step_that_is_shown(runs, width_mm):
    asked = {"run": "example", "form": "print", "lane": 1, "step": 2, "width_mm": width_mm}
    file = call(runs, "explorer_save", **asked, views=[None, "draft_rounds"])
    assert file["name"] == "once-upon-a-time.lane-2.draft-rounds.print.svg"
    root = ElementTree.fromstring(base64.b64decode(file["data"]))
    assert root.get("width") == f"{width_mm}mm" and " after 2 of " in root[0].text


def test_names_of_files_are_harmless():
    assert save_and_open.filename("../../etc/pass<wd>\n", 0, "x") == "etc-pass-wd.lane-1.x"
    assert save_and_open.filename("…", None, "x") == "run.x"


def test_a_picture_is_called_as_its_view_is_on_the_page(runs):
    run = runs.find("example")
    name = save_and_open.picture_name(run, run.records[1].trace, 1, "draft_rounds")
    assert name == "once-upon-a-time.lane-2.draft-rounds"
