"""Whose run is whose: a page may ask only for its own runs, and says when it closes.

A page's session is a secret of its own making that goes with each of its calls. Knows runs, nothing of lanes.
"""

import functools
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from explorer.page_requests import Leave, asked_of
from explorer.runs.scheduler import GONE, Runs
from explorer.schema import Malformed, parsed, read

LEAVE = "explorer-leave"  # the address that a closing page tells

log = logging.getLogger(__name__)


def bound(runs: Runs, function: Callable[[Any], Awaitable[str]]) -> Callable[[Any], Awaitable[str]]:
    """`function` of the page for requests as they come: it gets the model that its request is annotated with,
    and answers for a run of another session as if there were no such run.

    What does not fit the model raises HTTPException: status 4xx and one sentence, a line in the log.
    """
    model = asked_of(function)

    @functools.wraps(function)
    async def asked(request: Any) -> str:
        try:
            given = read(model, request)
        except Malformed as error:
            raise refused(function.__name__, error) from None
        if not runs.belongs(getattr(given, "run", None), given.session):
            return json.dumps({"error": GONE})
        return await function(given)

    return asked


def refused(what: str, error: Malformed) -> HTTPException:
    """The answer to a malformed request, with a line in the log."""
    log.warning("%s was refused: %s", what, error)
    return HTTPException(error.status, str(error))


def routes(runs: Runs) -> list[Route]:
    """For Gradio's app: where a page that closes leaves `{session}`, so that its runs stop."""

    async def leave(request: Request) -> Response:
        try:
            request_read = read(Leave, parsed(await request.body()))
        except Malformed as error:
            raise refused(LEAVE, error) from None
        runs.leave(request_read.session)
        return Response(status_code=204)

    return [Route(f"/{LEAVE}", leave, methods=["POST"])]
