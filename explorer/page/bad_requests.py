"""Answers nonsense before Gradio's own code meets it: status 4xx, one sentence, and a line in the log.

An ASGI middleware. What bodies may be is in envelopes.py. An exception that comes through all the same is a
bug of ours: status 500, a sentence, and a traceback in the log.
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

from explorer.access import UPLOAD_PATH
from explorer.page import uploads
from explorer.page.envelopes import API, CHECKS, NAME, Known, Refused
from explorer.schema import Malformed, parsed, sentence

MAX_BODY_BYTES = uploads.MAX_FILE_BYTES + 2**20  # the largest file that can be opened, and some room
MAX_READ = 4 * MAX_BODY_BYTES  # of a body that is too large: its sender hears no answer before its end
MAX_PATH, MAX_NAME_BYTES = 1000, 255  # characters of an address; bytes of a name in it, as file systems have
OURS = "The app failed at this request ({}); its log says where."

log = logging.getLogger(__name__)

STREAM = re.compile(rf"{API}call/(v2/)?[^/]+/(?P<session>[^/]+)")
# What this app has none of; Gradio would fetch a file from another machine.
ABSENT = re.compile(rf"{API}(proxy=|stream/|upload_progress|file=(?i:https?):).*")
DIRECT = re.compile(rf"{API}(run|api)/{NAME}")  # calls that are answered at once


class BadRequests:
    """The middleware. It reads whole bodies, of at most MAX_BODY_BYTES, before anything else does."""

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
            body = await whole(scope, receive)
            for pattern, check in CHECKS if scope["method"] == "POST" else ():
                if match := pattern.fullmatch(scope["path"]):
                    check(self.known, match, parsed(body))
            if scope["method"] == "POST" and scope["path"] == UPLOAD_PATH:
                scope, body = cleaned(scope, body)
            passing = Sentence(watched) if DIRECT.fullmatch(scope["path"]) else watched
            await self.app(scope, again(body, receive), passing)
        except ClientDisconnect:
            return
        except Malformed as error:
            log.warning("%s %s was refused: %s", scope["method"], ascii(scope["path"])[:100], error)
            await JSONResponse(error.body(), error.status)(scope, receive, send)
        except Exception as error:
            if started:  # too late for a sentence
                raise
            log.exception("%s %s failed", scope["method"], ascii(scope["path"])[:100])
            await answer_of(500, OURS.format(type(error).__name__))(scope, receive, send)


def check_address(scope: dict, known: Known) -> None:
    """Raises Refused for addresses at which Gradio would look for something that cannot be there."""
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


async def whole(scope: dict, receive) -> bytes:
    """The body of a request. Raises Refused if it is too large, ClientDisconnect if it ends early."""
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


def cleaned(scope: dict, body: bytes) -> tuple[dict, bytes]:
    """An upload with nothing but its file: see `uploads.clean`. Raises Refused for what is none."""
    kind, body = uploads.clean(Headers(scope=scope).get("content-type", ""), body)
    ours = {b"content-type": kind, b"content-length": str(len(body)).encode()}
    rest = [(name, value) for name, value in scope["headers"] if name.lower() not in ours]
    return {**scope, "headers": [*rest, *ours.items()]}, body


def again(body: bytes, receive) -> Callable:
    """`receive` for what runs next: the body that was read, then what comes, such as a client that leaves."""
    rest = [{"type": "http.request", "body": body, "more_body": False}]

    async def received():
        return rest.pop() if rest else await receive()

    return received


class Sentence:
    """Passes an answer on; one of status 500 that carries a sentence of ours goes out with status 422.

    Gradio answers so wherever an endpoint raises, and gives the sentence if it was meant for people.
    """

    def __init__(self, send):
        self.send, self.start, self.body = send, None, b""

    async def __call__(self, message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 500:
            self.start = message
            return
        if self.start is None:
            return await self.send(message)
        self.body += message.get("body", b"")
        if not message.get("more_body"):
            words = sentence_in(self.body)
            answer = answer_of(422, words) if words else answer_of(500, OURS.format("an endpoint raised"))
            await answer({"type": "http"}, None, self.send)


def sentence_in(body: bytes) -> str | None:
    """The sentence in Gradio's answer, if there is one."""
    try:
        words = json.loads(body).get("error")
    except (ValueError, AttributeError):
        return None
    return words if isinstance(words, str) else None


def answer_of(status: int, words: str) -> Response:
    """An answer of one sentence."""
    return JSONResponse({"detail": words}, status)


async def unfit(request: Request, error: RequestValidationError) -> Response:
    """The answer where Gradio's own models refuse a request: our sentence in the place of a list."""
    first = error.errors()[0]
    words = sentence({**first, "loc": first["loc"][1:]})
    log.warning("%s %s was refused: %s", request.method, ascii(request.url.path)[:100], words)
    return answer_of(422, words)


def middleware(known: Known) -> list[Middleware]:
    """For Gradio's app. `known` may be filled after this call, before the first request."""
    return [Middleware(BadRequests, known=known)]


HANDLERS = {RequestValidationError: unfit}  # for Gradio's app
