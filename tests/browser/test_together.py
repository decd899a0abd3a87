"""Pictures of one kind below each other share their x: a column stands for one position in all of them."""

import pytest

from explorer.export import palette
from tests.browser.bare import bare_player
from tests.browser.test_charts import PROMPT, WORDS, grid, story
from visualizers.registry import deltas
from visualizers.scene.view import Header

BODY = "<main style='height: 300px'></main><main style='height: 300px'></main>"
SHOW = """([palette, head, changes]) => {
  window.scenes = [];
  document.querySelectorAll("main").forEach((element, i) => {
    const together = () => scenes.filter(other => other !== scenes[i]);
    scenes.push(new DecodingPlayer.Scene(element, {palette, together}));
    scenes[i].reset(head);
    scenes[i].feed(changes);
  });
}"""
STAND = """async steps => {
  scenes.forEach((scene, i) => scene.show(steps[i]));
  const waiting = () => scenes.some(scene => scene.waiting);
  const quiet = done => waiting() ? requestAnimationFrame(() => quiet(done)) : setTimeout(done, 30);
  await new Promise(quiet);
  return scenes.map(scene => {
    const {left, columnWidth, lo, columns} = scene.view;
    return [left, columnWidth, lo, columns, scene.history.front(scene.step()).x];
  });
}"""


@pytest.fixture(scope="module")
def opened(chromium):
    with bare_player(chromium, BODY, viewport={"width": 900, "height": 700}) as made:
        yield made


@pytest.mark.parametrize("view", ["entropy", "dependencies", "parallel_grid"])
def test_a_column_is_one_position_in_both(opened, view):
    page, errors = opened
    steps = grid(60) if view == "parallel_grid" else story(90)
    head, changes = deltas(view, Header(PROMPT, dict(enumerate(WORDS))), steps)
    page.evaluate(SHOW, [palette.palette(), head, changes])
    (*one, ahead), (*other, behind) = page.evaluate(STAND, [len(steps) - 30, len(steps) - 33])
    assert one == other and ahead > behind >= one[2]
    (*one, ahead), (*other, behind) = page.evaluate(STAND, [len(steps) - 33, len(steps) - 30])
    assert one == other and behind > ahead >= one[2]  # whichever of them goes ahead
    (*one, ahead), (*other, behind) = page.evaluate(STAND, [len(steps) - 1, 3])
    assert one[2] > behind >= other[2]  # one that is far behind still shows its own front
    page.evaluate("scenes[0].hand = {follow: false, lo: 1, columns: 8, top: null}")
    (*one, _), (*other, own) = page.evaluate(STAND, [len(steps) - 1, len(steps) - 20])
    assert (
        one[2:] == [1, 8] and other[2] <= own < other[2] + other[3]
    )  # a window moved by hand moves no other
    assert errors == []
