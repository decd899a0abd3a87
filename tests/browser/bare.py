"""The player alone on an empty page: no server, no app, only its scripts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ASSETS = Path(__file__).resolve().parents[2] / "assets"


@contextmanager
def bare_player(chromium, body: str, **options) -> Iterator[tuple]:
    """(page with `body` and the player, the list of its script errors so far); closed at the end."""
    page, errors = chromium.new_page(**options), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content(body)
    for script in sorted((ASSETS / "web" / "player").glob("*.js")):
        page.add_script_tag(path=str(script))
    page.add_style_tag(path=str(ASSETS / "web" / "player" / "player.css"))
    yield page, errors
    page.close()
