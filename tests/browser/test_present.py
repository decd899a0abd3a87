"""A lane on the whole screen, and the page on paper."""

from playwright.sync_api import expect

from tests.browser.test_page import ready, run

# Text and middle of each label of the lane.
PLACES = """() => [...document.querySelectorAll(".lane:fullscreen .dp-texts text")].map((label) => {
  const { left, top, width, height } = label.getBoundingClientRect();
  return [label.textContent, left + width / 2, top + height / 2];
})"""


# Whether the second lane shows a step and nothing of it is left to draw.
PAINTED = """step => {
  const { scene } = decodingExplorer.lanes[1];
  return scene.paintedStep === step && !scene.waiting;
}"""


def present(page, lane: int):
    """Presents a lane; its element."""
    region = page.get_by_role("region", name=f"Lane {lane}")
    region.get_by_role("button", name="Save this lane").click()
    region.get_by_role("menuitem", name="Present").click()
    page.wait_for_function("document.fullscreenElement !== null")
    return page.locator(".lane:fullscreen")


def card(page, x: float, y: float) -> str | None:
    """What is said of the mark at a place of the screen; None if nothing is."""
    page.mouse.move(x, y)
    page.wait_for_timeout(60)
    return page.evaluate("document.querySelector('.lane:fullscreen .dp-card')?.textContent")


def test_a_lane_alone_in_large_type_obeys_a_clicker_and_the_pointer(again):
    page = again(1920, 1080)
    run(page, tokens=12)
    lane = present(page, 2)
    expect(lane).to_have_count(1)
    size = "parseFloat(getComputedStyle(document.querySelector('.lane:fullscreen .dp-chip')).fontSize)"
    zoom = "parseFloat(getComputedStyle(document.querySelector('.lane:fullscreen')).zoom)"
    assert page.evaluate(f"{size} * {zoom}") >= 19
    at = page.evaluate("decodingExplorer.app.playback.position")
    page.keyboard.press("PageUp")
    page.keyboard.press("PageUp")
    page.keyboard.press("PageDown")
    assert page.evaluate("decodingExplorer.app.playback.position") == at - 1
    page.wait_for_function(PAINTED, arg=at - 2)
    places = page.evaluate(PLACES)
    seen = [(word.strip("␣… "), card(page, x, y)) for word, x, y in places if len(word.strip("␣… ")) > 2]
    cards = [(word, text) for word, text in seen if text]
    assert cards and all(word in text for word, text in cards)
    page.keyboard.press("Escape")
    page.evaluate(
        "document.fullscreenElement && document.exitFullscreen()"
    )  # a headless browser leaves it to us
    page.wait_for_function("document.fullscreenElement === null")
    page.keyboard.press("PageUp")  # scrolls, as ever
    assert page.evaluate("decodingExplorer.app.playback.position") == at - 1


def test_paper_shows_the_prompt_and_all_lanes_and_nothing_to_press(again):
    page = again()
    run(page, tokens=8)
    page.emulate_media(media="print")
    for lane in (1, 2):
        expect(page.locator(f".lane:nth-child({lane})")).to_be_visible()
    expect(page.get_by_role("textbox", name="Prompt")).to_be_visible()
    for control in ("Run", "+ Lane", "Help", "Save this lane"):
        expect(page.get_by_role("button", name=control, exact=True)).to_have_count(0)
    expect(page.get_by_role("slider")).to_have_count(0)


def test_pictures_are_as_wide_as_a_sheet_while_they_are_printed(again):
    page = again()
    wide = "decodingExplorer.lanes.map(({ scene }) => scene.view.size.width)"
    before = page.evaluate(wide)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert max(page.evaluate(wide)) <= 700 < min(before)
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(wide) == before


def test_paper_shows_all_lanes_and_no_inspector_though_one_is_open_beside_a_lesson(again):
    page = again()
    ready(page)
    page.get_by_role("tab", name="Lessons", exact=True).click()
    page.get_by_role("button", name="Why beam search repeats itself").click()
    page.wait_for_function(
        "decodingExplorer.app.guide.ready() && decodingExplorer.lanes.every((lane) => lane.count)"
    )
    page.locator(".lane.current .dp-chip:visible").last.click()
    expect(page.locator("aside.inspector")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator("aside.inspector")).to_be_hidden()
    wide = page.locator(".lanes").bounding_box()["width"]
    for number in range(1, page.locator(".lane").count() + 1):
        lane = page.locator(f".lane:nth-child({number})")
        expect(lane).to_be_visible()
        assert lane.bounding_box()["width"] > 0.9 * wide > 900
