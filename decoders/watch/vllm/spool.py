"""The spool: what a worker has measured, in files of a few MiB, until traces are made of it.

A record is a JSON object and arrays: two lengths, the object with the arrays' names, types and shapes, then
their bytes. A reader of a file that still grows takes the whole records in it.
"""

import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SUFFIX = ".rounds"
LENGTHS = struct.Struct("<II")  # of the object and of the arrays, in bytes
FILE_BYTES = 4 * 2**20  # a new file begins after this many
MAX_BYTES = 512 * 2**20  # of all files that nobody has read yet: then recording ends
TYPES = ("<f4", "<f8", "<i4", "<i8", "|b1")
Record = tuple[dict[str, Any], dict[str, np.ndarray]]


class SpoolFull(Exception):
    """Nobody reads the spool."""


class Spool:
    """Writes records into a folder. A process that forks or fails leaves whole records."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES):
        self.folder, self.max_bytes = folder, max_bytes
        folder.mkdir(parents=True, exist_ok=True)
        self._number, self._file, self._size = 0, None, 0

    def write(self, header: dict[str, Any], arrays: dict[str, np.ndarray] | None = None) -> None:
        """Appends a record. Raises SpoolFull, and OSError if the disk refuses it."""
        arrays = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
        listed = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
        text = json.dumps(header | {"arrays": listed}, separators=(",", ":")).encode()
        body = b"".join(array.tobytes() for array in arrays.values())
        if self._file is None or self._size > FILE_BYTES:
            self._next_file()
        self._file.write(LENGTHS.pack(len(text), len(body)) + text + body)
        self._file.flush()
        self._size += LENGTHS.size + len(text) + len(body)

    def _next_file(self) -> None:
        self.close()
        waiting = sum(path.stat().st_size for path in self.folder.glob(f"*{SUFFIX}"))
        if waiting > self.max_bytes:
            raise SpoolFull(f"{waiting >> 20} MiB of {self.folder} are unread")
        path = self.folder / f"{os.getpid()}-{self._number:06d}{SUFFIX}"
        self._file, self._size, self._number = path.open("wb"), 0, self._number + 1

    def close(self) -> None:
        """Ends the file under way."""
        if self._file is not None:
            self._file.close()
            self._file = None


class SpoolReader:
    """Reads a folder's records in the order in which they were written, those of one process after another's.
    A file is deleted once a later one of its process is there and it has been read.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._read: dict[Path, int] = {}  # bytes

    def records(self) -> Iterator[Record]:
        """The whole records that have not been read yet."""
        paths = sorted(self.folder.glob(f"*{SUFFIX}"))
        for path, later in zip(paths, [*paths[1:], None], strict=True):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                data = file.read()
            at = 0
            while (record := one(data, at)) is not None:
                *parts, at = record
                yield tuple(parts)
            self._read[path] = self._read.get(path, 0) + at
            if later is not None and process(later) == process(path) and at == len(data):
                path.unlink(missing_ok=True)
                del self._read[path]

    def delete(self) -> None:
        """Deletes all files of the spool."""
        for path in self.folder.glob(f"*{SUFFIX}"):
            path.unlink(missing_ok=True)


def process(path: Path) -> str:
    """The process that wrote a file."""
    return path.name.partition("-")[0]


def one(data: bytes, at: int) -> tuple[dict[str, Any], dict[str, np.ndarray], int] | None:
    """The record at a place and the place after it; None if the file ends first."""
    if len(data) < at + LENGTHS.size:
        return None
    length, size = LENGTHS.unpack_from(data, at)
    begin = at + LENGTHS.size
    end = begin + length + size
    if len(data) < end:
        return None
    header = json.loads(data[begin : begin + length])
    arrays, place = {}, begin + length
    for name, kind, shape in header.pop("arrays"):
        if kind not in TYPES:
            raise ValueError(f"the spool has an array of the type {kind}")
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(data, kind, count, place).reshape(shape)
        place += arrays[name].nbytes
    return header, arrays, end
