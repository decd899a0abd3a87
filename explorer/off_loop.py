"""Work that the event loop must not do itself: on threads, and as text that is made piece by piece.

Two kinds do not wait for each other: what pages ask all the time is done `soon`, what may take seconds on
`asyncio.to_thread`. Knows nothing of runs.
"""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

_soon = ThreadPoolExecutor(4, thread_name_prefix="answers")
_whole = json.JSONEncoder(separators=(",", ":")).encode
DEPTH = 6  # levels that are taken apart: down to a mark of an answer, or to an event of a trace


async def soon(work: Callable, *arguments: Any) -> Any:
    """`work(*arguments)` on one of a few threads of its own."""
    return await asyncio.get_running_loop().run_in_executor(_soon, work, *arguments)


def encoded(value: Any, depth: int = DEPTH) -> str:
    """The JSON text of `value`, as `json.dumps` without spaces gives it.

    It lets other threads run in between: one call for the whole would hold Python's lock until its end.
    """
    if depth and isinstance(value, list | tuple):
        return "[" + ",".join([encoded(one, depth - 1) for one in value]) + "]"
    if depth and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        pairs = [f"{_whole(key)}:{encoded(one, depth - 1)}" for key, one in value.items()]
        return "{" + ",".join(pairs) + "}"
    return _whole(value)
