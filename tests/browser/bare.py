"""The player alone on an empty page: no server, no app, only its scripts."""

from collections.abc import Iterator
from contextlib import contextmanager

from explorer.export import page_files


@contextmanager
def bare_player(chromium, body: str, **options) -> Iterator[tuple]:
    """(page with `body` and the player, the list of its script errors so far); closed at the end."""
    page, errors = chromium.new_page(**options), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content(body)
    for script in page_files.drawing_scripts():
        page.add_script_tag(content=page_files.text(script))
    page.add_style_tag(content=page_files.colours())
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    page.add_style_tag(path=page_files.ASSETS / "web" / "player" / "player.css")
    yield page, errors
    page.close()
