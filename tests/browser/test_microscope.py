"""The tab Microscope: what it shows is what visualizers.analysis finds in the traces of the run on screen."""

import io

import pytest
from PIL import Image
from playwright.sync_api import expect

from decoders.trace.trace import from_json
from explorer.page.tabs.metrics import value_text
from explorer.page.tabs.microscope import ROWS
from tests.browser.test_page import press, quiet, trace
from tests.browser.window import resize
from visualizers.analysis.draft_what_if import what_if
from visualizers.analysis.drafted_tokens import drafted_tokens, grouped
from visualizers.analysis.speculation_report import microscope
from visualizers.figures.theme import theme

LANES = [
    {"strategy": "greedy"},
    {"strategy": "speculative", "parameters": {"num_assistant_tokens": 4, "temperature": 1.0}},
    {"strategy": "speculative_tree", "parameters": {"widths": [2, 1], "temperature": 1.0}},
]
COUNT = sum(map(len, ROWS))
WIDE, PHONE = (1400, 900), (390, 844)
# Whether all figures are drawn on a ground; scrolls to the next that waits until it comes near the window.
ALL_ON = """ground => {
  const places = [...document.querySelectorAll("#explorer-tab-microscope .figure")].filter((place) => place.offsetParent);
  places.find((place) => place.querySelector(".figure-undrawn"))?.scrollIntoView();
  const plots = places.map((place) => place.querySelector(".js-plotly-plot"));
  return plots.length > 9 && plots.every((plot) => plot?.layout.template.layout.paper_bgcolor === ground);
}"""  # noqa: E501


@pytest.fixture
def page(shared):
    """A wide page that the tests share."""
    found = shared(*WIDE)
    resize(found, *WIDE)
    return found


def section(page):
    return page.locator("#explorer-tab-microscope")


def figure(page, title: str):
    """The plot of this title, which is drawn as it comes near the window."""
    place(page, title).scroll_into_view_if_needed()
    return place(page, title).locator(".js-plotly-plot")


def place(page, title: str):
    """What the plot of this title stands in."""
    return section(page).get_by_role("group", name=title).first


def data(page, title: str) -> list[dict]:
    """What the figure of this title draws: kind, number of places and of whiskers of each of its traces."""
    return figure(page, title).evaluate(
        """plot => plot.data.map((one) => ({ type: one.type || "scatter", points: (one.x || []).length,
        whiskers: one.error_y ? one.error_y.array.length : 0 }))"""
    )


def decode(page, lanes: list[dict], tokens: int = 10) -> None:
    page.wait_for_function("decodingExplorer.app.models.state === 'ready'")
    page.get_by_role("tab", name="Decode").click()
    setup = {"prompt": "Once upon a time", "max_new_tokens": tokens, "lanes": lanes}
    page.evaluate("setup => decodingExplorer.app.applySetup(setup)", setup)
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done'", timeout=60_000)
    page.get_by_role("tab", name="Microscope").click()


def fits(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_lane_that_drafts_is_shown_with_the_numbers_of_its_trace(page):
    """One lane on a wide page, the other on a phone; both sizes have room for the tab and all below it."""
    decode(page, LANES)
    for lane, size in ((1, WIDE), (2, PHONE)):
        resize(page, *size)
        found = microscope(from_json(trace(page, lane)))
        name = ["", "2 Speculative decoding", "3 Speculative tree"][lane]
        choice = section(page).get_by_role("radio", name=name)
        choice.click()
        expect(page.locator("#microscope-sentence")).to_contain_text(found["sentence"])
        expect(choice).to_be_checked()
        table = section(page).locator(".gradio-dataframe, .block").filter(has_text="vLLM's metrics").last
        for one in found["metrics"]:
            if not isinstance(one["value"], list):
                row = table.get_by_role("row").filter(has_text=f"{one['name']}")
                expect(row.filter(has_text=value_text(one["value"])).first).to_be_attached()
        expect(figure(page, "Accepted tokens per round")).to_be_visible()
        assert data(page, "Accepted tokens per round")[0]["points"] == len(found["histogram"])
        whiskers = [one["whiskers"] for one in data(page, "Is the draft calibrated?") if one["whiskers"]]
        assert whiskers == [len(one["bins"]) for one in found["reliability"]]
        plot = section(page).get_by_role("group", name="Acceptance by depth:")
        plot.focus()
        for key in ("ArrowRight", "ArrowLeft"):  # to the first place, wherever it was read before
            page.keyboard.press(key)
        first = found["depths"][0]
        expect(plot.get_by_role("status")).to_contain_text(
            f"{first['drafted']} drafted, {first['accepted']} of {first['tested']} tested"
        )
        captions = section(page).locator(".figure .caption")
        assert all(len(text.strip()) > 20 for text in captions.all_inner_texts()[:COUNT])
        assert fits(page)
        tab = page.get_by_role("tab", name="Microscope")
        assert tab.evaluate(
            "tab => tab.getBoundingClientRect().right <= tab.parentElement.getBoundingClientRect().right + 1"
        )


def test_it_follows_the_slider_and_the_theme_and_rests_while_nothing_changes(page):
    decode(page, LANES[1:2])
    found = from_json(trace(page, 0))
    expect(page.locator("#microscope-sentence")).to_contain_text(microscope(found)["sentence"])
    expect(section(page).get_by_role("radio", name="1 Speculative decoding")).to_be_hidden()  # no choice
    page.evaluate("decodingExplorer.app.playback.seek(1, true)")
    expect(page.locator("#microscope-sentence")).to_contain_text(microscope(found, 1)["sentence"])
    bars = figure(page, "round by round")
    expect(bars).to_be_visible()
    ground = "plot => plot.layout.template.layout.paper_bgcolor"
    assert bars.evaluate(ground) == theme("light").surface["bg"]
    page.get_by_role("button", name="Switch between light and dark").click()
    page.wait_for_function(ALL_ON, arg=theme("dark").surface["bg"])
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "queue/join" in request.url else None)
    quiet(page, asked)
    bars.evaluate("plot => { plot.dataset.kept = 'yes'; }")
    page.wait_for_timeout(1500)
    expect(bars).to_have_attribute("data-kept", "yes")
    assert asked == []


def test_rejected_tokens_are_walked_beside_their_tests_and_opened_in_decode(page):
    decode(page, LANES[:2], 24)
    rows = drafted_tokens(from_json(trace(page, 1)))
    rejected = [row for row in rows if row["fate"] == "rejected"]
    assert len(rejected) > 2
    page.evaluate("decodingExplorer.app.playback.seek(1, true)")  # the table is of the whole run
    tokens, card = (
        page.locator("#rejected-tokens [role=gridcell]:nth-child(3)"),
        page.locator("#rejection-card"),
    )
    expect(tokens).to_have_count(len(rejected))
    title = card.locator(".title")
    expect(title).to_contain_text(f"step {rejected[0]['step']}: “{rejected[0]['token']}”")
    tokens.nth(1).click()
    expect(title).to_contain_text(f"step {rejected[1]['step']}: “{rejected[1]['token']}”")
    page.get_by_role("button", name="↓ Next").click()
    expect(title).to_contain_text(f"step {rejected[2]['step']}: “{rejected[2]['token']}”")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Shift+N")
    expect(title).to_contain_text(f"step {rejected[1]['step']}: “{rejected[1]['token']}”")
    tokens.nth(1).focus()
    page.keyboard.press("ArrowDown")
    expect(title).to_contain_text(f"step {rejected[2]['step']}: “{rejected[2]['token']}”")
    page.evaluate("decodingExplorer.app.lanes[1].showView('text')")
    page.get_by_role("button", name="Open its round in Decode").click()
    expect(page.get_by_role("tab", name="Decode")).to_have_attribute("aria-selected", "true")
    lane, row = "decodingExplorer.app.lanes[1]", rejected[2]
    page.wait_for_function(f"{lane}.scene.drawn.some(mark => mark.node === {row['node']})")
    assert page.evaluate(f"[{lane}.shown, {lane}.view]") == [row["step"], "draft_rounds"]
    page.get_by_role("tab", name="Microscope").click()
    expect(title).to_contain_text(f"step {row['step']}: “{row['token']}”")  # it is where it was
    expect(tokens).to_have_count(len(rejected))


def test_the_table_of_rejections_shows_all_its_columns_on_a_large_screen(page):
    resize(page, 1920, 1080)
    decode(page, LANES)
    table = page.locator("#rejected-tokens")
    table.scroll_into_view_if_needed()
    headers = table.get_by_role("columnheader").locator("visible=true")
    expect(headers.filter(has_text="Step").first).to_be_visible()
    room = table.bounding_box()
    assert room["width"] > 1000
    for header in headers.all():
        box = header.bounding_box()
        assert box["x"] + box["width"] <= room["x"] + room["width"] + 1, header.inner_text()
    assert fits(page)


def test_the_contents_list_stays_on_top_and_says_which_section_is_on_show(page):
    decode(page, LANES)
    contents = section(page).get_by_role("navigation", name="Sections of this tab")
    contents.get_by_role("button", name="Another machine").click()
    current = contents.locator("[aria-current=true]")
    expect(current).to_have_text("Another machine")
    heading = section(page).get_by_role("heading", name="On another machine")
    expect(heading).to_be_in_viewport()
    assert contents.bounding_box()["y"] < 10 < heading.bounding_box()["y"]
    contents.get_by_role("button", name="Rejections").click()
    expect(current).to_have_text("Rejections")


def test_a_group_keeps_its_tokens(page):
    decode(page, LANES[:2], 24)
    rows = drafted_tokens(from_json(trace(page, 1)))
    tokens = page.locator("#rejected-tokens [role=gridcell]:nth-child(3)")
    section(page).get_by_role("radio", name="Token", exact=True).click()
    group, groups = grouped(rows, "token")[0], page.locator("#rejections-grouped")
    first = groups.get_by_role("gridcell").first
    expect(first).to_have_text(group["token"])
    expect(groups).to_contain_text(f"{group['rejected']} of {group['tested']}")
    first.click()
    expect(section(page).get_by_label("Filter", exact=True)).to_have_value(f'"{group["token"]}"')
    expect(tokens).to_have_text([group["token"]] * group["rejected"])


def test_a_figure_is_drawn_near_the_window_or_on_paper_and_its_place_says_so_until_then(visit):
    page = visit()
    decode(page, LANES[1:2], 6)
    waiting = section(page).locator(".figure-undrawn")
    expect(waiting.last).to_be_attached()
    expect(figure(page, "Drafting time and target time")).to_be_visible()
    first = section(page).locator(".figure").first
    words = "place => getComputedStyle(place.firstElementChild, '::before').content"
    assert first.evaluate(words) == '"drawing …"'
    on_top = """place => { const { left, top } = place.firstElementChild.getBoundingClientRect();
        return Boolean(document.elementFromPoint(left + 30, top + 24).closest('.js-plotly-plot')); }"""
    first.scroll_into_view_if_needed()
    assert first.evaluate(on_top)
    # Ours, put there before a figure asked for it; the address of Gradio's own begins otherwise.
    fetched = page.locator("link[rel=modulepreload][href^='assets/'][href*=PlotlyPlot]")
    expect(fetched).to_have_count(1)
    assert page.request.get(fetched.evaluate("link => link.href")).ok
    assert waiting.count() > 0
    page.pdf()
    expect(waiting).to_have_count(0)


def test_a_run_without_drafts_says_what_to_do(page):
    decode(page, [{"strategy": "greedy"}], 4)
    expect(section(page)).to_contain_text("No lane of this run has drafted anything. Choose a speculative")
    expect(section(page).get_by_role("heading", name="What if")).to_be_hidden()


def test_another_shape_is_shown_as_the_analysis_has_it(page):
    """Typed on a wide page; a phone has room for its figure, and refuses another one there."""
    decode(page, LANES[1:2], 6)
    widths = section(page).get_by_label("Children, level by level")
    widths.fill("2 2")
    widths.press("Enter")
    found = what_if(from_json(trace(page, 0)), None, [2, 2])
    row = section(page).get_by_role("row").filter(has=page.get_by_role("gridcell", name="2 2", exact=True))
    expect(row.first).to_contain_text(f"{found['own']['tokens'][0]:.2f}")
    for size in (WIDE, PHONE):
        resize(page, *size)
        expect(figure(page, "speed, by length")).to_be_visible()
        assert fits(page)
    widths.fill("none")
    section(page).get_by_role("button", name="Compute").click()
    expect(page.locator("#what-if-says")).to_contain_text("Write one to 32 whole numbers")
    expect(place(page, "speed, by length")).to_be_hidden()
    assert fits(page)


def test_a_losslessness_test_counts_until_it_is_stopped(page):
    """The one that ends on a wide page, the one that is stopped on a phone."""
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "queue/join" in request.url else None)
    decode(page, LANES[1:2], 6)
    expect(page.locator("#microscope-sentence")).to_contain_text("rounds")
    quiet(page, asked)  # a lane that is new to the Microscope ends the test of another one
    says = page.locator("#losslessness-says")
    temperature = section(page).get_by_label("Temperature", exact=True)
    temperature.fill("0")
    start = section(page).get_by_role("button", name="Start the test")
    start.click()
    expect(says).to_contain_text("at 0 every seed writes the same text")
    temperature.fill("1")
    section(page).get_by_role("radio", name="200", exact=True).click()
    start.click()
    expect(says.get_by_role("listitem")).to_have_count(2, timeout=60_000)
    expect(says.get_by_role("listitem").first).to_contain_text("Speculative decoding")
    expect(says).to_contain_text("200 seeds")
    expect(figure(page, "distance to the target's distribution")).to_be_visible()
    expect(start).to_be_visible(timeout=60_000)  # it has ended
    for size in (WIDE, PHONE):
        resize(page, *size)
        expect(figure(page, "distance to the target's distribution")).to_be_visible()
        assert fits(page)
    section(page).get_by_role("radio", name="4,000", exact=True).click()
    start.click()
    expect(says).to_contain_text("of 4,000 seeds")
    section(page).get_by_role("button", name="Stop", exact=True).click()
    expect(start).to_be_visible()
    read = [says.inner_text()]
    while len(read) < 2 or (read[-1] != read[-2] and len(read) < 12):  # what was on its way still comes
        page.wait_for_timeout(2500)
        read.append(says.inner_text())
    assert read[-1] == read[-2] and "of 4,000 seeds" in read[-1]
    assert fits(page)


def test_another_machine_follows_the_figures_and_refuses_bad_ones(page):
    """On a phone."""
    resize(page, *PHONE)
    decode(page, LANES)
    says = page.locator("#machine-says")
    expect(says).to_contain_text("A forward of the target takes 5.35 ms for one token")
    table = section(page).locator(".block").filter(has_text="Cost on that machine").last
    rows = table.get_by_role("row").filter(has_text="1 Greedy")
    expect(rows.first.get_by_role("gridcell").nth(2)).to_have_text("1")  # greedy is plain
    for title in ("2 Speculative decoding", "3 Speculative tree"):
        expect(table.get_by_role("row").filter(has_text=title).first).to_be_attached()

    memory = section(page).get_by_label("Device: memory, in GB/s")
    memory.fill("1500")
    expect(says).to_contain_text("takes 10.7 ms for one token")
    memory.fill("")
    expect(says).to_contain_text("memory takes a number above 0, in GB/s.")
    expect(place(page, "Tokens over time")).to_be_hidden()
    machine = section(page).get_by_role("combobox", name="Class of machine")
    machine.click()
    page.get_by_role("option", name="laptop").click()
    expect(figure(page, "Tokens over time")).to_be_visible()
    expect(memory).to_have_value("90")
    assert fits(page)


def test_gradios_sliders_look_like_ours(visit):
    """The knob of each, where it stands at its beginning; the track of ours is dark up to the knob."""
    page = visit()
    steps = page.get_by_role("slider", name="Step position")
    steps.fill(steps.get_attribute("max"))
    assert knob(page, steps) > 60  # the left end of the track
    steps.fill("0")
    ours = knob(page, steps)
    page.get_by_role("tab", name="Microscope", exact=True).click()
    theirs = page.locator("#explorer-tab-microscope input[type=range]").first
    theirs.fill(theirs.get_attribute("min"))
    assert ours > 60
    # The tab still fills with figures: looked at until it has its place.
    assert any(abs(knob(page, theirs) - ours) < 0.2 * ours for _ in range(30))


def knob(page, slider) -> int:
    """How many pixels are dark at the left end of a slider. The picture is that of what holds it, which
    Playwright takes when nothing moves any more.
    """
    holder = slider.locator("..")
    left, middle = slider.evaluate("""(slider) => {
        const own = slider.getBoundingClientRect(), around = slider.parentElement.getBoundingClientRect();
        return [own.left - around.left, (own.top + own.bottom) / 2 - around.top]; }""")
    pixels = Image.open(io.BytesIO(holder.screenshot())).convert("L")
    end = pixels.crop((round(left), max(0, round(middle - 9)), round(left) + 18, round(middle + 9)))
    return sum(value < 100 for value in end.tobytes())
