"""Methods and Lessons in a real browser: what they say is found, drawn, and opened in the page's lanes."""

import itertools
import re

import pytest
from playwright.sync_api import expect

from explorer.catalog.papers import papers
from tests.browser.test_page import press
from tests.browser.window import resize

WORKING = sum(paper["status"] == "works" for paper in papers())

SIZES = [(1400, 900), (390, 844)]
DRAWN = "image => image.complete && image.naturalWidth > 150 && image.getBoundingClientRect().width > 50"
DRAWN_ON_MAP = """(name) => [...document.querySelectorAll(`.method[data-name=${name}] img`)]
  .some((image) => image.complete && image.naturalWidth)"""
OUTLINED = """([lane, nodes]) => {
  const { chips } = decodingExplorer.lanes[lane], made = [...chips.made.values()];
  if (!chips.root.offsetParent) return true; // a lane that a phone does not show now
  const outlined = made.filter(({ element }) => element.classList.contains("dp-outlined"));
  return nodes.every((node) => outlined.some(({ mark }) => mark.node === node));
}"""


def section(page, name: str):
    page.get_by_role("tab", name=name, exact=True).click()
    return page.get_by_role("tabpanel", name=name, exact=True)


def fits(page) -> bool:
    """Nothing sticks out at the right."""
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture
def methods(again):
    """(page, section): Methods on a page that tests share, wide, with all its cards and papers."""
    page = again(1400, 900)
    found = section(page, "Methods")
    found.get_by_role("textbox", name="Search methods and papers").fill("")
    found.get_by_role("radio", name="All", exact=True).check()
    expect(found.locator("#methods-count")).to_contain_text(f"from {WORKING} papers")
    return page, found


def test_a_card_is_found_drawn_and_opened_in_a_lane(methods):
    """Found on a wide page, where it is as low as on a phone; opened and decoded on a phone."""
    page, methods = methods
    search = methods.get_by_role("textbox", name="Search methods and papers")
    expect(methods.get_by_role("article").nth(9)).to_be_attached()
    first = methods.get_by_role("article").first
    page.wait_for_function(DRAWN, arg=first.locator("img.in-light").element_handle())
    assert not page.evaluate(
        DRAWN, page.locator(".card:last-child img.in-light").element_handle()
    )  # not on screen
    assert not page.evaluate(DRAWN, first.locator("img.in-dark").element_handle())  # of the other theme
    many = methods.get_by_role("article").count()
    search.fill("jacobi")
    card = methods.get_by_role("article", name="Jacobi", exact=True)
    expect(card).to_be_visible()
    expect(methods.get_by_role("article").nth(many // 4)).not_to_be_attached()
    page.wait_for_function(DRAWN, arg=card.locator("img.in-light").element_handle())
    for size in SIZES:
        resize(page, *size)
        assert fits(page) and card.bounding_box()["height"] < 220  # a row, until it is opened
    expect(card).to_contain_text("Unlike Greedy, it guesses a block of positions")
    more = card.locator("summary[aria-label='All about Jacobi']")
    expect(card.get_by_text("Parameters (")).to_be_hidden()
    more.click()
    expect(more).to_have_text("")  # its word, More or Less, is of the style sheet
    expect(card.get_by_text("Parameters (")).to_be_visible()
    source = card.get_by_role("link", name="Accelerating Transformer Inference for Translation")
    expect(source).to_have_attribute("href", "https://aclanthology.org/2023.acl-long.689")
    for size in SIZES:
        resize(page, *size)
        assert fits(page)
    before = page.evaluate("decodingExplorer.lanes.length")
    card.get_by_role("button", name="Open Jacobi in a lane", exact=True).click()
    lane = page.get_by_role("region", name=f"Lane {before + 1}")
    expect(lane.get_by_label("Strategy")).to_have_value("jacobi")
    expect(lane.get_by_label("Strategy")).to_be_focused()
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done'")
    assert page.evaluate("decodingExplorer.lanes.at(-1).count") > 1


def test_open_in_a_lane_replaces_the_last_of_four(methods):
    page = methods[0]
    for title in ("Greedy", "Sampling", "Diverse beam search"):
        section(page, "Methods").get_by_role("button", name=f"Open {title} in a lane").click()
    shown = page.evaluate("decodingExplorer.lanes.map(l => l.strategy)")
    assert shown == ["beam", "speculative", "greedy", "diverse_beam"]


def test_search_and_family_narrow_cards_and_papers_and_say_how_many(methods):
    page, methods = methods
    search = methods.get_by_role("textbox", name="Search methods and papers")
    family = methods.get_by_role("combobox", name="Family")
    status, table = methods.locator("#methods-count"), methods.get_by_role("grid", name="Papers", exact=True)

    def choose(name: str) -> None:
        family.click()
        family.fill(name)
        page.get_by_role("option", name=name, exact=True).click()

    choose("Papers: Draft heads")
    expect(status).to_contain_text("24 methods · 28 papers here")
    expect(methods.get_by_role("article")).to_have_count(24)
    choose("Methods: Draft and verify")
    expect(table).to_contain_text("✓ works: ")
    expect(methods.get_by_role("article").nth(2)).to_be_visible()
    choose("All families")
    search.fill("fast inference from transformers")
    expect(table).to_contain_text(re.compile("✓ works: .*Speculative decoding"))
    search.fill("zzz no such title")
    expect(status).to_contain_text("Nothing found for “zzz no such title”. Try fewer words.")
    search.fill("<img src=x>")
    expect(status).to_contain_text("Nothing found for “<img src=x>”")
    search.fill("nucleus")
    expect(methods.get_by_role("article")).to_have_count(1)
    search.fill("LEANK")
    expect(status).to_contain_text("0 methods · 1 paper here")
    search.press("Tab")
    expect(family).to_be_focused()


def test_a_paper_that_does_not_run_has_a_card_and_a_miniature(methods):
    page, methods = methods
    methods.get_by_role("radio", name="Miniature").check()
    table = methods.get_by_role("grid", name="Papers", exact=True)
    expect(table).not_to_contain_text("✓ works")
    table.get_by_text("Transformers Meet Directed Graphs").click()
    card = methods.locator("#paper-card")
    expect(card).to_contain_text("The paper itself does not run here.")
    expect(card).to_contain_text("Nearest here.")
    expect(methods.get_by_text("Tokens of a beam search, placed by phase.")).to_be_visible()


def test_the_map_of_decoding_is_open_says_what_is_pointed_at_and_leads_to_cards(methods):
    """Pointed at and pressed on a wide page; touched on a phone, where the first touch says and the second
    leads. Both sizes have room for it, and lead to a row that the search has hidden.
    """
    page, methods = methods
    found = methods.get_by_role("navigation", name="Map of decoding")
    assert found.locator(".method").count() == methods.locator("article").count()
    says = found.locator(".map-says")
    medusa = found.get_by_role("link", name="Medusa 2024: drafts with heads")
    medusa.hover()
    expect(says).to_contain_text("Medusa 2024 drafts with heads on the target's own state")
    lit = page.evaluate("[...document.querySelectorAll('.grew.lit')].map((line) => line.dataset.to)")
    assert set(lit) == {"medusa", "blockwise"}  # its line back to the root, which has none
    page.wait_for_function(DRAWN_ON_MAP, arg="medusa")
    found.locator(".method[data-name=greedy]").focus()
    page.keyboard.press("ArrowRight")
    expect(says).to_contain_text("Sampling 2019")
    assert page.evaluate("document.querySelectorAll('.method[tabindex=\"0\"]').length") == 1
    methods.get_by_role("textbox", name="Search methods and papers").fill("jacobi")
    expect(found.locator(".method.off").first).to_be_attached()
    expect(found.locator(".method[data-name=jacobi]")).to_be_in_viewport()
    for size, name in zip(SIZES, ("Sequoia", "SCMoE"), strict=True):
        resize(page, *size)
        assert fits(page)
        row = methods.get_by_role("article", name=name, exact=True)
        expect(row).to_be_hidden()
        found.get_by_role("link", name=f"{name} 2024:").click()
        expect(row).to_be_in_viewport()
        expect(row.get_by_text("Parameters (")).to_be_visible()


def test_the_map_is_made_larger_dragged_and_shown_whole(methods):
    page, methods = methods
    found = methods.get_by_role("navigation", name="Map of decoding")
    view = found.get_by_role("region", name="Map, scrollable")
    wide = "e => e.querySelector('.map-sheet').getBoundingClientRect().width"
    before = view.evaluate(wide)
    expect(found.locator(".far").first).to_be_visible()  # large letters on a small map
    for _ in range(2):
        found.get_by_role("button", name="+").click()
    assert view.evaluate(wide) == pytest.approx(before * 1.4**2, rel=0.01)
    expect(found.locator(".near").first).to_be_visible()
    expect(found.locator(".far").first).to_be_hidden()
    found.get_by_role("button", name="Diffusion").click()
    expect(found.locator("svg [data-family=diffusion]")).to_be_in_viewport()
    left, top = view.evaluate("e => [e.scrollLeft, e.scrollTop]")
    box = view.bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 230, steps=4)
    page.mouse.up()
    assert view.evaluate("e => [e.scrollLeft, e.scrollTop]") == pytest.approx([left + 100, top - 30], abs=4)
    found.get_by_role("button", name="Whole map").click()
    assert view.evaluate("e => e.scrollHeight <= e.clientHeight + 1")


def test_a_phone_shows_the_first_of_long_lists_until_all_are_asked_for(methods):
    page, methods = methods
    resize(page, *SIZES[1])
    page.evaluate("location.hash = 'explorer-main'")  # a card that the address names is shown, too
    expect(methods.locator("article:visible")).to_have_count(10)
    rest = methods.get_by_role("button", name="Show all methods")
    rest.click()
    expect(methods.locator("article:visible")).to_have_count(methods.locator("article").count())
    expect(rest).to_be_hidden()
    assert page.evaluate(
        "document.activeElement.closest('article') === document.querySelectorAll('.card')[10]"
    )
    experiments = section(page, "Experiments")
    group = experiments.get_by_role("list").first
    expect(group.locator("li:visible")).to_have_count(3)
    rest = experiments.get_by_role("button", name=re.compile(r"^Show all \d+ of this group$")).first
    count = group.locator("li").count()
    expect(rest).to_have_text(f"Show all {count} of this group")
    rest.click()
    expect(group.locator("li:visible")).to_have_count(count)
    resize(page, *SIZES[0])
    expect(experiments.get_by_role("button", name=re.compile("^Show all"))).to_have_count(0)


def test_a_touch_says_what_a_method_is_and_the_second_one_leads_to_its_card(app, chromium):
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.goto(app.address)
    found = section(page, "Methods").get_by_role("navigation", name="Map of decoding")
    greedy = found.locator(".method[data-name=greedy]")
    expect(greedy).to_be_visible()
    assert min(greedy.bounding_box()[side] for side in ("width", "height")) >= 44
    assert all(one.bounding_box()["height"] >= 44 for one in found.get_by_role("button").all())
    row = page.get_by_role("article", name="Greedy", exact=True)
    greedy.tap()
    expect(found.locator(".map-says")).to_contain_text("takes the most likely token at every position")
    expect(row.get_by_text("Parameters (")).to_be_hidden()
    greedy.tap()
    expect(row.get_by_text("Parameters (")).to_be_visible()
    context.close()


def test_the_map_of_papers_is_drawn_when_it_comes_into_sight(methods):
    page, methods = methods
    place = methods.locator("#papers-map")
    height = place.bounding_box()["height"]
    place.scroll_into_view_if_needed()
    expect(place.locator(".main-svg").first).to_be_visible()
    expect(place.get_by_text("Drawing the map …")).to_be_hidden()
    assert place.bounding_box()["height"] == height and fits(page)


def begin(page, title: str):
    """Starts a lesson and waits until it can go on; the guide beside the lanes."""
    lessons = section(page, "Lessons")
    lessons.get_by_role("button", name=re.compile(f"^Start lesson .*: {title}$")).click()
    guide = page.get_by_role("region", name="Lesson", exact=True)
    expect(guide.get_by_role("button", name="Start", exact=True)).to_be_enabled()
    return guide


def told(page, lesson: str) -> list[dict]:
    """What the server says of the run on screen."""
    return page.evaluate(
        "lesson => decodingExplorer.call('explorer_lesson', {run: decodingExplorer.run, lesson})", lesson
    )["stops"]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_lesson_runs_stops_asks_and_answers_from_the_run(again, width, height):
    page = again(width, height)
    guide = begin(page, "Greedy against sampling")
    assert page.evaluate("decodingExplorer.lanes.map(l => l.strategy)") == ["greedy", "sample"]
    stops = told(page, "greedy-or-sampling")
    guide.get_by_role("button", name="Start", exact=True).click()
    progress = guide.get_by_role("progressbar")
    answered = 0
    for number, stop in enumerate(stops, 1):
        expect(guide.get_by_text(f"Stop {number} of {len(stops)}")).to_be_visible()
        expect(progress).to_have_attribute("value", str(number))
        expect(guide.get_by_text(stop["text"], exact=True).first).to_be_visible()
        assert page.evaluate("decodingExplorer.app.playback.position") == stop["step"] + 1
        for lane, nodes in stop["nodes"].items():
            page.wait_for_function(OUTLINED, arg=[int(lane) - 1, nodes])
        if stop["holds"]:
            answered += answer(guide, stop)
        assert fits(page)
        guide.locator(".guide-foot .primary").click()
    assert answered >= 2
    expect(guide.get_by_text("That was the last stop.")).to_be_visible()
    guide.get_by_role("button", name="Back", exact=True).click()
    expect(guide.get_by_text(f"Stop {len(stops)} of {len(stops)}")).to_be_visible()
    guide.get_by_role("button", name="Leave the lesson").click()
    expect(guide).to_be_hidden()
    assert page.evaluate("document.querySelectorAll('.dp-outlined').length") == 0
    assert page.evaluate("decodingExplorer.lanes.map(l => l.strategy)") == ["greedy", "sample"]


def answer(guide, stop: dict) -> int:
    """Chooses a wrong answer where there is one and looks for what the guide says then."""
    body = guide.locator(".guide-body")  # what stands beside it is for paper
    expect(body.get_by_text(stop["question"], exact=True)).to_be_visible()
    expect(body.get_by_text(stop["answer"])).to_have_count(0)
    if not stop["choices"]:
        guide.get_by_role("button", name="Think, then look").click()
    else:
        wrong = next(choice for choice in stop["choices"] if not choice["right"])
        guide.get_by_role("button", name=wrong["text"]).press("Enter")
        expect(guide.get_by_text("Not quite.")).to_be_visible()
        right = next(choice for choice in stop["choices"] if choice["right"])
        guide.get_by_role("button", name=right["text"]).click()
        expect(guide.get_by_text("Right.")).to_be_visible()
    expect(body.get_by_text(stop["answer"])).to_be_visible()
    return 1


def test_a_lesson_tells_of_the_run_on_screen_and_says_when_the_lanes_are_others(again):
    page = again()
    guide = begin(page, "Greedy against sampling")
    guide.get_by_role("button", name="Start", exact=True).click()
    guide.get_by_role("button", name="Next", exact=True).click()
    before = told(page, "greedy-or-sampling")[1]
    expect(guide.get_by_text(before["text"], exact=True).first).to_be_visible()
    page.get_by_role("textbox", name="Prompt").fill("Another beginning")
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done'")
    after = told(page, "greedy-or-sampling")[1]
    assert after["text"] != before["text"]
    expect(guide.get_by_text(after["text"], exact=True).first).to_be_visible()
    page.get_by_role("button", name="Remove lane").last.click()
    press(page, "Run")
    expect(guide.get_by_text("These lanes are no longer those of the lesson")).to_be_visible()
    guide.get_by_role("button", name="Restart").click()
    expect(guide.get_by_text("Before you start")).to_be_visible()
    expect(guide.get_by_role("button", name="Start", exact=True)).to_be_enabled(timeout=60_000)
    assert page.evaluate("decodingExplorer.lanes.length") == 2


def test_the_path_marks_what_was_begun_and_done_and_a_lesson_leads_to_the_next(again):
    page = again()
    page.evaluate("localStorage.removeItem('explorer-lessons')")
    guide = begin(page, "Greedy against sampling")
    for _ in range(page.evaluate("decodingExplorer.app.guide.lesson.stops.length") + 1):
        guide.locator(".guide-foot .primary").click()
    expect(guide.get_by_text("2. Speculative acceptance and the residual")).to_be_visible()
    guide.get_by_role("button", name="Next lesson").click()
    expect(guide.get_by_role("heading", name="Speculative acceptance and the residual")).to_be_visible()
    states = "[...document.querySelectorAll('.station')].map((lesson) => lesson.dataset.state)"
    lessons = section(page, "Lessons")
    expect(lessons.get_by_text("· ✓ done")).to_be_visible()
    assert page.evaluate(states)[:3] == ["done", "begun", ""]
    assert lessons.locator("button.primary").count() == 1
    expect(lessons.locator(".station.next")).to_contain_text("2. Speculative acceptance")
    for size in SIZES:
        resize(page, *size)
        assert fits(page)


@pytest.mark.parametrize("width", [1400, 1920])
def test_badges_beside_the_guide_are_whole(again, width):
    page = again(width, 900)
    guide = begin(page, "Exact, by a biased coin")
    for _ in range(2):
        guide.locator(".guide-foot .primary").click()
    cut = """[...document.querySelectorAll('.lane .badge')].filter((badge) => badge.offsetParent)
      .map((badge) => [badge.textContent, badge.scrollWidth <= badge.clientWidth])"""
    badges = page.evaluate(cut)
    assert len(badges) >= 6 and all(whole for _, whole in badges), badges


def test_the_rows_of_four_samplers_beside_the_guide_are_as_high_as_type(again):
    page = again(1400, 900)
    begin(page, "Temperature and top-p")
    page.wait_for_function("decodingExplorer.lanes.every((lane) => lane.scene.drawn.length > 9)")
    for lane in range(4):
        names = page.get_by_role("region", name=f"Lane {lane + 1}", exact=True).locator(".scene text")
        boxes = [box for box in (name.bounding_box() for name in names.all()) if box]
        left = min(box["x"] for box in boxes)
        gutter = sorted(box["y"] for box in boxes if box["x"] < left + 70)
        assert len(gutter) >= 4
        assert all(below - above >= 14 for above, below in itertools.pairwise(gutter)), gutter


@pytest.mark.parametrize(
    "title", ["Why beam search repeats itself", "Draft trees", "Jacobi and dependencies"]
)
def test_lessons_of_every_kind_of_picture_can_be_started_and_gone_through(again, title):
    page = again()
    page.wait_for_function("decodingExplorer.app.models.state === 'ready'")
    guide = begin(page, title)
    for _ in range(page.evaluate("decodingExplorer.app.guide.lesson.stops.length") + 1):
        guide.locator(".guide-foot .primary").click()
    expect(guide.get_by_text("That was the last stop.")).to_be_visible()


def test_a_stop_that_counts_shows_the_whole_run_and_the_next_one_follows_again(again):
    page = again()
    begin(page, "Greedy against sampling")
    shown = "decodingExplorer.lanes.map(({ scene }) => [scene.view.lo, scene.view.columns])"
    page.evaluate("decodingExplorer.app.guide.go(3)")  # another view, so that the picture comes later
    page.evaluate("decodingExplorer.app.guide.go(2)")
    page.wait_for_function(f"JSON.stringify({shown}) === '[[1,40],[1,40]]'")
    page.evaluate("decodingExplorer.app.guide.go(1)")
    page.wait_for_function(
        "decodingExplorer.lanes.every(({ scene }) => scene.hand.follow && scene.view.columns < 40)"
    )


def test_a_lesson_on_paper_asks_everything_and_answers_last(again):
    page = again()
    guide = begin(page, "Greedy against sampling")
    stops = [stop for stop in told(page, "greedy-or-sampling") if stop["holds"]]
    guide.get_by_role("button", name="Start", exact=True).click()
    page.emulate_media(media="print")
    for stop in stops:
        expect(guide.get_by_text(stop["question"], exact=True).last).to_be_visible()
        for choice in stop["choices"]:
            expect(guide.get_by_text("☐ " + choice["text"], exact=True)).to_be_visible()
    expect(guide.get_by_role("button")).to_have_count(0)
    lane = page.get_by_role("region", name="Lane 2").bounding_box()
    answers = page.get_by_text("Answers", exact=True)
    assert answers.bounding_box()["y"] > lane["y"] + lane["height"]
    sheets = pages_of(page)
    page.evaluate("decodingExplorer.app.guide.solutions.remove()")
    assert pages_of(page) == sheets - 1  # the answers, whole and alone


def pages_of(page) -> int:
    """How many sheets the page is on paper."""
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", page.pdf(format="A4")))


def test_a_page_that_is_saved_in_a_lesson_leads_through_it_without_a_server(again, chromium, tmp_path):
    page = again()
    begin(page, "Draft trees")
    stops = told(page, "draft-trees")
    section(page, "Traces")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save", exact=True).click()
    download.value.save_as(file := tmp_path / "lesson.html")
    context = chromium.new_context(offline=True)
    saved = context.new_page()
    saved.goto(file.as_uri())
    guide = saved.get_by_role("region", name="Lesson", exact=True)
    guide.get_by_role("button", name="Start", exact=True).click()
    for stop in stops:
        expect(guide.get_by_text(stop["text"], exact=True).first).to_be_visible()
        if stop["holds"]:
            assert answer(guide, stop)
        guide.locator(".guide-foot .primary").click()
    expect(guide.get_by_text("That was the last stop.")).to_be_visible()
    context.close()


def test_the_map_of_papers_follows_the_search_and_opens_a_paper(methods):
    page, methods = methods
    search = methods.get_by_role("textbox", name="Search methods and papers")
    search.fill("DySpec")
    names = methods.locator(".figure .js-plotly-plot .textpoint a")
    methods.locator("#papers-map").scroll_into_view_if_needed()
    expect(names.filter(has_text="DySpec: ")).to_have_count(1)
    names.filter(has_text="DySpec: ").click(force=True)
    expect(methods.locator("#paper-card")).to_contain_text("It works here")
    expect(methods.locator("#paper-card")).to_be_in_viewport()
    assert "#paper=dyspec" in page.url
    search.fill("Flow++")
    expect(names.filter(has_text="DySpec: ")).to_have_count(0)
    expect(methods.locator(".figure .prose.caption")).to_contain_text("1 paper of 193")
