"""The comparison below the lanes: what it says is what the traces say, at every place of the slider."""

import re

import pytest
from playwright.sync_api import expect

from decoders.trace import from_json
from tests.browser.test_page import press, run, seek, start, trace
from visualizers.comparison import compare

pytestmark = pytest.mark.browser

LANES = [
    {"strategy": "greedy"},
    {"strategy": "sample", "parameters": {"temperature": 1.5}, "seed": 3},
    {"strategy": "speculative"},
]


def panel(page):
    return page.get_by_role("region", name="Compare")


def decode(page, lanes=LANES, tokens: int = 12) -> None:
    """Decodes `lanes` to the end."""
    page.wait_for_function("decodingExplorer.app.models.state === 'ready'")
    page.evaluate("lanes => decodingExplorer.app.applySetup({lanes})", lanes)
    run(page, "Once upon a time", tokens)


def told(page, shown: list[int] | None = None) -> dict:
    """The comparison of the page's traces, made here."""
    count = page.evaluate("decodingExplorer.app.lanes.length")
    return compare([from_json(trace(page, lane)) for lane in range(count)], shown)


def test_the_sentence_the_badges_and_the_marks_are_those_of_the_traces(visit):
    page = visit()
    decode(page)
    found = told(page)
    expect(panel(page)).to_contain_text(found["sentence"])
    assert found["divergence"] is not None
    place = found["divergence"]["position"]
    seek(page, place)
    for group in found["divergence"]["groups"]:
        for lane, node in zip(group["lanes"], group["nodes"], strict=True):
            region = page.get_by_role("region", name=f"Lane {lane}", exact=True)
            chip = region.locator(".chips-row .dp-parted")
            expect(chip).to_have_count(1)
            expect(chip).to_have_attribute("title", re.compile(f"Token {place}, the first difference: lane"))
            assert page.evaluate(f"decodingExplorer.app.lanes[{lane - 1}].chips.parting.node") == node
            expect(region.locator(".dp-parting")).to_have_count(1)
    seek(page, 12)
    for lane in found["lanes"]:
        region = page.get_by_role("region", name=f"Lane {lane['lane']}", exact=True)
        if lane["relation"]:
            expect(region.locator(".badge.relation")).to_have_text(lane["relation"]["badge"])
    assert found["lanes"][2]["relation"]["equal"] is True, "speculation at temperature 0 is greedy"


def test_at_equal_cost_every_lane_shows_what_it_had_reached(visit):
    page = visit()
    decode(page)
    races = [lane["race"] for lane in told(page)["lanes"]]
    for unit, key in (
        ("target forwards", "forwards"),
        ("target tokens", "target_tokens"),
        ("seconds", "seconds"),
    ):
        press_unit(page, unit)
        ticks = page.evaluate("decodingExplorer.app.playback.ticks")
        assert ticks == sorted({value for race in races for value in race[key][1:]})
        for position in (1, len(ticks) // 2, len(ticks)):
            seek(page, position)
            value = ticks[position - 1]
            steps = [max(i for i, paid in enumerate(race[key]) if paid <= value) for race in races]
            assert page.evaluate("decodingExplorer.lanes.map(l => l.shown)") == steps
            reached = [race["reached"][step] for race, step in zip(races, steps, strict=True)]
            said = page.locator(".bar.status .equal-cost").inner_text()
            for lane, tokens in enumerate(reached, 1):
                assert f"lane {lane} {'has ' if lane == 1 else ''}{tokens}" in said
    said = page.locator(".bar.status .equal-cost").inner_text()
    assert said.count("(ended)") == 2, "all but the slowest have ended before the last second"


def press_unit(page, name: str) -> None:
    page.get_by_role("group", name="Line up lanes by").get_by_role("button", name=name).click()


def test_it_follows_the_slider(visit):
    page = visit()
    decode(page)
    seek(page, 2)
    page.wait_for_function("decodingExplorer.app.compare.comparison.data.lanes[0].tokens.length === 2")
    found = told(page, [2, 2, 2])
    assert page.evaluate("decodingExplorer.app.compare.comparison.data.sentence") == found["sentence"]


def test_the_table_sorts_by_mouse_and_keyboard_and_is_copied(visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    decode(page)
    table = panel(page).get_by_role("region", name="All costs")
    names = table.locator("tbody th")
    expect(names).to_have_text(["1 Greedy", "2 Sampling", "3 Speculative decoding"])
    rows = told(page)["table"]["rows"]
    column = [c["name"] for c in told(page)["table"]["columns"]].index("seconds")
    by_seconds = sorted(rows, key=lambda row: row["cells"][column]["value"])
    labels = [f"{row['lane']} {row['label']}" for row in by_seconds]
    header = table.locator("th", has_text="seconds")
    expect(header).to_have_attribute("aria-sort", "none")
    header.get_by_role("button").click()
    expect(header).to_have_attribute("aria-sort", "descending")
    expect(names).to_have_text(labels[::-1])
    page.keyboard.press("Enter")
    expect(header).to_have_attribute("aria-sort", "ascending")
    expect(names).to_have_text(labels)
    table.get_by_role("button", name="proposed").click()
    expect(names.first).to_have_text("3 Speculative decoding")
    page.keyboard.press("Enter")  # the other order; a dash is last in either
    expect(names.first).to_have_text("3 Speculative decoding")
    panel(page).get_by_role("button", name="Copy").click()
    expect(panel(page)).to_contain_text("Copied.")
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert len(lines) == 4 and lines[0].startswith("lane\tsteps\ttarget forwards\t")
    assert lines[1].split("\t")[1] == str(rows[2]["cells"][0]["value"])


def test_a_refused_clipboard_offers_the_text(visit):
    page = visit()
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')) }")
    decode(page, LANES[:1], 4)
    panel(page).get_by_role("button", name="Copy").click()
    text = page.get_by_role("textbox", name="The table as text")
    expect(text).to_be_focused()
    assert text.input_value().startswith("lane\tsteps\t")
    expect(panel(page)).to_contain_text("One lane: add another one to compare.")


def test_charts_are_read_by_arrow_keys_and_labels_never_overlap(visit):
    page = visit()
    decode(page)
    chart = page.locator(".chart", has_text="entropy of the target")
    chart.locator(".chart-frame").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    lane = told(page)["lanes"][0]
    expect(chart.locator(".chart-read")).to_contain_text(
        f"Position 2: lane 1 {lane['tokens'][1]} {lane['entropy'][1]:.2f} bits"
    )
    boxes = page.evaluate(
        "[...document.querySelectorAll('.chart-frame')].map(f => [...f.querySelectorAll('text')]"
        ".map(t => t.getBoundingClientRect()).map(b => [b.left, b.top + 2, b.right, b.bottom - 2]))"
    )
    for labels in boxes:
        for i, a in enumerate(labels):
            for b in labels[:i]:
                assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3], (a, b)


def test_a_removed_lane_leaves_the_comparison_and_the_others_keep_their_numbers(visit):
    page = visit()
    decode(page)
    page.get_by_role("region", name="Lane 1", exact=True).get_by_role("button", name="Remove lane").click()
    expect(panel(page).locator(".compare-lanes li")).to_have_count(2)
    expect(panel(page).locator(".compare-lanes button")).to_have_text(
        ["1 Sampling", "2 Speculative decoding"]
    )
    expect(panel(page).locator(".compare-sentence")).to_contain_text("Lanes 1 and 2")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_it_is_closed_first_and_never_wider_than_the_screen(visit, scheme):
    page = visit(390, 844, has_touch=True, color_scheme=scheme)
    opener = panel(page).get_by_role("button", name="Compare", exact=True)
    expect(opener).to_have_attribute("aria-expanded", "false")
    opener.click()
    expect(panel(page).locator(".chart-label").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.reload()
    page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
    expect(opener).to_have_attribute("aria-expanded", "true")


def test_it_works_while_lanes_run(visit):
    page = visit()
    start(page, "Once", 120)
    panel(page).scroll_into_view_if_needed()
    press(page, "Run")
    page.wait_for_function(
        "decodingExplorer.state === 'running' && decodingExplorer.app.compare.comparison.data"
        "?.lanes.every(lane => lane.ended === null && lane.race.reached.at(-1) > 5)"
    )
    press(page, "Stop")
