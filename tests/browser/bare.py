"""The player alone on an empty page: no server, no app, only its scripts and the frames that it draws in."""

from collections.abc import Iterator
from contextlib import contextmanager

from explorer.export import page_files, palette
from explorer.export.drawings import prose_html, scene_html

# Fills the element of a drawing with its frame, as a lane's HTML does it in the app.
FRAMED = """([scene, prose]) => {
  const { Scene, Chips } = DecodingPlayer;
  const framed = (element, look, html) => {
    element.classList.add(...look);
    element.innerHTML = html;
    return element;
  };
  DecodingPlayer.Scene = class extends Scene {
    constructor(element, options) {
      super(framed(element, ["dp-scene"], scene), options);
    }
  };
  DecodingPlayer.Chips = class extends Chips {
    constructor(element, options) {
      const line = ["dp-chips", "dp-chips-line"];
      super(options.oneLine ? framed(element, line, "") : framed(element, [], prose), options);
      if (options.oneLine) Object.assign(element, { role: "listbox", tabIndex: 0 });
    }
  };
}"""


@contextmanager
def bare_player(chromium, body: str, **options) -> Iterator[tuple]:
    """(page with `body` and the player, the list of its script errors so far); closed at the end."""
    page, errors = chromium.new_page(**options), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content(body)
    makes_elements = page_files.page_scripts()[0]
    for script in [makes_elements, *page_files.drawing_scripts()]:
        page.add_script_tag(content=page_files.text(script))
    page.evaluate(FRAMED, [scene_html(), prose_html()])
    page.add_style_tag(content=palette.css())
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    page.add_style_tag(path=page_files.ASSETS / "web" / "player" / "player.css")
    yield page, errors
    page.close()
