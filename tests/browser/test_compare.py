"""The comparison below the lanes: what it says is what the traces say, at every place of the slider."""

import re

import pytest
from playwright.sync_api import expect

from decoders.trace.trace import from_json
from explorer.catalog import recorded_runs
from explorer.export.replay_page import replay_html
from tests.browser.test_page import press, run, seek, start, trace
from visualizers.analysis.comparison import compare

LANES = [
    {"strategy": "greedy"},
    {"strategy": "sample", "parameters": {"temperature": 1.5}, "seed": 3},
    {"strategy": "speculative"},
]
DATA = "decodingExplorer.app.compare.comparison.data"


def panel(page):
    return page.get_by_role("region", name="Compare")


def lane_region(page, number: int):
    return page.get_by_role("region", name=f"Lane {number}", exact=True)


def decode(page, tokens: int = 10) -> list:
    """Decodes LANES to the end; their traces."""
    page.wait_for_function("decodingExplorer.app.models.state === 'ready'")
    page.evaluate("lanes => decodingExplorer.app.applySetup({lanes})", LANES)
    run(page, "Once upon a time", tokens)
    return [from_json(trace(page, lane)) for lane in range(len(LANES))]


def test_words_marks_and_readings_are_those_of_the_traces_also_after_a_lane_is_removed(visit):
    page = visit()
    traces = decode(page)
    found = compare(traces)
    expect(panel(page)).to_contain_text(found["sentence"])
    for lane in found["lanes"]:
        if lane["relation"]:
            badge = lane_region(page, lane["lane"]).locator(".badge.relation")
            expect(badge).to_have_text(lane["relation"]["badge"])
    assert found["lanes"][2]["relation"]["equal"] is True, "speculation at temperature 0 is greedy"

    place = found["divergence"]["position"]
    seek(page, place)
    for group in found["divergence"]["groups"]:
        for lane, node in zip(group["lanes"], group["nodes"], strict=True):
            chip = lane_region(page, lane).locator(".chips-row .dp-parted")
            expect(chip).to_have_count(1)
            expect(chip).to_have_attribute("title", re.compile(f"Token {place}, the first difference: lane"))
            assert page.evaluate(f"decodingExplorer.app.lanes[{lane - 1}].chips.parting.node") == node
            expect(lane_region(page, lane).locator(".dp-parting")).to_have_count(1)

    seek(page, 2)  # the comparison follows the slider
    page.wait_for_function(DATA + ".lanes[0].tokens.length === 2")
    assert page.evaluate(DATA + ".sentence") == compare(traces, [2, 2, 2])["sentence"]

    chart = page.locator(".chart", has_text="entropy of the target")
    chart.locator(".chart-frame").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    lane = found["lanes"][0]
    says = f"Position 2: lane 1 {lane['tokens'][1]} {lane['entropy'][1]:.2f} bits"
    expect(chart.locator(".chart-read")).to_contain_text(says)
    assert page.evaluate("decodingExplorer.app.playback.position") == 2, "the arrow belongs to the chart"

    lane_region(page, 1).get_by_role("button", name="Remove lane").click()
    expect(panel(page).locator(".compare-lanes button")).to_have_text(
        ["1 Sampling", "2 Speculative decoding"]
    )
    expect(panel(page).locator(".compare-sentence")).to_contain_text("Lanes 1 and 2")


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
            said = page.locator(".bar.status .equal-cost").inner_text()
            for lane, (race, step) in enumerate(zip(races, steps, strict=True), 1):
                assert f"lane {lane} {'has ' if lane == 1 else ''}{race['reached'][step]}" in said
    said = page.locator(".bar.status .equal-cost").inner_text()
    assert said.count("(ended)") == 2, "all but the slowest have ended before the last second"


def test_the_table_sorts_by_mouse_and_keyboard_and_is_copied(visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    costs = compare(decode(page))["table"]
    table = panel(page).get_by_role("region", name="All costs")
    names = table.locator("tbody th")
    expect(names).to_have_text(["1 Greedy", "2 Sampling", "3 Speculative decoding"])
    steps = [str(row["cells"][0]["value"]) for row in costs["rows"]]
    expect(table.locator("tbody td:nth-of-type(1)")).to_have_text(steps)  # of the whole run
    column = [c["name"] for c in costs["columns"]].index("seconds")
    by_seconds = sorted(costs["rows"], key=lambda row: row["cells"][column]["value"])
    labels = [f"{row['lane']} {row['label']}" for row in by_seconds]
    header = table.locator("th", has_text="seconds")
    expect(header).to_have_attribute("aria-sort", "none")
    header.get_by_role("button").click()
    expect(header).to_have_attribute("aria-sort", "descending")
    expect(names).to_have_text(labels[::-1])
    page.keyboard.press("Enter")
    expect(header).to_have_attribute("aria-sort", "ascending")
    expect(names).to_have_text(labels)
    table.get_by_role("button", name="Sort by proposed").click()
    expect(names.first).to_have_text("3 Speculative decoding")
    page.keyboard.press("Enter")  # the other order; a dash is last in either
    expect(names.first).to_have_text("3 Speculative decoding")

    panel(page).get_by_role("button", name="Copy").click()
    expect(panel(page)).to_contain_text("Copied.")
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert len(lines) == 4 and lines[0].startswith("lane\tsteps\ttarget forwards\t")
    assert lines[1].split("\t")[:2] == ["3 Speculative decoding", steps[2]]

    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')) }")
    panel(page).get_by_role("button", name="Copy").click()
    text = page.get_by_role("textbox", name="The table as text")
    expect(text).to_be_focused()
    assert text.input_value().splitlines() == lines


def test_labels_of_charts_never_overlap_whatever_is_chosen(visit):
    page = visit()
    expect(panel(page).locator(".chart-label").first).to_be_visible()
    for charge in ("target forwards", "seconds", "target tokens", "drafted + verified tokens"):
        panel(page).get_by_role("button", name="Cost in " + charge).click()
        for likelihood in ("a token", "in all"):
            panel(page).get_by_role("button", name="Log-probability " + likelihood).click()
            assert_apart(page)


def assert_apart(page) -> None:
    """No two texts of a chart overlap."""
    boxes = page.evaluate(
        "[...document.querySelectorAll('.chart-frame')].map(f => [...f.querySelectorAll('text')]"
        ".map(t => t.getBoundingClientRect()).map(b => [b.left, b.top + 2, b.right, b.bottom - 2]))"
    )
    assert sum(map(len, boxes)) > 20
    for labels in boxes:
        for i, a in enumerate(labels):
            for b in labels[:i]:
                assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3], (a, b)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_it_is_closed_first_remembered_and_never_wider_than_the_screen(visit, scheme):
    page = visit(390, 844, has_touch=True, color_scheme=scheme)
    opener = panel(page).get_by_role("button", name="Compare", exact=True)
    expect(opener).to_have_attribute("aria-expanded", "false")
    opener.click()
    expect(panel(page).locator(".chart-label").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert_apart(page)
    page.reload()
    page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
    expect(opener).to_have_attribute("aria-expanded", "true")


def test_it_works_while_lanes_run(visit, slow):
    page = visit()
    start(page, "Once", 200)
    panel(page).scroll_into_view_if_needed()
    press(page, "Run")
    page.wait_for_function(
        f"decodingExplorer.state === 'running' && {DATA}"
        "?.lanes.every(lane => lane.ended === null && lane.race.reached.at(-1) > 5)"
    )
    press(page, "Stop")


def test_a_saved_page_compares_the_whole_run_without_a_server(chromium, tmp_path):
    path = tmp_path / "run.html"
    path.write_text(replay_html(recorded_runs.traces(), recorded_runs.setup()), "utf-8")
    context = chromium.new_context(offline=True, viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.goto(path.as_uri())
    expect(panel(page)).to_contain_text(compare(recorded_runs.traces())["sentence"])
    expect(panel(page)).to_contain_text("What follows is of the whole run")
    context.close()
