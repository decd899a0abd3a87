"""Access control: only pages that the app served itself, at an address for which it was started, may send
requests. If visitors may load any model, they also need the app's token.

A browser lets every website send requests to a server on the same machine, and a website can point a name of
its own at that machine (DNS rebinding). So each request must name one of our hosts, a browser's request must
come from a page of the same address, and a body must be JSON, which no other website can send without
permission. Only the upload of a file is a form, which every website can send; for it, the browser must
confirm that one of our pages sends it.
"""

import ipaddress
import os
import re
import secrets
import socket
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from decoders.refusal import Refusal
from explorer.token_page import token_page

LOOPBACK = ("127.0.0.1", "localhost", "::1")  # addresses that only this machine can reach
EVERYWHERE = ("0.0.0.0", "::")
READING = ("GET", "HEAD")
METHODS = (*READING, "POST", "OPTIONS", "DELETE")  # DELETE ends an MCP session
OPEN_PATH = "/gradio_api/startup-events"  # Gradio requests it at launch, without a token
UPLOAD_PATH = "/gradio_api/upload"  # takes a form with a file
TOKEN, COOKIE = "token", "explorer-token"
TOKEN_VARIABLE = "EXPLORER_TOKEN"  # the environment variable with which the operator can choose it
SPACES = "https://huggingface.co"  # shows the app of a Space in a frame
PORTS = {"http": 80, "https": 443}
# A host with or without a port. `urlsplit` would take [::1].evil.example for ::1.
AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s\[\]:@/?#\\]+)(:(?P<port>[0-9]{0,5}))?")

FOREIGN_HOST = (
    "This app does not answer at {}: open the address that it printed, or start it with --allow-origin."
)
FOREIGN_PAGE = (
    "A page of another website sent this request; only the app's own pages may. --allow-origin allows others."
)
NOT_JSON = "The app accepts only JSON: send it with Content-Type: application/json."
NOT_OURS = "Only the app's own pages may upload a file: open it in the tab Traces."
NO_METHOD = "The app answers only GET, POST and DELETE."
NO_TOKEN = (
    "This app needs its token: open the whole address that it printed, or send Authorization: Bearer TOKEN."
)


def authority(address: str) -> str | None:
    """`host` or `host:port` of an origin, in lower case, without the scheme's default port; None if it is not
    the address of a web page.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    named = AUTHORITY.fullmatch(parts.netloc)
    if parts.scheme not in PORTS or named is None:
        return None
    host, port = named["host"].lower(), int(named["port"] or PORTS[parts.scheme])
    return host if port == PORTS[parts.scheme] else f"{host}:{port}"


def hostname(host: str) -> str:
    """The host name in a Host header, without port and brackets; empty if it is malformed."""
    named = AUTHORITY.fullmatch(host)
    return named["host"].lower().strip("[]") if named else ""


def is_number(name: str) -> bool:
    """Whether a host name is an IP address, which no website can point elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Access:
    """The addresses at which the app answers, and its token."""

    def __init__(
        self, listens: str = LOOPBACK[0], origins: Iterable[str] = (), token: str | None = None
    ) -> None:
        """`listens`: the address that the app listens on; `origins`: further addresses under which its pages
        are opened, such as a proxy's; `token`: None for an app that anybody who can reach it may use.

        Raises Refusal with one sentence for an invalid origin.
        """
        self.token = token
        self.names = {listens.lower().strip("[]"), *LOOPBACK}
        self.everywhere = listens in EVERYWHERE
        if self.everywhere:
            self.names.add(socket.gethostname().lower())  # the full name would need a name server
        self.origins: set[str] = set()
        self.framed_by = ["'self'"]
        self.allow(*origins)
        if space := os.environ.get("SPACE_HOST"):  # set when the app runs on Hugging Face
            self.allow(*(f"https://{host.strip()}" for host in space.split(",")))
            self.framed_by.append(SPACES)

    def allow(self, *origins: str) -> None:
        """Also accepts requests of pages at these addresses: a proxy's, or the public link made by Gradio."""
        for origin in origins:
            host = authority(origin)
            if host is None:
                raise Refusal(
                    f"--allow-origin takes an address such as https://demo.example.org, not {origin!r}."
                )
            self.origins.add(host)
            self.names.add(hostname(host))
            self.framed_by.append(f"{urlsplit(origin).scheme}://{host}")

    def answers_as(self, host: str) -> bool:
        """Whether a Host header names one of the app's addresses, at any port: a tunnel has its own."""
        name = hostname(host)
        return name in self.names or (self.everywhere and is_number(name))

    def is_own(self, origin: str, host: str) -> bool:
        """Whether a page of `origin` may send requests to the app at `host`."""
        asked = authority(origin)
        return asked is not None and (asked in self.origins or asked == host.lower())

    def knows(self, given: str | None) -> bool:
        """Whether this is the token, or no token is needed."""
        return self.token is None or secrets.compare_digest((given or "").encode(), self.token.encode())


def refusal(access: Access, method: str, headers: Headers, path: str = "") -> tuple[int, str] | None:
    """Status and sentence for a request that comes neither from one of our pages nor from a program."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if not access.answers_as(host):
        return 421, FOREIGN_HOST.format(repr(host[:100]))
    if method not in METHODS:
        return 405, NO_METHOD
    if origin is not None and not access.is_own(origin, host):
        return 403, FOREIGN_PAGE
    site = headers.get("sec-fetch-site")
    elsewhere = site not in (None, "none", "same-origin")
    opens = method in READING and headers.get("sec-fetch-mode") == "navigate"  # a link to the app
    if elsewhere and origin is None and not opens:
        return 403, FOREIGN_PAGE
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method == "POST" and path == UPLOAD_PATH and kind == "multipart/form-data":
        # Every browser sends the origin of a posted form, and no website can forge it.
        return None if origin is not None and site in (None, "same-origin") else (403, NOT_OURS)
    if method == "POST" and kind != "application/json":
        return 415, NOT_JSON
    return None


def chosen_token() -> str:
    """The token of an app that needs one: from the environment, otherwise a new one of 192 bits.

    Raises Refusal with one sentence if the chosen token would have to be escaped in an address.
    """
    token = os.environ.get(TOKEN_VARIABLE) or secrets.token_urlsafe(24)
    if not re.fullmatch(r"[A-Za-z0-9._~-]{8,200}", token):
        raise Refusal(f"{TOKEN_VARIABLE} takes 8 to 200 letters, digits, dots, dashes and underscores.")
    return token


class Guard:
    """The outermost ASGI middleware: refuses requests for which there is a `refusal` or that lack the
    token.
    """

    def __init__(self, app: ASGIApp, access: Access):
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            answer = self.refused(scope) or self.app
            await answer(scope, receive, self.marked(send))
        else:  # the app uses no web sockets
            await send({"type": "websocket.close", "code": 1008})

    def refused(self, scope: Scope) -> Response | None:
        """The answer to a request that must not reach the app; None for all others."""
        headers, method = Headers(scope=scope), scope["method"]
        if refused_with := refusal(self.access, method, headers, scope["path"]):
            return JSONResponse({"detail": refused_with[1]}, status_code=refused_with[0])
        if self.access.token is None or scope["path"] == OPEN_PATH:
            return None
        query, cookie = QueryParams(scope["query_string"].decode("latin-1")), cookie_name(headers)
        page = scope["path"] in ("", "/") and method in READING
        if TOKEN in query and self.access.knows(query[TOKEN]):
            return self.remembered(scope, query, cookie) if page else None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.access.knows(given.strip()):
            return None
        if self.access.knows(cookies(headers).get(cookie)):
            return None
        if page:
            return HTMLResponse(token_page(wrong=bool(query.get(TOKEN))), status_code=401)
        return JSONResponse({"detail": NO_TOKEN}, status_code=401)

    def remembered(self, scope: Scope, query: QueryParams, cookie: str) -> Response:
        """Redirects to the same page without the token in its address; the browser keeps it as a cookie."""
        rest = urlencode([(name, value) for name, value in query.multi_items() if name != TOKEN])
        # a relative address, since behind a proxy the app may be in a folder
        answer = RedirectResponse(f"./?{rest}" if rest else "./", status_code=303)
        answer.set_cookie(cookie, self.access.token, httponly=True, samesite="lax")
        return answer

    def marked(self, send: Send) -> Send:
        """Wraps `send` to add the headers that tell browsers which sites may embed the answer, and its
        type.
        """
        frames = " ".join(self.access.framed_by)
        policy = f"frame-ancestors {frames}; object-src 'none'; base-uri 'self'; form-action 'self'"

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", policy)
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "same-origin"
            await send(message)

        return sent


def cookie_name(headers: Headers) -> str:
    """The cookie's name, one per port: browsers send the cookies of a host to all of its ports."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}-{port}" if port.isdigit() else COOKIE


def cookies(headers: Headers) -> dict[str, str]:
    """The cookies of a request; empty if they cannot be parsed."""
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}
