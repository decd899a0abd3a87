"""The folder of traces that vLLM leaves while it records: which requests are in it, and how far each is.

A trace is written anew as a whole while it grows (writer.py), and its totals come last, so a table of many
requests reads only the ends of files. A file is known by its name in this folder: no path leads out of it.
"""

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decoders.refusal import Refusal
from decoders.trace.json_file import MAX_TRACE_BYTES, read_json

SUFFIX = ".trace.json"
NAME = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-([A-Za-z0-9_-]+)\.trace\.json")  # see `file_name`
MAX_LISTED = 50  # requests
END_BYTES = 16 * 2**10  # of a file, in which its totals are
SILENT_SECONDS = 120.0  # a trace that has not ended and was not written for this long is not waited for


@dataclass(frozen=True)
class Recorded:
    """A request in the folder. `ended`: why it ended; `silent`: seconds since it was written; `problem`: why
    its file cannot be read.
    """

    name: str  # of its file
    began: str  # local time
    request: str
    silent: float
    tokens: int = 0
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    ended: str | None = None
    problem: str | None = None

    @property
    def running(self) -> bool:
        """Whether more may come."""
        return self.problem is None and self.ended is None and self.silent < SILENT_SECONDS


class Folder:
    """A folder in which vLLM records. Raises Refusal with one sentence if there is none."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if not self.path.is_dir():
            raise Refusal(
                f"There is no folder {path}; make it, or start vLLM with DECODING_EXPLORER_RECORD={path}."
            )
        self._ends: dict[tuple, dict[str, Any]] = {}  # (name, time, size) of a file -> what its end says

    def requests(self) -> list[Recorded]:
        """The newest requests, newest first, at most MAX_LISTED."""
        known, self._ends, found = self._ends, {}, []
        for name in sorted(self._names(), reverse=True)[:MAX_LISTED]:
            path = self.path / name
            try:
                stat = path.stat()
                key = (name, stat.st_mtime_ns, stat.st_size)
                said = known.get(key) or end_of(path)
            except OSError:  # it made room for newer ones, or cannot be read
                continue
            self._ends[key] = said
            *at, request = NAME.fullmatch(name).groups()
            began = "{}-{}-{} {}:{}:{}".format(*at)
            found.append(Recorded(name, began, request, time.time() - stat.st_mtime, **said))
        return found

    def file(self, name: str) -> Path:
        """The path of a request's file. Raises Refusal with one sentence for any other name."""
        if name not in self._names():
            raise Refusal("This request is not in the folder; the oldest ones make room for new ones.")
        return self.path / name

    def _names(self) -> set[str]:
        try:
            files = [path for path in self.path.iterdir() if path.is_file() and not path.is_symlink()]
        except OSError as error:
            raise Refusal("The folder of recorded requests cannot be read.") from error
        return {path.name for path in files if NAME.fullmatch(path.name)}


def end_of(path: Path) -> dict[str, Any]:
    """What the end of a trace says, as fields of `Recorded`. Raises OSError."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - END_BYTES))
        data = file.read()
    try:
        record = json.loads(b"{" + data[data.rindex(b'"ended":') :])  # in a text, its quotes have a backslash
    except (ValueError, RecursionError):
        return whole(path, size)
    return fields(record) if "totals" in record else whole(path, size)


def whole(path: Path, size: int) -> dict[str, Any]:
    """The same of a file that another program wrote, or that is damaged."""
    try:
        if size > MAX_TRACE_BYTES:
            raise Refusal(f"This trace is larger than {MAX_TRACE_BYTES >> 20} MiB.")
        return fields(read_json(path.read_bytes()))
    except Refusal as error:
        return {"problem": str(error)}


def fields(record: Any) -> dict[str, Any]:
    """The fields of `Recorded` that a trace's record gives."""
    try:
        totals, ended = record["totals"], record["ended"]
        counts = [totals[name] for name in ("new_tokens", "steps", "proposed", "accepted")]
    except (KeyError, TypeError):
        return {"problem": "This file is not a trace."}
    if not all(isinstance(count, int) for count in counts) or not isinstance(ended, str | None):
        return {"problem": "This file is not a trace."}
    return dict(zip(("tokens", "steps", "drafted", "accepted"), counts, strict=True)) | {"ended": ended}
