"""The drawer with the code that runs: its line, its numbers, its step of the algorithm, and ways in it."""

import pytest
from playwright.sync_api import expect

from tests.browser.test_moments import decode, rejected_steps
from tests.browser.test_page import finished, ready, run, trace


@pytest.fixture
def drawer(again):
    """A page with a run of speculative decoding and its drawer, before the first step."""
    page = again()
    decode(page, [{"strategy": "speculative", "parameters": {"temperature": 0.8}}])
    page.keyboard.press("Home")
    page.keyboard.press("c")
    expect(page.locator(".code")).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press(".")
    expect(page.locator(".code-count")).to_contain_text("1 of ")  # the events have come
    page.keyboard.press("Home")
    return page


def lit(page) -> str:
    """The line that is lit."""
    return " ".join(page.locator(".code-lines li.lit").all_text_contents()).strip()


def test_dot_and_comma_walk_the_events_of_all_steps(drawer):
    page, whole = drawer, trace(drawer, 0)
    functions = [function["name"] for function in whole["code"]["functions"]]
    seen = []
    for _ in range(60):
        page.keyboard.press(".")
        seen.append((page.locator(".code-count").text_content(), lit(page)))
        if page.evaluate("decodingExplorer.app.lanes[0].shown") == 3:
            break
    counts = [count for count, _ in seen]
    size = int(counts[0].split(" of ")[1])
    assert counts[:size] == [f"{at} of {size}" for at in range(1, size + 1)] and counts[size].startswith(
        "1 of "
    )
    assert "lane.score(nodes" in seen[0][1] and any("TokenTest(" in line for _, line in seen)
    assert {"rounds", "walk", "ratio_test"} <= set(functions)
    page.keyboard.press(",")
    assert page.locator(".code-count").text_content() == seen[-2][0] and lit(page) == seen[-2][1]


def test_a_rejection_lights_the_line_of_its_rule_with_p_q_u_and_the_step_of_the_algorithm(drawer):
    page, step = drawer, rejected_steps(drawer, 0)[0]
    verdict = next(
        event for event in trace(page, 0)["steps"][step - 1]["events"] if event.get("status") == "rejected"
    )
    while page.evaluate("decodingExplorer.app.lanes[0].shown") < step:
        page.keyboard.press("n")
    expect(page.locator(".code-event")).to_contain_text("rejected")
    assert lit(page).startswith("return TokenTest(")
    values = dict(text.split() for text in page.locator(".code-values span").all_text_contents())
    for name in "pqu":
        assert abs(float(values[name]) - verdict[name]) < 0.01
    expect(page.locator(".algorithm [aria-current]")).to_contain_text("a guess x passes if")
    expect(page.locator(".chips-row .dp-chip.is-rejected.dp-outlined")).to_have_count(1)
    page.locator(".code-stack button").first.click()  # the function around all
    expect(page.locator(".code-stack [aria-pressed=true]")).to_have_text("rounds")
    assert lit(page).startswith("verification = judged(")


def test_the_drawer_follows_the_picture_the_slider_and_the_next_run(drawer):
    page = drawer
    page.evaluate("decodingExplorer.app.playback.seek(2)")
    node = trace(page, 0)["steps"][1]["events"][1]["node"]
    page.evaluate("node => decodingExplorer.app.lanes[0].code.point(node)", node)
    expect(page.locator(".code-count")).not_to_have_text("")
    run(page, tokens=8)
    expect(page.locator(".code-event")).not_to_have_text("")
    steps = len(trace(page, 0)["steps"])
    page.wait_for_function("n => decodingExplorer.app.lanes[0].code.steps.length === n", arg=steps)
    page.locator(".code-lines").press("Escape")
    expect(page.locator(".code")).to_be_hidden()
    assert not page.evaluate("decodingExplorer.app.lanes[0].keeps?.code ?? null")


def test_a_lesson_points_at_the_line_and_a_saved_page_has_it(again, tmp_path, chromium):
    page = again()
    ready(page)
    page.evaluate("decodingExplorer.app.guide.start('speculative-acceptance')")
    finished(page)
    forward = page.locator(".guide-foot .primary")
    for _ in range(2):  # to the second stop
        forward.click()
    page.get_by_role("button", name="Show its line of code").click()
    expect(page.locator(".code-event")).to_contain_text("rejected")
    line = lit(page)
    assert line.startswith("return TokenTest(")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save this lane").click()
        page.get_by_role("menuitem", name="Save page").click()
    path = tmp_path / "run.html"
    download.value.save_as(path)
    context = chromium.new_context(offline=True)
    saved = context.new_page()
    saved.goto(path.as_uri())
    saved.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
    saved.keyboard.press("Home")
    saved.keyboard.press("c")
    while "rejected" not in (saved.locator(".code-event").text_content() or ""):
        saved.keyboard.press("n")
    assert lit(saved) == line
    context.close()
