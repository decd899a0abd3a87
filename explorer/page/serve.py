"""Serves the page's own files and those of Gradio's front end, and puts the first picture into the HTML that
Gradio sends.

Serves a fixed list of files and nothing else; fetches nothing from elsewhere. Knows nothing of runs.
"""

import functools
import gzip
import hashlib
import mimetypes
import re
from html import escape
from pathlib import Path

import gradio as gr
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from explorer.export import page_files, palette

TITLE = "Decoding Explorer"
ABOUT = (
    "Watch a language model decode: several strategies side by side, step by step, every candidate and what "
    "it cost."
)
PREVIEW = page_files.ASSETS / "web" / "preview.png"  # 1200 x 630 pixels, what messengers show beside a link
CARD = re.compile(rb'<meta\s+(?:property="og:|name="twitter:)[^>]*>\s*')  # what Gradio says of itself
PREFIX = "explorer-files"  # no suffix in names: Gradio would compress suffixed files at every request
FRONT = "assets"  # where Gradio's page looks for its scripts, style sheets and fonts
FRONT_END = Path(gr.__file__).parent / "templates" / "frontend" / FRONT
PAGES_KEPT = 8  # of 0.8 MB each
ADDRESSING = (b"x-forwarded-host", b"x-forwarded-proto", b"x-gradio-server")  # Gradio reads the address there
KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}  # for addresses that carry a hash


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
    data = page_files.content(files()[name])
    return data, hashlib.sha256(data).hexdigest()[:12]


@functools.cache
def packed(path: Path) -> bytes:
    """A file as browsers get it, compressed once."""
    return gzip.compress(page_files.content(path), 5)


def takes_gzip(request: Request) -> bool:
    """Whether whoever asks can read compressed bytes."""
    return "gzip" in request.headers.get("accept-encoding", "")


def is_local(request: Request) -> bool:
    """Whether whoever asks is on this machine, where to compress takes longer than to send."""
    return request.client is not None and request.client.host in ("127.0.0.1", "::1")


def serve(request: Request) -> Response:
    """One of our files; the address carries its hash, so the browser may keep it."""
    name = request.path_params["name"]
    if name not in files():
        return Response("There is no such file.", status_code=404, media_type="text/plain")
    path = files()[name]
    if takes_gzip(request) and not is_local(request):
        return compressed(path)
    return Response(content(name)[0], media_type=mimetypes.guess_type(path.name)[0], headers=KEPT)


def compressed(path: Path) -> Response:
    """A file for whoever can read compressed bytes."""
    headers = {**KEPT, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(packed(path), media_type=mimetypes.guess_type(path.name)[0], headers=headers)


@functools.cache
def front_end() -> dict[str, Path]:
    """Name -> file of Gradio's front end."""
    return {path.name: path for path in FRONT_END.iterdir()}


def serve_front_end(request: Request) -> Response:
    """A file of Gradio's front end. Its name carries a hash, so the browser may keep it, and what is text is
    compressed once. Gradio compresses it at every request, a second of computing per visit, and a browser
    asks for it again at each.
    """
    path = front_end().get(request.path_params["name"])
    if path is None:
        return Response("There is no such file.", status_code=404, media_type="text/plain")
    if path.suffix in (".js", ".css") and takes_gzip(request):
        return compressed(path)  # on this machine too: Gradio compresses what names no encoding
    return FileResponse(path, headers=KEPT)


def routes() -> list[Route]:
    """For Gradio's app."""
    return [Route(f"/{PREFIX}/{{name}}", serve), Route(f"/{FRONT}/{{name}}", serve_front_end)]


def middleware(first: dict) -> list[Middleware]:
    """For Gradio's app: puts our head and body into its page. `first`: data of the first picture."""
    return [Middleware(Inject, head=head(), body=body(first))]


def address(path: Path) -> str:
    """A file's address relative to the page, with its hash."""
    return f"{PREFIX}/{served(path)}?{content(served(path))[1]}"


def head() -> str:
    """Style sheets, the palette, and the theme, all known before anything is painted."""
    links = "".join(f'<link rel="stylesheet" href="{address(path)}">' for path in page_files.sheets())
    return f"{links}<style>{palette.css()}</style><script>{page_files.THEME}</script>"


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
    """ASGI middleware: adds to the one HTML page, leaves everything else alone.

    The page is made once for each address under which the app is asked for: to describe all its components
    takes Gradio a third of a second, and they are the same for every visitor.
    """

    def __init__(self, app, head: str, body: str):
        self.app, self.head, self.body = app, head.encode(), body.encode()
        self.kept: dict[tuple, Response] = {}

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http" or scope["path"] not in ("", "/") or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        small = takes_gzip(request) and not is_local(request)
        proxy = [header for header in scope["headers"] if header[0].lower() in ADDRESSING]
        asked = (str(request.base_url), small, *proxy)
        answer = None if request.url.query else self.kept.get(asked)
        if answer is None:
            answer = await self.made(scope, receive, small)
            if answer.status_code == 200 and not request.url.query:
                if len(self.kept) >= PAGES_KEPT:  # whoever asks can name any proxy
                    self.kept.clear()
                self.kept[asked] = answer
        await answer(scope, receive, send)

    async def made(self, scope, receive, small: bool) -> Response:
        """Gradio's answer with what is ours, compressed if `small`."""
        started: dict = {}
        chunks: list[bytes] = []

        async def hold(message) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
            else:
                chunks.append(message.get("body", b""))

        await self.app(scope, receive, hold)
        page = self.add(b"".join(chunks), str(Request(scope).base_url))
        headers = [(k, v) for k, v in started["headers"] if k.lower() != b"content-length"]
        if small:
            page = gzip.compress(page, 5)
            headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        answer = Response(page, started["status"])
        length = (b"content-length", str(len(page)).encode())
        answer.raw_headers = [*headers, length, (b"cache-control", b"no-store")]
        return answer

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
