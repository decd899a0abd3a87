"""Sessions: a page can access only its own runs, and tells the server when it closes.

A session is a secret that the page generates and sends with every call.
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

LEAVE = "explorer-leave"  # the path to which a closing page posts

log = logging.getLogger(__name__)


def validated(runs: Runs, function: Callable[[Any], Awaitable[str]]) -> Callable[[Any], Awaitable[str]]:
    """Wraps a server function so that it takes raw requests.

    The wrapper parses the request into the model with which the function annotates it. It answers for a run
    of another session as if that run did not exist. A request that does not fit the model is logged and
    raises HTTPException with status 4xx and one sentence.
    """
    model = asked_of(function)

    @functools.wraps(function)
    async def call(request: Any) -> str:
        try:
            parsed_request = read(model, request)
        except Malformed as error:
            raise bad_request(function.__name__, error) from None
        if not runs.belongs(getattr(parsed_request, "run", None), parsed_request.session):
            return json.dumps({"error": GONE})
        return await function(parsed_request)

    return call


def bad_request(what: str, error: Malformed) -> HTTPException:
    """Logs a malformed request and returns the exception that answers it."""
    log.warning("%s was refused: %s", what, error)
    return HTTPException(error.status, str(error))


def routes(runs: Runs) -> list[Route]:
    """Routes for Gradio's app: a closing page posts `{session}` here, and its runs stop."""

    async def leave(request: Request) -> Response:
        try:
            request_read = read(Leave, parsed(await request.body()))
        except Malformed as error:
            raise bad_request(LEAVE, error) from None
        runs.leave(request_read.session)
        return Response(status_code=204)

    return [Route(f"/{LEAVE}", leave, methods=["POST"])]
