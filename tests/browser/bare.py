"""The player alone on an empty page: no server, no app, only its scripts and the frames that it draws in."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

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

# What the path of a trace draws, in units of the data: the corners of each line or area, or the middle of
# each symbol. Paths are written in tenths of a pixel.
DRAWN = """() => {
  window.drawnBy = (scene, { panel, d, radius, polygons }) => {
    const { range, columnWidth } = scene.view, { y0, y1, heightPx } = panel;
    const data = ([x, y]) => [range[0] + x / columnWidth, y0 + (y / heightPx) * (y1 - y0)];
    const middle = all => (Math.min(...all) + Math.max(...all)) / 2;
    return d.split("M").slice(1).map(piece => {
      const corners = [...piece.matchAll(/([-.\\d]+) ([-.\\d]+)/g)].map(([, x, y]) => [+x, +y]);
      if (!radius) return corners.map(data);
      const [[x, y]] = corners; // of a disc, where its outline begins
      return data(polygons ? [0, 1].map(way => middle(corners.map(one => one[way]))) : [x + radius, y]);
    });
  };
}"""


def handed(evaluate: Callable, script: str, *given: Any) -> Any:
    """`evaluate` of a page, to which a value goes as text: Playwright would look at each number of a picture
    three times, which takes longer than to draw it.
    """
    if not given:
        return evaluate(script)
    return evaluate(f"text => ({script})(JSON.parse(text))", json.dumps(given[0]))


@contextmanager
def bare_player(chromium, body: str, **options) -> Iterator[tuple]:
    """(page with `body` and the player, the list of its script errors so far); closed at the end."""
    page, errors = chromium.new_page(**options), []
    page.evaluate = partial(handed, page.evaluate)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content(body)
    makes_elements = page_files.page_scripts()[0]
    for script in [makes_elements, *page_files.drawing_scripts()]:
        page.add_script_tag(content=page_files.text(script))
    page.evaluate(FRAMED, [scene_html(), prose_html()])
    page.evaluate(DRAWN)
    page.add_style_tag(content=palette.css())
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    page.add_style_tag(path=page_files.ASSETS / "web" / "player" / "player.css")
    yield page, errors
    page.close()
