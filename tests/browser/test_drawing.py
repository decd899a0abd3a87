"""When and how a picture is drawn: ahead of its frame, with words that are used again, in a steady window."""

import pytest

from explorer.export import palette
from tests.browser.bare import bare_player

WIDTH, HEIGHT = 1000, 300
MAKE = """([palette, head]) => {
  window.scene = new DecodingPlayer.Scene(document.querySelector("main"), { palette, together: () => [] });
  scene.reset(head);
  window.quiet = () => new Promise((done) => {
    const look = () => (scene.waiting ? requestAnimationFrame(look) : setTimeout(done, 30));
    look();
  });
  return quiet();
}"""
HEAD = {"column": 31, "wide": 46, "tightest": 14, "row": 24, "left": 52, "right": 60, "clip": True}
# Gives the scene one step after the other, each drawn before the next: what `look` says of each.
STEPS = """async ([steps, look]) => {
  const seen = [], say = new Function("return " + look);
  for (const ops of steps) {
    scene.feed([{ step: scene.history.last + 1, ops }]);
    await quiet();
    seen.push(say());
  }
  return seen;
}"""


def row(y: int, columns: list[int]) -> list[dict]:
    """The ops of a row of a grid whose front is its first column."""
    place = {"kind": "cell", "y": y, "w": 1, "h": 1, "fill": "filled", "state": "accepted"}
    cells = [{"id": f"{x}-{y}", "x": x, "text": "so", **place} for x in columns]
    band = {"id": f"r{y}", "kind": "row", "y0": y - 0.5, "y1": y + 0.5, "text": f"iter {y}"}
    return [*cells, band, {"front": [columns[0], y + 0.6]}]


@pytest.fixture
def picture(chromium):
    """picture(head): a page with one picture that has had no step."""
    body = f"<main style='width: {WIDTH}px; height: {HEIGHT}px'></main>"
    with bare_player(chromium, body) as (page, errors):

        def make(head: dict):
            page.evaluate(MAKE, [palette.palette(), head])
            return page

        yield make
        assert errors == []


FRONTS = [3, 12, 22, 21, 24, 5, 33, 8, 40, 2, 41, 39, 60, 1]


def test_a_steady_window_is_as_wide_as_it_has_been_and_widens_by_thirds(picture):
    steps = [row(y, [x]) for y, x in enumerate(FRONTS)]
    page = picture({**HEAD, "steady": True})
    columns = page.evaluate(STEPS, [steps, "scene.view.columns"])
    assert columns == sorted(columns)
    for before, after in zip(columns, columns[1:], strict=False):
        assert after == before or after >= 4 / 3 * before
    for step, front in enumerate(
        FRONTS
    ):  # whatever was shown before, a step has one picture, with its front in it
        page.evaluate("s => { scene.show(s); return quiet(); }", step)
        lo, shown = page.evaluate("[scene.view.lo, scene.view.columns]")
        assert shown == columns[step] and lo <= front < lo + shown


def test_words_that_stay_in_sight_are_not_made_again(picture):
    """Rows scroll, and every word is where its cell is now."""
    page = picture(HEAD)
    page.evaluate(
        "window.made = 0; const svg = DecodingPlayer.svg;"
        "DecodingPlayer.svg = (tag, ...rest) => (made += tag === 'text', svg(tag, ...rest))"
    )
    rows = [row(y, [1, 2, 3, 4]) for y in range(40)]
    tops = page.evaluate(STEPS, [rows, "[scene.view.panels[''].y0, made]"])
    assert tops[-1][0] > 20  # it has scrolled, by many rows
    assert tops[-1][1] <= 4 * len(rows)  # and each word was made once
    apart = page.evaluate("""() => {
      const { top, left } = scene.frame.getBoundingClientRect(), { view } = scene;
      const words = [...scene.texts.querySelectorAll(".dp-mono")].map((one) => one.getBoundingClientRect());
      const cells = scene.drawn.filter((mark) => mark.kind === "cell" && mark.y >= view.panels[""].y0);
      return cells.map(({ x, y }) => Math.min(...words.map((box) => Math.hypot(
        (box.left + box.right) / 2 - left - view.px(x), (box.top + box.bottom) / 2 - top - view.py(y, {})))));
    }""")
    assert len(apart) > 20 and max(apart) < 3


def test_what_has_come_is_drawn_before_its_frame_and_counts_as_painted_after_it(picture):
    page = picture(HEAD)
    found = page.evaluate(
        """async (steps) => {
          await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
          scene.feed([{ step: 0, ops: steps[0] }]);
          DecodingPlayer.drawAhead();
          const first = [scene.waiting, scene.drawn.length, scene.paintedStep];
          scene.feed([{ step: 1, ops: steps[1] }]);
          DecodingPlayer.drawAhead(); // once a frame
          const second = [scene.waiting, scene.drawn.length];
          await quiet();
          return [first, second, [scene.waiting, scene.drawn.length, scene.paintedStep]];
        }""",
        [row(0, [1, 2]), row(1, [1, 2])],
    )
    assert found == [[False, 3, -1], [True, 3], [False, 6, 1]]
