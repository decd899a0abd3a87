"""The Microscope section: what it shows is what visualizers.analysis.speculation_report finds in the lane's
trace.
"""

import pytest
from playwright.sync_api import expect

from decoders.trace.trace import from_json
from tests.browser.test_page import press, trace
from visualizers.analysis.speculation_report import microscope

LANES = [
    {"strategy": "greedy"},
    {"strategy": "speculative", "parameters": {"num_assistant_tokens": 4, "temperature": 1.0}},
    {"strategy": "speculative_tree", "parameters": {"widths": [2, 1], "temperature": 1.0}},
]


def section(page):
    return page.get_by_role("tabpanel", name="Microscope")


def decode(page, lanes: list[dict], tokens: int = 10) -> None:
    page.wait_for_function("decodingExplorer.app.models.state === 'ready'")
    setup = {"prompt": "Once upon a time", "max_new_tokens": tokens, "lanes": lanes}
    page.evaluate("setup => decodingExplorer.app.applySetup(setup)", setup)
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done'", timeout=60_000)
    page.get_by_role("tab", name="Microscope").click()


@pytest.mark.parametrize("size", [(1400, 900), (390, 844)])
def test_a_lane_that_drafts_is_shown_with_the_numbers_of_its_trace(visit, size):
    page = visit(*size)
    decode(page, LANES)
    for lane in (1, 2):
        found = microscope(from_json(trace(page, lane)))
        name = ["", "2 Speculative decoding", "3 Speculative tree"][lane]
        button = section(page).get_by_role("button", name=name, exact=True)
        button.click()
        expect(section(page).locator(".microscope-sentence")).to_have_text(found["sentence"])
        expect(button).to_have_attribute("aria-pressed", "true")
        rate = next(one["value"] for one in found["metrics"] if one["name"] == "draft_acceptance_rate")
        row = section(page).locator("tr", has_text="draft_acceptance_rate")
        expect(row).to_contain_text(f"{rate:.3f}".removeprefix("0") if rate % 1 else f"{rate:.0f}")
        bars = section(page).locator(".chart", has_text="acceptance_histogram").locator(".chart-bar")
        expect(bars).to_have_count(len(found["histogram"]))
        trust = section(page).locator(".chart", has_text="can the draft be believed?")
        expect(trust.locator(".chart-whisker")).to_have_count(len(found["reliability"][0]["bins"]))
        chart = section(page).locator(".chart", has_text="acceptance by depth")
        chart.locator(".chart-frame").focus()
        page.keyboard.press("ArrowRight")
        first = found["depths"][0]
        expect(chart.locator(".chart-read")).to_contain_text(
            f"{first['drafted']} drafted, {first['accepted']} of {first['tested']} tested"
        )
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]
    tab = page.get_by_role("tab", name="Microscope")
    assert tab.evaluate(
        "tab => tab.getBoundingClientRect().right <= tab.parentElement.getBoundingClientRect().right + 1"
    )


def test_a_run_without_drafts_says_what_to_do(visit):
    page = visit()
    decode(page, [{"strategy": "greedy"}], 4)
    expect(section(page)).to_contain_text("No lane of this run has drafted anything. Choose a speculative")


@pytest.mark.parametrize("size", [(1400, 900), (390, 844)])
def test_another_shape_and_a_proof_are_shown_as_the_server_has_them(visit, size):
    page = visit(*size)
    decode(page, [LANES[1]], 6)
    other = section(page).get_by_role("region", name="What if")
    other.get_by_label("Children, level by level").fill("2 2")
    other.get_by_label("Children, level by level").press("Enter")
    found = page.evaluate(
        "decodingExplorer.call('explorer_what_if',"
        "{run: decodingExplorer.run, lane: 0, widths: '2 2', stop_below: 0})"
    )
    row = other.get_by_role("row").filter(has=page.get_by_role("rowheader", name="2 2", exact=True))
    expect(row).to_contain_text(f"{found['own']['tokens'][0]:.2f}")
    other.get_by_label("Children, level by level").fill("none")
    other.get_by_label("Children, level by level").press("Enter")
    expect(other).to_contain_text("Write one to 32 whole numbers")

    proof = section(page).get_by_role("region", name="Proof live")
    proof.get_by_label("Temperature of the proof").fill("0")
    proof.get_by_role("button", name="Prove").click()
    expect(proof).to_contain_text("at 0 every seed writes the same text")
    proof.get_by_label("Temperature of the proof").fill("1")
    proof.get_by_role("button", name="200", exact=True).click()
    proof.get_by_role("button", name="Prove").click()
    expect(proof.locator(".proof-results li")).to_have_count(2, timeout=60_000)
    expect(proof.locator(".proof-results li").first).to_contain_text("Speculative decoding")
    expect(proof).to_contain_text("of 200 seeds")
    proof.get_by_role("button", name="Stop").click()
    expect(proof.get_by_role("button", name="Prove")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]
