"""The tab Lenses: a grid is there, each is drawn once, and it has the page's colours; what waits says so."""

import re

from playwright.sync_api import expect

from tests.browser.test_microscope import decode, fits
from tests.browser.window import resize
from visualizers.figures.theme import theme

PLOT = "#explorer-tab-lenses .js-plotly-plot"
# Counts how often a heatmap is painted: each time it hands its pixels to the picture.
COUNT = """() => {
    const { toDataURL } = HTMLCanvasElement.prototype;
    window.painted = 0;
    HTMLCanvasElement.prototype.toDataURL = function (...how) {
        window.painted++;
        return toDataURL.apply(this, how);
    };
}"""


def test_a_grid_is_drawn_once_for_each_change(visit):
    """Opened on a phone, where it changes its theme; its positions change there and on a wide page."""
    page = visit(390, 844, lone=True)
    page.evaluate(COUNT)
    decode(page, [{"strategy": "greedy"}])
    page.get_by_role("tab", name="Lenses").click()
    grid = f"document.querySelector('{PLOT}')"
    page.wait_for_function(f"{grid}?.data?.[0].z[0].length > 10")
    assert page.locator(f"{PLOT} .layer-above image").get_attribute("href").startswith("data:image/svg+xml")
    assert page.evaluate("painted") == 1 and fits(page)
    ground = f"{grid}?.layout.template.layout.paper_bgcolor"
    page.get_by_role("button", name="Switch between light and dark").click()
    page.wait_for_function(f"{ground} === '{theme('dark').surface['bg']}'")
    page.wait_for_timeout(500)
    assert page.evaluate("painted") == 2
    for width, positions in ((390, 5), (1400, 7)):
        resize(page, width)
        page.wait_for_timeout(500)
        page.evaluate("painted = 0")  # a window of another size has its figure drawn to that size
        page.get_by_label("positions").locator("visible=true").fill(str(positions))
        page.keyboard.press("Tab")
        page.wait_for_function(f"{grid}?.data?.[0].z[0].length === {positions}")
        page.wait_for_timeout(500)  # another drawing would have come
        assert page.evaluate("painted") == 1 and fits(page)


def test_a_tab_that_waits_for_its_answer_says_so_and_nothing_false(visit):
    """Lenses does not say that there is no lane, and the methods of the last search do not pass for those of
    this one.
    """
    page = visit(lone=True)
    decode(page, [{"strategy": "greedy"}])
    held, waits = [], [True]
    page.route("**/queue/join**", lambda route: held.append(route) if waits[0] else route.continue_())
    with page.expect_request("**/queue/join**"):
        page.get_by_role("tab", name="Lenses").click()
    expect(page.locator("#lens-says")).to_contain_text("Reading the run on the page …")
    expect(page.get_by_text("there is no lane yet")).to_have_count(0)
    expect(page.locator("#lens-says")).to_have_class(re.compile("at-work"))
    release(held, waits)
    page.wait_for_function(f"document.querySelector('{PLOT}')")
    expect(page.locator("#lens-says")).not_to_have_class(re.compile("at-work"))
    page.get_by_role("tab", name="Methods").click()
    expect(page.locator("#explorer-methods .card").first).to_be_visible()
    behind = "getComputedStyle(document.querySelector('#explorer-methods .thumb'), '::before').content"
    assert page.evaluate(behind) == '"drawing …"'  # where a picture is not there yet
    count = page.locator("#methods-count")
    expect(count).not_to_have_class(re.compile("at-work"))
    waits[0] = True
    page.get_by_role("textbox", name="Search methods and papers").fill("Jacobi")
    expect(count).to_have_class(re.compile("at-work"))
    expect(page.locator("#explorer-methods")).to_have_css("opacity", "0.4")
    release(held, waits)
    expect(count).not_to_have_class(re.compile("at-work"))
    expect(page.locator("#explorer-methods .card:visible h3").first).to_contain_text("Jacobi")


def release(held: list, waits: list) -> None:
    """Lets the requests go on that were held back, and all later ones."""
    waits[0] = False
    while held:
        held.pop().continue_()
