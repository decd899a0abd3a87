"""Does work that would block the event loop: on threads, and by making long texts piece by piece.

Two kinds of work do not wait for each other: frequent requests of pages run `soon`; work that may take
seconds runs on `asyncio.to_thread`.
"""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

_soon = ThreadPoolExecutor(4, thread_name_prefix="answers")
_any = json.JSONEncoder(separators=(",", ":")).encode
_finite = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
DEPTH = 5  # levels that are taken apart: down to a step's marks in an answer, or to its events in a trace
PIECE = 64  # of those, as many as one call of the C encoder takes


async def soon(work: Callable, *arguments: Any) -> Any:
    """`work(*arguments)` on one of a few threads of its own."""
    return await asyncio.get_running_loop().run_in_executor(_soon, work, *arguments)


def encoded(value: Any, finite: bool = False, depth: int = DEPTH) -> str:
    """The JSON text of `value`, as `json.dumps` without spaces gives it; ValueError for NaN if `finite`.

    It lets other threads run in between: one call for the whole would hold Python's lock until its end.
    """
    text = _finite if finite else _any
    if depth == 1 and isinstance(value, list | tuple):
        pieces = [text(value[at : at + PIECE])[1:-1] for at in range(0, len(value), PIECE)]
        return "[" + ",".join(pieces) + "]"
    if depth > 1 and isinstance(value, list | tuple):
        return "[" + ",".join([encoded(one, finite, depth - 1) for one in value]) + "]"
    if depth > 1 and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        pairs = [f"{text(key)}:{encoded(one, finite, depth - 1)}" for key, one in value.items()]
        return "{" + ",".join(pairs) + "}"
    return text(value)
