"""The comparison below the lanes: what it says is what the traces say, at every place of the slider."""

import re

import pytest
from playwright.sync_api import expect

from decoders.trace.trace import from_json
from explorer.catalog import recorded_runs
from explorer.export.replay_page import replay_html
from explorer.page.tabs.compare import NO_RUN
from tests.browser.test_page import press, ready, run, seek, start, trace
from visualizers.analysis.comparison import compare
from visualizers.figures import comparison

LANES = [
    {"strategy": "greedy"},
    {"strategy": "sample", "parameters": {"temperature": 1.5}, "seed": 3},
    {"strategy": "speculative"},
]
PLOTS = "#explorer-compare .js-plotly-plot"


def section(page):
    return page.locator("#explorer-compare")


def said(page):
    return page.get_by_role("region", name="How the lanes stand to each other")


def lane_region(page, number: int):
    return page.get_by_role("region", name=f"Lane {number}", exact=True)


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
    expect(page.locator(f"{PLOTS} .main-svg").first).to_be_visible()


def proses(page) -> list[str]:
    return section(page).locator(".lane-text").all_text_contents()


def test_words_marks_texts_and_charts_are_those_of_the_traces_also_after_a_lane_is_removed(visit):
    page = visit()
    traces = decode(page)
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
        "words => String([...document.querySelectorAll('#explorer-compare .lane-text')].map(e => e.textContent)) "
        "=== String(words)",
        arg=words,
    )

    lane_region(page, 1).get_by_role("button", name="Remove lane").click()
    look_at(page)
    heads = section(page).locator(".texts-beside header b")
    expect(heads).to_have_text(["1 Sampling", "2 Speculative decoding"])
    expect(said(page)).to_contain_text("Lanes 1 and 2")


def test_arrow_keys_read_a_chart_and_leave_the_slider_where_it_is(visit):
    page = visit()
    found = compare(decode(page))
    look_at(page)
    figure = section(page).locator(".figure", has_text="Entropy of the target")
    expect(figure).to_have_attribute("aria-label", re.compile("entropy: arrow keys"))
    position = page.evaluate("decodingExplorer.app.playback.position")
    figure.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    lane = found["lanes"][0]
    says = f"Position 2: lane 1 {lane['tokens'][1]} {lane['entropy'][1]:.2f} bits"
    expect(figure.get_by_role("status")).to_contain_text(says)
    assert page.evaluate("decodingExplorer.app.playback.position") == position


def test_at_equal_cost_every_lane_shows_what_it_had_reached(visit):
    page = visit()
    races = [lane["race"] for lane in compare(decode(page))["lanes"]]
    units = page.get_by_role("group", name="Line up lanes by")
    for unit, key in (("target forwards", "forwards"), ("target tokens", "target_tokens"), ("seconds",) * 2):
        units.get_by_role("button", name=unit).click()
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
    told = page.locator(".bar.status .equal-cost").inner_text()
    assert told.count("(ended)") == 2, "all but the slowest have ended before the last second"


def test_the_cost_can_be_counted_in_every_unit_and_the_likelihood_in_two_ways(visit):
    page = visit()
    found = compare(decode(page))
    look_at(page)
    for charge, words in list(found["charges"].items())[::-1]:
        section(page).get_by_role("radio", name=words, exact=True).check()
        caption = comparison.tokens_reached(found, charge).layout.meta["caption"]
        expect(section(page)).to_contain_text(caption[:60])
        assert_apart(page)
    section(page).get_by_role("radio", name="total").check()
    expect(section(page)).to_contain_text(
        comparison.total_log_probability(found, charge).layout.meta["caption"][:40]
    )
    assert_apart(page)


def assert_apart(page) -> None:
    """No two texts of a chart overlap."""
    page.wait_for_timeout(400)  # a chart is drawn anew after its caption
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


def test_the_table_has_all_costs_and_sorts_them(visit):
    page = visit()
    costs = compare(decode(page))["table"]
    look_at(page)
    table = page.locator("#explorer-costs")
    table.scroll_into_view_if_needed()
    names = table.locator("tbody tr td:first-child")
    expect(names).to_have_text(["1 Greedy", "2 Sampling", "3 Speculative decoding"])
    for at, row in enumerate(costs["rows"]):
        labels = [cell["label"] for cell in row["cells"]]
        expect(table.locator("tbody tr").nth(at).locator("td")).to_have_text(
            [f"{row['lane']} {row['label']}", *labels]
        )
    column = [c["name"] for c in costs["columns"]].index("seconds")
    by_seconds = sorted(costs["rows"], key=lambda row: row["cells"][column]["value"])
    table.get_by_role("columnheader", name="seconds").click()
    expect(names).to_have_text([f"{row['lane']} {row['label']}" for row in by_seconds])
    expect(section(page).get_by_role("button", name="What the costs count")).to_be_visible()


def test_a_text_is_copied_as_prose(visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    traces = decode(page)
    look_at(page)
    section(page).get_by_role("button", name="Copy the text of lane 2").click()
    expect(section(page).get_by_role("button", name="Copy the text of lane 2")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == traces[1].text()

    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')) }")
    section(page).get_by_role("button", name="Copy the text of lane 1").click()
    page.wait_for_function("text => String(getSelection()) === text", arg=traces[0].text())


CHANGES = {
    "an example": "app.applySetup({prompt: 'Tom', lanes: [{strategy: 'greedy'}, {strategy: 'beam'}]})",
    "the same lanes": "app.applySetup({lanes: app.setup().lanes})",
    "a strategy": "app.lanes[1].choose('beam')",
    "a parameter": "(app.lanes[1].setup.parameters.temperature = 0.5, app.edited())",
    "the prompt": "(app.bar.prompt.value = 'Another', app.edited())",
    "other models": "(app.choice = {...app.choice, draft: null}, app.edited())",
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_the_settings_empties_it_until_its_own_run_is_there(visit, change):
    page = visit()
    decode(page)
    look_at(page)
    expect(section(page).locator(".lane-text")).to_have_count(3)
    page.evaluate(f"app => {CHANGES[change]}", page.evaluate_handle("decodingExplorer.app"))
    numbers = (
        "#explorer-compare :is(.lane-text, .js-plotly-plot, td)"  # gone at once, not when the server answers
    )
    assert page.evaluate(
        "all => [...document.querySelectorAll(all)].every(e => getComputedStyle(e).visibility === 'hidden')",
        numbers,
    )
    assert said(page).inner_text().strip() == ""
    assert page.locator(".bar.status .equal-cost").inner_text() == ""
    expect(section(page)).to_contain_text(NO_RUN)
    expect(section(page).locator(".lane-text")).to_have_count(0)
    expect(page.locator(PLOTS)).to_have_count(0)
    expect(page.locator(".badge.relation:visible")).to_have_count(0)


def test_another_run_is_never_shown_with_the_numbers_of_the_one_before(visit):
    page = visit()
    before = decode(page)
    look_at(page)
    expect(section(page).locator(".lane-text").first).to_have_text(before[0].text(), use_inner_text=False)
    page.evaluate(
        """() => { const app = decodingExplorer.app, first = app.run.id; window.strange = 0; window.own = 0;
        const look = () => { const shown = document.querySelector("#explorer-compare .lane-text");
          const seen = shown && getComputedStyle(shown).visibility === "visible";
          const whose = seen && shown.closest("[data-run]").dataset.run;
          if (seen && whose !== app.run.id) window.strange += 1;
          if (seen && whose === app.run.id && whose !== first) window.own += 1;
          requestAnimationFrame(look); };
        look(); }"""
    )
    page.get_by_role("textbox", name="Prompt").fill("The cat")
    press(page, "Run")
    page.wait_for_function("window.own > 0")
    assert page.evaluate("window.strange") == 0


def test_what_has_not_changed_is_not_drawn_again(visit):
    page = visit()
    decode(page)
    look_at(page)
    page.wait_for_timeout(1500)
    asked = []
    page.on("request", lambda request: "queue/join" in request.url and asked.append(request.url))
    page.evaluate("selector => { window.kept = document.querySelector(selector) }", PLOTS)
    page.evaluate("decodingExplorer.app.emit('data'), decodingExplorer.app.emit('shown')")
    page.wait_for_timeout(1500)
    assert page.evaluate("kept.isConnected") and asked == []
    seek(page, 3)
    page.wait_for_function("!kept.isConnected")
    page.evaluate("window.scrollTo(0, 0)")
    page.set_viewport_size({"width": 1400, "height": 400})
    page.wait_for_timeout(1000)
    asked.clear()
    seek(page, 5)
    page.wait_for_timeout(1500)
    assert asked == [], "nobody sees it"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_it_is_closed_first_remembered_and_never_wider_than_the_screen(visit, scheme):
    page = visit(390, 844, has_touch=True, color_scheme=scheme)
    ready(page)
    opener = section(page).get_by_role("button", name="Compare", exact=True)
    expect(opener).to_have_attribute("aria-expanded", "false")
    opener.click()
    look_at(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert_apart(page)
    page.reload()
    page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
    expect(opener).to_have_attribute("aria-expanded", "true")
    ground = "getComputedStyle(document.querySelector('#explorer-compare .main-svg')).backgroundColor"
    look_at(page)
    assert (page.evaluate(ground) == "rgb(255, 255, 255)") == (scheme == "light")


def test_it_works_while_lanes_run(visit):
    page = visit()
    start(page, "Once", 200)
    press(page, "Run")
    page.evaluate("document.getElementById('explorer-compare').scrollIntoView()")
    page.wait_for_function(
        "decodingExplorer.state === 'running' && [...document.querySelectorAll('#explorer-compare .lane-text')]"
        ".filter(e => e.textContent.length > 5).length === 2"
    )
    press(page, "Stop")


def test_a_saved_page_compares_the_whole_run_without_a_server(chromium, tmp_path):
    traces = recorded_runs.traces()
    found = compare(traces)
    path = tmp_path / "run.html"
    path.write_text(replay_html(traces, recorded_runs.setup()), "utf-8")
    context = chromium.new_context(offline=True, viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.goto(path.as_uri())
    expect(said(page)).to_contain_text(found["sentence"])
    shown = page.locator(".saved-compare")
    expect(shown).to_contain_text("are those of the whole run")
    shown.scroll_into_view_if_needed()
    expect(shown.locator(".lane-text").first).to_be_attached()
    assert shown.locator(".lane-text").all_text_contents() == [trace.text() for trace in traces]
    context.close()


def test_another_machine_follows_the_figures_and_refuses_bad_ones(visit):
    page = visit()
    decode(page)
    page.set_viewport_size({"width": 390, "height": 844})
    machine = page.locator("details.machine")
    machine.locator("summary").click()
    said = machine.get_by_role("status")
    expect(said).to_contain_text("A forward of the target takes 5.35 ms for one token")
    table = machine.get_by_role("region", name="On another machine")
    expect(table.get_by_role("row")).to_have_count(1 + len(LANES))
    expect(table.get_by_role("row").nth(1).get_by_role("cell").nth(1)).to_have_text("1")  # greedy is plain

    memory = machine.get_by_label("device: memory, in GB/s")
    memory.fill("1500")
    memory.press("Enter")
    expect(said).to_contain_text("takes 10.7 ms for one token")
    memory.fill("fast")
    memory.press("Enter")
    expect(said).to_have_text("memory takes a number above 0, in GB/s.")
    expect(table).to_be_hidden()
    machine.get_by_label("Class of machine").select_option("laptop")
    expect(table).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
