"""The inspector in a real browser: it prints what the trace says, and a branch is a lane of its own."""

import math
import re

import pytest
from playwright.sync_api import expect

from decoders.explain.verdicts import reason_of
from decoders.trace.events import event_from_json
from decoders.trace.trace import from_json
from explorer.inspector import token_facts
from tests.browser.conftest import HOSTILE
from tests.browser.test_page import events, finished, press, ready, run, trace
from tests.browser.window import resize


def panel(page):
    return page.get_by_role("complementary", name="Inspector")


def lane(page, number: int):
    return page.get_by_role("region", name=f"Lane {number}")


def with_lanes(page, *setups: dict, tokens: int = 12) -> None:
    """Runs these lanes to the end, on a page that tests may share: nothing is inspected, and it is wide."""
    ready(page)
    resize(page, 1400, 900)
    close(page)
    page.evaluate("lanes => decodingExplorer.app.applySetup({lanes})", list(setups))
    run(page, tokens=tokens)


def close(page) -> None:
    """Closes the inspector."""
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Escape")
    expect(panel(page)).to_be_hidden()


def open_inspector(page, number: int, node: int) -> None:
    """Opens the inspector on a node, in an app's page or a saved one."""
    page.evaluate(
        "([lane, node]) => decodingExplorer.app.inspector.show(decodingExplorer.app.lanes[lane], {node})",
        [number - 1, node],
    )


def inspect(page, number: int, node: int) -> dict:
    """Opens the inspector on a node and gives the facts of the run's trace that it shows."""
    open_inspector(page, number, node)
    return facts(page, number, node)


def facts(page, number: int, node: int) -> dict:
    return token_facts.inspect(from_json(trace(page, number - 1)), node)


def committed(page, number: int) -> list[int]:
    return [n for e in events(trace(page, number - 1), "Commit") for n in e["nodes"]]


def forced(page, number: int) -> list[str]:
    """The chips that a person put there."""
    return page.evaluate(
        "n => decodingExplorer.lanes[n].chips.marksAt().filter(m => m.state === 'forced').map(m => m.text)",
        number - 1,
    )


COVERED = """() => [...document.querySelectorAll(':is(.lanes, .below) :is(button, select, summary)')]
  .filter((control) => control.checkVisibility() && control.getBoundingClientRect().width)
  .filter((control) => {
    control.scrollIntoView({block: 'center'});
    const box = control.getBoundingClientRect(), at = [box.x + box.width / 2, box.y + box.height / 2];
    const there = document.elementFromPoint(...at);
    return !there || there.closest('.inspector') !== null;
  }).map((control) => control.getAttribute('aria-label') || control.textContent)"""


BOXES = """() => [...document.querySelectorAll('.lane, .inspector, .view, .chips-row')].map((part) => {
  const box = part.getBoundingClientRect(), scrolled = part.closest('.inspector') ? 0 : scrollY;
  return [box.x, box.y + scrolled, box.width, box.height];
})"""


# back at the top, and the two frames gone by in which the panel follows
SETTLED = """() => new Promise((done) => {
  scrollTo(0, 0);
  requestAnimationFrame(() => requestAnimationFrame(done));
})"""


def nothing_covered(page) -> None:
    """With the inspector open every control of the lanes and of what is below can be brought to light."""
    expect(panel(page)).to_be_visible()
    assert page.evaluate(COVERED) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def bits(nats: float) -> str:
    return f"entropy {nats / math.log(2):.2f} bits"


def test_a_click_on_a_chip_and_on_a_mark_opens_it_beside_the_lanes(again):
    page = again()
    run(page)
    before = lane(page, 1).bounding_box()
    lane(page, 1).locator(".chips-row .dp-chip").nth(-3).click()
    expect(panel(page)).to_contain_text("Lane 1, position 10, step")
    node = committed(page, 1)[9]
    entropy = next(
        e["entropy"] for e in events(trace(page, 0), "Distribution") if e["node"] == node - 1 or True
    )
    assert "entropy" in panel(page).inner_text() and entropy >= 0
    box, beside = panel(page).bounding_box(), lane(page, 1).bounding_box()
    assert beside["x"] + beside["width"] <= box["x"] and beside["width"] < before["width"]
    page.keyboard.press("Escape")
    expect(panel(page)).to_be_hidden()
    assert lane(page, 1).bounding_box() == before
    page.wait_for_timeout(300)
    scene = lane(page, 1).locator(".scene .dp-frame, .scene > *").first
    scene.focus()
    page.keyboard.press("Enter")  # the newest mark
    page.keyboard.press("Enter")
    expect(panel(page)).to_be_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.closest('.scene') !== null")


def test_numbers_are_those_of_the_trace(shared):
    page = shared()
    with_lanes(page, {"strategy": "speculative", "parameters": {"temperature": 1.0}, "seed": 2}, tokens=16)
    told = trace(page, 0)
    rejected = [v for v in events(told, "Verdict") if v["status"] == "rejected"]
    assert rejected
    for verdict in rejected[:2]:
        found = inspect(page, 1, verdict["node"])
        (attempt,) = [a for a in found["attempts"] if a["node"] == verdict["node"]]
        assert (attempt["p"], attempt["q"], attempt["u"]) == (verdict["p"], verdict["q"], verdict["u"])
        text = panel(page).inner_text()
        spelled = {int(token): bytes.fromhex(spelling) for token, spelling in told["vocabulary"].items()}
        assert reason_of(event_from_json(verdict), spelled) in text
        assert "accept if u < " + attempt["shown"]["accept"] in text
        p, q, ratio = (float(attempt["shown"][k]) for k in ("p", "q", "accept"))
        digits = len(attempt["shown"]["accept"].lstrip(".0"))
        assert float(f"{p / q:.{digits}g}") == pytest.approx(ratio)  # what is printed agrees with itself
        tick = panel(page).locator(".test-tick").first.bounding_box()
        bar = panel(page).locator(".test-box").first.bounding_box()
        assert (tick["x"] + 1.5 - bar["x"]) / bar["width"] == pytest.approx(verdict["u"], abs=0.01)
        parent = next(e["parent"] for e in events(told, "Propose") if e["node"] == verdict["node"])
        model = next(e for e in events(told, "Distribution") if e["node"] == parent and e["view"] == "target")
        assert bits(model["entropy"]) in text
        panel(page).get_by_text(re.compile(r"Raw events")).click()
        assert '"why":[{"code":"token rejection",' in panel(page).locator("details").last.inner_text()


def test_no_badge_is_cut_beside_it(shared):
    page = shared(1400, 900)
    with_lanes(page, {"strategy": "beam"}, {"strategy": "speculative"}, {"strategy": "greedy"})
    lane(page, 2).locator(".chips-row .dp-chip").last.click()
    expect(panel(page)).to_be_visible()
    badges = page.locator(".badge:visible")
    expect(page.locator(".badge.relation:visible").first).to_be_visible()
    assert badges.evaluate_all("all => all.filter((b) => b.scrollWidth > b.clientWidth).length") == 0


def test_the_residual_stands_between_the_numbers_and_the_flag(shared):
    page = shared(1400, 900)
    parameters = {"temperature": 1.0, "num_assistant_tokens": 4}
    with_lanes(page, {"strategy": "speculative", "parameters": parameters})
    lane(page, 1).locator(".chips-row .is-rejected").last.click()
    rows = panel(page).locator(".with-left")
    expect(rows.first).to_be_visible()
    written = rows.filter(has=page.locator(".left > span:last-child", has_text=re.compile(".")))
    assert written.count()
    for row in written.all():
        parts = [row.locator(one).bounding_box() for one in (".number", ".left > span:last-child", ".branch")]
        assert all(a["x"] + a["width"] <= b["x"] + 1 for a, b in zip(parts, parts[1:], strict=False)), parts


def test_a_sampler_shows_its_stages_and_where_the_draw_fell(shared):
    page = shared()
    shaped = {"temperature": 0.7, "top_k": 5, "top_p": 0.95}
    with_lanes(page, {"strategy": "sample", "parameters": shaped, "seed": 3})
    node = committed(page, 1)[4]
    found = inspect(page, 1, node)
    text = panel(page).inner_text()
    for title in ("model", "temperature 0.7", "top_k 5", "top_p 0.95"):
        assert title in text
    (draw,) = [e for e in events(trace(page, 0), "Measure") if e["node"] == node and e["name"] == "draw"]
    assert f"u = {draw['total']:.4f}".replace("0.", ".") in text
    tick, box = (panel(page).locator(s).bounding_box() for s in (".draw-tick", ".draw-box"))
    assert (tick["x"] + 1.5 - box["x"]) / box["width"] == pytest.approx(draw["total"], abs=0.01)
    here = panel(page).locator(".draw-piece.here").bounding_box()
    assert here["x"] - 1 <= tick["x"] + 1.5 <= here["x"] + here["width"] + 1
    assert panel(page).locator(".cross").count() >= len(found["stages"][0]["rows"]) - 5


def test_a_branch_forces_a_token_in_a_lane_of_its_own(shared):
    page = shared()
    with_lanes(page, {"strategy": "greedy"}, {"strategy": "sample", "seed": 4})
    parent = trace(page, 1)
    nodes = committed(page, 2)
    found = inspect(page, 2, nodes[5])
    other = next(row for row in found["stages"][0]["rows"] if not row["here"])
    panel(page).get_by_role("button", name="Branch here with " + other["text"], exact=True).click()
    expect(lane(page, 3)).to_be_visible()
    outlined = lane(page, 2).locator(".chips-row .dp-outlined")
    expect(outlined).to_have_count(
        1
    )  # what is inspected goes on to be marked, also when another lane has come
    assert outlined.inner_text() in panel(page).get_by_role("heading").first.inner_text()
    finished(page)
    expect(lane(page, 3).locator(".chips-row .is-forced")).to_have_count(1)
    assert forced(page, 3) == [other["text"]]
    made = trace(page, 2)
    by_node = {e["node"]: e["token"] for e in events(parent, "Propose")}
    first = [e["token"] for e in made["steps"][0]["events"] if e["type"] == "Propose"]
    assert first == [*(by_node[n] for n in nodes[:5]), other["id"]]
    assert (made["strategy"], made["seed"], made["prompt"]) == ("sample", 4, parent["prompt"])
    assert page.evaluate(
        "decodingExplorer.app.status() || decodingExplorer.app.bar.status.textContent"
    ).startswith("Done")
    was = found["stages"][0]
    lane(page, 3).locator(".chips-row .is-forced").click()
    expect(panel(page)).to_contain_text("Inserted by a person; nothing was decided here.")
    now = facts(page, 3, page.evaluate("decodingExplorer.app.inspector.facts.node"))["stages"][0]
    assert now["rank"] == 1 + was["rows"].index(other) and now["p"] == pytest.approx(other["p"], rel=1e-3)
    assert f"rank {now['rank']}" in panel(page).locator("section.offer").first.inner_text()
    page.keyboard.press("Escape")
    press(page, "Run")  # the same setup again: the branch begins as before
    page.wait_for_function("decodingExplorer.run && decodingExplorer.lanes[2].count > 0")
    finished(page)
    assert [e["token"] for e in events(trace(page, 2), "Propose")] == [
        e["token"] for e in events(made, "Propose")
    ]


def test_typed_text_takes_a_tokens_place(shared):
    page = shared()
    with_lanes(page, {"strategy": "greedy"})
    inspect(page, 1, committed(page, 1)[3])
    panel(page).get_by_label("Text to put here").fill(" <b>a")
    panel(page).get_by_role("button", name="Edit").click()
    expect(lane(page, 2)).to_be_visible()
    finished(page)
    assert "".join(forced(page, 2)).replace("␣", " ") == " <b>a"
    expect(panel(page)).to_contain_text("Lane 2 continues from here.")
    panel(page).get_by_role("button", name="Edit").click()
    expect(lane(page, 3)).to_be_visible()
    expect(panel(page)).to_contain_text("Lane 3 continues from here.")
    nothing_covered(page)


def test_four_lanes_are_the_most(shared):
    page = shared()
    with_lanes(page, *({"strategy": "greedy"} for _ in range(4)), tokens=6)
    inspect(page, 1, committed(page, 1)[2])
    panel(page).get_by_role("button", name="Branch here", exact=True).click()
    expect(panel(page)).to_contain_text("There are 4 lanes, and a run has no more: remove one with ×, or")
    panel(page).get_by_role("button", name="Replace lane 4").click()
    expect(lane(page, 4).locator(".chips-row .is-forced")).to_have_count(1)
    finished(page)


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (1100, 800), (900, 800), (390, 844)])
def test_it_covers_no_control_and_nothing_moves_while_it_stands_open(shared, width, height):
    page = shared()
    ready(page)
    close(page)
    resize(page, width, height)
    lanes = [{"strategy": name} for name in ("greedy", "sample", "beam", "jacobi")]
    page.evaluate("lanes => decodingExplorer.app.applySetup({lanes, max_new_tokens: 10})", lanes)
    press(page, "Step")
    page.wait_for_function("decodingExplorer.state === 'paused' && decodingExplorer.lanes[0].count > 0")
    inspect(page, 1, committed(page, 1)[0])
    nothing_covered(page)
    page.evaluate(SETTLED)
    before = page.evaluate(BOXES)
    page.evaluate("decodingExplorer.app.press('run')")
    page.wait_for_function("decodingExplorer.state === 'done'")
    assert page.evaluate(BOXES) == before
    page.keyboard.press("Escape")
    expect(panel(page)).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.getElementById('explorer')).paddingBottom") == "0px"


def test_arrows_walk_the_tree_and_a_cell_tells_what_stood_there(shared):
    page = shared()
    with_lanes(page, {"strategy": "greedy"}, {"strategy": "jacobi", "parameters": {"block_size": 4}})
    nodes = committed(page, 1)
    inspect(page, 1, nodes[4])
    for key, node in (("ArrowLeft", nodes[3]), ("ArrowRight", nodes[4]), ("ArrowRight", nodes[5])):
        page.keyboard.press(key)
        page.wait_for_function(f"decodingExplorer.app.inspector.facts.node === {node}")
    cell = page.evaluate("decodingExplorer.lanes[1].scene.marksAt().find(m => m.cell && m.cell[1] === 1)")
    page.evaluate(
        "cell => decodingExplorer.app.inspector.show(decodingExplorer.app.lanes[1], {cell})", cell["cell"]
    )
    expect(panel(page)).to_contain_text("History of this position")
    expect(panel(page).locator(".stood.here")).to_contain_text("iteration 1")


def test_on_a_phone_it_is_a_sheet_with_large_targets(visit):
    page = visit(390, 844, has_touch=True)
    ready(page)
    page.evaluate("decodingExplorer.app.applySetup({max_new_tokens: 12})")
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done'")
    page.get_by_role("navigation", name="Lanes").get_by_role("button").nth(1).click()
    lane(page, 2).locator(".chips-row .dp-chip").nth(-2).click()
    box = panel(page).bounding_box()
    assert box["x"] == 0 and box["width"] == 390 and box["y"] + box["height"] == 844
    small = "b => b.getBoundingClientRect().height < 32 || b.getBoundingClientRect().width < 32"
    small = f"[...document.querySelectorAll('.inspector button')].filter({small}).map(b => b.innerText)"
    assert page.evaluate(small) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    cut = "[...document.querySelectorAll('.attempt-row .number')].filter(n => n.scrollWidth > n.clientWidth)"
    assert panel(page).locator(".attempt-row .number").count() and page.evaluate(f"{cut}.length") == 0
    panel(page).get_by_role("button", name="Branch here", exact=True).click()
    expect(lane(page, 3).locator(".chips-row .is-forced")).to_have_count(1)
    expect(panel(page)).to_be_hidden()
    page.wait_for_function("decodingExplorer.state === 'done'")


def test_hostile_tokens_are_text_here_too(again):
    page = again()
    lane(page, 2).get_by_role("button", name="Remove lane").click()
    run(page, "scripted", 8)
    for node in (1, 4):
        inspect(page, 1, node)
        expect(panel(page)).to_contain_text(HOSTILE)
    assert panel(page).locator("img, script").count() == 0
    panel(page).get_by_role("button", name="Branch here", exact=True).click()
    expect(panel(page)).to_contain_text("decoded with the target model script")
    assert page.evaluate("window.hacked") is None
