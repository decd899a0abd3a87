"""Legends: below each picture, on a phone behind a button."""

from playwright.sync_api import expect

from tests.browser.test_page import ready


def test_on_a_phone_the_legend_stands_behind_a_button(again):
    page = again(390, 844)
    ready(page)
    page.wait_for_function("decodingExplorer.lanes[0].scene.paintedStep >= 0")  # its legend comes with it
    lane = page.locator(".lane.current")
    button, legend = lane.get_by_role("button", name="Legend"), lane.locator(".dp-legend")
    expect(legend).to_be_hidden()
    expect(button).to_have_attribute("aria-expanded", "false")
    button.scroll_into_view_if_needed()
    box, before = button.bounding_box(), lane.bounding_box()
    assert box["width"] >= 32 and box["height"] >= 32
    button.click()
    expect(legend).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    inside = legend.bounding_box()
    items = legend.locator(".dp-legend-item")  # read at once: the picture may still play
    assert (
        inside["x"] >= 0
        and inside["x"] + inside["width"] <= 390
        and inside["y"] + inside["height"] <= box["y"]
    )
    tops = items.evaluate_all("items => items.map(item => item.getBoundingClientRect().top)")
    assert tops and all(inside["y"] <= top <= inside["y"] + inside["height"] for top in tops)
    assert lane.bounding_box() == before
    page.keyboard.press("Escape")
    expect(legend).to_be_hidden()


def test_on_a_wide_screen_the_legend_is_below_the_picture(again):
    page = again()
    ready(page)
    expect(page.locator(".dp-legend").first).to_be_visible()
    expect(page.get_by_role("button", name="Legend").first).to_be_hidden()
