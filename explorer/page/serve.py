"""Serves the page's own files, and puts the first picture into the HTML that Gradio sends.

Serves a fixed list of files and nothing else; fetches nothing from elsewhere. Knows nothing of runs.
"""

import functools
import gzip
import hashlib
import mimetypes
import re
from html import escape
from pathlib import Path

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from explorer.export import page_files

TITLE = "Decoding Explorer"
ABOUT = (
    "Watch a language model decode: several strategies side by side, step by step, every candidate and what "
    "it cost."
)
PREVIEW = page_files.ASSETS / "web" / "preview.png"  # 1200 x 630 pixels, what messengers show beside a link
CARD = re.compile(rb'<meta\s+(?:property="og:|name="twitter:)[^>]*>\s*')  # what Gradio says of itself
PREFIX = "explorer-files"  # names carry no suffix: Gradio would compress suffixed files anew at every request


@functools.cache
def files() -> dict[str, Path]:
    """Served name -> file: style sheets, the page's scripts, the player, and the picture of link previews."""
    return {served(path): path for path in [*page_files.own(), PREVIEW]}


def served(path: Path) -> str:
    """The name a file is served under: its folder and name in letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", f"{path.parent.name}-{path.name}".lower())


@functools.cache
def content(name: str) -> tuple[bytes, str]:
    """Bytes and short hash of a served file."""
    data = files()[name].read_bytes()
    return data, hashlib.sha256(data).hexdigest()[:12]


@functools.cache
def packed(name: str) -> bytes:
    """The same, compressed for readers on another machine."""
    return gzip.compress(content(name)[0], 5)


def serve(request: Request) -> Response:
    """One of our files; the address carries its hash, so the browser may keep it."""
    name = request.path_params["name"]
    if name not in files():
        return Response("There is no such file.", status_code=404, media_type="text/plain")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    data = content(name)[0]
    local = request.client is not None and request.client.host in ("127.0.0.1", "::1")
    if not local and "gzip" in request.headers.get("accept-encoding", ""):
        data, headers["Content-Encoding"] = packed(name), "gzip"
    return Response(data, media_type=mimetypes.guess_type(files()[name].name)[0], headers=headers)


def routes() -> list[Route]:
    """For Gradio's app."""
    return [Route(f"/{PREFIX}/{{name}}", serve)]


def middleware(first: dict) -> list[Middleware]:
    """For Gradio's app: puts our head and body into its page. `first`: data of the first picture."""
    return [Middleware(Inject, head=head(), body=body(first))]


def address(path: Path) -> str:
    """A file's address relative to the page, with its hash."""
    return f"{PREFIX}/{served(path)}?{content(served(path))[1]}"


def head() -> str:
    """Style sheets, the palette's surfaces, and the theme, all known before anything is painted."""
    links = "".join(f'<link rel="stylesheet" href="{address(path)}">' for path in page_files.sheets())
    return f"{links}<style>{page_files.surfaces()}</style><script>{page_files.THEME}</script>"


def card(origin: str) -> str:
    """What others show of a link to the page at `origin`: title, a sentence and a picture."""
    picture = origin + address(PREVIEW)
    fields = {"title": TITLE, "description": ABOUT, "image": picture}
    graph = {**fields, "type": "website", "image:alt": "Two lanes of decoding: a beam tree and draft rounds"}
    return "".join(
        [
            f'<meta name="description" content="{ABOUT}">',
            *(f'<meta property="og:{name}" content="{escape(value)}">' for name, value in graph.items()),
            '<meta name="twitter:card" content="summary_large_image">',
        ]
    )


def body(first: dict) -> str:
    """The root, the data, and the scripts: our own first, so that a frame shows while the player is read."""
    tag = '<script src="{}"></script>'.format
    return "".join(
        [
            '<div id="explorer" class="explorer"></div>',
            f'<script type="application/json" id="explorer-data">{page_files.json_in_html(first)}</script>',
            *(tag(address(path)) for path in page_files.page_scripts()),
            *(tag(address(path)) for path in page_files.drawing_scripts()),
            "<script>ExplorerPage.draw()</script>",
        ]
    )


class Inject:
    """ASGI middleware: adds to the one HTML page, leaves everything else alone."""

    def __init__(self, app, head: str, body: str):
        self.app, self.head, self.body = app, head.encode(), body.encode()

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http" or scope["path"] not in ("", "/") or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        started: dict = {}
        chunks: list[bytes] = []

        async def hold(message) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
                return
            chunks.append(message.get("body", b""))
            if message.get("more_body"):
                return
            page = self.add(b"".join(chunks), str(Request(scope).base_url))
            kept = [(k, v) for k, v in started["headers"] if k.lower() != b"content-length"]
            started["headers"] = [
                *kept,
                (b"content-length", str(len(page)).encode()),
                (b"cache-control", b"no-store"),
            ]
            await send(started)
            await send({"type": "http.response.body", "body": page})

        await self.app(scope, receive, hold)

    def add(self, page: bytes, origin: str) -> bytes:
        """`page` with our head before its scripts and our body before Gradio's element; others unchanged."""
        if b"<gradio-app" not in page or b"<head>" not in page:
            return page
        page = CARD.sub(b"", page)
        # Gradio's front end waits for our first picture: its start keeps the browser busy for a second.
        page = re.sub(
            rb'<script type="module" crossorigin src="([^"]+)"></script>',
            rb'<link rel="modulepreload" crossorigin href="\1" id="explorer-next">',
            page,
            count=1,
        )
        page = page.replace(b"<head>", b"<head>" + card(origin).encode() + self.head, 1)
        return page.replace(b"<gradio-app", self.body + b"<gradio-app", 1)
