"""Serves our own files and those of Gradio's front end, and inserts the first picture into Gradio's HTML.

Only a fixed list of files is served, and nothing is fetched from elsewhere.
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
from explorer.page import lighter

TITLE = "Decoding Explorer"
ABOUT = (
    "Watch a language model decode: several strategies side by side, step by step, every candidate and what "
    "it cost."
)
PREVIEW = page_files.ASSETS / "web" / "preview.png"  # 1200 x 630 pixels, shown by messengers beside a link
CARD = re.compile(rb'<meta\s+(?:property="og:|name="twitter:)[^>]*>\s*')  # Gradio's own link preview
# Where Gradio's calls go: it knows no path that a proxy has stripped; the page is always at the app's root.
ROOT = re.compile(rb'const root = "[^"\n]*";')
HERE = rb'const root = gradio_config.root = new URL(".", location.href).href.replace(/\\/$/, "");'
PREFIX = "explorer-files"  # names have no suffix: Gradio would compress files with one at every request
FRONT = "assets"  # the path under which Gradio's page requests its scripts, style sheets and fonts
FRONT_END = Path(gr.__file__).parent / "templates" / "frontend" / FRONT
PAGES_KEPT = 8  # of 0.8 MB each
ADDRESSING = (b"x-forwarded-host", b"x-forwarded-proto", b"x-gradio-server")  # headers that set the address
CACHE_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}  # for addresses that contain a hash


@functools.cache
def files() -> dict[str, tuple[str, list[Path]]]:
    """Served name -> media type and files: style sheets, the page's scripts, the player, and the picture of
    link previews. Files of a kind are joined, since each request costs browser and app some milliseconds.
    """
    return {
        "styles": ("text/css", page_files.sheets()),
        "page": ("text/javascript", page_files.page_scripts()),
        "player": ("text/javascript", page_files.drawing_scripts()),
        "preview": ("image/png", [PREVIEW]),
    }


@functools.cache
def content(name: str) -> tuple[bytes, str]:
    """What is served under a name, and a short hash of it; in text, comments say where each file begins."""
    media_type, paths = files()[name]
    parts = [page_files.content(path) for path in paths]
    if media_type.startswith("text/"):
        heads = [f"/* {path.parent.name}/{path.name} */\n".encode() for path in paths]
        parts = [head + part for head, part in zip(heads, parts, strict=True)]
    data = b"\n".join(parts)
    return data, hashlib.sha256(data).hexdigest()[:12]


@functools.cache
def gzipped(source: Path | str) -> bytes:
    """A file of Gradio's front end, or what is served under a name, compressed once."""
    return gzip.compress(lighter.content(source) if isinstance(source, Path) else content(source)[0], 5)


def takes_gzip(request: Request) -> bool:
    """Whether the client accepts compressed content."""
    return "gzip" in request.headers.get("accept-encoding", "")


def is_local(request: Request) -> bool:
    """Whether the client is on this machine, where compressing takes longer than sending."""
    return request.client is not None and request.client.host in ("127.0.0.1", "::1")


def serve(request: Request) -> Response:
    """Answers with our files of one kind. Their address contains a hash, so browsers may cache them."""
    name = request.path_params["name"]
    if name not in files():
        return Response("There is no such file.", status_code=404, media_type="text/plain")
    media_type = files()[name][0]
    if takes_gzip(request) and not is_local(request):
        return compressed_response(name, media_type)
    return Response(content(name)[0], media_type=media_type, headers=CACHE_FOREVER)


def compressed_response(source: Path | str, media_type: str | None) -> Response:
    """Answers with what `gzipped` compresses."""
    headers = {**CACHE_FOREVER, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(gzipped(source), media_type=media_type, headers=headers)


@functools.cache
def front_end() -> dict[str, Path]:
    """Maps the names of Gradio's front-end files to their paths."""
    return {path.name: path for path in FRONT_END.iterdir()}


def serve_front_end(request: Request) -> Response:
    """Answers with a file of Gradio's front end. Its name contains a hash, so browsers may cache it, and text
    is compressed only once. Gradio itself would compress it at every request, a second of computing per
    visit, and browsers would request it again at every visit.
    """
    path = front_end().get(request.path_params["name"])
    if path is None:
        return Response("There is no such file.", status_code=404, media_type="text/plain")
    if path.suffix not in (".js", ".css"):
        return FileResponse(path, headers=CACHE_FOREVER)
    media_type = mimetypes.guess_type(path.name)[0]
    if takes_gzip(request):  # also locally: Gradio would compress an answer without an encoding
        return compressed_response(path, media_type)
    return Response(lighter.content(path), media_type=media_type, headers=CACHE_FOREVER)


def routes() -> list[Route]:
    """The routes of these files, for Gradio's app."""
    return [Route(f"/{PREFIX}/{{name}}", serve), Route(f"/{FRONT}/{{name}}", serve_front_end)]


def middleware(first: dict) -> list[Middleware]:
    """Middleware that inserts our head and body into Gradio's page. `first`: data of the first picture."""
    return [Middleware(Inject, head=head(), body=body(first))]


def address(name: str) -> str:
    """The address of what is served under a name, relative to the page and with its hash."""
    return f"{PREFIX}/{name}?{content(name)[1]}"


def head() -> str:
    """Style sheets, palette and theme, so that all are known before the first paint."""
    link = f'<link rel="stylesheet" href="{address("styles")}">'
    return f"{link}<style>{palette.css()}</style><script>{page_files.THEME}</script>"


def preview_tags(origin: str) -> str:
    """The meta tags of the link preview for a page at `origin`: title, description and picture."""
    picture = origin + address("preview")
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
    """The root element, the data, and the scripts. The page's scripts come before the player's, so that the
    frame of the page appears while the player is still being loaded.
    """
    tag = '<script src="{}"></script>'.format
    return "".join(
        [
            '<div id="explorer" class="explorer"></div>',
            f'<script type="application/json" id="explorer-data">{page_files.json_in_html(first)}</script>',
            tag(address("page")),
            tag(address("player")),
            "<script>ExplorerPage.draw()</script>",
        ]
    )


class Inject:
    """ASGI middleware that inserts our parts into the one HTML page and leaves all other answers unchanged.

    The page is cached per address at which the app is requested: Gradio takes a third of a second to describe
    all its components, which are the same for every visitor.
    """

    def __init__(self, app, head: str, body: str):
        self.app, self.head, self.body = app, head.encode(), body.encode()
        self.cache: dict[tuple, Response] = {}

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http" or scope["path"] not in ("", "/") or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        small = takes_gzip(request) and not is_local(request)
        proxy = [header for header in scope["headers"] if header[0].lower() in ADDRESSING]
        key = (str(request.base_url), small, *proxy)
        answer = None if request.url.query else self.cache.get(key)
        if answer is None:
            answer = await self.make_page(scope, receive, small)
            if answer.status_code == 200 and not request.url.query:
                if len(self.cache) >= PAGES_KEPT:  # a client can claim any proxy address
                    self.cache.clear()
                self.cache[key] = answer
        await answer(scope, receive, send)

    async def make_page(self, scope, receive, small: bool) -> Response:
        """Fetches Gradio's page and inserts our parts; compresses it if `small`."""
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
        """Inserts our head before the page's scripts and our body before Gradio's element.

        Anything that is not Gradio's page is returned unchanged.
        """
        if b"<gradio-app" not in page or b"<head>" not in page:
            return page
        page = ROOT.sub(HERE, CARD.sub(b"", page)).replace(b'href="/manifest', b'href="./manifest')
        # Gradio's front end starts after our first picture: starting it keeps the browser busy for a second.
        page = re.sub(
            rb'<script type="module" crossorigin src="([^"]+)"></script>',
            rb'<link rel="modulepreload" crossorigin href="\1" id="explorer-next">',
            page,
            count=1,
        )
        page = page.replace(b"<head>", b"<head>" + preview_tags(origin).encode() + self.head, 1)
        return page.replace(b"<gradio-app", self.body + b"<gradio-app", 1)
