"""For everyone: keys reach all, every picture is told in words, contrast and names hold, nothing jumps."""

import re

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from decoders.trace.number_format import many
from decoders.trace.trace import from_json
from tests.browser.test_page import press, ready, trace
from tests.browser.window import resize, switch
from visualizers.analysis.speculation_report import microscope

SIZES = ((1400, 900), (390, 844))
SECTIONS = "[...decodingExplorer.app.bar.sections.children].map((tab) => tab.value)"
SMALL = """() => {
  const kinds = '.explorer :is(button, select, input:not([type=range], [type=checkbox]), summary, textarea)';
  const sizes = [...document.querySelectorAll(kinds)].filter(e => e.checkVisibility()).map(e => [e, e.getBoundingClientRect()]);
  return sizes.filter(([, box]) => box.width > 0 && Math.min(box.width, box.height) < 31.5)
    .map(([e]) => (e.getAttribute('aria-label') || e.textContent) + ' ' + e.className);
}"""  # noqa: E501
WHERE = """() => {
  const e = document.activeElement;
  return e.getAttribute('aria-label') || e.textContent.slice(0, 20);
}"""
# The chips of a text that grows move on, as a line of writing does; nothing else may.
SHIFTS = """() => {
  window.shifts = [];
  const isChip = (node) => node && node.closest && node.closest('.dp-chip, .hint'); // nor another hint
  new PerformanceObserver((list) => list.getEntries().forEach((e) => {
    const moved = e.sources.map((s) => s.node).filter((node) => !isChip(node));
    if (!e.hadRecentInput && moved.length)
      shifts.push([e.value, moved.map((node) => node && node.outerHTML.slice(0, 90)).join()]);
  })).observe({ type: 'layout-shift' });
}"""
BOXES = (
    "[...document.querySelectorAll('.lane, .lane .view, .bars, .bar, .lane-foot, .lane .tabs')]"
    ".map(e => JSON.stringify(e.getBoundingClientRect())).join()"
)


# Of lists of many cards that are made alike, the first stand for the rest: the engine takes long over each.
FEWER = """() => {
  document.querySelectorAll('.cards, #experiment-catalogue ul').forEach(
    (list) => [...list.children].slice(5).forEach((card) => card.remove()));
}"""


# What it finds, by all its rules or by those that are named, outside of what Plotly draws, which has many
# parts and is told in words beside it. The whole answer, which names what is in order too, takes long.
FOUND = """([parts, rules]) => axe
  .run({ ...(parts.length ? { include: parts } : {}), exclude: ['.main-svg'] }, {
    preload: false, resultTypes: ['violations'], ...(rules.length ? { runOnly: rules } : {}) })
  .then(({ violations }) => violations.map(
    ({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ target }) => ({ target })) })))"""
TABS = "#explorer-tabs > .tab-wrapper"


def violations(page, *parts: str, rules: tuple[str, ...] = ()) -> list[str]:
    """What the accessibility engine finds serious or critical in the page, or in these parts of it, with the
    first places.
    """
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate(FOUND, [list(parts), list(rules)])
    bad = [v for v in found if v["impact"] in ("serious", "critical")]
    return [f"{v['id']}: {[n['target'] for n in v['nodes'][:4]]}" for v in bad]


def show_section(page, section: str):
    """Opens a section, with its figures drawn; its panel."""
    page.evaluate("name => decodingExplorer.app.showSection(name)", section)
    page.wait_for_timeout(200)
    panel = page.locator(f"#explorer-tab-{section}")
    if section == "microscope":  # its figures are drawn where they come near the window
        panel.locator(".figure").first.scroll_into_view_if_needed()
    if section in ("experiments", "microscope"):
        expect(panel.locator(".js-plotly-plot .main-svg").first).to_be_visible()
        expect(panel.locator(".figure .empty")).to_have_count(0)
    return panel


def test_the_engine_finds_nothing_serious(visit):
    """Each section, with the tabs above it, once; names and roles are the same in every size and theme, so
    on a phone in the other theme it looks at colours there, and at all with steps and help open.
    """
    page = visit(*SIZES[0], color_scheme="dark")
    ready(page)
    page.evaluate("location.hash = '#experiments'")
    expect(page.locator("#experiment-catalogue").get_by_role("link").first).to_be_visible()
    page.evaluate(FEWER)
    assert violations(page, TABS, "#explorer-tab-experiments") == [], "cards"
    page.evaluate("location.hash = '#experiment=draft-length'")
    sections = page.evaluate(SECTIONS)
    for section in sections:
        panel = show_section(page, section)
        if section == "methods":
            panel.locator(".card > details > summary").first.click()
            expect(panel.get_by_text("Parameters (").first).to_be_visible()
        page.evaluate(FEWER)
        parts = [] if section == "decode" else [TABS, f"#explorer-tab-{section}"]
        assert violations(page, *parts) == [], section
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), section

    resize(page, *SIZES[1])
    switch(page, "light")
    for section in sections:
        show_section(page, section)
        parts = [] if section == "decode" else [TABS, f"#explorer-tab-{section}"]
        assert violations(page, *parts, rules=("color-contrast",)) == [], section
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), section
    page.evaluate("decodingExplorer.app.showSection('decode')")
    page.evaluate("decodingExplorer.lanes[0] && decodingExplorer.app.lanes[0].steps.toggle()")
    press(page, "Help")
    assert violations(page) == [], "steps and help"
    page.keyboard.press("Escape")
    assert page.evaluate(SMALL) == []


def test_all_controls_of_a_lane_are_reached_with_tab_and_views_with_arrows(visit):
    page = visit()
    ready(page)
    page.keyboard.press("Tab")
    seen = []
    for _ in range(45):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(WHERE))
    names = [
        "Prompt",
        "Run",
        "Step position",
        "Strategy",
        "Parameters",
        "Steps as text",
        "Text, token by token",
        "Beam tree",
    ]
    at = [seen.index(name) for name in names]
    assert at == sorted(at) and "Entropy" not in seen  # one tab stop for all views of a lane
    lane = page.get_by_role("region", name="Lane 1", exact=True)
    lane.get_by_role("tab", name="Beam tree").focus()
    page.keyboard.press("ArrowRight")
    expect(lane.get_by_role("tab", name="Entropy")).to_be_focused()
    page.wait_for_function("decodingExplorer.lanes[0].view === 'entropy'")
    page.keyboard.press("End")
    expect(lane.get_by_role("tab", name="Text")).to_be_focused()
    page.get_by_role("tab", name="Decode").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Decode")).to_have_attribute("aria-selected", "false")
    page.keyboard.press("Home")
    expect(page.get_by_role("tab", name="Decode")).to_be_focused()


def test_keys_work_everywhere_but_in_fields_and_can_be_switched_off(visit):
    page = visit()
    ready(page)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the lanes")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Lane 1", exact=True)).to_be_focused()
    page.keyboard.press("]")
    expect(page.get_by_role("region", name="Lane 2", exact=True)).to_be_focused()
    page.keyboard.press("1")
    expect(page.get_by_role("region", name="Lane 1", exact=True)).to_be_focused()
    position = "decodingExplorer.app.playback.position"
    page.keyboard.press("Home")
    assert page.evaluate(position) == 0
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(position) == 39
    prompt = page.get_by_role("textbox", name="Prompt")
    prompt.fill("")
    prompt.press_sequentially("s? [1]")
    prompt.press("Home")
    assert prompt.input_value() == "s? [1]" and page.evaluate(position) == 39
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    help_panel = page.get_by_role("dialog", name="Help")
    expect(help_panel).to_contain_text("/strategies, /run and /trace")
    expect(help_panel.get_by_role("heading", name="Programs that a model writes")).to_be_visible()
    expect(help_panel).to_contain_text("run in a separate process")
    help_panel.get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("Home")
    assert page.evaluate(position) == 39


def test_marks_and_tokens_are_walked_with_arrows_and_say_what_they_are(again):
    page = again()
    ready(page)
    lane = page.get_by_role("region", name="Lane 1", exact=True)
    picture = lane.get_by_role("application")
    assert re.match(r"Beam tree: Step 40: ", picture.get_attribute("aria-label"))
    picture.focus()
    page.keyboard.press("Enter")
    hovered = "decodingExplorer.lanes[0].scene.hovered"
    before = page.evaluate(
        f"({{id: {hovered}.id, parent: {hovered}.parent, says: {hovered}.hover.join('. ')}})"
    )
    assert lane.locator(".dp-unseen").text_content() == before["says"]
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(f"{hovered}.id") == before["parent"]
    page.keyboard.press("ArrowRight")
    assert page.evaluate(f"{hovered}.parent") == before["parent"]
    page.keyboard.press("Escape")
    assert page.evaluate(hovered) is None
    text = lane.get_by_role("listbox").first
    text.focus()
    page.keyboard.press("Enter")
    last = text.get_by_role("option").last
    assert text.get_attribute("aria-activedescendant") == last.get_attribute("id")
    page.keyboard.press("ArrowLeft")
    assert text.get_attribute("aria-activedescendant") != last.get_attribute("id")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Inspector")).to_be_visible()


def test_steps_as_text_tell_every_step_and_mark_the_one_on_show(again):
    page = again()
    ready(page)
    lane = page.get_by_role("region", name="Lane 2", exact=True)
    lane.get_by_role("button", name="Steps as text").click()
    steps = page.get_by_role("region", name="Steps of lane 2").get_by_role("listitem")
    expect(steps).to_have_count(page.evaluate("decodingExplorer.lanes[1].count"))
    first = microscope(from_json(trace(page, 1)), 1)["rounds"][0]
    words = f"Round 1: {first['accepted']} of {many(first['drafted'], 'drafted token')} accepted"
    expect(steps.first).to_contain_text(re.compile(f"^{words}"))
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(steps.first).to_have_attribute("aria-current", "step")
    said = page.locator("#explorer .bar .unseen")
    expect(said).to_contain_text("Lane 1, Step 1: ")
    expect(said).to_contain_text("Lane 2, Round 1: ")
    page.keyboard.press("t")
    expect(steps.first).to_be_hidden()


@pytest.mark.parametrize("size", SIZES, ids=["wide", "phone"])
def test_nothing_shifts_while_a_run_grows_and_little_is_said(visit, size):
    page = visit(*size, reduced_motion="reduce")
    ready(page)
    page.evaluate("decodingExplorer.app.applySetup({ prompt: 'Once', max_new_tokens: 40 })")
    page.evaluate("""() => {
      window.told = 0;
      const region = document.querySelector('#explorer .bar .unseen');
      new MutationObserver(() => (told += 1)).observe(region, { childList: true, subtree: true });
    }""")
    before, began = page.evaluate(BOXES), page.evaluate("performance.now()")
    page.evaluate(SHIFTS)
    press(page, "Run")
    page.wait_for_function("decodingExplorer.lanes.every((lane) => lane.count > 0)")
    page.wait_for_function("decodingExplorer.state === 'done'")
    page.wait_for_timeout(300)
    assert page.evaluate(BOXES) == before
    assert page.evaluate("shifts") == []
    assert page.evaluate("told") <= 2 + (page.evaluate("performance.now()") - began) / 1000


CUT = """() => [...document.querySelectorAll('.lane .badge, .bar.status .moment')]
  .filter((one) => one.checkVisibility())
  .filter((one) => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight)
  .map((one) => one.textContent)"""


@pytest.mark.parametrize("width", [1100, 1400, 1920])
@pytest.mark.parametrize(
    "strategies", [("greedy", "beam", "speculative"), ("greedy", "beam", "sample", "sample")]
)
def test_badges_and_result_of_many_lanes_are_whole_and_their_room_is_there_before(again, strategies, width):
    page = again(width, 900, reduced_motion="reduce")
    ready(page)
    lanes = [{"strategy": name} for name in strategies]
    setup = {"prompt": "Once upon a time", "max_new_tokens": 30, "lanes": lanes}
    page.evaluate("setup => decodingExplorer.app.applySetup(setup)", setup)
    before = page.evaluate(BOXES)
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done' && decodingExplorer.app.moments.result")
    expect(page.locator(".badge.relation:visible")).to_have_count(len(lanes) - 1)
    assert page.evaluate(CUT) == []
    assert page.evaluate(BOXES) == before


def test_zoom_and_a_lying_phone_keep_everything_in_reach(again):
    page = again(700, 450)
    for width, height in ((700, 450), (844, 390)):  # 1400 x 900 at 200 %; a phone on its side
        resize(page, width, height)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name="Run", exact=True).scroll_into_view_if_needed()
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_in_viewport()
        last = page.locator(".lane.current, .lane").first.locator(".lane-foot")
        last.scroll_into_view_if_needed()
        expect(last).to_be_in_viewport()
        expect(page.locator(".bars")).to_have_css("position", "static")  # staying, they leave no room


def test_high_contrast_shows_what_is_chosen_and_the_theme_follows_the_system(again):
    page = again(forced_colors="active", color_scheme="dark")
    tab = page.get_by_role("tab", name="Beam tree")
    expect(tab).to_have_css("outline-style", "solid")  # asks again where the lane is drawn again meanwhile
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.emulate_media(color_scheme="light")
    page.wait_for_function("document.documentElement.dataset.theme === 'light'")
    press(page, "Switch between light and dark")
    page.emulate_media(color_scheme="dark")
    page.emulate_media(color_scheme="light")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"  # chosen by hand: it stays
