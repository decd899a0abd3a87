"""The window of the lanes: what fits is shown, one window for all lanes, and a clicked mark stays in it."""

import pytest

from decoders.trace.events import Commit, Propose, Step, Verdict
from explorer.export import palette
from tests.browser.bare import bare_player
from tests.browser.test_charts import story
from tests.browser.test_page import ready
from tests.browser.test_player import beams, lane, rounds

BODY = "<main style='height: 260px'></main><main style='height: 260px'></main>"
MAKE = """async ([palette, lanes, ended]) => {
  window.scenes = [];
  document.querySelectorAll("main").forEach((element, i) => {
    const together = () => scenes.filter(other => other !== scenes[i]);
    const scene = new DecodingPlayer.Scene(element, {palette, together});
    scenes.push(scene);
    scene.reset(lanes[i][0]);
    scene.feed(lanes[i][1]);
    scene.end(ended);
  });
  await quiet();
}"""
QUIET = """() => {
  window.quiet = () => new Promise(done => {
    const waits = () => scenes.some(scene => scene.waiting);
    const look = () => waits() ? requestAnimationFrame(look) : setTimeout(done, 30);
    look();
  });
}"""
WINDOWS = "scenes.map(s => [s.view.left, s.view.columnWidth, s.view.lo, s.view.columns])"


@pytest.fixture
def opened(chromium):
    """make(width, lanes, ended): a page with two pictures of these lanes below each other."""
    with bare_player(chromium, BODY, viewport={"width": 1880, "height": 700}) as (page, errors):
        page.evaluate(QUIET)

        def make(width: int, lanes: list, ended: bool = True):
            page.set_viewport_size({"width": width, "height": 700})
            page.evaluate(MAKE, [palette.palette(), lanes, ended])
            return page

        yield make
        assert errors == []


def test_a_run_of_forty_tokens_is_shown_whole_on_a_wide_screen(opened):
    page = opened(1880, [lane("beam_tree", beams(4, 40), num_beams=4), lane("draft_rounds", rounds(20))])
    for scene in (0, 1):
        lo, shown, fold = page.evaluate(f"(v => [v.lo, v.columns, v.fold])(scenes[{scene}].view)")
        assert lo <= 1 and lo + shown >= 40 and fold is None


def test_the_first_columns_of_a_large_screen_fill_it_and_the_whole_run_fits_later(opened):
    page = opened(1880, [lane("beam_tree", beams(4, 40), num_beams=4), lane("entropy", story(40))])
    columns = "scenes.map(s => s.view.columns)"
    for step, shown in ((6, 20), (18, 20), (39, 41)):
        page.evaluate("s => { scenes.forEach(scene => scene.show(s)); return quiet(); }", step)
        assert page.evaluate(columns) == [shown, shown]
    page = opened(1300, [lane("beam_tree", beams(4, 40), num_beams=4)] * 2)
    page.evaluate("scenes.forEach(s => s.show(6)); quiet()")
    assert page.evaluate("scenes[0].view.columnWidth") <= 66


def test_no_round_stands_empty_above_those_that_the_window_reaches(opened):
    page = opened(700, [lane("draft_rounds", rounds(12))] * 2)
    page.evaluate("document.querySelectorAll('main').forEach(one => (one.style.height = '900px'))")
    page.wait_for_function("scenes[0].view.size.height > 500")
    found = page.evaluate(
        """() => { const {history, view} = scenes[0], panel = view.panels.rounds;
        const rows = history.ofKind("row", scenes[0].step());
        const open = rows.filter(row => row.y0 >= panel.y0 - 0.01);
        return [rows.length, open.length, view.lo, open.map(row => row.last)]; }"""
    )
    count, shown, first, ends = found
    assert first > 1 and 1 <= shown < count and all(end >= first - 0.5 for end in ends)


def test_a_run_that_fits_with_its_words_is_shown_whole_wherever_its_lanes_part(opened):
    page = opened(1880, [lane("draft_rounds", rounds(12))] * 2)
    page.evaluate("document.querySelectorAll('main').forEach(one => (one.style.height = '420px'))")
    page.wait_for_function("scenes[0].view.size.height > 380")
    page.evaluate("scenes.forEach((scene) => scene.settle({ x: 1 })); quiet()")
    seen, last = page.evaluate(
        """() => { const { view, history } = scenes[0], { y0, y1, fold } = view.panels.rounds;
        const rows = history.ofKind("row", scenes[0].step());
        const open = rows.filter((row) => row.y0 >= (fold ? fold.open : y0) - 0.01 && row.y0 + 1 <= y1);
        const words = fold ? fold.rows.filter((one) => one.tall >= 25) : [];
        return [open.length + words.length, rows.length]; }"""
    )
    assert seen == last == 12


def test_every_word_of_the_text_is_whole_on_a_wide_screen(visit):
    """Forty columns are narrower than many words: those stand a line higher, where rows leave room."""
    page = visit(1920, 1080)
    ready(page)
    words = "l => [...l.querySelectorAll('.dp-texts text[font-weight=\"700\"]')].map((t) => t.textContent)"
    for one in page.locator(".lane").all():
        placed = one.evaluate(words)
        assert len(placed) >= 36 and not [word for word in placed if "…" in word]


def test_at_the_end_of_a_long_run_the_front_is_at_the_right_edge(opened):
    lanes = [lane("beam_tree", beams(4, 60), num_beams=4), lane("draft_rounds", rounds(30))]
    page = opened(900, lanes, ended=False)
    reserved = page.evaluate("scenes.map(s => s.view.lo + s.view.columns - 1)")
    assert max(reserved) > 60  # while it runs there is room for what comes
    page.evaluate("scenes.forEach(s => s.end(true)); quiet()")
    assert page.evaluate("scenes.map(s => s.view.lo + s.view.columns - 1)") == [60, 60]


def test_pictures_of_different_kinds_share_their_window(opened):
    """At every step, whichever picture is drawn first, a column stands for one position in both."""
    page = opened(900, [lane("beam_tree", beams(4, 60), num_beams=4), lane("entropy", story(60))])
    for step in (59, 40, 22, 45, 3):
        page.evaluate("s => { scenes.forEach(scene => scene.show(s)); return quiet(); }", step)
        one, other = page.evaluate(WINDOWS)
        assert one == other
    page.evaluate("scenes[0].show(59); scenes[1].show(50); quiet()")
    one, other = page.evaluate(WINDOWS)
    assert one == other  # the one behind as well, where its front is in the window


def test_a_clicked_mark_stays_in_sight_when_its_picture_gets_narrow(opened):
    lanes = [lane("beam_tree", beams(4, 24), num_beams=4), lane("entropy", story(24))]
    page = opened(1200, lanes)
    node = page.evaluate("scenes[0].drawn.find(m => m.kind === 'node' && m.x === 6).node")
    seen = "(v => v.lo <= 6 && 6 < v.lo + v.columns)"
    assert page.evaluate(f"{seen}(scenes[0].view)")
    page.evaluate("node => scenes[0].hold({node})", node)
    page.evaluate("document.querySelectorAll('main').forEach(m => (m.style.width = '560px'))")
    page.wait_for_function("scenes.every(s => s.view.size.width === 560)")
    page.evaluate("quiet()")
    assert page.evaluate(f"scenes.every(s => {seen}(s.view))")
    page.evaluate("scenes.forEach(s => s.show(22)); quiet()")  # the next step is followed again
    assert page.evaluate("scenes.every(s => s.view.front.x < s.view.lo + s.view.columns && s.view.lo > 6)")


def wide_tree(depth: int, limbs: int) -> list[Step]:
    """One round of a tree: the first limb accepted but for its last token, `limbs` never-reached chains."""
    events, node = [], 2
    for limb in range(limbs + 1):
        parent = 1
        for level in range(depth):
            events.append(Propose(node, parent, 1 + level % 4, -1.0, "draft", limb))
            if limb == 0 and level < 3:
                status = "rejected" if level == 2 else "accepted"
                events.append(Verdict(node, status, 0.00123, 0.00456, 0.912))
            else:
                events.append(Verdict(node, "never reached"))
            parent, node = node, node + 1
    events += [Propose(node, 3, 3, -1.0, "target"), Verdict(node, "resampled", p=0.5)]
    return [Step(0, [*events, Commit([2, 3, node], [-1.0, -1.0, -1.0])])]


@pytest.mark.parametrize("width", [380, 690, 1300])
def test_one_round_of_sixty_four_nodes_keeps_its_root_and_names_what_was_rejected(opened, width):
    round_of = lane("one_round", wide_tree(8, 7))
    page = opened(width, [round_of, round_of])
    assert page.evaluate("scenes[0].view.lo") == 0
    if width > 380:
        assert page.evaluate("scenes[0].view.columns") >= 9  # the root and eight depths
    placed = page.evaluate("scenes[0].placed.map(label => label.text)")
    rejected = page.evaluate("scenes[0].drawn.find(m => m.kind === 'node' && m.state === 'rejected').text")
    assert rejected.strip("␣")[:2] in " ".join(placed)
    words = " ".join(placed)
    assert words.count("p .00123") == 3 and words.count("u .912") == 3  # none is dropped
    rings = "scenes[0].marksAt(0).filter(m => m.kind === 'node' && m.state === 'unreached')"
    seen = page.evaluate(f"{rings}.filter(m => m.drawn !== false).length")
    assert page.evaluate(f"{rings}.length") == 61 > 3 * seen  # limbs fold to a ring with a number


@pytest.mark.parametrize("height", [170, 250, 340, 620])
def test_most_of_an_entropy_picture_is_its_curve(opened, height):
    page = opened(1000, [lane("entropy", story(40)), lane("entropy", story(40))])
    page.evaluate("h => document.querySelectorAll('main').forEach(m => (m.style.height = h + 'px'))", height)
    page.wait_for_timeout(200)
    page.evaluate("quiet()")
    curve, whole, panels = page.evaluate(
        "(v => [v.panels.bits.heightPx, v.size.height, Object.keys(v.panels)])(scenes[0].view)"
    )
    assert curve >= 0.6 * whole or height < 200  # numbers and words need some pixels
    assert ("mass" in panels) == (whole >= 320)


def test_a_mark_whose_card_is_open_stays_in_sight_when_the_run_says_what_it_is_about(opened):
    page = opened(900, [lane("beam_tree", beams(4, 60), num_beams=4), lane("entropy", story(60))])
    page.evaluate("scenes[0].frame.focus()")
    page.keyboard.press("Enter")
    read = page.evaluate("scenes[0].hovered.id")
    page.evaluate("scenes[0].settle({ x: 1 }); quiet()")
    assert page.evaluate("scenes[0].hovered?.id") == read
    page.keyboard.press("Escape")
    page.evaluate("scenes[0].hold({}); quiet()")
    assert page.evaluate("scenes[0].view.lo") <= 1
