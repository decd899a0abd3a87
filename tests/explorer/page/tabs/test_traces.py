"""The tab Traces without a browser: what its events make of what the page says, and of a stranger's words."""

import asyncio
import base64
import csv
import gzip
import json
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest

from explorer.catalog import recorded_runs
from explorer.export import opened_files, run_file
from explorer.page.tabs import on_screen, records, traces
from explorer.runs.scheduler import GONE, Runs
from tests.decoders.trace.imports import samples
from tests.helpers.scripted_lane import ScriptedLane
from visualizers.figures.theme import theme

ME, STRANGER = "me" * 12, "you" * 8
SEEN = [
    {"lane": 0, "number": 1, "shown": 40},
    {"lane": 1, "number": 2, "shown": 3},
]
VIEWS = ["beam_tree", "draft_rounds"]


@pytest.fixture
def tab(tmp_path, monkeypatch):
    """The tab with the stored run on screen: `runs`, and `event(label, *inputs)`, which clicks a button."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    runs = Runs(lambda request: [ScriptedLane([b" a", b" b"])])
    runs.show(recorded_runs.traces(), run_id="example", asked=recorded_runs.setup())
    with gr.Blocks() as demo:
        screen, dropped = on_screen.component("traces"), traces.dropped()
        traces.build(runs, screen, dropped)
    blocks = {
        getattr(block, "label", None) or getattr(block, "value", None): key
        for key, block in demo.blocks.items()
    }

    def event(label: str, *inputs):
        (one,) = [
            fn for fn in demo.fns.values() if fn.fn and any(key == blocks[label] for key, _ in fn.targets)
        ]
        return asyncio.run(one.fn(*inputs))

    yield SimpleNamespace(runs=runs, event=event, folder=tmp_path)
    runs.close()


def wish(**other) -> str:
    screen = {"session": ME, "run": "example", "state": "done", "lanes": SEEN}
    return json.dumps({**screen, "views": VIEWS, "look": "light", **other})


def save(
    tab,
    form: str,
    lane: int | None = 2,
    view: str = traces.AS_SHOWN,
    kind: str = "tokens",
    ending: str = "dot",
    width: float = 84,
    **other,
):
    told = wish(chosen={"lane": lane, "form": form, "view": view}, **other)
    return tab.event("Save", told, None, None, None, kind, ending, width)


def save_as(tab, told: str):
    return tab.event("Save", told, None, None, None, "tokens", "dot", 84)


def show_figure(tab, lane: int, view: str = traces.AS_SHOWN, **other):
    told = wish(chosen={"lane": lane, "form": "figure", "view": view}, **other)
    return tab.event("Show figure", told, None, None, None)


@pytest.mark.parametrize(
    ("form", "lane", "name"),
    [
        ("page", None, "once-upon-a-time.page.html"),
        ("data", None, "once-upon-a-time.run.json.gz"),
        ("costs", None, "once-upon-a-time.costs.csv"),
        ("data", 2, "once-upon-a-time.lane-2.trace.json.gz"),
        ("page", 2, "once-upon-a-time.lane-2.page.html"),
        ("costs", 2, "once-upon-a-time.lane-2.costs.csv"),
        ("drafted", 2, "once-upon-a-time.lane-2.drafted-tokens.csv"),
        ("graph", 2, "once-upon-a-time.lane-2.graph.dot"),
        ("figure", 2, "once-upon-a-time.lane-2.figure.html"),
        ("print", 2, "once-upon-a-time.lane-2.draft-rounds.print.svg"),
    ],
)
def test_each_kind_makes_a_file_in_a_folder_that_nobody_can_guess(tab, form, lane, name):
    (path, says), (again, _) = save(tab, form, lane), save(tab, form, lane)
    file = Path(path)
    assert file.name == name and says == traces.SAVED and again != path
    assert file.parent.parent == tab.folder and len(file.parent.name) == 32
    data = file.read_bytes()
    if name.endswith((".run.json.gz", ".page.html")):
        setup, found = run_file.unpack(data)
        every = [trace.to_json() for trace in recorded_runs.traces()]
        assert [trace.to_json() for trace in found] == (every[1:] if "lane-2" in name else every)
        assert [lane["view"] for lane in setup["lanes"]] == VIEWS[-len(found) :]
    elif name.endswith("trace.json.gz"):
        assert json.loads(gzip.decompress(data))["strategy"] == "speculative"
    elif name.endswith("costs.csv"):
        rows = list(csv.DictReader(data.decode().splitlines()))
        assert [row["strategy"] for row in rows] == (
            ["speculative"] if "lane-2" in name else ["beam", "speculative"]
        )
    elif name.endswith("drafted-tokens.csv"):
        rows = list(csv.DictReader(data.decode().splitlines()))
        assert {row["step"] for row in rows} >= {
            "1",
            "2",
        }  # no byte-order mark in the name of the first column
        assert {row["fate"] for row in rows} >= {"accepted", "rejected"}
    elif name.endswith("figure.html"):
        assert b"after 3 of " in data and b"Draft rounds" in data
    elif name.endswith("print.svg"):
        assert b'width="84mm"' in data and b"<desc>Draft rounds of Speculative decoding after 3 of " in data
    else:
        assert data.startswith(b"digraph")


def test_a_figure_shows_the_view_and_the_steps_that_are_on_screen_or_the_view_that_was_chosen(tab):
    column, figure, words, says = show_figure(tab, 2)
    assert column.visible and "after 3 of " in figure.layout.title.text and words and says == ""
    assert figure.layout.meta["file"] == "once-upon-a-time.lane-2.draft-rounds"
    _, other, _, _ = show_figure(tab, 1, "entropy", look="dark")
    assert other.layout.meta["file"] == "once-upon-a-time.lane-1.entropy"
    assert other.layout.template != figure.layout.template
    assert "Lane 1 has no view" in show_figure(tab, 1, "one_round")[3]


@pytest.mark.parametrize(
    ("other", "lane", "says"),
    [
        ({}, 3, "Lane 3 has not been decoded yet"),
        ({}, None, "Choose a lane"),
        ({"run": "nobody's"}, 1, "is gone"),
        ({"lanes": [{**SEEN[0], "lane": 7}]}, 1, "has not been decoded yet"),
        ({"views": ["film", None]}, 1, "must be the name of a view"),
        ({"lanes": "all"}, 1, "lanes must be a list"),
        ({"look": "pink"}, 1, "look must be one of light, dark"),
        ({"session": "short"}, 1, "session must have 16 or more characters"),
    ],
)
def test_what_cannot_be_saved_is_one_sentence_and_no_file(tab, other, lane, says):
    path, told = save(tab, "graph", lane, **other)
    assert path is None and says in told.replace("\\", "") and told.endswith(".")
    assert not list(tab.folder.iterdir())


def test_words_of_a_stranger_are_one_sentence(tab):
    for odd in ("", "\ud800 {", "[]", "null", "[" * 10_000):
        path, told = save_as(tab, odd)
        assert path is None and told.endswith(".") and len(told) < 200
        assert tab.event("Show figure", odd, None, None, None)[3]


def test_a_stranger_saves_and_follows_nothing_of_mine(tab):
    mine = tab.runs.show(recorded_runs.traces(), ME, asked=recorded_runs.setup())
    assert save(tab, "data", None, run=mine.id)[0]
    for form, lane in (("data", None), ("data", 2), ("graph", 2)):
        path, says = save(tab, form, lane, run=mine.id, session=STRANGER)
        assert path is None and says == traces.escaped(GONE)
    assert show_figure(tab, 1, run=mine.id, session=STRANGER)[3]


@pytest.fixture
def follow(tab):
    """follow(value, lane, form, lane_leads): what the tab's components become."""

    def go(value: str, lane: int, form: str, lane_leads: bool = True) -> list:
        return asyncio.run(traces.run_follower(tab.runs, lane_leads)(value, lane, form))

    return go


def test_what_can_be_saved_follows_the_run_on_screen_and_what_is_chosen(follow):
    value = {"session": ME, "run": "example", "state": "done", "lanes": SEEN}
    about, of, form, says, view, kind, ending, width, save, show = follow(json.dumps(value), 2, "print")
    assert about == "The stored run: 2 lanes."
    assert of == form == gr.skip()  # a late answer undoes no choice that was made meanwhile
    assert says == traces.FORMS["print"].says
    names = [name for _, name in view["choices"]]
    assert names[0] == traces.AS_SHOWN and "one_round" in names and "beam_tree" not in names
    assert [one["visible"] for one in (view, kind, ending, width, show)] == [True, False, False, True, True]
    assert save["interactive"]
    about, of, *_, save, _ = follow("", 2, "page")
    assert about == traces.NOTHING and of["value"] == 0 and not save["interactive"]
    about, *_, save, _ = follow(json.dumps(value | {"run": "nobody's"}), 2, "page")
    assert about == traces.KEPT and save["interactive"]  # the page saves what it has
    nonsense = follow(json.dumps(value | {"lanes": "all"}), 2, "page")
    assert nonsense == [gr.skip()] * len(nonsense)


def test_a_choice_that_is_quicker_than_the_run_s_first_word_switches_nothing_off(tab):
    chosen = traces.run_follower(tab.runs, True, of_screen=False)
    about, of, form, *_, save, _ = asyncio.run(chosen("", 2, "graph"))
    assert about == of == form == save == gr.skip()


@pytest.mark.parametrize(("lane_leads", "now"), [(True, (0, "page")), (False, (1, "graph"))])
def test_a_kind_of_file_that_holds_a_lane_goes_with_a_lane(follow, lane_leads, now):
    value = {"session": ME, "run": "example", "state": "done", "lanes": SEEN}
    _, of, form, *_ = follow(json.dumps(value), 0, "graph", lane_leads)
    assert (of.get("value", 0), form.get("value", "graph")) == now


def test_a_file_of_drafted_tokens_is_of_the_lane_that_has_drafted(follow):
    value = {"session": ME, "run": "example", "state": "done", "lanes": SEEN}
    _, of, form, *_ = follow(json.dumps(value), 0, "drafted", False)
    assert (of["value"], form) == (2, gr.skip())  # lane 1 is a beam search


def test_before_it_knows_the_run_it_says_neither_that_there_is_one_nor_that_there_is_none(runs):
    with gr.Blocks() as demo:
        traces.build(runs, on_screen.component("traces"), traces.dropped())
    texts = [one.value for one in demo.blocks.values() if isinstance(one, gr.Markdown)]
    assert on_screen.READING in texts and traces.NOTHING not in texts
    assert all(
        one.interactive is not False for one in demo.blocks.values() if isinstance(one, gr.DownloadButton)
    )


def upload(tab, data: bytes) -> str:
    """Where the file lies that a page has just uploaded."""
    folder = tab.folder / ("a" * 64)
    folder.mkdir(exist_ok=True)
    (folder / ("0" * 32)).write_bytes(data)
    return str(folder / ("0" * 32))


def opened(tab, button: str, visit: str) -> tuple[str, str]:
    """What an upload answers: for the page's script, and in words."""
    return tuple(tab.event(button, None, visit).values())[:2]


@pytest.mark.parametrize("button", ["Open a file", "Dropped file"])
def test_a_file_is_opened_as_a_run_of_this_page_only_and_is_gone_then(tab, button):
    data = run_file.pack(run_file.container(recorded_runs.traces(), recorded_runs.setup()))
    visit = {"session": ME, "file": {"path": upload(tab, data), "name": "tale.run.json.gz"}}
    answer, says = opened(tab, button, json.dumps(visit))
    found = json.loads(answer)
    assert found["file"] == "tale.run.json.gz" and says == "" and not list(tab.folder.iterdir())
    assert tab.runs.find(found["run"]).session == ME
    assert tab.runs.belongs(found["run"], ME) and not tab.runs.belongs(found["run"], STRANGER)
    assert [d["name"] for d in found["strategies"]] == ["beam", "speculative"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"hello", "<b>.json was not opened. This file is not JSON and not recognised"),
        (b'{"metrics": {}}', "<b>.json was not opened. This file is not recognised: it is not a trace"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence_and_gone_too(tab, data, says):
    before = set(tab.runs.runs)
    visit = {"session": ME, "file": {"path": upload(tab, data), "name": "<b>.json"}}
    answer, told = opened(tab, "Open a file", json.dumps(visit))
    assert json.loads(answer)["error"].startswith(says) and told.startswith("\\<b\\>.json")
    assert set(tab.runs.runs) == before and not list(tab.folder.iterdir())


@pytest.mark.parametrize(
    "visit",
    [
        "",
        "null",
        json.dumps({"session": ME}),
        json.dumps({"session": ME, "file": {"path": "/etc/passwd", "name": "a"}}),
        json.dumps({"session": ME, "file": {"path": "http://127.0.0.1/", "name": "a"}}),
        json.dumps({"session": "x", "file": {"path": "/etc/passwd", "name": "a"}}),
    ],
)
def test_a_page_opens_nothing_but_what_was_uploaded(tab, visit):
    before = set(tab.runs.runs)
    answer, says = opened(tab, "Open a file", visit)
    assert json.loads(answer)["error"] and says.endswith(".") and "root" not in says
    assert set(tab.runs.runs) == before


COUNTS = {"num_drafts": 10, "num_draft_tokens": 30, "num_accepted_tokens": 15}
METRICS = b"".join(b"vllm:spec_decode_%b_total %d.0\n" % (k.encode(), v) for k, v in COUNTS.items())


@pytest.mark.parametrize("data", [METRICS, json.dumps(COUNTS).encode()])
def test_a_server_s_counts_are_a_card_and_no_run(tab, data):
    before = set(tab.runs.runs)
    visit = {"session": ME, "look": "dark", "file": {"path": upload(tab, data), "name": "me*trics.txt"}}
    answer, says, *card = tab.event("Open a file", None, json.dumps(visit)).values()
    body, sentence, table, figure, words, *_ = card
    assert json.loads(answer) == {"listed": True, "file": "me*trics.txt"} and says == ""
    assert set(tab.runs.runs) == before and not list(tab.folder.iterdir())
    assert body.visible and "10 rounds drafted 30 tokens and 15 were accepted: 2.50 tokens" in sentence
    assert sentence.startswith("### me\\*trics.txt")
    values = {row[0]: row[1] for row in table}
    assert values == {name: str(value) for name, value in COUNTS.items()} | {
        "draft_acceptance_rate": ".500",
        "mean_acceptance_length": "2.500",
    }
    assert "did not count by position" in words and not figure.data
    assert figure.layout.template.layout.paper_bgcolor == theme("dark").surface["bg"]


def test_a_run_that_is_opened_takes_the_card_away_and_bad_counts_are_one_sentence(tab):
    data = run_file.pack(run_file.container(recorded_runs.traces(), recorded_runs.setup()))
    visit = {"session": ME, "file": {"path": upload(tab, data), "name": "a.run.json.gz"}}
    assert list(tab.event("Open a file", None, json.dumps(visit)).values())[2].visible is False
    wrong = METRICS.replace(b" 15.0", b" 31.0")
    visit["file"] = {"path": upload(tab, wrong), "name": "m.txt"}
    answer, says = opened(tab, "Open a file", json.dumps(visit))
    assert says.startswith("m.txt was not opened. These counts contradict themselves: more tokens were acc")
    assert json.loads(answer) == {"error": says}


def test_a_file_of_records_is_a_table_and_a_row_a_lane(tab):
    better = samples.PRIME | {"rewards": [1.0] * 4}
    data = samples.lines(better, samples.PRIME)
    visit = {"session": ME, "file": {"path": upload(tab, data), "name": "r.jsonl"}}
    before = set(tab.runs.runs)
    answer, says, *parts = tab.event("Open a file", None, json.dumps(visit)).values()
    body, sentence, rows, kept = parts[-4:]
    assert json.loads(answer) == {"listed": True, "file": "r.jsonl"} and says == ""
    assert body.visible and "2 records" in sentence and [row[0] for row in rows] == ["2", "1"]
    assert set(tab.runs.runs) == before and not list(tab.folder.iterdir())
    found = opened_files.cells(records.file_of(kept).rows()[0])
    assert found == rows[0] and found[-1] == "nothing fails"
    _, (trace,) = records.file_of(kept).lane(int(rows[0][0]))
    assert trace.text() == "⟨8⟩⟨9⟩⟨10⟩"


def test_several_files_come_as_one_and_are_taken_apart(tab):
    held = {"good.json": json.dumps(samples.LLAMA).encode(), "vllm.log": samples.VLLM_LOG, "b.md": b"Notes."}
    held["bad.json"] = json.dumps(samples.LLAMA | {"content": "The cow sat."}).encode()
    packed = [{"name": name, "data": base64.b64encode(data).decode()} for name, data in held.items()]
    bundle = json.dumps({"kind": "decoding-explorer-files", "files": packed}, separators=(",", ":")).encode()
    visit = {"session": ME, "file": {"path": upload(tab, bundle), "name": "4 files.json"}}
    answer, _, *parts = tab.event("Open a file", None, json.dumps(visit)).values()
    assert json.loads(answer)["listed"] and parts[0].visible and "20 rounds drafted" in parts[1]
    _, sentence, rows, _ = parts[-4:]
    assert "Not recognised: 1." in sentence and [row[1] for row in rows] == ["bad.json", "good.json"]
    assert rows[0][-1].startswith("Untrusted: the tokens do not spell")
    broken = bundle.replace(packed[0]["data"].encode(), b"?")
    visit["file"]["path"] = upload(tab, broken)
    answer, _ = opened(tab, "Open a file", json.dumps(visit))
    assert "arrived damaged" in json.loads(answer)["error"]
