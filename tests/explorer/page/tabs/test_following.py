"""The section of recorded requests without a browser: the table, and what a click on a row follows."""

import asyncio
import json
from types import SimpleNamespace

import gradio as gr
import pytest

from decoders import files
from decoders.watch.vllm.folder import Folder
from explorer.page.tabs import following, traces
from explorer.runs import followed_lane
from explorer.runs.scheduler import Runs
from tests.explorer.runs.test_followed_lane import grown
from tests.explorer.runs.test_scheduler import cursors, drain

ME = "me" * 12
TICK = json.dumps({"session": ME, "number": 1})
NEWEST, OLDER = "20261129-063001-cmpl-2.trace.json", "20261129-063000-cmpl-1.trace.json"


@pytest.fixture
def section(tmp_path, monkeypatch):
    """The section over a folder with a request that runs and one that has ended: `folder`, `runs`,
    `handlers` by name.
    """
    monkeypatch.setattr(followed_lane, "LOOK_SECONDS", 0.01)
    write(tmp_path / OLDER, 4, "The text is over.")
    write(tmp_path / NEWEST, 2)
    runs = Runs(lambda request: [])
    with gr.Blocks() as demo:
        dropped = traces.dropped()
        following.build(runs, Folder(tmp_path), dropped.answer, gr.Markdown(), traces.OPENED)
    handlers = {event.fn.__name__: event.fn for event in demo.fns.values() if event.fn}
    yield SimpleNamespace(folder=tmp_path, runs=runs, handlers=handlers)
    runs.close()


def write(path, count: int, ended: str | None = None) -> None:
    files.write(path, json.dumps(grown(count, ended).to_json(), separators=(",", ":")))


def answered(section, handler: str, *given) -> dict:
    text, _ = asyncio.run(section.handlers[handler](TICK, *given))
    return json.loads(text)


def picked(row: list) -> gr.SelectData:
    return gr.SelectData(None, {"index": [0, 0], "value": row[0], "row_value": row})


def test_the_table_lists_the_requests_and_is_sent_again_only_when_it_changes(section):
    about, table, kept = asyncio.run(section.handlers["look"](TICK, None))
    assert table == [
        ["2026-11-29 06:30:01", "2", "", "2", "running", "cmpl-2"],
        ["2026-11-29 06:30:00", "4", "", "4", "ended: The text is over.", "cmpl-1"],
    ]
    assert about == following.ABOUT
    again = asyncio.run(section.handlers["look"](TICK, kept))
    assert again == (gr.skip(),) * 3
    write(section.folder / NEWEST, 3)
    assert asyncio.run(section.handlers["look"](TICK, kept))[1][0][1] == "3"


def test_the_newest_is_followed_until_it_ends(section):
    result = answered(section, "follow_newest")
    assert result["following"] and result["says"] == "Following request cmpl-2 from vLLM."
    assert section.runs.runs[result["run"]].session == ME and "models" not in result["setup"]
    write(section.folder / NEWEST, 3, "The text is over.")
    answers = drain(section.runs, result["run"], cursors(1))
    assert answers[-1]["lanes"][0]["ended"] == "The text is over." and answers[-1]["lanes"][0]["count"] == 3


def test_a_row_of_a_request_that_has_ended_opens_as_a_file_does(section):
    result = answered(section, "follow_row", picked(["2026-11-29 06:30:00", "4", "", "4", "", "cmpl-1"]))
    assert "following" not in result and result["says"] == "Opened request cmpl-1 from vLLM."
    assert result["answer"]["state"] == "done" and result["answer"]["lanes"][0]["count"] == 4


@pytest.mark.parametrize("request_name", ["../cmpl-1", "/etc/passwd", "cmpl-3", None])
def test_a_row_that_is_not_in_the_folder_is_refused(section, request_name):
    result = answered(section, "follow_row", picked(["2026-11-29 06:30:00", request_name]))
    assert result == {"error": "The request was not opened. This request is no longer in the folder."}


def test_a_damaged_file_is_refused_with_one_sentence(section):
    (section.folder / NEWEST).write_bytes(b"{")
    result = answered(section, "follow_newest")
    assert result["error"].startswith("The request was not opened. This file is not a trace")


def test_there_is_no_section_without_a_folder():
    from explorer.page.tabs import on_screen

    with gr.Blocks() as demo:
        traces.build(Runs(lambda request: []), on_screen.component("traces"), traces.dropped())
    assert not any(getattr(block, "elem_id", None) == following.ELEMENT for block in demo.blocks.values())
