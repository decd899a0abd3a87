"""The page's own files and the order in which a page includes them.

Fetches nothing from elsewhere.
"""

import functools
import json
from pathlib import Path

from decoders.packages import assets

ASSETS = assets()


@functools.cache
def own() -> list[Path]:
    """All style sheets and scripts of the page and the player."""
    return [path for folder in ("page", "player") for path in sorted((ASSETS / "web" / folder).glob("*.*s"))]


def sheets() -> list[Path]:
    """The style sheets."""
    return [path for path in own() if path.suffix == ".css"]


def page_scripts() -> list[Path]:
    """The page's own scripts: first the base that all others use, last the one that starts the page."""
    last = {"base.js": -1, "app.js": 1}
    scripts = [path for path in own() if path.parent.name == "page" and path.suffix == ".js"]
    return sorted(scripts, key=lambda path: last.get(path.name, 0))


def drawing_scripts() -> list[Path]:
    """The player's scripts, in the order in which they are loaded."""
    return [path for path in own() if path.parent.name == "player" and path.suffix == ".js"]


# Each of our scripts is wrapped in a function of what they share: `page`, `player`, and `h`, which makes
# elements. All other names in a script are local to it.
BEGIN = b'(function (page, player, h) { "use strict"; '
END = b"})(window.ExplorerPage ??= {}, window.DecodingPlayer ??= { drawers: {} }, ExplorerPage.h);\n"


def content(path: Path) -> bytes:
    """A file as browsers get it: our scripts are wrapped in a function on one line; others are unchanged."""
    written = path.read_bytes()
    if path.suffix == ".js" and ASSETS in path.parents:
        return BEGIN + written.replace(b"\r\n", b"\n") + END
    return written


def text(path: Path) -> str:
    """The content of a style sheet or a script as text, see `content`."""
    return content(path).decode()


THEME = (  # a script that determines the theme before anything is painted
    "const t=(()=>{try{return localStorage.getItem('explorer-theme')}catch{}})();document.documentElement"
    ".dataset.theme=t||(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light');"
)


def json_in_html(value: object) -> str:
    """`value` as JSON that is safe inside a script element, whatever its strings contain."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
