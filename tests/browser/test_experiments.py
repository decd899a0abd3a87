"""The tab Experiments in a real browser: answers in Gradio's own components, in the page's theme."""

import json

import pytest
from playwright.sync_api import expect

from explorer import experiments
from tests.browser.test_page import ready
from visualizers.figures.experiments import figures
from visualizers.figures.theme import theme

STORED = {found["name"]: found for found in experiments.stored()}
PLOTS = "#explorer-tab-experiments .js-plotly-plot"


def choose(page, name: str) -> dict:
    """Opens the tab, chooses an experiment and waits until it and its figures are drawn."""
    found = STORED[name]
    page.get_by_role("tab", name="Experiments", exact=True).click()
    box = page.get_by_role("combobox", name="Experiment")
    expect(box).not_to_have_value("")
    box.click()
    box.fill(found["title"])
    page.get_by_role("option", name=found["title"]).click()
    expect(page.get_by_role("heading", name=found["title"])).to_be_visible()
    expect(page.locator(f"{PLOTS} .main-svg").first).to_be_visible()
    expect(page.locator(PLOTS)).to_have_count(len(figures(found)))
    return found


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


@pytest.mark.parametrize("width", [1400, 390])
def test_an_answer_has_question_figures_captions_and_table(visit, width):
    """Each kind of figure; nothing sticks out of the page, and what is wider scrolls by itself."""
    page = visit(width, 900)
    ready(page)
    for name in EACH:
        found = choose(page, name)
        panel = page.get_by_role("tabpanel", name="Experiments")
        for words in (found["asks"], *found["says"]):
            expect(panel).to_contain_text(words[:60])
        captions = [figure.layout.meta["caption"] for figure in figures(found)]
        expect(panel.locator(".block.caption")).to_have_count(len(captions))
        for at, caption in enumerate(captions):
            expect(panel.locator(".block.caption").nth(at)).to_contain_text(caption[:80])
        for column in found["columns"]:
            expect(panel.get_by_role("columnheader", name=column).first).to_be_attached()
        expect(panel).to_contain_text(f"python -m explorer experiment {name}")
        assert fits(page), name
        if figures(found)[-1].layout.width and width < 400:
            last = panel.locator(".figure.wide .block:has(.js-plotly-plot)").last
            assert last.evaluate("e => e.scrollWidth > e.clientWidth + 100"), name


def test_passages_show_what_is_said_again_and_what_is_cited(visit):
    page = visit()
    ready(page)
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
    ground = f"document.querySelector('{PLOTS}').layout.template.layout.paper_bgcolor"
    page.wait_for_function(f"{ground} === '{theme('dark').surface['bg']}'")
    page.get_by_role("button", name="Switch between light and dark").click()
    page.wait_for_function(f"{ground} === '{theme('light').surface['bg']}'")
    background = "getComputedStyle(document.querySelector('.gradio-container')).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"


def test_the_tab_is_worked_by_keys_alone(visit):
    page = visit()
    ready(page)
    page.get_by_role("tab", name="Decode", exact=True).focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Experiments")).to_be_focused()
    expect(page.get_by_role("combobox", name="Experiment")).not_to_have_value("")
    first = next(iter(STORED.values()))
    expect(page.get_by_role("heading", name=first["title"])).to_be_visible()
    page.get_by_role("combobox", name="Experiment").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(STORED["many-texts"]["title"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=STORED["many-texts"]["title"])).to_be_visible()


def test_a_button_opens_the_decoding_of_a_call(visit):
    """What the generator answered is the text of the lane."""
    page = visit()
    ready(page)
    found = choose(page, "flows-with-feedback")
    last = len(found["calls"])
    expect(page.get_by_role("button", name="in a lane")).to_have_count(last)
    page.get_by_role("button", name=f"Open call {last} in a lane").click()
    says = f"(decodingExplorer.app.run.says || '').startsWith('Call {last} of')"
    page.wait_for_function(f"decodingExplorer.app.section === 'decode' && {says}")
    answer = [m["says"] for m in found["messages"] if m.get("call") == last][-1]
    chips = page.get_by_role("region", name="Lane 1").locator(".dp-chip").all_inner_texts()
    assert answer.partition("text ")[2].replace(" ", "␣") in "".join(chips)


def test_the_stored_answer_is_downloaded_whole(visit):
    page = visit()
    ready(page)
    found = choose(page, "draft-length")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as JSON").click()
    assert json.loads(download.value.path().read_text("utf-8")) == found
    assert download.value.suggested_filename == "draft-length.json"
