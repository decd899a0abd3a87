"""Reads JSON files that a user opens: of bounded size, and only with values that every JSON parser reads
alike.

Knows bytes and JSON, no traces.
"""

import gzip
import io
import json
import math
import re
import zlib
from typing import Any

from decoders.refusal import Refusal

MAX_TRACE_BYTES = 64 * 2**20  # larger files (after decompression) are refused
LONG_NUMBER, HALF = re.compile(rb"[0-9]{16}"), re.compile(rb"\\u[dD][89a-fA-F]")


def read_json(data: bytes) -> Any:
    """The JSON value in `data`, which may be gzip-compressed. Numbers are finite and the size is bounded; the
    contents are not checked.

    Raises ValueError with one sentence if it is not JSON or too large.
    """
    try:
        if data[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(data)) as file:
                data = file.read(MAX_TRACE_BYTES + 1)  # a small file may decompress to a huge one
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Refusal("This file is not a trace: it cannot be unpacked. Save it again.") from error
    if len(data) > MAX_TRACE_BYTES:
        raise Refusal(f"This trace is larger than {MAX_TRACE_BYTES >> 20} MiB; open a shorter run.")
    try:
        longest = whole if LONG_NUMBER.search(data) else int
        text = data.decode("utf-8-sig")
        value = json.loads(text, parse_float=finite, parse_int=longest, parse_constant=finite)
        if HALF.search(data):
            json.dumps(value, ensure_ascii=False).encode()  # raises on a lone surrogate
        return value
    except (ValueError, RecursionError) as error:
        raise Refusal(
            "This file is not a trace: it is not JSON. Choose a file saved by Decoding Explorer."
        ) from error


def whole(text: str) -> int:
    """Parses a JSON integer. Raises ValueError for one that other JSON parsers would not keep."""
    value = int(text)
    if abs(value) > 2**53:
        raise Refusal(text)
    return value


def finite(text: str) -> float:
    """Parses a JSON number. Raises ValueError for NaN, Infinity and numbers out of range, such as 1e999."""
    value = float(text)
    if not math.isfinite(value):
        raise Refusal(text)
    return value
