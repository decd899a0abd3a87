"""`open`: files, folders, standard input and addresses; tables, reports, pages and traces."""

import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from decoders.trace.trace import load
from explorer import cli, open_command
from explorer.export.run_file import unpack
from tests.decoders.trace.imports import samples


@pytest.fixture
def folder(tmp_path):
    good, bad = samples.LLAMA, samples.LLAMA | {"content": "The cow sat."}
    best = samples.PRIME | {"rewards": [1.0] * 4, "export_sequence_idx": 6}
    for name, data in {
        "good.json": json.dumps(good).encode(),
        "bad.json": json.dumps(bad).encode(),
        "rollouts.jsonl": samples.lines(best, samples.PRIME),
        "server/vllm.log": samples.VLLM_LOG,
        "readme.md": b"Notes of mine.",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


def call(capsys, *arguments: object) -> str:
    cli.main(["open", *map(str, arguments)])
    return capsys.readouterr().out


def refused(capsys, *arguments: object) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(["open", *map(str, arguments)])
    captured = capsys.readouterr()
    assert stop.value.code == 2 and captured.out == "" and captured.err.count("\n") == 1
    return captured.err


def test_a_file_is_told_with_its_report(capsys, folder):
    told = call(capsys, folder / "good.json")
    assert samples.TEXT in told and "All checks passed." in told
    assert "before any processor" in told
    assert "Untrusted: the tokens do not spell the text" in call(capsys, folder / "bad.json")
    trust = json.loads(call(capsys, folder / "bad.json", "--json"))["trust"]
    assert trust["trusted"] is False and trust["faults"][0]["fault"] == "spelling" and len(trust["says"]) >= 3


def test_the_report_survives_saving(capsys, folder):
    for name in ("saved.json", "saved.html"):
        call(capsys, folder / "bad.json", "--out", folder / name)
        _, (trace,) = unpack((folder / name).read_bytes())
        assert [one["fault"] for one in trace.trust["faults"]] == ["spelling"]
        assert "Untrusted" in call(capsys, folder / name)
    assert load(folder / "saved.json").trust["dialect"] == "llama-server"


def test_a_file_of_records_is_a_table_worst_first(capsys, folder):
    lines = call(capsys, folder / "rollouts.jsonl").splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["2", "1"]  # the lower reward first
    rows = json.loads(call(capsys, folder / "rollouts.jsonl", "--json"))["records"]
    assert [row["score"] for row in rows] == [0.25, 1.0]
    assert "⟨8⟩⟨9⟩⟨10⟩" in call(capsys, folder / "rollouts.jsonl", "--record", 2)
    assert "choose one of 1 to 2" in refused(capsys, folder / "rollouts.jsonl", "--record", 3)
    assert "--record" in refused(capsys, folder / "rollouts.jsonl", "--out", folder / "a.html")


def test_a_folder_is_a_table_of_all_that_is_in_it(capsys, folder):
    found = json.loads(call(capsys, folder, "--json"))
    assert [row["name"] for row in found["records"]][0] == "bad.json" and len(found["records"]) == 4
    assert [one["name"] for one in found["counts"]] == ["server/vllm.log"]
    assert [one["name"] for one in found["unknown"]] == ["readme.md"]
    told = call(capsys, folder)
    assert "Not recognised: readme.md." in told and "tokens per round" in told


def test_standard_input(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(samples.LLAMA_METRICS)))
    assert "80 tokens drafted and 40 accepted" in call(capsys, "-")


class Server(BaseHTTPRequestHandler):
    """Answers with a sample, and leads elsewhere."""

    def do_GET(self):
        self.send_response(302 if self.path == "/away" else 200)
        if self.path == "/away":
            self.send_header("Location", "ftp://nowhere/")
        self.end_headers()
        self.wfile.write(json.dumps(samples.CHAT).encode())

    def log_message(self, *_):
        pass


def test_addresses_are_fetched_and_only_those_of_http(capsys):
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}"
        assert samples.TEXT in call(capsys, f"{here}/answer")
        assert "neither http nor https" in refused(capsys, f"{here}/away")
        server.shutdown()
    assert "does not answer" in refused(capsys, f"{here}/answer")
    assert "only http and https" in refused(capsys, "file:///etc/hostname")


def test_what_is_not_recognised_or_too_large_gets_one_sentence(capsys, folder, monkeypatch):
    assert "not recognised: it is not a trace" in refused(capsys, folder / "readme.md")
    assert "No such file" in refused(capsys, folder / "missing.json")
    monkeypatch.setattr(open_command, "MOST_BYTES", 10)
    assert "is larger than" in refused(capsys, folder / "good.json")
