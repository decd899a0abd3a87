"""The page's own files: how they are served, and how the first picture gets into the HTML that Gradio sends.

Serves a fixed list of files and nothing else; fetches nothing from elsewhere. Knows nothing of runs.
"""

import functools
import gzip
import hashlib
import json
import mimetypes
import re
from pathlib import Path

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

ASSETS = Path(__file__).resolve().parent.parent / "assets"
PREFIX = "explorer-files"  # names carry no suffix: Gradio would compress suffixed files anew at every request
PLOTLY = "plotly-basic.min.js"


@functools.cache
def files() -> dict[str, Path]:
    """Served name -> file: style sheet, the page's scripts, the player, and plotly's basic build.

    It draws scatter, bar and pie, and starts four times as fast as the whole one in plotly's Python package.
    """
    own = [path for folder in ("page", "player") for path in sorted((ASSETS / folder).glob("*.*s"))]
    return {served(path): path for path in [*own, ASSETS / "vendor" / PLOTLY]}


def served(path: Path) -> str:
    """The name a file is served under: its folder and name in letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", f"{path.parent.name}-{path.name}".lower())


def page_scripts() -> list[Path]:
    """The page's own scripts: what all share first, what starts it last, between them no order."""
    last = {"base.js": -1, "app.js": 1}
    own = [path for path in files().values() if path.parent.name == "page" and path.suffix == ".js"]
    return sorted(own, key=lambda path: last.get(path.name, 0))


@functools.cache
def content(name: str) -> tuple[bytes, str]:
    """Bytes and short hash of a served file."""
    data = files()[name].read_bytes()
    return data, hashlib.sha256(data).hexdigest()[:12]


@functools.cache
def packed(name: str) -> bytes:
    """The same, compressed for readers on another machine."""
    return gzip.compress(content(name)[0], 5)


def palette() -> dict:
    """The palette that Python and the browser share."""
    return json.loads((ASSETS / "palette.json").read_text())


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
    surfaces = palette()["surface"]
    rules = "".join(
        f":root[data-theme={theme}]{{color-scheme:{theme};"
        + "".join(f"--{k}:{v};" for k, v in colours.items())
        + "}"
        for theme, colours in surfaces.items()
    )
    theme = (
        "const t=(()=>{try{return localStorage.getItem('explorer-theme')}catch{}})();document.documentElement"
        ".dataset.theme=t||(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light');"
    )
    sheets = [path for path in files().values() if path.suffix == ".css"]
    links = "".join(f'<link rel="stylesheet" href="{address(path)}">' for path in sheets)
    return f"{links}<style>{rules}</style><script>{theme}</script>"


def body(first: dict) -> str:
    """The root, the data, and the scripts: our own first, so that a frame shows while plotly is read."""
    data = json.dumps(first, separators=(",", ":")).replace("<", "\\u003c")
    own = page_scripts()
    rest = [path for path in files().values() if path not in own and path.suffix == ".js"]
    tag = '<script src="{}"></script>'.format
    return "".join(
        [
            '<div id="explorer"></div>',
            f'<script type="application/json" id="explorer-data">{data}</script>',
            *(tag(address(path)) for path in own),
            *(tag(address(path)) for path in sorted(rest, key=lambda p: p.name != PLOTLY)),
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
            page = self.add(b"".join(chunks))
            kept = [(k, v) for k, v in started["headers"] if k.lower() != b"content-length"]
            started["headers"] = [
                *kept,
                (b"content-length", str(len(page)).encode()),
                (b"cache-control", b"no-store"),
            ]
            await send(started)
            await send({"type": "http.response.body", "body": page})

        await self.app(scope, receive, hold)

    def add(self, page: bytes) -> bytes:
        """`page` with our head before its scripts and our body before Gradio's element; others unchanged."""
        if b"<gradio-app" not in page or b"<head>" not in page:
            return page
        # Gradio's front end waits for our first picture: its start keeps the browser busy for a second.
        page = re.sub(
            rb'<script type="module" crossorigin src="([^"]+)"></script>',
            rb'<link rel="modulepreload" crossorigin href="\1" id="explorer-next">', page, count=1,
        )  # fmt: skip
        page = page.replace(b"<head>", b"<head>" + self.head, 1)
        return page.replace(b"<gradio-app", self.body + b"<gradio-app", 1)
