"""Methods and Lessons in a real browser: what they say is found, drawn, and opened in the page's lanes."""

import pytest
from playwright.sync_api import expect

from tests.browser.test_page import press

pytestmark = pytest.mark.browser
SIZES = [(1400, 900), (390, 844)]


def section(page, name: str):
    press(page, name)
    return page.get_by_role("region", name=name, exact=True)


def fits(page) -> bool:
    """Nothing sticks out at the right."""
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_card_is_found_drawn_and_opened_in_a_lane(visit, width, height):
    page = visit(width, height)
    methods = section(page, "Methods")
    search = methods.get_by_role("searchbox", name="Search methods and papers")
    expect(methods.get_by_role("status")).to_contain_text("193 papers")
    assert methods.get_by_role("article").count() >= 9
    first = methods.get_by_role("article").first
    expect(first.locator("svg.main-svg").first).to_be_visible()
    assert not page.evaluate("document.querySelector('.card:last-child svg.main-svg')")  # not yet on screen
    search.fill("jacobi")
    expect(methods.get_by_role("article")).to_have_count(1)
    card = methods.get_by_role("article", name="Jacobi")
    expect(card.locator("svg.main-svg").first).to_be_visible()
    assert fits(page)
    before = page.evaluate("decodingExplorer.lanes.length")
    card.get_by_role("button", name="Open Jacobi in a lane").click()
    lane = page.get_by_role("region", name=f"Lane {before + 1}")
    expect(lane.get_by_label("Strategy")).to_have_value("jacobi")
    expect(lane.get_by_label("Strategy")).to_be_focused()
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done'")
    assert page.evaluate("decodingExplorer.lanes.at(-1).count") > 1


def test_open_in_a_lane_replaces_the_last_of_four(visit):
    page = visit()
    for title in ("Greedy", "Sampling", "Diverse beam search"):
        section(page, "Methods").get_by_role("button", name=f"Open {title} in a lane").click()
    shown = page.evaluate("decodingExplorer.lanes.map(l => l.strategy)")
    assert shown == ["beam", "speculative", "greedy", "diverse_beam"]


def test_search_and_family_narrow_cards_and_papers_and_say_how_many(visit):
    page = visit()
    methods = section(page, "Methods")
    search, family = methods.get_by_role("searchbox"), methods.get_by_label("Family")
    status = methods.get_by_role("status")
    expect(status).to_contain_text("193 papers")
    family.select_option(label="Diffusion")
    expect(status).to_contain_text("0 methods · 12 papers: 0 work here, 12 not here yet")
    family.select_option(label="Draft and verify")
    expect(methods.get_by_role("listitem").filter(has_text="works: Speculative decoding")).to_have_count(1)
    assert methods.get_by_role("article").count() >= 3
    family.select_option(label="All families")
    search.fill("zzz no such title")
    expect(status).to_contain_text("Nothing has these words")
    search.fill("<img src=x>")
    expect(status).to_contain_text("Nothing has these words")
    search.fill("VERILOG")
    expect(status).to_contain_text("0 methods · 1 paper: 0 work here, 1 not here yet")
    search.press("Tab")
    expect(family).to_be_focused()
