"""The saved page as a text, and the files that hold a run: what is in them, and what they refuse."""

import base64
import csv
import gzip
import hashlib
import html
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs

from decoders.models.catalog import DRAFT, TARGET
from decoders.trace import json_file
from decoders.trace.events import Verdict
from decoders.trace.trace import Trace
from explorer.catalog import recorded_runs
from explorer.export import run_file
from explorer.export.foreign_traces import declarations
from explorer.export.replay_page import replay_html, show
from explorer.inspector.card import card
from explorer.inspector.token_facts import inspect
from tests.helpers.scripted_lane import ScriptedLane
from visualizers.analysis.cost_csv import cost_table
from visualizers.analysis.cost_summary import COLUMNS
from visualizers.scene.words import probability

ROOT = Path(__file__).resolve().parents[3]
HOSTILE = [b"</script><script>window.hacked=1</script>", b"<!--", b"]]>", b"=1+1", "\u2028".encode()]


def scripted(tokens: list[bytes] = HOSTILE) -> Trace:
    lane = ScriptedLane(tokens)
    while lane.advance():
        pass
    return lane.trace


def packed(page: str, name: str) -> bytes:
    found = re.search(rf'<script type="text/plain" id="explorer-{name}">([^<]*)</script>', page)
    return base64.b64decode(found[1])


def blob(page: str, name: str) -> dict:
    return json.loads(gzip.decompress(packed(page, name)))


@pytest.fixture(scope="module")
def page() -> str:
    return replay_html(recorded_runs.traces(), recorded_runs.setup())


def test_decision_depths_are_kept_of_lanes_that_were_asked_for_them(page):
    choice = "<option value='depth'>"
    assert choice not in blob(page, "first")["bars"]
    told = [{}, {7: [3, 12]}]
    page = replay_html(recorded_runs.traces()[:2], depths=told)
    assert choice in blob(page, "first")["bars"] and blob(page, "rest")["depths"] == [{}, {"7": [3, 12]}]


def test_a_saved_page_holds_every_view_and_every_node(page):
    first, rest = blob(page, "first"), blob(page, "rest")
    assert first["saved"] and first["example"]["prompt"] == recorded_runs.PROMPT
    begins = first["example"]["answer"]["lanes"]
    for traced, shown, lane, nodes, declared in zip(
        recorded_runs.traces(), begins, rest["lanes"], rest["nodes"], first["strategies"], strict=True
    ):
        views = lane | {shown["view"]: shown}
        assert set(views) == set(declared["views"]) and shown["view"] not in lane
        assert all(len(view["ops"]) == len(traced.steps) and view["head"] for view in views.values())
        assert len(shown["rows"]) == len(traced.steps)
        assert {int(node) for node in nodes} == set(traced.nodes())
        assert all(nodes[str(node)] == card(inspect(traced, node), live=False) for node in traced.nodes())
    verdicts = [verdict for step in traced.steps for verdict in step.of(Verdict)]
    rejected = [verdict for verdict in verdicts if verdict.status == "rejected"]
    assert rejected  # in the last lane, which drafts
    for verdict in rejected:
        facts = re.sub(r"<[^>]*>", " ", nodes[str(verdict.node)]["html"])
        assert all(probability(value) in facts for value in (verdict.p, verdict.q) if value is not None)


def test_nothing_but_its_own_scripts_may_run_and_nothing_may_be_fetched(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    allowed = set(re.findall(r"'sha256-([^']*)'", policy))
    carried = gzip.decompress(packed(page, "plotly")).decode()  # runs when charts come near the screen
    assert carried == get_plotlyjs()
    known = [*scripts, carried]
    assert {base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in known} == allowed
    assert policy.startswith("default-src 'none';")
    assert not any(re.search(r"\beval\(|new Function\(", s) for s in scripts)
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
    assert not re.search(r"<(script|link|img|iframe)[^>]*\s(src|href)=", page)


def test_hostile_tokens_and_prompts_stay_data():
    traced = scripted()
    page = replay_html([traced], {"prompt": HOSTILE[0].decode() + '"><b>'})
    assert HOSTILE[0].decode() not in page and "<b>" not in page.split("<style>")[0]
    assert page.count("</script>") == page.count("<script")
    assert blob(page, "run")["traces"][0] == json.loads(json.dumps(traced.to_json()))


def test_a_run_file_is_read_again_as_it_was_written(page):
    traces, setup = recorded_runs.traces(), recorded_runs.setup()
    written = run_file.container(traces, setup)
    for data in (
        run_file.pack(written),
        run_file.pack(written, compressed=False),
        page.encode(),
    ):
        read, again = run_file.unpack(data)
        assert [t.to_json() for t in again] == [t.to_json() for t in traces]
        assert read["prompt"] == setup["prompt"] and read["max_new_tokens"] == setup["max_new_tokens"]
        assert [lane["view"] for lane in read["lanes"]] == ["beam_tree", "draft_rounds"]
        assert read["models"] == {"target": TARGET, "draft": DRAFT}


def test_a_single_trace_brings_its_own_settings():
    traced = recorded_runs.traces()[1]
    setup, traces = run_file.unpack(run_file.pack(traced.to_json()))
    assert setup["prompt"] == recorded_runs.PROMPT and len(traces) == 1
    lane = {"strategy": "speculative", "parameters": traced.parameters, "seed": 0, "begin": None}
    assert setup["lanes"] == [lane]


def with_setup(**changes) -> bytes:
    written = run_file.container(recorded_runs.traces(), recorded_runs.setup())
    written["setup"] = written["setup"] | changes
    return run_file.pack(written)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"\x1f\x8bnonsense", "cannot be unpacked"),
        (b"[" * 100_000, "not JSON"),
        (b"NaN", "not JSON"),
        (b'{"a": 1e999}', "not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"{}", "not recognised: it is not a trace"),
        (b"<!doctype html><p>hello", "was not saved by Decoding Explorer"),
        (b'<!DOCTYPE html><script type="text/plain" id="explorer-run">abc</script>', "damaged"),
        (b'{"kind": "decoding-explorer-run", "version": 7}', "version 7"),
        (b'{"kind": "decoding-explorer-run", "version": 1, "traces": []}', "one to 4 traces"),
        (b'{"kind": "decoding-explorer-run", "version": 1, "traces": [{}], "setup": {}}', "not a trace"),
        (gzip.compress(b" " * (json_file.MAX_TRACE_BYTES + 1)), "larger than"),
        (with_setup(max_new_tokens=0), "max_new_tokens"),
        (with_setup(prompt=7), "prompt"),
        (with_setup(lanes=[{"strategy": "greedy"}, {"strategy": "greedy"}]), "other strategies"),
    ],
)
def test_files_that_are_no_run_are_one_sentence(data, says):
    with pytest.raises(ValueError, match=says) as refused:
        run_file.unpack(data)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400


def test_a_strategy_from_elsewhere_is_described_by_its_trace():
    traced = scripted()
    traced.parameters = {"width": 3, "sure": True, "mood": "calm"}
    declared = declarations([traced])["scripted"]
    assert declared["title"] == "Scripted" and {"entropy", "text"} <= set(declared["views"])
    assert "parallel_grid" not in declared["views"]
    assert [p["kind"] for p in declared["parameters"]] == ["int", "bool", "choice"]


def test_the_cost_table_is_plain_numbers_and_no_formula():
    traced = scripted()
    traced.title = "=HYPERLINK(1)"
    rows = list(csv.DictReader(io.StringIO(cost_table([traced, recorded_runs.traces()[1]]))))
    assert rows[0]["title"] == "'=HYPERLINK(1)" and rows[0]["acceptance_histogram"] == ""
    totals = recorded_runs.traces()[1].costs.totals()
    assert int(rows[1]["target forwards"]) == totals["target_forwards"]
    assert float(rows[1]["seconds"]) == totals["seconds"]
    assert {column["name"] for column in COLUMNS} <= set(rows[0])


def test_a_notebook_gets_the_same_page_in_a_frame_of_its_own(tmp_path):
    traced = recorded_runs.traces()[1]
    shown = traced.show()
    framed = shown._repr_html_()
    assert framed.startswith("<iframe") and 'sandbox="allow-scripts allow-downloads"' in framed
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', framed)[1])
    assert page == replay_html([traced])
    show(traced).save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == page


def test_the_library_draws_without_the_apps_packages():
    """A notebook on a bare machine has no gradio; nor is plotly loaded to look for views."""
    code = (
        "import sys; sys.modules['gradio'] = sys.modules['starlette'] = None\n"
        "from decoders.trace import trace\n"
        "assert not any(m.startswith(('visualizers', 'explorer')) for m in sys.modules)\n"
        "traced = trace.load('assets/examples/first-2.json.gz')\n"
        "from visualizers.registry import names\n"
        "assert names() and 'plotly' not in sys.modules\n"
        "print(len(traced.show()._repr_html_()) > 200_000)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_a_saved_run_has_one_to_four_lanes():
    with pytest.raises(ValueError, match="one to 4 lanes, not 0"):
        replay_html([])
    with pytest.raises(ValueError, match="one to 4 lanes, not 5"):
        replay_html([scripted()] * 5)
