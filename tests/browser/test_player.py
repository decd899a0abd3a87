"""The player in a real browser: marks in their states at every step, text never markup, following.

Each test gives the player the deltas of a small hand-made lane and asks the page what it shows.
"""

import random

import pytest

from decoders.trace.events import Commit, Propose, Step, Verdict
from decoders.trace.scores import Rank
from explorer.export import palette
from tests.browser.bare import bare_player
from visualizers.registry import deltas
from visualizers.scene.view import Header

HOSTILE = '<img src=x onerror="window.hacked=1">'
WORDS = [b"Once", b" a", b" big", b" wonderfully", HOSTILE.encode(), b"<b>", b"&amp;", b"\n", b"s"]


# Of each word of a text that wraps: on how many lines its element lies, and each element that is outlined.
OUTLINED = """async ([palette, head, deltas]) => {
  const place = document.getElementById("chips");
  place.style.width = "130px";
  const chips = new DecodingPlayer.Chips(place, {palette, theme: "light", oneLine: false});
  chips.reset(head);
  chips.feed(deltas);
  chips.show(99);
  await painted(chips);
  const words = [...place.querySelectorAll(".dp-chip")].filter((chip) => /^ \\w+$/.test(chip.textContent));
  return words.map((chip) => {
    chip.classList.add("dp-outlined");
    const drawn = [chip, ...chip.children].filter((one) => getComputedStyle(one).outlineStyle === "solid");
    return [chip.getClientRects().length, drawn.map((one) => one.getClientRects().length)];
  });
}"""
MAKE = """palette => {
  window.painted = drawing => new Promise(done => {
    const look = () => drawing.waiting ? requestAnimationFrame(look) : setTimeout(done, 30);
    look();
  });
  window.make = async (kind, head, deltas) => {
    const name = kind === "Scene" ? "scene" : "chips";
    const options = {palette, theme: "light", oneLine: true, onPick: mark => (window.picked = mark.id)};
    window[name] = new DecodingPlayer[kind](document.getElementById(name), options);
    window[name].reset(head);
    window[name].feed(deltas);
    await painted(window[name]);
  };
}"""


@pytest.fixture(scope="module")
def opened(chromium):
    """One page with the player and `make(kind, head, deltas)`, and the list of its errors."""
    size = {"width": 1000, "height": 700}
    with bare_player(chromium, "<main></main>", viewport=size) as (page, errors):
        page.evaluate(MAKE, palette.palette())
        yield page, errors


@pytest.fixture
def page(opened):
    """The page with two fresh places for drawings; no script may fail in it."""
    page, errors = opened
    page.evaluate(
        """() => {
          document.querySelector("main").innerHTML =
            '<div id="scene" style="width:960px;height:320px"></div><div id="chips"></div>';
          delete window.picked;
        }"""
    )
    page.mouse.move(5, 690)
    yield page
    assert errors == []


def beams(count: int, length: int, seed: int = 0) -> list[Step]:
    """A beam search with random scores: `count` kept of `2 * count` candidates at each of `length` steps."""
    rng, node, live, steps = random.Random(seed), 2, [(1, 0.0)], []
    for index in range(length):
        found = sorted(((s + rng.uniform(-4, 0), n) for n, s in live for _ in range(4)), reverse=True)[
            : 2 * count
        ]
        events, kept = [], []
        for slot, (total, parent) in enumerate(found):
            events.append(Propose(node, parent, rng.randrange(1, len(WORDS)), -rng.random(), "target", slot))
            events += [Verdict(node, "pruned")] if slot >= count else []
            kept += [(node, total)] if slot < count else []
            node += 1
        mothers = {e.parent for e in events if isinstance(e, Propose) and e.slot < count}
        events += [Verdict(n, "pruned") for n, _ in live if n not in mothers and n != 1]
        live = kept
        events += [Rank(n, "sum_logprob", s, rank=r + 1) for r, (n, s) in enumerate(kept)]
        steps.append(Step(index, events))
    return steps


def rounds(length: int) -> list[Step]:
    """Draft rounds of two tokens: the first accepted, the second rejected and replaced."""
    steps, parent, node = [], 1, 2
    for index in range(length):
        a, b, c = node, node + 1, node + 2
        events = [
            Propose(a, parent, 2, -1.0, "draft"),
            Propose(b, a, 4, -1.0, "draft"),
            Verdict(a, "accepted", 0.5, 0.4, 0.2),
            Verdict(b, "rejected", 0.1, 0.4, 0.9),
            Propose(c, a, 3, -1.0, "target"),
            Verdict(c, "resampled", p=0.5),
            Commit([a, c], [-0.7, -0.7]),
        ]
        steps.append(Step(index, events))
        parent, node = c, node + 3
    return steps


def lane(view: str, steps: list[Step], **parameters):
    """(head, deltas) of a view over hand-made steps."""
    return deltas(view, Header([0, 1], dict(enumerate(WORDS)), parameters), steps)


def at(head: dict, fed: list[dict], step: int) -> dict:
    """What the marks are at a step, folded in Python: id -> state."""
    marks = {op["id"]: dict(op) for op in head.get("ops", [])}
    for op in (op for delta in fed if delta["step"] <= step for op in delta["ops"]):
        if "kind" in op:
            marks[op["id"]] = dict(op)
        elif "set" in op:
            marks[op["id"]].update(op["set"])
    return {key: mark.get("state") for key, mark in marks.items() if not mark.get("gone")}


@pytest.mark.parametrize(("view", "steps"), [("beam_tree", beams(4, 20)), ("draft_rounds", rounds(8))])
def test_every_mark_has_its_state_at_every_step_in_any_direction(page, view, steps):
    head, fed = lane(view, steps, num_beams=4)
    page.evaluate("([h, d]) => make('Scene', h, d)", [head, fed])
    order = [*range(len(steps)), *reversed(range(len(steps))), -1]
    for step in order:
        shown = page.evaluate("s => scene.marksAt(s).map(m => [m.id, m.state ?? null])", step)
        assert dict(shown) == at(head, fed, step)
        assert page.evaluate("s => scene.marksAt(s).length", step) == len(shown)


def test_what_is_painted_is_the_step_that_was_asked_for(page):
    page.evaluate("([h, d]) => make('Scene', h, d)", list(lane("beam_tree", beams(4, 20), num_beams=4)))
    assert page.evaluate("scene.paintedStep") == 19
    page.evaluate("scene.show(3); painted(scene)")
    assert page.evaluate("scene.paintedStep") == 3
    points = page.evaluate(
        "scene.traces.filter(t => t.radius).flatMap(t => drawnBy(scene, t).map(([x]) => x))"
    )
    assert max(points) == pytest.approx(4, abs=0.01)  # three steps more than the first column


@pytest.mark.parametrize(
    ("view", "steps"),
    [("beam_tree", beams(4, 12)), ("draft_rounds", rounds(6)), ("beam_tree", beams(16, 12))],
)
def test_labels_do_not_overlap(page, view, steps):
    page.evaluate(
        "([h, d]) => make('Scene', h, d)",
        list(lane(view, steps, num_beams=16 if len(steps[0].events) > 20 else 4)),
    )
    boxes = page.evaluate("scene.placed.map(l => l.box)")
    assert len(boxes) > 5
    for i, (x0, y0, x1, y1) in enumerate(boxes):
        for a0, b0, a1, b1 in boxes[i + 1 :]:
            assert x1 <= a0 or a1 <= x0 or y1 <= b0 or b1 <= y0


def test_a_token_that_looks_like_markup_is_text_everywhere(page):
    head, fed = lane("draft_rounds", rounds(4))
    page.evaluate("([h, d]) => make('Scene', h, d)", [head, fed])
    page.evaluate("([h, d]) => make('Chips', h, d)", list(lane("text", rounds(4))))
    page.evaluate("DecodingPlayer.showCard(scene, scene.drawn.find(m => m.state === 'rejected'))")
    assert HOSTILE in page.evaluate("document.querySelector('.dp-card').textContent")
    assert page.locator(".dp-chip.is-rejected").first.text_content() == HOSTILE
    assert "<im" in page.evaluate("scene.texts.textContent")  # cut to its cell, and shown
    assert page.locator("img").count() == 0 and page.evaluate("window.hacked === undefined")


def test_chips_read_as_a_list_with_their_verdicts(page):
    page.evaluate("([h, d]) => make('Chips', h, d)", list(lane("text", rounds(1))))
    labels = page.locator("#chips [role=option]").evaluate_all(
        "all => all.map(e => e.getAttribute('aria-label'))"
    )
    assert labels == [
        "Once, prompt",
        "␣a, prompt",
        "␣big, accepted, p .497",
        f"{HOSTILE}, rejected, p .368",
        "␣wonderfully, written instead, p .497",
    ]
    page.evaluate("chips.show(-1); painted(chips)")
    assert page.locator("#chips [role=option]").count() == 2


def test_colours_are_the_states_in_both_themes(page):
    page.evaluate("([h, d]) => make('Scene', h, d)", list(lane("draft_rounds", rounds(3))))
    for theme, own in palette.palette().items():
        page.evaluate("t => { scene.theme(t); return painted(scene); }", theme)
        fills = set(
            page.evaluate("scene.traces.filter(t => !t.radius && t.d.endsWith('Z')).map(t => t.look.fill)")
        )
        assert fills == {
            own["state"]["accepted"]["color"],
            own["state"]["resampled"]["color"],
            own["state"]["rejected"]["tint"],
        }


def test_the_window_follows_until_a_hand_moves_it_and_comes_back(page):
    page.evaluate("([h, d]) => make('Scene', h, d)", list(lane("beam_tree", beams(4, 60), num_beams=4)))
    low, high = page.evaluate("scene.view.range")
    assert low < 60 < high and low > 20
    follow = page.get_by_role("button", name="Follow")
    assert not follow.is_visible()
    page.mouse.move(300, 250)
    page.mouse.down()
    page.mouse.move(700, 250, steps=4)
    page.mouse.up()
    page.evaluate("painted(scene)")
    assert page.evaluate("scene.view.range[0]") < low and follow.is_visible()
    follow.click()
    page.evaluate("painted(scene)")
    assert page.evaluate("scene.view.range") == [low, high] and not follow.is_visible()


def test_a_crowd_of_tested_siblings_keeps_its_height_and_is_reached_by_a_hand(page):
    """Thirty tested tokens in one place: names and bars stay apart, and what is below comes into sight."""
    born = [Propose(node, 1, 2 + node % 3, -1.0, "draft", node - 2) for node in range(2, 32)]
    tested = [Verdict(node, "rejected", 0.1, 0.4, 0.9) for node in range(2, 32)]
    page.evaluate("([h, d]) => make('Scene', h, d)", list(lane("one_round", [Step(0, [*born, *tested])])))
    assert page.evaluate("Object.values(scene.view.panels)[0].unit") == 18
    place = """id => {
      const mark = scene.drawn.find((mark) => mark.id === id);
      return mark ? scene.view.py(mark.y, mark) : null;
    }"""
    assert 0 < page.evaluate(place, "n2") < 60
    for _ in range(4):
        page.mouse.move(300, 250)
        page.mouse.down()
        page.mouse.move(300, 20, steps=4)
        page.mouse.up()
    page.evaluate("painted(scene)")
    assert 200 < page.evaluate(place, "n31") < 320


def test_the_window_moves_in_jumps_and_not_with_each_token(page):
    page.evaluate("([h, d]) => make('Scene', h, d)", list(lane("beam_tree", beams(2, 60), num_beams=2)))
    starts = [
        page.evaluate("async s => { scene.show(s); await painted(scene); return scene.view.lo; }", s)
        for s in range(20, 60)
    ]
    assert starts == sorted(starts) and len(set(starts)) <= 12


def test_a_step_measures_nothing_and_leaves_what_stays(page):
    """A size asked for between two redraws lays the whole page out; so does a text that is made again."""
    page.evaluate("([h, d]) => make('Scene', h, d)", list(lane("beam_tree", beams(4, 40), num_beams=4)))
    asked, kept, had = page.evaluate("""async () => {
      let asked = 0, step = 20;
      const lo = async (at) => (await (scene.show(at), painted(scene)), scene.view.lo);
      while ((await lo(step)) !== (await lo(step + 1))) step += 1; // two steps in one window
      await lo(step);
      const frame = scene.frame, size = [frame.clientWidth, frame.clientHeight];
      ["clientWidth", "clientHeight", "offsetParent"].forEach((name, i) =>
        Object.defineProperty(frame, name, { get: () => (asked++, size[i]) }));
      const before = [...scene.texts.querySelectorAll("text")];
      await lo(step + 1);
      return [asked, before.filter((text) => text.isConnected).length, before.length];
    }""")
    assert asked == 0 and kept > 0.5 * had > 5


def test_a_step_leaves_the_chips_that_stay(page):
    page.evaluate("([h, d]) => make('Chips', h, d)", list(lane("text", beams(2, 20), num_beams=2)))
    moved = page.evaluate("""async () => {
      await (chips.show(10), painted(chips));
      const moved = new Set(), first = chips.root.firstChild;
      const note = (all) => all.forEach((one) => one.removedNodes.forEach((node) => moved.add(node)));
      new MutationObserver(note).observe(chips.root, { childList: true });
      await (chips.show(11), painted(chips));
      return moved.has(first) || !first.isConnected;
    }""")
    assert not moved


def test_the_folded_past_opens_with_a_click(page):
    page.evaluate("([h, d]) => make('Scene', h, d)", list(lane("beam_tree", beams(4, 60), num_beams=4)))
    folded = page.evaluate("[scene.view.fold.width, scene.view.left]")
    assert 36 < folded[0] < folded[1] and page.get_by_text("folded: 1–").count() == 1
    page.mouse.click(30, 200)
    page.evaluate("painted(scene)")
    assert page.evaluate("scene.view.lo") == 0 and page.evaluate("scene.view.fold") is None
    assert page.get_by_role("button", name="Follow").is_visible()


def test_a_click_picks_the_mark_under_the_pointer(page):
    page.evaluate("([h, d]) => make('Scene', h, d)", list(lane("beam_tree", beams(4, 6), num_beams=4)))
    mark = "scene.drawn.find(m => m.id === 'n2')"
    x, y = page.evaluate(f"(m => [scene.view.px(m.x), scene.view.py(m.y, m)])({mark})")
    box = page.locator("#scene").bounding_box()
    page.mouse.click(box["x"] + x, box["y"] + y)
    assert page.evaluate("window.picked") == "n2"


def test_a_large_search_stays_within_the_budget_of_a_redraw(page):
    """A redraw costs its marks, labels and traces; a clock would measure what else the machine is doing."""
    page.evaluate("([h, d]) => make('Scene', h, d)", list(lane("beam_tree", beams(16, 60), num_beams=16)))
    assert page.evaluate("scene.marksAt().length") > 2500
    counted = "selector => scene.picture.querySelectorAll(selector).length"
    assert 5 < page.evaluate(counted, ".dp-marks path") < 40  # a path a style, not one a node
    assert 10 < page.evaluate(counted, ".dp-texts text") <= 150
    assert page.evaluate("scene.traces.length") <= 25


def test_an_outlined_token_leaves_no_empty_box_at_the_end_of_a_line(page):
    """A token that begins with a space may begin a line: the space stays on the line before."""
    boxes = page.evaluate(OUTLINED, [palette.palette(), *lane("text", rounds(4))])
    assert any(lines > 1 for lines, _ in boxes)  # else there is nothing to see
    assert all(outlined == [1] for _, outlined in boxes)
