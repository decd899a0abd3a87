"""The folder of recorded requests: the newest first, from the ends of their files, and no way out of it."""

import json
import os

import pytest

from decoders.refusal import Refusal
from decoders.watch.vllm import folder
from decoders.watch.vllm.folder import MAX_LISTED, SILENT_SECONDS, Folder
from tests.helpers.scripted_lane import ScriptedLane


def write(path, count: int = 3, ended: str | None = None, **text: bool) -> None:
    lane = ScriptedLane([b" w"] * count)
    for _ in range(count):
        lane.advance()
    lane.trace.ended = ended
    path.write_text(json.dumps(lane.trace.to_json(), separators=(",", ":"), **text), encoding="utf-8")


def test_the_newest_requests_come_first_with_their_totals(tmp_path):
    write(tmp_path / "20261129-063000-cmpl-1.trace.json", 3, 'It said ,"ended":"no".')
    write(tmp_path / "20261129-063001-cmpl-2.trace.json", 5)
    (tmp_path / "rounds").mkdir()
    (tmp_path / "notes.trace.json").write_text("{}", encoding="utf-8")
    newest, older = Folder(tmp_path).requests()
    assert (newest.request, newest.began) == ("cmpl-2", "2026-11-29 06:30:01")
    assert (newest.tokens, newest.steps, newest.drafted) == (5, 5, 0) and newest.running
    assert older.ended == 'It said ,"ended":"no".' and older.tokens == 3 and not older.running


def test_the_end_of_a_file_is_enough(tmp_path, monkeypatch):
    path = tmp_path / "20261129-063000-one.trace.json"
    write(path, 40)
    monkeypatch.setattr(folder, "END_BYTES", 1000)
    monkeypatch.setattr(folder, "whole", None)
    assert folder.end_of(path)["tokens"] == 40 and path.stat().st_size > 5000


def test_a_file_of_another_form_is_read_whole(tmp_path):
    path = tmp_path / "20261129-063000-one.trace.json"
    write(path, 4, sort_keys=True, ended="Over.")
    assert folder.end_of(path) == {"tokens": 4, "steps": 4, "drafted": 0, "accepted": 0, "ended": "Over."}


@pytest.mark.parametrize(
    "data",
    ['{"ended":', "[]", '{"ended":1,"totals":{}}', '{"ended":null,"totals":{"new_tokens":1}}', "[" * 9000],
)
def test_a_damaged_file_has_a_sentence(tmp_path, data):
    (tmp_path / "20261129-063000-one.trace.json").write_text(data, encoding="utf-8")
    (one,) = Folder(tmp_path).requests()
    assert one.problem.endswith(".") and not one.running


def test_a_file_is_read_again_only_when_it_was_written(tmp_path, monkeypatch):
    path, read = tmp_path / "20261129-063000-one.trace.json", []
    write(path)
    found, real = Folder(tmp_path), folder.end_of
    monkeypatch.setattr(folder, "end_of", lambda path: (read.append(path), real(path))[1])
    assert [found.requests()[0].tokens for _ in range(3)] == [3, 3, 3] and len(read) == 1
    write(path, 4)
    assert found.requests()[0].tokens == 4 and len(read) == 2


def test_what_nobody_writes_is_not_running(tmp_path):
    path = tmp_path / "20261129-063000-one.trace.json"
    write(path)
    os.utime(path, (0, path.stat().st_mtime - SILENT_SECONDS - 1))
    assert not Folder(tmp_path).requests()[0].running


def test_a_long_folder_lists_its_newest(tmp_path):
    for number in range(MAX_LISTED + 3):
        write(tmp_path / f"20261129-0630{number:02d}-r{number}.trace.json", 1)
    found = Folder(tmp_path).requests()
    assert len(found) == MAX_LISTED and found[0].request == f"r{MAX_LISTED + 2}"


@pytest.mark.parametrize("name", ["../20261129-063000-one.trace.json", "..", "/etc/passwd", "", "linked"])
def test_nothing_outside_of_the_folder_can_be_named(tmp_path, name):
    inside, linked = tmp_path / "in", "20261129-063001-linked.trace.json"
    inside.mkdir()
    write(tmp_path / "20261129-063000-one.trace.json")
    (inside / linked).symlink_to(tmp_path / "20261129-063000-one.trace.json")
    with pytest.raises(Refusal, match="This request is not in the folder"):
        Folder(inside).file(linked if name == "linked" else name)
    assert Folder(inside).requests() == []


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(Refusal, match="There is no folder"):
        Folder(tmp_path / "none")
