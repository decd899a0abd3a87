"""Rejects malformed requests before Gradio's code sees them: status 4xx, one sentence, and a line in the log.

This is ASGI middleware; envelopes.py says what a body may contain. Any other exception is a bug of ours and
gives status 500, a sentence, and a traceback in the log.
"""

import json
import logging
import re
from collections.abc import Callable
from urllib.parse import parse_qs

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from decoders import files
from explorer.access import UPLOAD_PATH
from explorer.page import uploads
from explorer.page.envelopes import API, CHECKS, NAME, Known, Refused
from explorer.schema import Malformed, parsed, sentence

MAX_BODY_BYTES = uploads.MAX_FILE_BYTES + 2**20  # the largest file that can be opened, plus 1 MiB
MAX_READ = 4 * MAX_BODY_BYTES  # how far an oversized body is read: its sender sees no answer before the end
MAX_PATH, MAX_NAME_BYTES = 1000, 255  # characters of a path; bytes of each name in it, as in file systems
OURS = "The app failed at this request ({}); its log says where."

log = logging.getLogger(__name__)

STREAM = re.compile(rf"{API}call/(v2/)?[^/]+/(?P<session>[^/]+)")
# Paths that this app does not have. Gradio would fetch a file from another machine for some of them.
ABSENT = re.compile(rf"{API}(proxy=|stream/|upload_progress|file=(?i:https?):).*")
DIRECT = re.compile(rf"{API}(run|api)/{NAME}")  # calls that are answered directly, without the queue


class BadRequests:
    """The middleware. It reads each body completely, up to MAX_BODY_BYTES, before passing the request on."""

    def __init__(self, app, known: Known):
        self.app, self.known = app, known

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started = False

        async def watched(message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            check_address(scope, self.known)
            body = await read_body(scope, receive)
            for pattern, check in CHECKS if scope["method"] == "POST" else ():
                if match := pattern.fullmatch(scope["path"]):
                    check(self.known, match, parsed(body))
            if scope["method"] == "POST" and scope["path"] == UPLOAD_PATH:
                scope, body = clean_upload(scope, body)
            passing = ReadableErrors(watched) if DIRECT.fullmatch(scope["path"]) else watched
            await self.app(scope, replay(body, receive), passing)
        except ClientDisconnect:
            return
        except Malformed as error:
            log.warning("%s %s was refused: %s", scope["method"], ascii(scope["path"])[:100], error)
            await JSONResponse(error.body(), error.status)(scope, receive, send)
        except Exception as error:
            if isinstance(error, OSError) and error.errno in files.FULL and not started:
                log.error("%s %s: the disk is full.", scope["method"], ascii(scope["path"])[:100])
                return await json_answer(507, uploads.NO_ROOM)(scope, receive, send)
            if started:  # too late for another answer
                raise
            log.exception("%s %s failed", scope["method"], ascii(scope["path"])[:100])
            await json_answer(500, OURS.format(type(error).__name__))(scope, receive, send)


def check_address(scope: dict, known: Known) -> None:
    """Raises Refused if the address is too long, or if there can be nothing at it."""
    path, query = scope["path"], parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=100)
    names = path.split("/")
    if len(path) > MAX_PATH or any(len(name.encode(errors="replace")) > MAX_NAME_BYTES for name in names):
        raise Refused(414, "This address is too long.")
    if "\0" in path or ABSENT.fullmatch(path) or query.get("page", [""]) != [""]:
        raise Refused(404, "There is nothing at this address.")
    if scope["method"] != "GET":
        return
    asked = STREAM.fullmatch(path)
    session = asked["session"] if asked else query.get("session_hash", [None])[0]
    waits = asked or re.fullmatch(rf"{API}queue/data", path)
    if waits and session is not None and not known.session_open(session):
        raise Refused(404, "There is no such session, or its answer has already been fetched.")


async def read_body(scope: dict, receive) -> bytes:
    """Reads the body of a request. Raises Refused if it is too large, ClientDisconnect if it ends early."""
    body, size, more = bytearray(), 0, scope["method"] not in ("GET", "HEAD")
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        more, part = message.get("more_body", False), message.get("body", b"")
        size += len(part)
        if size <= MAX_BODY_BYTES:
            body += part
        elif size > MAX_READ:
            break
    if size > MAX_BODY_BYTES:
        raise Refused(413, f"The body is larger than {MAX_BODY_BYTES >> 20} MiB.")
    return bytes(body)


def clean_upload(scope: dict, body: bytes) -> tuple[dict, bytes]:
    """Reduces an upload to its file, see `uploads.clean`. Raises Refused for anything but one file."""
    kind, body = uploads.clean(Headers(scope=scope).get("content-type", ""), body)
    ours = {b"content-type": kind, b"content-length": str(len(body)).encode()}
    rest = [(name, value) for name, value in scope["headers"] if name.lower() not in ours]
    return {**scope, "headers": [*rest, *ours.items()]}, body


def replay(body: bytes, receive) -> Callable:
    """A `receive` for the next app: yields the body already read, then later messages such as disconnect."""
    rest = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> dict:
        return rest.pop() if rest else await receive()

    return received


class ReadableErrors:
    """Passes answers on, but turns status 500 with an error message of ours into status 422.

    Gradio answers with status 500 whenever an endpoint raises, and includes the message of a `gr.Error`.
    """

    def __init__(self, send) -> None:
        self.send, self.start, self.body = send, None, b""

    async def __call__(self, message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 500:
            self.start = message
            return
        if self.start is None:
            return await self.send(message)
        self.body += message.get("body", b"")
        if not message.get("more_body"):
            error = error_message(self.body)
            answer = json_answer(422, error) if error else json_answer(500, OURS.format("an endpoint raised"))
            await answer({"type": "http"}, None, self.send)


def error_message(body: bytes) -> str | None:
    """The error message in an answer of Gradio's; None if there is none."""
    try:
        message = json.loads(body).get("error")
    except (ValueError, AttributeError):
        return None
    return message if isinstance(message, str) else None


def json_answer(status: int, message: str) -> Response:
    """An answer that consists of one sentence."""
    return JSONResponse({"detail": message}, status)


async def validation_error(request: Request, error: RequestValidationError) -> Response:
    """Answers a request that Gradio's own models reject with one sentence instead of pydantic's list."""
    first = error.errors()[0]
    message = sentence({**first, "loc": first["loc"][1:]})
    log.warning("%s %s was refused: %s", request.method, ascii(request.url.path)[:100], message)
    return json_answer(422, message)


def middleware(known: Known) -> list[Middleware]:
    """The middleware for Gradio's app. `known` can still be filled until the first request arrives."""
    return [Middleware(BadRequests, known=known)]


HANDLERS = {RequestValidationError: validation_error}  # exception handlers for Gradio's app
