"""A full disk: each command and each button of the page says so in one sentence."""

import asyncio
import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from decoders.refusal import Refusal
from explorer import cli, text_file
from explorer.page.bad_requests import BadRequests
from explorer.page.envelopes import Known
from explorer.page.tabs import methods, traces
from explorer.page.uploads import NO_ROOM
from tests.helpers.server_log import Heard
from visualizers import graphs

RUN = ["run", "--prompt", "Once", "--strategy", "greedy", "--max-new-tokens", "2"]
full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def no_room(monkeypatch):
    """Every file that is opened for writing meets a full disk."""

    def refuse(*_, **__):
        raise full

    for name in ("write_bytes", "write_text"):
        monkeypatch.setattr(Path, name, refuse)


@pytest.mark.parametrize(
    "what",
    [
        ["--out", "OUT.json"],
        ["--out", "OUT.json.gz"],
        ["--out", "OUT.html"],
        ["--out", "OUT.csv", "--drafted-tokens"],
        ["--out", "OUT.html", "--figure", "text"],
        ["--out", "OUT.graphml", "--graph", "tokens"],
    ],
)
def test_what_a_run_saves(what, no_room, tmp_path, capsys):
    given = [one.replace("OUT", str(tmp_path / "out")) for one in what]
    with pytest.raises(SystemExit) as ended:
        cli.main([*RUN, *given])
    said = capsys.readouterr().err.strip()
    assert ended.value.code == 2 and "the disk is full; free some space" in said and "\n" not in said


def test_the_map_of_methods_and_its_poster(no_room, tmp_path, capsys, monkeypatch):
    with pytest.raises(Refusal, match="the disk is full"):
        graphs.save(graphs.export.nx.DiGraph(), tmp_path / "map.dot")
    monkeypatch.setattr(methods, "listing", lambda: {"methods": []})
    methods.poster_file.cache_clear()
    with pytest.raises(methods.gr.Error, match="no room on its disk"):
        asyncio.run(methods.make_poster())


def test_any_other_write_of_a_command(monkeypatch, capsys):
    def refuse(options):
        raise full

    monkeypatch.setitem(cli.COMMANDS, "papers", refuse)
    with pytest.raises(SystemExit) as ended:
        cli.main(["papers"])
    said = " papers: the disk is full; free some space, then run this again.\n"
    assert ended.value.code == 2 and capsys.readouterr().err.endswith(said)


def test_what_the_page_saves(no_room, tmp_path):
    with pytest.raises(Refusal) as refused:
        traces.write_served(SimpleNamespace(GRADIO_CACHE=str(tmp_path)), "run.json", b"{}")
    assert str(refused.value) == NO_ROOM and not list(tmp_path.iterdir())


def test_what_a_visitor_uploads():
    async def app(scope, receive, send):
        raise full

    client, heard = TestClient(BadRequests(app, Known())), Heard()
    with heard.listening():
        got = client.post("/gradio_api/queue/data", json={})
    assert (got.status_code, got.json()) == (507, {"detail": NO_ROOM})
    ours = [record for record in heard.records if record.name.startswith("explorer.")]
    assert len(ours) == 1 and ours[0].exc_info is None


def test_a_text_file_has_a_bound_and_is_utf_8(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_bytes("a\r\nö\rb".encode())
    assert text_file.read_text(tmp_path / "a.txt") == "a\nö\nb"
    monkeypatch.setattr(text_file, "MOST_BYTES", 2**20)
    (tmp_path / "big.txt").write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(Refusal, match=r"big.txt is larger than 1 MiB; name a shorter file"):
        text_file.read_text(tmp_path / "big.txt")
    (tmp_path / "latin.txt").write_bytes(b"\xf6")
    with pytest.raises(Refusal, match="latin.txt is not UTF-8 text"):
        text_file.read_text(tmp_path / "latin.txt")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="a device of Linux")
@pytest.mark.parametrize(
    "command",
    [
        ["run", "--strategy", "greedy", "--prompt-file", "/dev/zero"],
        ["compare", "--strategy", "greedy", "--prompt-file", "/dev/zero"],
        ["lens", "logit", "--prompt-file", "/dev/zero"],
        ["acceptance", "--prompts", "/dev/zero"],
    ],
)
def test_each_file_of_a_command_has_a_bound(command, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(command)
    assert ended.value.code == 2 and "/dev/zero is larger than 16 MiB" in capsys.readouterr().err
