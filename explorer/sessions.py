"""Whose run is whose: a page may ask only for its own runs, and says when it closes.

A page's session is a secret of its own making that goes with each of its calls. Knows runs, nothing of lanes.
"""

import functools
import json
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from explorer.runs import GONE, Runs

LEAVE = "explorer-leave"  # the address that a closing page tells
LONGEST, SHORTEST = 64, 16  # characters of a session


def session_of(request: dict) -> str:
    """The session that a call names. ValueError with one sentence if it names none that could be a secret."""
    session = request.get("session")
    if not isinstance(session, str) or not SHORTEST <= len(session) <= LONGEST:
        raise ValueError("The page did not say who it is; reload it.")
    return session


def bound(runs: Runs, function: Callable[[dict], Awaitable[str]]) -> Callable[[dict], Awaitable[str]]:
    """`function` of the page, answering for a run of another session as if there were no such run."""

    @functools.wraps(function)
    async def asked(request: dict) -> str:
        if not isinstance(request, dict):
            return json.dumps({"error": "The page asked for something unusable; reload it."})
        if not runs.belongs(request.get("run"), request.get("session")):
            return json.dumps({"error": GONE})
        return await function(request)

    return asked


def routes(runs: Runs) -> list[Route]:
    """For Gradio's app: where a page that closes leaves its session, as plain text, so that its runs stop."""

    async def leave(request: Request) -> Response:
        told = b""
        async for part in request.stream():
            told += part
            if len(told) > LONGEST:
                return Response(status_code=413)
        runs.leave(told.decode("utf-8", "replace"))
        return Response(status_code=204)

    return [Route(f"/{LEAVE}", leave, methods=["POST"])]
