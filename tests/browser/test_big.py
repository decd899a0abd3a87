"""Large runs: real lanes with thousands of nodes stay readable, right at every step, and cheap to draw."""

import random

import pytest
from playwright.sync_api import expect

from decoders.lane import Lane, Limits
from decoders.models.loading import load
from explorer.export import palette
from tests.browser.bare import bare_player
from tests.browser.test_charts import touching
from tests.browser.test_page import finished, marks, press, seek, start
from visualizers.registry import deltas
from visualizers.scene.view import Header

LANES = {
    "beam": ({"num_beams": 8}, ("beam_tree", "entropy", "dependencies")),
    "diverse_beam": ({"num_beams": 6, "num_beam_groups": 3}, ("beam_tree",)),
    "speculative_tree": ({"widths": "4,2,2,1"}, ("draft_rounds", "one_round", "graph")),
    "jacobi": ({}, ("parallel_grid", "graph")),
    "lattice": ({"ngram": 3, "max_forwards": 200}, ("graph",)),
}
CASES = [(strategy, view) for strategy, (_, views) in LANES.items() for view in views]

SHOW = """async ([palette, head, deltas]) => {
  const main = document.querySelector("main");
  main.replaceChildren();
  window.scene = new DecodingPlayer.Scene(main, {palette, theme: "light"});
  scene.reset(head);
  scene.feed(deltas);
}"""
PAINT = """async step => {
  if (step !== null) scene.show(step);
  const look = done => scene.waiting ? requestAnimationFrame(() => look(done)) : setTimeout(done, 30);
  await new Promise(look);
}"""
TEXTS = """() => [...document.querySelectorAll(".dp-texts text, .dp-gutters span, .dp-gutters text")]
  .map(t => {
    const box = t.getBoundingClientRect(), svg = t.ownerSVGElement;
    const panel = svg && svg !== scene.texts ? svg : null;
    const top = panel ? scene.texts.getBoundingClientRect().top + panel.y.baseVal.value : -Infinity;
    const low = panel ? top + panel.height.baseVal.value : Infinity; // panels cut their texts off
    return [t.textContent.trim(), box.left, Math.max(box.top, top), box.right, Math.min(box.bottom, low)];
  })
  .filter(([text, left, top, right, low]) => text && right > left && low > top)"""
# For steps in any order: whether all marks, and those of some columns, are those of going forward.
SAME = """([head, deltas, order, low, high]) => {
  const forward = new DecodingPlayer.History(head.ops), said = [], few = [];
  const among = (history, step) => history.inside(step, low, high, () => true).map(mark => mark.id).join();
  for (const delta of deltas) {
    forward.feed([delta]);
    said.push(JSON.stringify(forward.ofKind(null, delta.step)));
    few.push(among(forward, delta.step));
  }
  return order.every(step =>
    JSON.stringify(scene.marksAt(step)) === said[step] && among(scene.history, step) === few[step]);
}"""

# Moves of the window in steps of one: how far its marks begin right of their place, how many groups of
# them glide, and whether what cuts them off moves or where it stands.
SLIDES = """async steps => {
  const found = [];
  for (let step = 30; step < steps; step++) {
    scene.dear = false; // on a slow machine it would jump
    scene.show(step);
    while (scene.waiting) await new Promise(requestAnimationFrame);
    const glides = group => group.getAnimations().length > 0;
    const groups = [...scene.picture.querySelectorAll(".dp-slides")].filter(glides).length;
    const pixels = scene.view.slide, box = scene.marks.querySelector("svg");
    const moves = [scene.frame, scene.picture, scene.marks, scene.texts, box].some(glides);
    const edges = [box.getAttribute("x"), box.getAttribute("width")];
    if (pixels) found.push({pixels, groups, moves, edges});
    await new Promise(done => setTimeout(done, 20));
  }
  return found;
}"""


@pytest.fixture(scope="module")
def opened(chromium):
    """One page with the player on it."""
    with bare_player(chromium, "<main style='position: fixed; inset: 0'></main>") as (page, errors):
        yield page
    assert errors == []


@pytest.fixture(scope="module")
def scenes():
    """(strategy, view) -> (head, deltas, nodes) of real lanes of the shipped models, 100 tokens at most."""
    models = {"target": load("llama-tiny", device="cpu"), "draft": load("llama-tiny-draft", device="cpu")}
    prompt, found = models["target"].encode("Once upon a time, Tim went to the park with his dog"), {}
    for strategy, (parameters, views) in LANES.items():
        trace = Lane(strategy, prompt, models, parameters, limits=Limits(100)).run()
        nodes = sum(type(e).__name__ == "Propose" for step in trace.steps for e in step.events)
        header = Header(trace.prompt, trace.vocabulary, trace.parameters, trace.title)
        for view in views:
            found[strategy, view] = (*deltas(view, header, trace.steps), nodes)
    return found


def show(page, scenes, case, width: int, height: int) -> int:
    """Feeds a scene whole; the number of its steps."""
    head, fed, _ = scenes[case]
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate(SHOW, [palette.palette(), head, fed])
    return len(fed)


@pytest.mark.parametrize("size", [(1400, 320), (390, 300)])
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_no_two_texts_touch_in_any_view_at_any_step(opened, scenes, case, size):
    last = show(opened, scenes, case, *size) - 1
    for step in (0, last // 3, last // 2, last):
        opened.evaluate(PAINT, step)
        texts = opened.evaluate(TEXTS)
        assert len(texts) > 3 and touching(texts) == []
        labels = opened.evaluate("scene.placed.map(l => [l.text, ...l.box])")
        assert len(labels) <= 150


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_scrubbing_in_any_order_gives_the_marks_of_going_forward(opened, scenes, case):
    steps = show(opened, scenes, case, 1000, 300)
    order = list(range(steps))
    random.Random(7).shuffle(order)
    head, fed, _ = scenes[case]
    assert opened.evaluate(SAME, [head, fed, order, 20, 31])


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_redraw_costs_what_the_window_holds_and_not_what_the_run_has(opened, scenes, case):
    last = show(opened, scenes, case, 690, 240) - 1
    opened.evaluate(PAINT, last)
    least = 5 if case == ("jacobi", "graph") else 20  # where nothing waits for the next, few share a window
    assert least < opened.evaluate("scene.drawn.length") < 600
    assert opened.evaluate("scene.traces.length") < 30
    low, high = opened.evaluate("scene.view.range")
    assert opened.evaluate("scene.view.byDepth") or low <= opened.evaluate("scene.view.front.x") <= high


def test_the_strip_shows_the_whole_run_and_moves_the_window(opened, scenes):
    show(opened, scenes, ("beam", "beam_tree"), 1000, 300)
    opened.evaluate(PAINT, 99)
    strip = opened.locator(".dp-strip").bounding_box()
    assert 20 <= strip["height"] <= 40
    opened.wait_for_function("scene.overview.painted.startsWith('99,')")
    assert opened.evaluate("scene.view.lo") > 60
    opened.mouse.click(strip["x"] + 0.2 * strip["width"], strip["y"] + 5)
    opened.evaluate(PAINT, None)
    low, high = opened.evaluate("scene.view.range")
    assert low < 20 < high and opened.get_by_role("button", name="Follow").is_visible()
    whole = opened.get_by_role("button", name="Show the whole run")
    whole.click()
    opened.evaluate(PAINT, None)
    assert opened.locator(".dp-strip").bounding_box()["height"] > 200
    expect(whole).to_have_attribute("aria-pressed", "true")
    whole.click()
    opened.evaluate(PAINT, None)
    expect(whole).to_have_attribute("aria-pressed", "false")
    assert opened.evaluate("scene.view.range") == [low, high]


def test_the_strip_shows_nothing_of_the_run_before(opened, scenes):
    show(opened, scenes, ("beam", "beam_tree"), 1000, 300)
    opened.evaluate(PAINT, 99)
    opened.wait_for_function("scene.overview.painted.startsWith('99,')")
    inked = """() => { const { canvas } = scene.overview, { width, height } = canvas;
        return width > 0 && canvas.getContext("2d").getImageData(0, 0, width, height).data.some(Boolean); }"""
    assert opened.evaluate(inked)
    opened.evaluate("head => scene.reset(head)", scenes[("beam", "beam_tree")][0])
    assert not opened.evaluate(inked)


def test_a_fold_with_no_column_left_of_the_window_draws_nothing(opened, scenes):
    show(opened, scenes, ("beam", "beam_tree"), 1000, 300)
    opened.evaluate(PAINT, 99)
    folded = """first => {
        const view = Object.create(scene.view, first ? { lo: { value: scene.head.first ?? 0 } } : {});
        const layer = document.createElement("div");
        DecodingPlayer.drawFold(layer, scene, { view, step: 99, palette: scene.colours });
        return layer.innerHTML; }"""
    assert "folded: " in opened.evaluate(folded, False) and opened.evaluate(folded, True) == ""


def test_rounds_by_depth_begin_at_the_left_wherever_the_strip_is_pressed(opened, scenes):
    show(opened, scenes, ("speculative_tree", "draft_rounds"), 390, 300)
    opened.evaluate(PAINT, None)
    strip = opened.locator(".dp-strip").bounding_box()
    for place in (0.2, 0.9):
        opened.mouse.click(strip["x"] + place * strip["width"], strip["y"] + 5)
        opened.evaluate(PAINT, None)
        assert opened.evaluate("scene.view.byDepth") and opened.evaluate("scene.view.lo") == 1
        low, high = opened.evaluate("scene.view.range")
        seen = opened.evaluate("scene.drawn.filter(mark => mark.kind === 'cell').map(mark => mark.x)")
        assert any(low < x < high for x in seen)


def test_a_window_that_moves_slides_within_the_edges_of_its_panel(opened, scenes):
    steps = show(opened, scenes, ("beam", "beam_tree"), 690, 300)
    slides = opened.evaluate(SLIDES, steps)
    assert slides and max(slide["pixels"] for slide in slides) > 30
    assert all(slide["groups"] > 1 and not slide["moves"] for slide in slides)
    assert all(slide["edges"] == slides[0]["edges"] for slide in slides)


def test_finished_rounds_fold_into_steps_above_the_open_ones(opened, scenes):
    last = show(opened, scenes, ("speculative_tree", "draft_rounds"), 1000, 240) - 1
    opened.evaluate(PAINT, last)
    fold = opened.evaluate("scene.view.panels.rounds.fold")
    cells = opened.evaluate(
        "scene.drawn.filter(m => m.kind === 'cell' && m.y < scene.view.panels.rounds.fold.open)"
    )
    heights = [row["tall"] for row in fold["rows"]]
    assert len(heights) > 1 and heights == sorted(heights) and heights[0] < 15 and heights[-1] == 25
    low = [cell for cell in cells if cell.get("sliver") or not cell["text"]]
    assert low and all(cell["text"] == "" and cell["fill"] == "filled" for cell in low)
    assert all(c["glyph"] for c in low if c["state"] in ("resampled", "bonus"))  # told apart without colour
    words = [cell for cell in cells if cell["text"]]
    assert words and all(cell["tall"] > 15 for cell in words)
    newest = opened.evaluate("scene.history.front(scene.step()).x")
    drawn = opened.evaluate("scene.drawn.filter(m => m.kind === 'cell' || m.kind === 'node')")
    assert round(max(mark["x"] for mark in drawn)) == newest


def test_a_search_of_thousands_of_nodes_runs_in_the_page(visit, app):
    page = visit()
    start(page, "Once", 60)
    lane = {"strategy": "beam", "parameters": {"num_beams": 16}, "view": "beam_tree"}
    page.evaluate("lane => decodingExplorer.app.applySetup({lanes: [lane]})", lane)
    press(page, "Run")
    finished(page)
    expect(page.get_by_text("folded: 1–").first).to_be_attached()
    record = app.runs.find(page.evaluate("decodingExplorer.run")).records[0]
    trace = record.trace
    header = Header(trace.prompt, trace.vocabulary, trace.parameters, trace.title)
    head, fed = deltas("beam_tree", header, trace.steps)
    assert len(page.evaluate("[...decodingExplorer.lanes[0].scene.history.byId.keys()]")) > 2500
    for position in (60, 31, 47, 5):
        seek(page, position)
        page.wait_for_function("n => decodingExplorer.lanes[0].scene.paintedStep === n - 1", arg=position)
        expected = {m["id"]: dict(m) for m in head["ops"]}
        for op in (op for delta in fed[:position] for op in delta["ops"]):
            if "kind" in op:
                expected[op["id"]] = dict(op)
            elif "set" in op:
                expected[op["id"]].update(op["set"])
        shown = {m["id"]: m for m in marks(page, 0, position - 1)}
        assert shown == {key: mark for key, mark in expected.items() if not mark.get("gone")}


def test_a_lane_that_fills_the_context_says_so(visit):
    page = visit()
    start(page, "once " * 50, 512)
    page.get_by_role("region", name="Lane 2").get_by_role("button", name="Remove lane").click()
    press(page, "Run")
    finished(page)
    expect(page.get_by_text("The model's context of 256 tokens is full.")).to_be_visible()
