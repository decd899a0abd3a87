"""Pictures use their room, and nothing runs through their words: the player alone, on runs decoded here."""

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Commit, Forward, Propose, Step, Verdict
from decoders.trace.trace import load
from explorer.catalog import method_cards
from explorer.export import palette
from tests.browser.bare import bare_player
from tests.browser.test_charts import story
from tests.browser.test_player import lane, rounds
from tests.visualizers.views.search.test_visit_tree import planned
from visualizers.registry import deltas
from visualizers.scene.view import Header

MAKE = """async ([palette, head, fed, ended]) => {
  window.scene = new DecodingPlayer.Scene(document.querySelector("main"), {palette, together: () => []});
  scene.reset(head);
  scene.feed(fed);
  scene.end(ended);
  await quiet();
}"""
QUIET = """() => {
  window.quiet = () => new Promise(done => {
    const look = () => scene.waiting ? requestAnimationFrame(look) : setTimeout(done, 60);
    look();
  });
}"""
# Pieces of lines, in pixels, that run through the boxes of words which `wanted` names, shrunk by a pixel.
STRUCK = """wanted => {
  const { view, traces, placed } = scene, struck = [];
  const boxes = placed.filter(word => word.text.startsWith(wanted));
  for (const trace of traces.filter(trace => !trace.radius && trace.look.fill === "none")) {
    const place = { panel: trace.panel.id };
    for (const line of drawnBy(scene, trace)) for (let i = 1; i < line.length; i++) {
      const [[ax, ay], [bx, by]] = [line[i - 1], line[i]];
      for (let k = 0; k <= 20; k++) {
        const x = view.px(ax + ((bx - ax) * k) / 20), y = view.py(ay + ((by - ay) * k) / 20, place);
        for (const { text, box } of boxes)
          if (x > box[0] + 5 && x < box[2] - 5 && y > box[1] + 2 && y < box[3] - 2) struck.push(text);
      }
    }
  }
  return [boxes.length, [...new Set(struck)]];
}"""


@pytest.fixture
def draw(chromium):
    """draw(width, height, (head, deltas), ended): the player's page with one picture of this size."""
    with bare_player(chromium, "<main></main>", viewport={"width": 1400, "height": 700}) as (page, errors):
        page.evaluate(QUIET)

        def make(width: int, height: int, scene: tuple, ended: bool = True):
            page.evaluate(f"document.querySelector('main').style = 'width: {width}px; height: {height}px'")
            page.evaluate(MAKE, [palette.palette(), *scene, ended])
            return page

        yield make
        assert errors == []


def same_pace(trace) -> None:
    """Each forward takes a millisecond: what a busy machine measured moves no picture of a test."""
    now = 0.0
    for step in trace.steps:
        for event in step.of(Forward):
            event.start, event.seconds = now, 0.001
            now += event.seconds
        step.seconds = now


def scene(view: str, trace) -> tuple[dict, list[dict]]:
    """(head, deltas) of a trace."""
    return deltas(view, Header(trace.prompt, trace.vocabulary, trace.parameters, trace.title), trace.steps)


@pytest.mark.parametrize("size", [(1380, 555), (676, 213), (372, 330)])
def test_no_edge_runs_through_the_numbers_of_visits(draw, size):
    page = draw(*size, scene("visit_tree", planned(20)))
    count, struck = page.evaluate(STRUCK, "×")
    assert count > 1 and struck == []


def test_no_dotted_line_runs_through_what_a_round_brought_and_no_two_of_them_touch(draw):
    model = TableModel(lambda text: [0.2, 0.4, 0.25, 0.15], 4, frozenset(), words=["<e>", " a", " b", " c"])
    models = {"target": model, "draft": model}
    trace = Lane("speculative", [1], models, {}, 0, Limits(max_new_tokens=60)).run()
    same_pace(trace)
    for size in ((1380, 555), (372, 330)):
        page = draw(*size, scene("timeline", trace))
        count, struck = page.evaluate(STRUCK, "+")
        assert count > 2 and struck == []
        boxes = page.evaluate("scene.placed.filter(word => word.text.startsWith('+')).map(word => word.box)")
        boxes.sort()
        assert all(a[2] <= b[0] for a, b in zip(boxes, boxes[1:], strict=False))
        total = page.evaluate("scene.placed.find(word => word.text.endsWith(' ms')).box")
        assert total[2] <= size[0]


def test_the_word_of_a_box_that_is_cut_stands_in_the_part_that_is_seen(draw):
    panel = {"id": "p", "kind": "panel", "y0": 0, "y1": 1, "share": 1}
    columns = [{"id": f"c{x}", "kind": "node", "x": x, "y": 0.2, "state": "live"} for x in range(40)]
    wide = {"id": "w", "kind": "cell", "x": 28, "y": 0.7, "w": 9, "h": 0.3, "state": "chosen", "fill": "tint"}
    head = {"first": 0, "column": 60, "left": 70, "ops": [panel]}
    page = draw(676, 213, (head, [{"step": 0, "ops": [*columns, {**wide, "text": "a word"}]}]))
    assert page.evaluate("scene.view.lo") > 28  # the middle of the box lies left of the window
    box = page.locator(".dp-texts text", has_text="a word").bounding_box()
    assert box["x"] >= page.evaluate("scene.view.left") + page.locator(".dp-frame").bounding_box()["x"]


@pytest.mark.parametrize("width", [300, 460, 900])
def test_a_heading_stays_in_its_panel(draw, width):
    place = {"id": "heading", "panel": "heading", "kind": "panel", "y0": 0, "y1": 1, "px": 20}
    words = "; and a sentence on what they are, far too long for a narrow picture."
    said = {**place, "lead": "Some numbers", "heading": words}
    rest = {"id": "rest", "kind": "panel", "y0": 0, "y1": 1, "share": 1}
    page = draw(width, 300, ({"first": 0, "axis": None, "ops": [said, rest]}, []))
    bottoms = "[...document.querySelectorAll('.dp-texts text')].map(t => t.getBoundingClientRect().bottom)"
    lines = [y - page.locator(".dp-frame").bounding_box()["y"] for y in page.evaluate(bottoms)]
    assert lines and max(lines) <= page.evaluate("scene.view.panels.rest.topPx") + 1


def test_panels_of_fixed_height_get_lower_where_they_would_leave_the_picture(draw):
    fixed = [{"id": f"f{i}", "kind": "panel", "y0": 0, "y1": 1, "px": 60} for i in range(4)]
    rest = {"id": "rest", "kind": "panel", "y0": 0, "y1": 1, "share": 1}
    page = draw(676, 213, ({"first": 0, "ops": [*fixed, rest]}, []))
    ends = "Object.values(scene.view.panels).map(panel => panel.topPx + panel.heightPx)"
    assert max(page.evaluate(ends)) <= page.evaluate("scene.view.size.height - scene.view.bottom") + 1


@pytest.mark.parametrize("height", [213, 555])
def test_rows_of_a_small_table_fill_their_panel_as_far_as_they_may(draw, height):
    head = {"first": 1, "row": 20, "row_min": 12, "row_tall": 40, "ops": [
        {"id": "t", "kind": "panel", "y0": 0, "y1": 8, "share": 1, "grow": True}]}  # fmt: skip
    cell = {"kind": "cell", "panel": "t", "x": 1, "w": 1, "h": 1, "state": "chosen", "fill": "tint"}
    page = draw(
        676, height, (head, [{"step": 0, "ops": [{**cell, "id": f"c{y}", "y": y + 0.5} for y in range(12)]}])
    )
    unit, tall, top = page.evaluate("(p => [p.unit, p.heightPx, p.y0])(scene.view.panels.t)")
    assert top == 0 and 12 * unit <= tall + 1  # all rows are seen
    assert unit == pytest.approx(min(40, tall / 12.3))  # and a little below the last


def test_after_a_run_the_strip_ends_where_the_run_ends(draw):
    page = draw(676, 260, lane("entropy", story(60)), ended=False)
    assert page.evaluate("scene.overview.span().columns") >= 60
    page.evaluate("scene.show(5); scene.end(true); scene.show(59); quiet()")
    assert page.evaluate("scene.overview.span().columns") == 60
    right = "document.querySelector('.dp-window').getBoundingClientRect().right"
    strip = "document.querySelector('.dp-strip').getBoundingClientRect().right"
    assert page.evaluate(right) == pytest.approx(page.evaluate(strip), abs=2)


def test_rounds_in_the_window_are_open_as_far_as_their_panel_has_room(draw):
    page = draw(1000, 555, lane("draft_rounds", rounds(40)))
    panel = "scene.view.panels.rounds"
    lowest = page.evaluate("scene.view.py(scene.view.front.y + 0.3, {panel: 'rounds'})")
    spare = page.evaluate(f"{panel}.topPx + {panel}.heightPx") - lowest
    fold = page.evaluate(f"{panel}.fold && {panel}.fold.rows.map(row => row.tall)")
    opened = page.evaluate(f"(p => (p.y1 - p.y0) * p.unit)({panel})")
    assert opened == pytest.approx(page.evaluate(f"{panel}.heightPx"), abs=1)
    assert not fold or spare < 90  # less than one more open round would take


def short_steps(rounds: int) -> list[Step]:
    """Rounds of six drafted tokens of which the first is rejected: all others are never reached."""
    steps, parent, node = [], 1, 2
    for index in range(rounds):
        chain = [Propose(node + i, parent if not i else node + i - 1, 1, -1.0, "draft") for i in range(6)]
        judged = [Verdict(node + i, "never reached" if i else "rejected", 0.1, 0.5, 0.9) for i in range(6)]
        own = [Propose(node + 6, parent, 2, -1.0, "target"), Verdict(node + 6, "resampled", p=0.5)]
        steps.append(Step(index, [*chain, *judged, *own, Commit([node + 6], [-1.0])]))
        parent, node = node + 6, node + 7
    return steps


@pytest.mark.parametrize("height", [150, 213])
def test_no_folded_row_is_empty(draw, height):
    page = draw(560, height, lane("draft_rounds", short_steps(60)))
    seen = page.evaluate(
        """() => { const { fold } = scene.view.panels.rounds, { lo } = scene.view;
        const drawn = scene.drawn.filter(mark => mark.kind === "cell" && mark.x >= lo);
        const unit = scene.view.panels.rounds.unit, top = one => fold.open - (fold.px - one.top) / unit;
        const isIn = (mark, one) => mark.y > top(one) && mark.y < top(one) + one.tall / unit;
        return fold.rows.map(one => drawn.filter(mark => isIn(mark, one)).length); }"""
    )
    assert seen and all(seen)


def test_every_mark_that_has_a_card_has_a_place(draw):
    """Keys reach all of them, the rows of a batch too, whose outline was nowhere once."""
    page = draw(1000, 400, scene("batch", load(method_cards.file_of("bass"))))
    kinds, drawn = page.evaluate(
        """() => { const marks = scene.drawn.filter(mark => mark.hover), drawn = [];
        for (const mark of marks) DecodingPlayer.showCard(scene, mark), drawn.push(scene.overlay.innerHTML);
        return [[...new Set(marks.map(mark => mark.kind))], drawn.join("")]; }"""
    )
    assert "row" in kinds and "rect" in drawn and "NaN" not in drawn


def long_path(depth: int) -> list[Step]:
    """One round: all of a long draft accepted."""
    events, parent = [], 1
    for node in range(2, 2 + depth):
        events += [
            Propose(node, parent, 1 + node % 4, -1.0, "draft"),
            Verdict(node, "accepted", 0.4, 0.3, 0.2),
        ]
        parent = node
    return [Step(0, [*events, Commit(list(range(2, 2 + depth)), [-1.0] * depth)])]


@pytest.mark.parametrize("depth", [4, 8])
def test_one_round_begins_at_its_root_on_a_phone(draw, depth):
    page = draw(372, 330, lane("one_round", long_path(depth)))
    assert page.evaluate("scene.view.lo") == 0 and page.evaluate("scene.view.columns") >= depth + 1
