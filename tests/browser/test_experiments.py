"""The tab Experiments in a real browser: answers in Gradio's own components, in the page's theme."""

import json
import re

import pytest
from playwright.sync_api import expect

from explorer import experiments
from explorer.experiments.groups import GROUPS
from tests.browser.test_page import all_drawn, ready
from tests.browser.window import resize, switch
from visualizers.figures.experiments import figures
from visualizers.figures.theme import theme

STORED = {found["name"]: found for found in experiments.stored()}
PANEL = "#explorer-tab-experiments"
PLOTS = f"{PANEL} .js-plotly-plot"


@pytest.fixture
def wide(shared):
    """A page which the tests share, at its lanes, with all experiments in the catalogue. For tests that only
    look, or leave it so that this can put it back.
    """
    page = shared(1400, 900)
    resize(page, 1400, 900)
    ready(page)
    page.get_by_role("tab", name="Experiments", exact=True).click()
    to_cards(page)
    page.get_by_role("textbox", name="Search experiments").fill("")
    expect(page.locator("#experiment-catalogue").get_by_role("link")).to_have_count(len(STORED))
    page.get_by_role("tab", name="Decode", exact=True).click()
    return page


def catalogue(page):
    """Opens the tab with its cards; returns their place."""
    page.get_by_role("tab", name="Experiments", exact=True).click()
    cards = to_cards(page)
    expect(cards.get_by_role("link").first).to_be_visible()
    return cards


def to_cards(page):
    """Goes back to the cards from an experiment that may be open; returns their place."""
    back = page.locator(f"{PANEL} a[href='#experiments']:visible")
    back.or_(page.locator(PANEL).get_by_label("Search experiments").locator("visible=true")).first.wait_for()
    if back.count():
        back.click()
    return page.locator("#experiment-catalogue")


def choose(page, name: str) -> dict:
    """Opens the tab, chooses an experiment by its card and waits until it and its figures are drawn."""
    found, cards = STORED[name], catalogue(page)
    rests = cards.get_by_role("button")  # of the groups, on a phone
    while rests.count():
        rests.first.click()
    cards.get_by_role("link", name=found["title"]).click()
    drawn_whole(page, found)
    return found


def drawn_whole(page, found: dict) -> None:
    """Waits until an experiment and its figures are there."""
    # To ask the whole page for a role again and again takes long: first wait for what will have it.
    page.locator(f"{PANEL} :is(h1, h2, h3):visible").filter(has_text=found["title"]).first.wait_for()
    expect(page.get_by_role("heading", name=found["title"])).to_be_visible()
    shown = len(figures(found))
    if shown:
        expect(page.locator(f"{PLOTS} .main-svg").first).to_be_visible()
    all_drawn(page, PLOTS, shown)


def fits(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# One of each kind: curves with intervals, heat and spread, board, clouds, maps of a text, passages, messages.
EACH = (
    "cost-and-accuracy",
    "decoders-swept",
    "program-search",
    "likelihood-and-utility",
    "routes-per-token",
    "hyperfitting",
    "flows-with-feedback",
)


def test_an_answer_has_question_figures_captions_and_table(wide):
    """Each kind of figure; every other one is opened on a phone, then all see the other size, too. In both
    nothing sticks out of the page, and on a phone what is wider scrolls by itself.
    """
    page, sizes = wide, [(1400, 900), (390, 900)]
    for name in EACH:
        found = choose(page, name)
        panel = page.locator(PANEL)
        for words in (found["finding"], found["asks"], *found["says"]):
            expect(panel).to_contain_text(words[:60])
        captions = [figure.layout.meta["caption"] for figure in figures(found)]
        expect(panel.locator(".block.caption")).to_have_count(len(captions))
        for at, caption in enumerate(captions):
            expect(panel.locator(".block.caption").nth(at)).to_contain_text(caption[:80])
        table = panel.locator(".experiment-table")
        for column in found["columns"]:
            expect(table.get_by_role("columnheader", name=column).first).to_be_attached()
        expect(panel).to_contain_text(f"python -m explorer experiment {name}")
        for size in sizes:
            resize(page, *size)
            assert fits(page), (name, size)
            if figures(found)[-1].layout.width and size[0] < 400:
                last = panel.locator(".figure.wide .block:has(.js-plotly-plot)").last
                assert last.evaluate("e => e.scrollWidth > e.clientWidth + 100"), name
        sizes.reverse()


def test_passages_show_what_is_said_again_and_what_is_cited(wide):
    page = wide
    found = choose(page, "hyperfitting")
    picture = next(one for one in found["pictures"] if one["kind"] == "passages")
    pieces = [piece for row in picture["texts"] for text in row for piece in text]
    for kind in ("again", "cited"):
        marked = [words for words, marks in pieces if kind in marks.split()]
        shown = page.locator(f".passages mark.{kind}").all_text_contents()
        assert shown == marked and marked, kind


def test_figures_follow_the_theme_of_the_page(visit):
    page = visit(color_scheme="dark")
    ready(page)
    choose(page, "draft-length")
    ground = f"document.querySelector('{PLOTS}')?.layout.template.layout.paper_bgcolor"
    page.wait_for_function(f"{ground} === '{theme('dark').surface['bg']}'")
    page.get_by_role("button", name="Switch between light and dark").click()
    page.wait_for_function(f"{ground} === '{theme('light').surface['bg']}'")
    background = "getComputedStyle(document.querySelector('.gradio-container')).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"


def test_the_tab_is_worked_by_keys_alone(wide):
    page = wide
    page.get_by_role("tab", name="Decode", exact=True).focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Experiments")).to_be_focused()
    search = page.get_by_role("textbox", name="Search experiments")
    search.focus()
    page.keyboard.type("lattice forwards")
    links = page.locator("#experiment-catalogue").get_by_role("link")
    expect(links).to_have_count(1)
    page.keyboard.press("Tab")
    expect(links.first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=STORED["many-texts"]["title"])).to_be_visible()
    back = page.get_by_role("link", name="All experiments")
    expect(back).to_be_focused()
    page.keyboard.press("Enter")
    expect(links.first).to_be_visible()
    expect(search).to_have_value("lattice forwards")


def test_the_catalogue_shows_groups_with_a_picture_and_a_finding_each(wide):
    """Its words on a wide page, where its parts stand there and on a phone."""
    page = wide
    cards = catalogue(page)
    expect(cards.get_by_role("heading")).to_have_text(list(GROUPS))
    expect(cards.get_by_role("link")).to_have_count(len(STORED))
    first = STORED[next(iter(GROUPS.values()))[0]]
    expect(cards.get_by_role("link").first).to_contain_text(f"{first['title']} {first['finding']}")
    for width in (1400, 390):
        resize(page, width, 900)
        assert_whole(cards)
        assert fits(page)


def assert_whole(cards) -> None:
    """Picture and words stand beside each other on every card, which is as high as a finger needs it."""
    boxes = cards.get_by_role("link").evaluate_all(
        "all => all.map((a) => [a, a.querySelector('svg'), a.querySelector('span')]"
        ".map((e) => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; }))"
    )
    for card, picture, words in boxes:
        assert picture[2] <= words[0], "the picture stands beside the words"
        for part in (picture, words):
            assert card[0] <= part[0] and part[2] <= card[2] and card[1] <= part[1] and part[3] <= card[3]
        assert card[3] - card[1] >= 44


def test_words_that_fit_nothing_say_so_and_are_no_markup(wide):
    page = wide
    cards = catalogue(page)
    page.get_by_role("textbox", name="Search experiments").fill("<img src=x onerror=alert(1)>")
    expect(cards).to_contain_text("No experiment matches “<img src=x onerror=alert(1)>”. Try fewer words.")
    assert cards.locator("img").count() == 0


def test_an_experiment_has_an_address_of_its_own(wide):
    """The address opens it, the browser's back button closes it, and a wrong one says so."""
    page = wide
    page.evaluate("location.hash = '#experiment=draft-length'")
    drawn_whole(page, STORED["draft-length"])
    expect(page.get_by_role("tab", name="Experiments")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#experiment-catalogue")).to_be_hidden()
    page.go_back()
    expect(page.locator("#experiment-catalogue").get_by_role("link").first).to_be_visible()
    expect(page.get_by_role("heading", name=STORED["draft-length"]["title"])).to_have_count(0)
    page.evaluate("location.hash = '#experiment=alchemy'")
    expect(page.get_by_role("tabpanel", name="Experiments")).to_contain_text(
        "There is no experiment “alchemy”."
    )
    page.get_by_role("link", name="All experiments").click()
    expect(page.locator("#experiment-catalogue").get_by_role("link").first).to_be_visible()


def test_a_link_to_an_experiment_opens_it_when_the_page_is_loaded(wide):
    page = wide
    page.evaluate("location.hash = '#experiment=many-texts'")
    page.reload()
    drawn_whole(page, STORED["many-texts"])


def test_cells_are_shaded_by_their_value(wide):
    """In both themes the greatest number of a column is shaded most; words and the first column are not."""
    page = wide
    choose(page, "draft-length")
    cells = page.locator(".experiment-table").get_by_role("gridcell")

    def ground(text: str) -> str:
        return cells.filter(has_text=text).first.evaluate("e => getComputedStyle(e).backgroundColor")

    for scheme in ("dark", "light"):
        switch(page, scheme)
        shades = [float(re.search(r"srgb ([\d.]+)", ground(text))[1]) for text in ("1.722", "2.866", "3.552")]
        assert len(set(shades)) == 3 and shades == sorted(shades, reverse=scheme == "light")
        assert "srgb" not in cells.first.evaluate("e => getComputedStyle(e).backgroundColor"), (
            "the column that names the row is plain"
        )


def test_a_button_opens_the_decoding_of_a_call(visit):
    """What the generator answered is the text of the lane."""
    page = visit()
    ready(page)
    found = choose(page, "flows-with-feedback")
    last = len(found["calls"])
    expect(page.get_by_role("button", name="in a lane")).to_have_count(last)
    page.get_by_role("button", name=f"Open call {last} in a lane").click()
    says = f"(decodingExplorer.app.run.message || '').startsWith('Call {last} of')"
    page.wait_for_function(f"decodingExplorer.app.section === 'decode' && {says}")
    answer = [m["says"] for m in found["messages"] if m.get("call") == last][-1]
    chips = "[...document.querySelector('.lane').querySelectorAll('.dp-chip')].map((chip) => chip.innerText)"
    text = answer.partition("text ")[2].replace(" ", "␣")
    page.wait_for_function(f"text => {chips}.join('').includes(text)", arg=text)  # it comes later


def test_the_stored_answer_is_downloaded_whole(wide):
    page = wide
    found = choose(page, "draft-length")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as JSON").click()
    assert json.loads(download.value.path().read_text("utf-8")) == found
    assert download.value.suggested_filename == "draft-length.json"
