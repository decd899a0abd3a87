"""Arcs and hooks can be pointed at and picked, by mouse, touch and keys; they say from where to where."""

import pytest

from tests.browser.bare import bare_player
from tests.browser.test_charts import grid, show, story

VIEWS = [("dependencies", story(24), 20, "arc"), ("parallel_grid", grid(16), 15, "hook")]
each_view = pytest.mark.parametrize(("view", "steps", "step", "kind"), VIEWS, ids=[v[0] for v in VIEWS])
# Links of this kind with a point of theirs, on the screen, that is nearer to them than to all others.
LINKS = """kind => {
  scene.options.onPick = mark => (window.picked = mark);
  const view = scene.view, {boxOf, linkPixels, linkDistance} = DecodingPlayer;
  const cells = scene.drawn.filter(m => m.kind === 'cell').map(m => boxOf(m, view));
  const links = scene.drawn.filter(m => m.kind === kind);
  const free = (mark, [x, y]) => x > view.left + 9 && x < view.size.width
    && links.every(other => other === mark || linkDistance(other, view, x, y) > 3)
    && cells.every(([x0, y0, x1, y1]) => x < x0 - 1 || x > x1 + 1 || y < y0 - 1 || y > y1 + 1);
  return links.map(mark => [mark, linkPixels(mark, view).find(at => free(mark, at))]).filter(([, at]) => at);
}"""
COUNT = """to => scene.drawn.filter(m => m.to && JSON.stringify(m.to) === JSON.stringify(to)).length"""


@pytest.fixture(scope="module")
def opened(chromium):
    """One page with the player on it, and the list of its errors."""
    with bare_player(chromium, "<main style='position: fixed; inset: 0'></main>", has_touch=True) as made:
        yield made


def end(page, which: str):
    """The end of the link (or the place of the mark) that is hovered or picked."""
    return page.evaluate(f"(m => m && (m.to || {{node: m.node, cell: m.cell}}))({which})")


@each_view
@pytest.mark.parametrize("width", [1180, 390])
def test_a_link_is_hovered_and_picked_where_it_is_drawn(opened, view, steps, step, kind, width):
    page, errors = opened
    show(page, view, steps, step, width)
    links = page.evaluate(LINKS, kind)
    assert len(links) >= 3
    for mark, (x, y) in links[-3:]:
        page.mouse.move(x, y)
        assert page.evaluate("scene.hovered && scene.hovered.id") == mark["id"]
        card = page.locator(".dp-card").inner_text()
        assert mark["hover"][0] in card and " → " in card
        page.mouse.click(x, y)
        assert end(page, "window.picked") == mark["to"]
    page.evaluate("window.picked = null; DecodingPlayer.hideCard(scene)")
    page.touchscreen.tap(x, y)
    page.get_by_role("button", name="Inspect").click()
    assert end(page, "window.picked") == mark["to"]
    assert errors == []


@each_view
def test_keys_walk_the_links_that_lead_to_a_mark(opened, view, steps, step, kind):
    page, _ = opened
    show(page, view, steps, step)
    links = [mark for mark, _ in page.evaluate(LINKS, kind)]
    to = links[-1]["to"]
    mine = page.evaluate(COUNT, to)
    page.evaluate(
        "to => DecodingPlayer.showCard(scene, scene.drawn.find(m => m.kind === 'cell' &&"
        " (to.node === undefined ? String(m.cell) === String(to.cell) : m.node === to.node)))",
        to,
    )
    start = page.evaluate("scene.hovered.id")
    page.locator(".dp-frame").focus()
    for _ in range(mine):
        page.keyboard.press("l")
        assert page.evaluate("scene.hovered.kind") == kind and end(page, "scene.hovered") == to
        assert " → " in page.locator(".dp-unseen").first.inner_text()
    page.keyboard.press("Enter")
    assert end(page, "window.picked") == to
    page.keyboard.press("l")
    assert page.evaluate("scene.hovered.id") == start
