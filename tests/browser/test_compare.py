"""The comparison below the lanes: what it says is what the traces say, at every place of the slider."""

import re

import pytest
from playwright.sync_api import expect

from decoders.trace.trace import from_json
from explorer.page.tabs.compare import NO_RUN
from tests.browser.test_page import all_drawn, press, quiet, ready, run, seek, start, trace
from tests.browser.window import resize, switch
from visualizers.analysis.comparison import compare
from visualizers.figures import comparison

LANES = [
    {"strategy": "greedy"},
    {"strategy": "sample", "parameters": {"temperature": 1.5}, "seed": 3},
    {"strategy": "speculative"},
]
PLOTS = "#explorer-compare .js-plotly-plot"
TEXTS = "#explorer-compare .lane-text"
ON_SCREEN = "JSON.stringify([decodingExplorer.run, decodingExplorer.app.setup(), decodingExplorer.state])"


def section(page):
    return page.locator("#explorer-compare")


def said(page):
    return page.get_by_role("region", name="How the lanes compare")


def lane_region(page, number: int):
    return page.get_by_role("region", name=f"Lane {number}", exact=True)


@pytest.fixture(scope="module")
def comparing(begun):
    """A page that the tests share, and what is kept of LANES that are decoded on it."""
    return begun()[0], {}


@pytest.fixture
def decoded(comparing):
    """(page, traces): LANES on the shared page, decoded again where a test has changed what is on it."""
    page, kept = comparing
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    resize(page, 1400, 900)
    if page.evaluate(ON_SCREEN) != kept.get("screen"):
        kept["traces"] = decode(page)
        kept["screen"] = page.evaluate(ON_SCREEN)
    page.get_by_role("radiogroup", name="Line up lanes by").get_by_role("radio").first.click()
    seek(page, max(len(trace.steps) for trace in kept["traces"]))
    return page, kept["traces"]


def decode(page, tokens: int = 10) -> list:
    """Decodes LANES to the end; their traces."""
    ready(page)
    page.evaluate("lanes => decodingExplorer.app.applySetup({lanes})", LANES)
    run(page, "Once upon a time", tokens)
    return [from_json(trace(page, lane)) for lane in range(len(LANES))]


def look_at(page):
    """Scrolls to the section; it is drawn when it is in sight."""
    section(page).scroll_into_view_if_needed()
    page.evaluate("document.getElementById('explorer-compare').scrollIntoView()")
    figure = section(page).locator(".figure:visible").first
    figure.scroll_into_view_if_needed()
    expect(figure.locator(".main-svg").first).to_be_visible()


def proses(page) -> list[str]:
    return section(page).locator(".lane-text").all_text_contents()


def test_words_marks_texts_and_charts_are_those_of_the_traces_also_after_a_lane_is_removed(decoded):
    page, traces = decoded
    found = compare(traces)
    expect(said(page)).to_contain_text(found["sentence"])
    for lane in filter(lambda lane: lane["relation"], found["lanes"]):
        badge = lane_region(page, lane["lane"]).locator(".badge.relation")
        expect(badge).to_have_text(lane["relation"]["badge"])
        assert not lane["parting"] or f"at token {lane['parting']['position']}" in badge.inner_text()
    for lane in found["lanes"]:
        parted = lane["parting"]
        chip = lane_region(page, lane["lane"]).locator(".chips-row .dp-parted")
        if parted is None:
            expect(chip).to_have_count(0)
            continue
        seek(page, parted["position"])
        expect(chip).to_have_attribute("title", re.compile(re.escape(parted["words"])))
        marked = page.evaluate(f"decodingExplorer.app.lanes[{lane['lane'] - 1}].chips.parting.node")
        assert marked == parted["node"] == lane["nodes"][parted["position"] - 1]
        expect(lane_region(page, lane["lane"]).locator(".dp-parting")).to_have_count(1)
    assert found["lanes"][2]["relation"]["equal"] is True, "speculation at temperature 0 is greedy"

    seek(page, max(len(trace.steps) for trace in traces))
    look_at(page)
    expect(section(page).locator(".lane-text").last).to_have_text(traces[2].text(), use_inner_text=False)
    assert proses(page) == [trace.text() for trace in traces]
    expect(section(page)).to_contain_text(comparison.tokens_reached(found).layout.meta["caption"][:100])

    seek(page, 2)  # the comparison follows the slider
    short = compare(traces, [2, 2, 2])
    expect(said(page)).to_contain_text(short["sentence"])
    words = ["".join(lane["text"]) for lane in short["lanes"]]
    page.wait_for_function(
        f"words => String([...document.querySelectorAll('{TEXTS}')].map(e => e.textContent)) == words",
        arg=words,
    )

    lane_region(page, 1).get_by_role("button", name="Remove lane").click()
    look_at(page)
    heads = section(page).locator(".texts-beside header b")
    expect(heads).to_have_text(["1 Sampling", "2 Speculative decoding"])
    expect(said(page)).to_contain_text("Lanes 1 and 2")


def test_arrow_keys_read_a_chart_and_leave_the_slider_where_it_is(decoded):
    page, traces = decoded

    def says(steps: int, position: int) -> str:
        lane = compare(traces, [steps] * len(traces))["lanes"][0]
        words = "—"
        if position <= len(lane["tokens"]):
            words = f"{lane['tokens'][position - 1]} {lane['entropy'][position - 1]:.2f} bits"
        return f"Position {position}: lane 1 {words}"

    def places(steps: int) -> int:
        return max(len(lane["tokens"]) for lane in compare(traces, [steps] * len(traces))["lanes"])

    look_at(page)
    figure = section(page).locator(".figure", has_text="Entropy of the target")
    expect(figure).to_have_attribute("aria-label", re.compile("Entropy: arrow keys"))
    end = page.evaluate("decodingExplorer.app.playback.position")
    page.wait_for_function(
        "([figure, places]) => figure.querySelector('.js-plotly-plot')?.data?.at(-1).x.length === places",
        arg=[figure.element_handle(), places(end)],
    )
    figure.focus()
    reading = figure.get_by_role("status")
    for _ in range(places(end)):  # to the first place, wherever it was read before
        page.keyboard.press("ArrowLeft")
    expect(reading).to_contain_text(says(end, 1))
    page.keyboard.press("ArrowRight")
    expect(reading).to_contain_text(says(end, 2))
    assert page.evaluate("decodingExplorer.app.playback.position") == end
    seek(page, 1)  # the chart is drawn again, and what is read is what it shows then
    expect(reading).to_contain_text(says(1, min(2, places(1))))


def test_at_equal_cost_every_lane_shows_what_it_had_reached(decoded):
    page, traces = decoded
    races = [lane["race"] for lane in compare(traces)["lanes"]]
    units = page.get_by_role("radiogroup", name="Line up lanes by")
    for unit, key in (("target forwards", "forwards"), ("target tokens", "target_tokens"), ("seconds",) * 2):
        units.get_by_role("radio", name=unit).check()
        ticks = page.evaluate("decodingExplorer.app.playback.ticks")
        assert ticks == sorted({value for race in races for value in race[key][1:]})
        for position in (1, len(ticks) // 2, len(ticks)):
            seek(page, position)
            value = ticks[position - 1]
            steps = [max(i for i, paid in enumerate(race[key]) if paid <= value) for race in races]
            assert page.evaluate("decodingExplorer.lanes.map(l => l.shown)") == steps
            told = page.locator(".bar.status .equal-cost").inner_text()
            for lane, (race, step) in enumerate(zip(races, steps, strict=True), 1):
                assert f"lane {lane} {'has ' if lane == 1 else ''}{race['reached'][step]}" in told
            assert "has 1 tokens" not in told
    told = page.locator(".bar.status .equal-cost").inner_text()
    assert told.count("(ended)") == 2, "all but the slowest have ended before the last second"


def test_the_cost_can_be_counted_in_every_unit_and_the_likelihood_in_two_ways(decoded):
    page, traces = decoded
    found = compare(traces)
    look_at(page)
    for charge, words in list(found["charges"].items())[::-1]:
        section(page).get_by_role("radio", name=words, exact=True).check()
        caption = comparison.tokens_reached(found, charge).layout.meta["caption"]
        expect(section(page)).to_contain_text(caption[:60])
    section(page).get_by_role("radio", name="total").check()
    expect(section(page)).to_contain_text(
        comparison.total_log_probability(found, charge).layout.meta["caption"][:40]
    )
    assert_apart(page)


def assert_apart(page) -> None:
    """No two texts of a chart overlap."""
    all_drawn(page, PLOTS, section(page).locator(".figure:visible").count())
    page.wait_for_timeout(400)  # a chart is drawn again after its caption
    boxes = page.evaluate(
        "plots => [...document.querySelectorAll(plots)].map(f => [...f.querySelectorAll('text')]"
        ".filter(t => t.textContent.trim()).map(t => [t.getBoundingClientRect(), t.textContent])"
        ".map(([b, text]) => [b.left + 1, b.top + 3, b.right - 1, b.bottom - 3, text]))",
        PLOTS,
    )
    assert sum(map(len, boxes)) > 20
    for labels in boxes:
        for i, a in enumerate(labels):
            for b in labels[:i]:
                assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3], (a, b)


def test_the_table_has_all_costs_and_sorts_them(decoded):
    page, traces = decoded
    costs = compare(traces)["table"]
    look_at(page)
    table = page.locator("#explorer-costs")
    table.scroll_into_view_if_needed()
    slots = len(costs["columns"])  # what a lane holds now, which its trace does not know
    cells = table.locator(f"[role=gridcell]:not([data-col='{slots}'])")
    names = table.locator("[role=gridcell][data-col='0']")
    rows = [[f"{row['lane']} {row['label']}", *(c["label"] for c in row["cells"])] for row in costs["rows"]]
    expect(cells).to_have_text([cell for row in rows for cell in row[:slots]])
    column = [c["name"] for c in costs["columns"]].index("seconds")
    by_seconds = sorted(costs["rows"], key=lambda row: float(row["cells"][column]["label"]))
    header = table.get_by_role("columnheader", name="seconds")
    header.hover()
    header.get_by_role("button", name="Open cell menu").click()
    page.get_by_role("menuitem", name="Sort ascending").click()
    seconds = table.locator(f"[role=gridcell][data-col='{column + 1}']")
    expect(seconds).to_have_text([row["cells"][column]["label"] for row in by_seconds])
    for name, value in zip(names.all(), seconds.all(), strict=True):  # lanes may show the same seconds
        own = next(row for row in rows if row[0] == name.inner_text().strip())
        assert own[column + 1] == value.inner_text().strip()
    expect(section(page).get_by_role("button", name="What the costs count")).to_be_visible()


def test_a_text_is_copied_as_prose(decoded):
    page, traces = decoded
    look_at(page)
    section(page).get_by_role("button", name="Copy the text of lane 2").click()
    expect(section(page).get_by_role("button", name="Copy the text of lane 2")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == traces[1].text()

    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')) }")
    section(page).get_by_role("button", name="Copy the text of lane 1").click()
    page.wait_for_function("text => String(getSelection()) === text", arg=traces[0].text())


CHANGES = {  # and how it is taken back
    "app.lanes[1].setup.seed = 8": "app.lanes[1].setup.seed = 3",
    "app.choice = {...app.choice, draft: null}": "app.choice = window.before",
}


def change(page, how: str) -> None:
    page.evaluate(f"() => {{ const app = decodingExplorer.app; {how}; app.edited(); }}")


def assert_empty(page) -> None:
    """No number and no text of the run is left: at once, not when the server has answered."""
    shown = "#explorer-compare :is(.lane-text, .js-plotly-plot, [role=gridcell])"
    assert page.evaluate(
        "all => [...document.querySelectorAll(all)].every(e => getComputedStyle(e).visibility === 'hidden')",
        shown,
    )
    assert said(page).inner_text().strip() == ""
    assert page.locator(".bar.status .equal-cost").inner_text() == ""
    expect(page.locator(".badge.relation:visible")).to_have_count(0)
    expect(section(page)).to_contain_text(NO_RUN)
    expect(page.locator(shown)).to_have_count(0)


def test_whatever_changes_the_settings_empties_it_until_its_own_run_is_there(again):
    page = again()
    decode(page)
    look_at(page)
    page.evaluate("() => { window.before = decodingExplorer.app.choice; }")
    for how, back in CHANGES.items():
        expect(section(page).locator(".lane-text:visible")).to_have_count(3)
        change(page, how)
        assert_empty(page)
        change(page, back)
    expect(section(page).locator(".lane-text:visible")).to_have_count(3)
    setup = page.evaluate("decodingExplorer.app.setup()")
    change(page, "app.lanes[1].choose('beam')")
    assert_empty(page)
    page.evaluate("setup => decodingExplorer.app.applySetup(setup)", setup)
    assert_empty(page)  # equal lanes that have not run
    press(page, "Run")
    look_at(page)
    expect(section(page).locator(".lane-text:visible")).to_have_count(3)


def test_another_run_is_never_shown_with_the_numbers_of_the_one_before(again):
    page = again()
    before = decode(page)
    look_at(page)
    expect(section(page).locator(".lane-text").first).to_have_text(before[0].text(), use_inner_text=False)
    page.evaluate(
        """() => { const app = decodingExplorer.app, first = app.run.id; window.strange = 0; window.own = 0;
        const look = () => { const shown = document.querySelector("#explorer-compare .lane-text");
          if (window.own === null) return;
          const seen = shown && getComputedStyle(shown).visibility === "visible";
          const whose = seen && shown.closest("[data-run]").dataset.run;
          if (seen && whose !== app.run.id) window.strange += 1;
          if (seen && whose === app.run.id && whose !== first) window.own += 1;
          requestAnimationFrame(look); };
        look(); }"""
    )
    page.get_by_role("textbox", name="Prompt").fill("The cat")
    press(page, "Run")
    look_at(page)
    page.wait_for_function("window.own > 0")
    assert page.evaluate("window.strange") == 0
    page.evaluate("window.own = null")  # looks no more


def test_what_has_not_changed_is_not_drawn_again(again):
    page = again()
    traces = decode(page)
    look_at(page)
    asked = []
    page.on("request", lambda request: "queue/join" in request.url and asked.append(request.url))
    quiet(page, asked)
    page.evaluate("selector => { window.kept = document.querySelector(selector) }", PLOTS)
    page.evaluate("decodingExplorer.app.emit('data'), decodingExplorer.app.emit('shown')")
    page.wait_for_timeout(1500)
    assert page.evaluate("kept.isConnected") and asked == []
    page.evaluate("decodingExplorer.app.playback.seek(3, true)")
    three = "".join(compare(traces, [3] * 3)["lanes"][0]["text"])
    page.wait_for_function(f"text => document.querySelector('{TEXTS}').textContent === text", arg=three)
    assert asked
    page.set_viewport_size({"width": 1400, "height": 400})
    page.evaluate("window.scrollTo(0, 0)")
    quiet(page, asked)
    page.evaluate("decodingExplorer.app.playback.seek(5, true)")
    page.wait_for_timeout(1500)
    assert asked == [], "nobody sees it"


def test_on_a_phone_it_is_closed_first_remembered_and_never_wider_than_the_screen(visit):
    """Opened in light, loaded again in dark; its figures are drawn in either theme."""
    page = visit(390, 844, has_touch=True)
    ready(page)
    opener = page.locator("#explorer-compare > button")  # Gradio adds its arrow to the name
    expect(opener).to_have_attribute("aria-expanded", "false")
    opener.click()
    look_at(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert_apart(page)
    ground = "getComputedStyle(document.querySelector('#explorer-compare .main-svg')).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    switch(page, "dark")
    page.reload()
    page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
    expect(opener).to_have_attribute("aria-expanded", "true")
    look_at(page)
    assert page.evaluate(ground) != "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_it_works_while_lanes_run(again, slow):
    page = again()
    start(page, "Once", 200)
    press(page, "Run")
    page.evaluate("document.getElementById('explorer-compare').scrollIntoView()")
    page.wait_for_function(
        f"decodingExplorer.state === 'running' && [...document.querySelectorAll('{TEXTS}')]"
        ".filter(e => e.textContent.length > 5).length === 2"
    )
    press(page, "Stop")
