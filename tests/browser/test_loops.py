"""Loops and spans in the page: bands, the switch that folds loops, and the section of the Microscope."""

from playwright.sync_api import expect

from tests.browser.test_page import ready, run

LOOP = {
    "strategy": "greedy",
    "parameters": {"constraint": "regex", "constraint_text": "x(abc)+", "min_new_tokens": 22},
}
THINK = {
    "strategy": "greedy",
    "parameters": {
        "constraint": "regex",
        "constraint_text": "<think>ab</think>cd",
    },
}
TEXT = "decodingExplorer.app.lanes[0].textElement.innerText"


def decode(page, lane: dict, tokens: int) -> None:
    ready(page)
    page.evaluate("lane => decodingExplorer.app.applySetup({ lanes: [{ ...lane, view: 'text' }] })", lane)
    run(page, tokens=tokens)
    page.wait_for_function("decodingExplorer.app.moments.result")


def test_a_loop_is_folded_and_unfolded(again):
    page = again()
    decode(page, LOOP, 22)
    chips = page.locator(".lane .chips-row .dp-chip")
    assert "x" + 7 * "abc" in page.evaluate(TEXT)
    assert page.locator(".lane .dp-prose .dp-loop").count() == 18
    before = chips.count()
    fold = page.get_by_role("button", name="Fold loops")
    fold.focus()
    page.keyboard.press("Space")
    expect(page.locator(".lane .dp-prose .dp-times")).to_have_text("×7")
    assert chips.count() == before - 18
    assert "xabc×7" in page.evaluate(TEXT).replace("\n", "")
    page.keyboard.press("Space")
    expect(page.locator(".lane .dp-times")).to_have_count(0)
    assert chips.count() == before


def test_reasoning_and_answer_are_told_in_the_text_and_by_voice(again):
    page = again()
    decode(page, THINK, 24)
    prose = page.locator(".lane .dp-prose")
    assert "".join(prose.locator(".dp-part-reasoning").all_inner_texts()) == "<think>ab</think>"
    assert "".join(prose.locator(".dp-part-answer").all_inner_texts()) == "cd<|end|>"
    legend = page.locator(".lane .dp-parts")
    assert legend.inner_text().split() == ["reasoning", "answer"]
    first = prose.locator(".dp-part-answer").first
    assert first.get_attribute("aria-label").endswith(", answer")


def test_the_microscope_says_where_a_text_loops_and_what_leaves_the_loop(again):
    page = again()
    decode(page, LOOP, 22)
    page.evaluate("decodingExplorer.app.showSection('microscope')")
    expect(page.locator("#loops-says")).to_contain_text("3 tokens are written 7 times")
    page.locator("#leave-loop").click()
    expect(page.locator("#leave-loop-says")).to_contain_text("Sampling from the target itself leaves")
    plot = page.get_by_role("group", name="Probability of leaving the loop, token by token").first
    plot.scroll_into_view_if_needed()
    expect(plot.locator(".js-plotly-plot")).to_be_visible()
