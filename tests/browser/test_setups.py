"""A set-up that came by a link, a QR code or an example: nothing of the run before stands beside it."""

import re

from playwright.sync_api import expect

from tests.browser.test_faults import CALLS
from tests.browser.test_page import press, ready, run
from tests.browser.test_present import present
from tests.browser.window import resize

SETUP = {
    "prompt": "One day",
    "max_new_tokens": 6,
    "lanes": [{"strategy": "greedy"}, {"strategy": "sample", "seed": 3}, {"strategy": "greedy", "seed": 1}],
}


def follow(page, mark: str) -> None:
    """Opens a link of SETUP in the page that is there."""
    link = page.evaluate("setup => ExplorerPage.linkOf(setup)", SETUP)
    page.evaluate("fragment => { location.hash = fragment; }", link.partition("#")[2].replace("setup=", mark))


def test_a_link_shows_one_large_button_and_nothing_of_the_run_before(again):
    """Followed on a wide page; the button is as much in sight on a phone, and is pressed there."""
    page = again(1400, 844)
    ready(page)
    follow(page, "setup=")
    large = page.get_by_role("button", name="Run this set-up")
    for width in (1400, 390):
        resize(page, width)
        expect(large).to_be_visible()
        assert large.bounding_box()["height"] >= 44 and large.bounding_box()["y"] < 844
        expect(page.locator(".where")).to_have_text("step 0 of 0")
        expect(page.locator(".status-text")).to_have_text("Press Run to decode this set-up.")
    assert page.evaluate("decodingExplorer.lanes.map((lane) => lane.count)") == [0, 0, 0]
    expect(page.get_by_role("tab", name="Beam tree")).to_have_count(0)
    large.click()
    page.wait_for_function("decodingExplorer.state === 'done'")
    expect(large).to_be_hidden()
    assert page.evaluate("decodingExplorer.lanes.map((lane) => lane.count)") == [6, 6, 6]


def test_a_link_shows_no_run_of_another_set_up_while_it_waits_for_the_models(visit, app):
    page = visit(own=True)
    ready(page)
    link = page.evaluate("setup => ExplorerPage.linkOf(setup)", SETUP)
    held, waits = [], [True]
    page.route(CALLS, lambda route: held.append(route) if waits[0] else route.continue_())
    page.goto("about:blank")
    with page.expect_request(CALLS):
        page.goto(link, wait_until="domcontentloaded")
    page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
    expect(page.locator(".status-text")).to_contain_text("This link brings a set-up.")
    expect(page.locator(".where")).to_have_text("")
    expect(page.get_by_role("slider", name="Step position")).to_have_attribute("max", "0")
    expect(page.get_by_role("textbox", name="Prompt")).to_have_value("")
    expect(page.locator(".lane").first).to_be_hidden()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    waits[0] = False
    for route in held:
        route.continue_()
    expect(page.get_by_role("button", name="Run this set-up")).to_be_visible()
    expect(page.locator(".lane")).to_have_count(3)
    expect(page.locator(".where")).to_have_text("step 0 of 0")


def test_a_damaged_link_is_a_sentence_above_the_recorded_run(visit, app):
    page = visit(own=True)
    page.goto("about:blank")
    page.goto(app.address + "#setup=nonsense", wait_until="domcontentloaded")
    expect(page.locator("#explorer").get_by_role("alert")).to_contain_text("This link is damaged")
    expect(page.locator(".lane").first).to_be_visible()
    page.wait_for_function("decodingExplorer.lanes[0].count > 0")


def test_a_link_that_is_opened_stops_the_run_that_no_lane_shows_any_more(again, app, slow):
    page = again()
    ready(page)
    page.get_by_label("max_new_tokens").fill("60")
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'running' && decodingExplorer.lanes[0].count > 1")
    before = page.evaluate("decodingExplorer.run")
    follow(page, "setup=")
    expect(page.get_by_role("button", name="Run this set-up")).to_be_visible()
    page.wait_for_function("decodingExplorer.state === 'stopped'")
    assert app.runs.find(before).shown_state == "stopped"


def test_a_link_off_a_qr_code_runs_at_once(again):
    page = again()
    ready(page)
    follow(page, "run=")
    page.wait_for_function("decodingExplorer.lanes.length === 3 && decodingExplorer.state === 'done'")
    expect(page.get_by_role("button", name="Run this set-up")).to_be_hidden()
    assert page.evaluate("decodingExplorer.lanes.map((lane) => lane.count)") == [6, 6, 6]


def test_a_set_up_is_shared_as_a_qr_code_and_presented_with_it(again):
    page = again()
    run(page, tokens=6)
    page.get_by_role("tab", name="Traces", exact=True).click()
    expect(page.locator("#traces-qr svg.segno")).to_have_count(0)
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#traces-qr svg.segno")).to_be_visible()
    page.get_by_role("tab", name="Decode", exact=True).click()
    lane = present(page, 1)
    page.keyboard.press("q")
    code = lane.get_by_role("img", name="QR code")
    expect(code).to_be_visible()
    assert page.evaluate("document.querySelector('.qr').naturalWidth") > 100
    expect(lane.get_by_text("It opens on this computer only")).to_be_visible()
    page.keyboard.press("q")
    expect(code).to_have_count(0)


def test_another_prompt_dims_what_the_one_before_gave(again):
    page = again()
    run(page, tokens=6)
    dimmed = page.locator(".lane.stale")
    expect(dimmed).to_have_count(0)
    page.get_by_label("Example prompts").select_option(label="A dog in the park")
    expect(dimmed).to_have_count(2)
    expect(dimmed.first.get_by_text("press Run to decode")).to_be_visible()
    page.get_by_role("textbox", name="Prompt").fill("Once upon a time")
    expect(dimmed).to_have_count(0)


def test_the_sentence_of_an_example_is_whole_where_there_is_room(again):
    page = again(1400, 900)
    ready(page)
    whole = "(line) => line.scrollWidth <= Math.ceil(line.getBoundingClientRect().width)"
    status = page.locator(".status-text")
    for message in ("A" + " sentence" * 14 + ".", "A short one."):
        page.evaluate("(text) => decodingExplorer.app.remark(text)", message)
        expect(status).to_contain_text(message)
        assert status.evaluate(whole)
    compared = page.locator(".bar.status .equal-cost")
    assert compared.evaluate("(line) => line.getBoundingClientRect().right") <= 1400


def test_examples_stand_in_groups_and_no_name_comes_twice(again):
    page = again()
    ready(page)
    picker = page.get_by_label("Example prompts")
    names = picker.evaluate("(list) => [...list.options].slice(1).map((one) => one.textContent)")
    groups = picker.evaluate(
        "(list) => [...list.querySelectorAll('optgroup')].map((one) => one.children.length)"
    )
    assert len(set(names)) == len(names) == sum(groups)
    assert len(groups) >= 8 and max(groups) < 20


def test_the_button_of_a_lane_names_the_strategy_that_was_chosen(again):
    page = again(390, 844)
    ready(page)
    page.get_by_role("region", name="Lane 1").get_by_label("Strategy").select_option("sample")
    buttons = page.get_by_role("navigation", name="Lanes").get_by_role("button")
    expect(buttons.first).to_have_text("1 Sampling")
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done'")
    expect(buttons).to_have_text(["1 Sampling", re.compile("^2 "), "+ Lane"])
    assert page.evaluate("decodingExplorer.lanes[0].strategy") == "sample"


def test_the_parameters_of_a_lane_make_way(again):
    """Escape closes them, and so does a run, which draws where they stand; a refused one leaves them open."""
    page = again()
    ready(page)
    lane = page.get_by_role("region", name="Lane 1")
    gear, panel = lane.get_by_role("button", name="Parameters", exact=True), lane.get_by_role("group").first
    gear.click()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(gear).to_be_focused()
    gear.click()
    panel.get_by_label("num_beams").fill("0")
    press(page, "Run")
    expect(lane.locator(".hint")).to_contain_text("num_beams must be")
    expect(panel).to_be_visible()
    panel.get_by_label("num_beams").fill("2")
    run(page, "Once", 4)
    expect(panel).to_be_hidden()
    assert gear.get_attribute("aria-expanded") == "false"


def test_a_placeholder_does_not_look_like_what_was_typed(again):
    page = again()
    ready(page)
    colours = page.evaluate("""() => {
      const field = decodingExplorer.app.bar.prompt;
      return [getComputedStyle(field).color, getComputedStyle(field, "::placeholder").color];
    }""")
    assert colours[0] != colours[1]
