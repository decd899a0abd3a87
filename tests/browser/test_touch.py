"""A phone and its fingers, and little motion: targets of 44 px, a sheet that covers no pressed token."""

import pytest
from playwright.sync_api import expect

from tests.browser.test_page import press, ready
from tests.browser.window import resize

PHONE = {"has_touch": True, "is_mobile": True}
SMALL = """() => {
  const kinds = '.explorer :is(button, select, input:not([type=checkbox]), summary, textarea), .chips-row .dp-chip';
  const seen = [...document.querySelectorAll(kinds)].filter(e => e.checkVisibility()).map(e => [e, e.getBoundingClientRect()]);
  return seen.filter(([, box]) => box.width > 0 && Math.min(box.width, box.height) < 43.5)
    .map(([e, box]) => [e.getAttribute('aria-label') || e.textContent, box.width, box.height]);
}"""  # noqa: E501


def run(page, *strategies: str) -> None:
    """Decodes with these."""
    lanes = [{"strategy": name} for name in strategies]
    setup = {"prompt": "Once upon", "max_new_tokens": 24, "lanes": lanes}
    page.evaluate("setup => decodingExplorer.app.applySetup(setup)", setup)
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done'")


def test_everything_that_is_pressed_is_44_pixels_high_and_wide_under_a_finger(again):
    page = again(390, 844, **PHONE)
    ready(page)
    run(page, "speculative", "sample")
    assert page.evaluate(SMALL) == []
    press(page, "Help")
    assert page.evaluate(SMALL) == []
    page.keyboard.press("Escape")
    page.locator(".lane.current .chips-row .dp-chip").last.tap()
    expect(page.locator("aside.inspector")).to_be_visible()
    assert page.evaluate(SMALL) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_every_tab_of_the_page_is_in_sight_on_a_phone(again):
    """On phones of three widths, and under a finger on the narrowest."""
    page = again(390, 700, **PHONE)
    ready(page)
    tabs = page.locator("#explorer-tabs > .tab-wrapper [role=tab]")
    for width in (390, 360, 320):
        resize(page, width, 700)
        boxes = [tabs.nth(i).bounding_box() for i in range(tabs.count())]
        assert len(boxes) == 7
        for one, other in zip([{"x": 0, "width": 0}, *boxes], [*boxes, {"x": width}], strict=True):
            assert one["x"] + one["width"] <= other["x"]
    for tab in range(7):  # nothing lies over them
        tabs.nth(tab).tap()
        expect(tabs.nth(tab)).to_have_attribute("aria-selected", "true")


def test_no_view_of_a_lane_is_cut_in_its_row_of_tabs(again):
    page = again(390, 844, **PHONE)
    ready(page)
    for number in ("1", "2"):
        page.get_by_role("navigation", name="Lanes").get_by_role("button", name=number).tap()
        row = page.locator(".lane.current .tabs")
        wide = row.evaluate("(row) => [row.scrollWidth, row.clientWidth, row.textContent]")
        assert wide[0] <= wide[1], wide


# Of the costs with a box: whether each lies in the strip, and the number and the name of each in its cell.
COSTS = """() => {
  const inside = (one, other) => one.left >= other.left - 1 && one.right <= other.right + 1
    && one.top >= other.top - 1 && one.bottom <= other.bottom + 1;
  const box = (one) => one.getBoundingClientRect(), strip = document.querySelector('.lane.current .costs');
  const shown = [...strip.children].filter((one) => one.checkVisibility());
  return shown.map((one) => [one.textContent, inside(box(one), box(strip)),
    [...one.children].every((part) => inside(box(part), box(one)) && part.scrollWidth <= part.clientWidth)]);
}"""


def test_the_numbers_below_a_lane_are_whole_on_a_phone(again):
    page = again(390, 844, **PHONE)
    ready(page)
    run(page, "speculative", "beam")
    for width in (390, 320):
        resize(page, width, 844)
        for number in ("1", "2"):
            page.get_by_role("navigation", name="Lanes").get_by_role("button", name=number).tap()
            shown = page.evaluate(COSTS)
            assert len(shown) == 4
            assert [cost for cost in shown if not all(cost)] == []
    page.get_by_role("button", name="more", exact=True).locator("visible=true").tap()
    assert len(page.evaluate(COSTS)) > 4
    assert [cost for cost in page.evaluate(COSTS) if not all(cost)] == []


def test_the_badge_of_a_lane_is_whole_on_a_phone(again):
    page = again(390, 844, **PHONE)
    ready(page)
    run(page, "speculative", "greedy")
    badge = page.locator(".lane.current .badge:visible")
    expect(badge).to_contain_text("lossless: equal to greedy")
    assert badge.evaluate("(one) => one.scrollWidth <= one.clientWidth")


def test_a_phone_shows_three_lines_of_tokens_to_press(again):
    page = again(390, 844, **PHONE)
    ready(page)
    lines = """() => { const row = document.querySelector('.lane.current .chips-row').getBoundingClientRect();
      const boxes = [...document.querySelectorAll('.lane.current .chips-row .dp-chip')].map((e) => e.getBoundingClientRect());
      return new Set(boxes.filter((e) => e.top >= row.top - 1 && e.bottom <= row.bottom + 1).map((e) => Math.round(e.top))).size; }"""  # noqa: E501
    page.wait_for_function(f"({lines})() === 3")


def test_a_mouse_keeps_the_dense_page(again):
    page = again()
    ready(page)
    assert page.locator(".lane .gear").first.bounding_box()["height"] < 40
    assert page.locator(".chips-row .dp-chip").first.bounding_box()["height"] < 30


def test_the_sheet_does_not_cover_the_token_that_was_pressed(again):
    page = again(390, 844, **PHONE)
    ready(page)
    run(page, "speculative")
    chip = page.locator(".chips-row .dp-chip").last
    chip.tap()
    sheet = page.locator("aside.inspector")
    expect(sheet).to_be_visible()
    page.wait_for_function("""() => {
      const chip = [...document.querySelectorAll('.chips-row .dp-chip')].pop().getBoundingClientRect();
      return chip.top >= 0 && chip.bottom <= document.querySelector('.inspector').getBoundingClientRect().top;
    }""")


def test_play_is_a_step_where_motion_is_unwanted(again):
    page = again(reduced_motion="reduce")
    ready(page)
    page.evaluate("decodingExplorer.app.playback.seek(3, true)")
    press(page, "Play")
    page.wait_for_timeout(400)
    assert page.evaluate("decodingExplorer.app.playback.position") == 4
    expect(page.get_by_role("button", name="Play", pressed=False)).to_be_visible()  # nothing plays on


def test_after_a_click_on_a_view_the_arrows_are_steps(again):
    page = again()
    ready(page)
    lane = page.get_by_role("region", name="Lane 1", exact=True)
    lane.get_by_role("tab", name="Entropy").click()
    page.wait_for_function("decodingExplorer.lanes[0].view === 'entropy'")
    before = page.evaluate("decodingExplorer.app.playback.position")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"decodingExplorer.app.playback.position === {before - 1}")
    expect(lane.get_by_role("tab", name="Entropy")).to_have_attribute("aria-selected", "true")


@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
def test_the_text_reads_as_a_text_and_can_be_copied(again, phone):
    page = again(390, 844, **PHONE) if phone else again()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ready(page)
    run(page, "speculative")
    lane = page.get_by_role("region", name="Lane 1", exact=True)
    lane.get_by_role("tab", name="Text").click()
    prose = lane.locator(".text-view .dp-prose")
    expect(prose).to_contain_text("Once upon")
    text = prose.evaluate("e => e.textContent")
    assert not set("␣↵◆★≠") & set(text)
    states = "decodingExplorer.app.lanes[0].text.marksAt(99).map(m => m.state)"
    assert "rejected" in page.evaluate(states)  # above, among the chips; not in what one reads
    expect(prose.locator(".is-rejected")).to_have_count(0)
    assert prose.evaluate("e => getComputedStyle(e).whiteSpace") == "pre-wrap"
    assert prose.evaluate("e => e.clientWidth") <= 720
    lane.get_by_role("button", name="Copy this text").click()
    expect(lane.get_by_role("button", name="Copy this text")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == text
