"""Reads JSON files that a user opens: of bounded size, and only with values that every JSON parser reads
alike.
"""

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

from decoders.refusal import Refusal

MAX_TRACE_BYTES = 64 * 2**20  # larger files (after decompression) are refused
# A text with characters beyond ASCII takes up to four bytes for each of its characters.
MAX_WIDE_BYTES = 16 * 2**20
MAX_PARTS = 2_400_000  # values and names of fields together; a parsed one takes about 50 bytes
MAX_NAMES = 100_000  # different names of fields; what is repeated is kept once
LONG_NAME = 1000  # bytes
LARGEST = 1e18  # nothing that a trace measures or counts is larger, and JSON has 1e300 for a whole number too
BOM = b"\xef\xbb\xbf"
LONG_NUMBER, HALF = re.compile(rb"[0-9]{16}"), re.compile(rb"\\u[dD][89a-fA-F]")


class NotJson(Refusal):
    """The file is not JSON."""


def read_json(data: bytes) -> Any:
    """The JSON value in `data`, which may be gzip-compressed. Numbers are finite and the size is bounded; the
    contents are not checked.

    Raises Refusal with one sentence if it is not JSON or too large.
    """
    data = unzipped(data)
    check_size(data)
    try:
        return parsed(data.removeprefix(BOM))
    except (ValueError, RecursionError) as error:
        raise NotJson(
            "This file is not a trace: it is not JSON. Choose a file saved by Decoding Explorer."
        ) from error


def read_lines(data: bytes) -> list[Any] | None:
    """The values of a file that has one JSON value a line, read as `read_json` does; None if its first two
    lines are not both a JSON value. Raises Refusal with one sentence for a later line that is none.
    """
    data = unzipped(data).removeprefix(BOM)
    first = data[: data.find(b"\n") + 1].strip()
    if not (first.startswith(b"{") and first.endswith(b"}")):
        return None
    check_size(data)
    lines = [line for line in data.split(b"\n") if line.strip()]
    values = []
    for at, line in enumerate(lines, 1):
        try:
            values.append(parsed(line))
        except (ValueError, RecursionError) as error:
            if at <= 2:
                return None
            raise Refusal(f"Line {at:,} of this file is not JSON; it may have been cut.") from error
    return values


def unzipped(data: bytes) -> bytes:
    """The bytes of a file that may be gzip-compressed. Raises Refusal with one sentence if it cannot be
    unpacked, or is too large.
    """
    try:
        if data[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(data)) as file:
                data = file.read(MAX_TRACE_BYTES + 1)  # a small file may decompress to a huge one
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Refusal("This file is not a trace: it cannot be unpacked. Save it again.") from error
    if len(data) > MAX_TRACE_BYTES:
        raise Refusal(f"This trace is larger than {MAX_TRACE_BYTES >> 20} MiB; open a shorter run.")
    return data


def parsed(data: bytes) -> Any:
    """The JSON value in a text. Raises ValueError if it is not JSON."""
    longest = whole if LONG_NUMBER.search(data) else int
    value = json.loads(data.decode("utf-8"), parse_float=finite, parse_int=longest, parse_constant=finite)
    if HALF.search(data):
        encode_all(value)
    return value


def check_size(data: bytes) -> None:
    """Raises Refusal with one sentence for a JSON text that takes too much memory once it is parsed."""
    if len(data) > MAX_WIDE_BYTES and not data.isascii():
        most = MAX_WIDE_BYTES >> 20
        raise Refusal(f"This file is larger than {most} MiB and not ASCII; open a shorter run or answer.")
    parts = sum(map(data.count, (b",", b":", b"[", b"{")))
    if parts > MAX_PARTS:
        raise Refusal(
            f"This file has about {parts:,} values and names, and {MAX_PARTS:,} can be read; open a shorter "
            "run, or one lane of it."
        )
    if len(set(names_in(data))) > MAX_NAMES:
        raise Refusal(f"This file names more than {MAX_NAMES:,} different fields; open a shorter run.")


def names_in(data: bytes) -> Iterator[int]:
    """The hash of the text in quotes before each colon; its own where that is longer than LONG_NAME."""
    at = data.find(b":")
    while at >= 0:
        end = data.rfind(b'"', max(0, at - LONG_NAME), at)
        begin = data.rfind(b'"', max(0, end - LONG_NAME), max(0, end))
        yield hash(data[begin:end]) if begin >= 0 else at
        at = data.find(b":", at + 1)


def encode_all(value: Any) -> None:
    """Raises ValueError if a text in a JSON value has half of a character."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            one.encode()
        elif isinstance(one, dict):
            left += [*one, *one.values()]
        elif isinstance(one, list):
            left += one


def whole(text: str) -> int:
    """Parses a JSON integer. Raises ValueError for one that other JSON parsers would not keep."""
    value = int(text)
    if abs(value) > 2**53:
        raise Refusal(text)
    return value


def finite(text: str) -> float:
    """Parses a JSON number. Raises ValueError for NaN, Infinity and numbers out of range, such as 1e300."""
    value = float(text)
    if not abs(value) <= LARGEST:
        raise Refusal(text)
    return value
