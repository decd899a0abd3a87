"""The Hub, played by a small server on this machine: listing, headers, fetching with progress, refusals."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from decoders.models import hub, loading
from decoders.models.memory_estimate import footprint
from tests.helpers import tiny_models

COMMIT = "c0ffee" * 6 + "0000"
WEIGHTS = "model.safetensors"


class Hub(BaseHTTPRequestHandler):
    """Serves `folder` as owner/model; `asked` lists the files whose bytes went out, and how many."""

    folder: Path
    asked: dict[str, int] = {}

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path.startswith("/api/models/owner/model/tree/"):
            files = [p for p in self.folder.rglob("*") if p.is_file()]
            self.answer([self.entry(p) for p in files])
        elif re.fullmatch(r"/api/models/owner/model(/revision/(main|v1))?", path):
            siblings = [
                {"rfilename": str(p.relative_to(self.folder))} for p in self.folder.rglob("*") if p.is_file()
            ]
            self.answer({"id": "owner/model", "modelId": "owner/model", "sha": COMMIT, "siblings": siblings})
        elif path.startswith("/api/models/owner/model/revision/"):
            self.answer({"error": "Invalid rev id"}, 404, {"X-Error-Code": "RevisionNotFound"})
        elif match := re.fullmatch(r"/owner/model/resolve/[^/]+/(.+)", path):
            self.file(match[1])
        else:
            self.answer({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET  # noqa: N815

    def entry(self, path: Path) -> dict:
        name = str(path.relative_to(self.folder))
        return {
            "type": "file",
            "path": name,
            "size": path.stat().st_size,
            "oid": f"{hash(name) & 0xFFFFFF:040x}",
        }

    def file(self, name: str) -> None:
        path = self.folder / name
        if not path.is_file():
            return self.answer({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})
        data, first = path.read_bytes(), 0
        size = len(data)
        if found := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(found[1]), int(found[2] or size - 1)
            data = data[first : last + 1]
        self.send_response(206 if found else 200)
        self.send_header("Content-Length", str(len(data)))
        if found:
            self.send_header("Content-Range", f"bytes {first}-{first + len(data) - 1}/{size}")
        self.send_header("ETag", f'"{self.entry(path)["oid"]}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "GET":
            self.asked[name] = self.asked.get(name, 0) + len(data)
            self.wfile.write(data)

    def answer(self, what: object, status: int = 200, headers: dict | None = None) -> None:
        data = json.dumps(what).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": len(data),
            **(headers or {}),
        }.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A Hub with one model, and an empty cache: the handler's class."""
    folder = tmp_path / "repository"
    tiny_models.save(folder, seed=4)
    (folder / "pytorch_model.bin").write_bytes(b"pickled")
    (folder / "onnx").mkdir()
    (folder / "onnx" / WEIGHTS).write_bytes(b"another set")
    handler = type("Served", (Hub,), {"folder": folder, "asked": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield handler
    server.shutdown()


def test_one_set_of_safetensors_is_chosen_and_nothing_pickled(served):
    found = hub.listing("owner/model")
    assert found.commit == COMMIT and WEIGHTS in found.files and "tokenizer.json" in found.files
    assert not any(name.endswith(".bin") or "/" in name for name in found.files)
    sizes = {name: (served.folder / name).stat().st_size for name in found.files}
    assert found.missing == sum(sizes.values()) > sizes[WEIGHTS]
    shards = ["model-1-of-2.safetensors", "model-2-of-2.safetensors", "model.safetensors.index.json"]
    assert hub.chosen([*shards, "consolidated.safetensors", "a/model.safetensors"]) == shards
    adapter = ["adapter_config.json", "adapter_model.safetensors"]
    assert hub.chosen([*adapter, "adapter_model.bin"]) == adapter
    assert adapter[1] not in hub.chosen([*adapter, WEIGHTS])


def test_memory_is_known_before_any_weight_is_fetched(served):
    local = footprint(str(served.folder))
    remote = footprint("owner/model@v1")
    assert remote.parameters == local.parameters and remote.weights == local.weights
    assert remote.download > local.weights / local.copies and "to download" in remote.sentence()
    assert served.asked[WEIGHTS] < (served.folder / WEIGHTS).stat().st_size


def test_a_model_is_fetched_with_progress_and_then_loads_without_the_hub(served, monkeypatch):
    heard = []
    model = loading.load("owner/model", "cpu", progress=lambda *what: heard.append(what))
    came = [done for words, done, _ in heard if words == "Downloading owner/model"]
    assert came == sorted(came) and came[-1] == hub_total(heard)
    assert model.encode("the") and model.name == "owner/model"
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    again = loading.load("owner/model", "cpu")
    assert again.facts() == model.facts() and footprint("owner/model").download == 0


def hub_total(heard: list) -> int:
    return {total for words, _, total in heard if words.startswith("Downloading")}.pop()


def test_a_download_can_be_stopped(served):
    def stop(words, done, total):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        loading.load("owner/model", "cpu", progress=stop)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("owner/nothing", "The Hub has no model owner/nothing"),
        ("owner/model@v9", "owner/model has no such revision"),
        ("owner/mo del", "'owner/mo del' is not a Hub id"),
    ],
)
def test_refusals_are_sentences(served, name, says):
    for ask in (footprint, loading.load):
        with pytest.raises(ValueError, match=says) as refused:
            ask(name)
        assert "\n" not in str(refused.value)


def test_without_a_connection_the_sentence_says_what_to_do(served, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="check the connection, or name a model that comes with the app"):
        loading.load("owner/model", "cpu")


def test_a_disk_that_is_too_small_is_said_before_the_download(served, monkeypatch):
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda place: type("Usage", (), {"free": 10})())
    with pytest.raises(ValueError, match="on the disk and 0.0 GB are free"):
        loading.load("owner/model", "cpu")
