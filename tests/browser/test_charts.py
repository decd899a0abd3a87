"""The chart-like pictures in a real browser: the trace's numbers are drawn, texts never touch.

Each test gives the player the deltas of a seeded lane and reads back what was drawn.
"""

import math
import random
import re

import pytest
from playwright.sync_api import expect

from decoders.trace.events import Cell, Commit, Depend, Distribution, Propose, Step, Verdict
from explorer.export import palette
from tests.browser.bare import bare_player
from visualizers.registry import deltas
from visualizers.scene.view import Header

WORDS = [
    b"Once",
    b" a",
    b" wonderfully",
    b"<b>",
    b'<img src=x onerror="window.hacked=1">',
    b" dog",
    b"\n",
    b"s",
]
PROMPT = [0, 1, 5]

SHOW = """async ([palette, theme, head, deltas, step]) => {
  const main = document.querySelector("main");
  document.documentElement.dataset.theme = theme;
  main.replaceChildren();
  const scene = window.scene = new DecodingPlayer.Scene(main, {palette, theme});
  scene.reset(head);
  scene.feed(deltas);
  scene.show(step);
  const painted = done => scene.waiting ? requestAnimationFrame(() => painted(done)) : setTimeout(done, 30);
  await new Promise(painted);
  await document.fonts.ready;
}"""
TEXTS = """() => [...document.querySelectorAll(".dp-texts text, .dp-frame span")]
  .map(t => [t.textContent.trim(), t.getBoundingClientRect()])
  .filter(([text, box]) => text && box.width > 0)
  .map(([text, box]) => [text, box.left, box.top, box.right, box.bottom])"""
DIAMOND = 4  # corners
POINTS = """() => scene.traces.filter(t => t.radius)
  .map(t => ({places: drawnBy(scene, t), panel: t.panel.index, symbol: t.polygons?.[0].length ?? "disc"}))"""
LINES = """() => scene.traces.filter(t => !t.radius)
  .flatMap(t => drawnBy(scene, t).map(line => ({y: line.map(([, y]) => y), panel: t.panel.index})))"""
FRONTIER = """() => scene.traces
  .filter(t => t.look.stroke === scene.colours.surface.text && t.look["stroke-width"] === 3)
  .map(t => drawnBy(scene, t).map(line => line.map(([, y]) => y)))"""


@pytest.fixture(scope="module")
def opened(chromium):
    """One page with the player on it, and the list of its errors."""
    with bare_player(chromium, "<main style='position: fixed; inset: 0'></main>") as made:
        yield made


def story(tokens: int) -> list[Step]:
    """A lane that draws one token per step from a random distribution and looks at the tokens before it."""
    luck, steps = random.Random(3), []
    for node in range(len(PROMPT), len(PROMPT) + tokens):
        sharpness = luck.choice((0.3, 1, 4))
        weights = [luck.random() ** sharpness for _ in WORDS]
        shares = sorted(((w / sum(weights), t) for t, w in enumerate(weights)), reverse=True)
        p, token = luck.choice(shares + shares[:1] * 6)
        top = [[t, math.log(share)] for share, t in shares[:6]]
        entropy = -sum(share * math.log(share) for share, _ in shares)
        looks = [Depend(n, node, luck.random() / node, "attention") for n in range(node)]
        steps.append(
            Step(
                len(steps),
                [
                    Distribution(node - 1, "target", top, sum(s for s, _ in shares[6:]), entropy),
                    Propose(node, node - 1, token, math.log(p), "target"),
                    Commit([node], [math.log(p)]),
                    *looks,
                ],
            )
        )
    return steps


def grid(iterations: int, width: int = 12) -> list[Step]:
    """A parallel lane whose window settles one to three positions per iteration."""
    luck, steps, front = random.Random(5), [], len(PROMPT)
    for k in range(iterations):
        settled = luck.choice((1, 1, 2, 3)) if k else 0
        cells = [
            Cell(
                front + i,
                k,
                luck.randrange(len(WORDS)),
                "settled" if i < settled else "changed" if i % 2 else "kept",
            )
            for i in range(width)
        ]
        links = [Depend(front - 1, front, 1.0, "causal")] if front > len(PROMPT) else []
        steps.append(Step(k, [*cells, *links]))
        front += settled
    return steps


def show(page, name: str, steps: list[Step], step: int, width: int = 1180, theme: str = "light") -> None:
    head, changes = deltas(name, Header(PROMPT, dict(enumerate(WORDS))), steps)
    page.set_viewport_size({"width": width, "height": 320})
    page.evaluate(SHOW, [palette.palette(), theme, head, changes, step])


def touching(texts: list) -> list[str]:
    """Pairs of texts whose boxes overlap by a pixel across and three down (boxes are taller than ink)."""
    found = []
    for i, (a, x0, y0, x1, y1) in enumerate(texts):
        for b, u0, v0, u1, v1 in texts[i + 1 :]:
            if x0 + 1 < u1 and u0 + 1 < x1 and y0 + 3 < v1 and v0 + 3 < y1:
                found.append(f"{a} / {b}")
    return found


@pytest.mark.parametrize("width", [1180, 690, 390])
@pytest.mark.parametrize("name", ["entropy", "dependencies", "parallel_grid"])
def test_texts_never_touch_and_tokens_are_never_markup(opened, name, width):
    page, errors = opened
    steps = grid(60) if name == "parallel_grid" else story(90)
    for step in (7, len(steps) - 1):
        show(page, name, steps, step, width, "dark" if step == 7 else "light")
        texts = page.evaluate(TEXTS)
        assert len(texts) > 5
        assert touching(texts) == []
        assert page.evaluate("document.querySelectorAll('main img').length") == 0
    assert page.evaluate("window.hacked") is None and errors == []


def test_the_entropy_trace_draws_the_bits_of_the_trace(opened):
    page, errors = opened
    steps = story(12)
    show(page, "entropy", steps, 11)
    marks = [trace for trace in page.evaluate(POINTS) if max(y for _, y in trace["places"]) > 1.1]
    (panel,) = {trace["panel"] for trace in marks}
    places = [(*place, trace["symbol"]) for trace in marks for place in trace["places"]]
    bits = sorted(places, key=lambda place: place[0])
    tenth = page.evaluate("0.1 / scene.view.panels.bits.unit")
    assert [y for _, y, _ in bits] == pytest.approx(
        [-step.of(Commit)[0].logprobs[0] / math.log(2) for step in steps], abs=tenth
    )
    expected = [
        "disc" if step.of(Distribution)[0].top[0][0] == step.of(Propose)[0].token else DIAMOND
        for step in steps
    ]
    assert [symbol for _, _, symbol in bits] == expected and set(expected) == {"disc", DIAMOND}
    lines = [line for line in page.evaluate(LINES) if line["panel"] == panel]
    entropies = [step.of(Distribution)[0].entropy / math.log(2) for step in steps]
    heights = [y for e in entropies for y in (e, e)]
    assert any(line["y"] == pytest.approx(heights, abs=tenth) for line in lines if len(line["y"]) == 24), (
        "the step line is there"
    )
    assert errors == []


def test_a_picture_is_the_same_however_its_step_was_reached(opened):
    page, _ = opened
    for name, steps in (("entropy", story(60)), ("dependencies", story(60)), ("parallel_grid", grid(40))):
        show(page, name, steps, 30)
        scrubbed = page.evaluate("scene.drawn.map(m => [m.id, m.state, m.fill, m.strong, m.text])")
        show(page, name, steps[:31], 30)
        assert not page.evaluate("scene.strips.hidden"), "the strip takes room, once a run does not fit"
        live = page.evaluate("scene.drawn.map(m => [m.id, m.state, m.fill, m.strong, m.text])")
        assert scrubbed == live and len(live) > 20


def test_the_focus_of_the_dependencies_moves_with_the_step(opened):
    page, _ = opened
    steps = story(20)
    for step in (3, 15):
        show(page, "dependencies", steps, step)
        focus = page.evaluate(
            "scene.drawn.filter(m => m.kind === 'cell' && m.fill === 'filled').map(m => m.x)"
        )
        assert focus == [step + 1]
        shares = [t for t in page.evaluate(TEXTS) if t[0].endswith(" %")]
        strong = page.evaluate("scene.drawn.filter(m => m.kind === 'arc' && m.strong).length")
        assert len(shares) == strong == min(6, len(PROMPT) + step)


def test_the_frontier_is_drawn_as_one_line(opened):
    page, _ = opened
    show(page, "parallel_grid", grid(9), 8)
    lines = page.evaluate(FRONTIER)
    ((line,),) = lines  # of one piece
    assert line == sorted(line)


def test_a_round_with_more_rows_than_room_says_how_many_tokens_are_out_of_sight(opened):
    page, errors = opened
    trunk = len(PROMPT)
    children = range(trunk, trunk + 12)
    events = [Propose(node, trunk - 1, 2, -1.0, "draft", slot) for slot, node in enumerate(children)]
    events += [Verdict(node, "rejected", 0.1, 0.5, 0.9) for node in children]
    events += [Propose(trunk + 12, trunk - 1, 3, -0.5, "target"), Verdict(trunk + 12, "resampled", p=0.6)]
    show(page, "one_round", [Step(0, [*events, Commit([trunk + 12], [-0.5])])], 0)
    nodes = "scene.marksAt().filter((m) => m.kind === 'node')"
    seen = "m => { const y = scene.view.py(m.y, m); return y >= 0 && y < scene.view.size.height - 40; }"
    hidden = page.evaluate(f"{nodes}.filter((m) => !({seen})(m)).length")
    below = page.get_by_role("button", name="more below")
    expect(below).to_have_text(re.compile(r"↓ \d+ more below"))
    assert int(re.search(r"\d+", below.inner_text())[0]) >= hidden > 0
    below.click()
    expect(page.get_by_role("button", name="more above")).to_be_visible()
    show(page, "one_round", [Step(0, [*events[:2], *events[12:14]])], 0)
    expect(page.locator(".dp-beyond")).to_have_count(0)
    assert not errors
