"""Moments in the page: ticks, keys, the sentence, the outline and the inspector; and where a run ends."""

from playwright.sync_api import expect

from tests.browser.test_page import press, ready, run, start, trace

BEAMS = [{"strategy": "beam"}, {"strategy": "speculative"}]
OF_LANES = (
    "decodingExplorer.app.lanes.map(l => decodingExplorer.app.moments.of(l).map(m => [m.count, m.kind]))"
)
WINDOW = (
    "lane => { const { view } = decodingExplorer.app.lanes[lane].scene; return [view.lo, view.columns]; }"
)
SHOWN = "decodingExplorer.app.lanes.map(l => l.shown)"


def decode(page, lanes: list[dict], tokens: int = 40) -> None:
    """Decodes with these lanes, and waits until the whole run has been compared."""
    ready(page)
    page.evaluate("lanes => decodingExplorer.app.applySetup({ lanes })", lanes)
    run(page, tokens=tokens)
    page.wait_for_function("decodingExplorer.app.moments.result")
    page.evaluate("document.activeElement.blur()")


def rejected_steps(page, lane: int) -> list[int]:
    """The steps of a lane, counted from 1, with a rejected token."""
    return [
        step["index"] + 1
        for step in trace(page, lane)["steps"]
        if any(event.get("status") == "rejected" for event in step["events"])
    ]


def test_keys_walk_the_moments_of_all_lanes_or_of_the_lane_with_the_focus(again):
    page = again()
    decode(page, BEAMS)
    both, rejected = page.evaluate(OF_LANES), rejected_steps(page, 1)
    assert [count for count, kind in both[1] if kind == "rejection"] == rejected and len(rejected) > 2
    assert "lead change" in [kind for _, kind in both[0]]
    every = sorted({count for lane in both for count, _ in lane})
    page.keyboard.press("Home")
    for step in every:
        page.keyboard.press("n")
        assert page.evaluate("decodingExplorer.app.playback.position") == step
    page.keyboard.press("n")  # there is no other
    page.keyboard.press("Shift+N")
    assert page.evaluate("decodingExplorer.app.playback.position") == every[-2]
    page.keyboard.press("Home")
    page.keyboard.press("2")  # the lane
    for step in sorted({count for count, _ in both[1]}):
        page.keyboard.press("n")
        assert page.evaluate(SHOWN)[1] == step


def test_a_moment_is_said_outlined_and_opened(again):
    page = again()
    decode(page, [{"strategy": "speculative"}])
    first = rejected_steps(page, 0)[0]
    page.keyboard.press("Home")
    while page.evaluate("decodingExplorer.app.playback.position") < first:
        page.get_by_role("button", name="▸").click()
    said = page.locator(".bar.status .moment")
    expect(said).to_contain_text("is rejected (p ")
    expect(said).to_contain_text("is written instead")
    outlined = page.locator(".chips-row .dp-chip.is-rejected.dp-outlined")
    expect(outlined).to_have_count(1)
    expect(page.locator(".bars [aria-label=Steps]")).to_contain_text("is written instead")  # it is read out
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Enter")
    title = page.locator(".inspector h2")
    expect(title).to_contain_text(f"step {first}")
    page.keyboard.press("n")  # the open inspector goes along
    expect(title).not_to_contain_text(f"step {first}:")


def test_ticks_stand_where_the_slider_does_and_lead_there(again):
    page = again()
    decode(page, BEAMS)
    tick = page.locator(".moments .is-lead-change").first
    tick.click()
    slider = page.get_by_label("Step position")
    done = float(slider.evaluate("e => e.style.getPropertyValue('--done')").removesuffix("%")) / 100
    at = float(tick.evaluate("e => e.style.getPropertyValue('--at')"))
    assert abs(done - at) < 1e-6
    expect(page.locator(".bar.status .moment")).to_contain_text("Lane 1: Another text takes the lead")
    # The window is at the token of lane 1; lane 2, which is far ahead, shows its rounds there.
    page.wait_for_function(
        "decodingExplorer.app.lanes[1].scene.drawn.some(mark => mark.kind === 'cell' && mark.text)"
    )
    page.get_by_text("target forwards", exact=True).first.click()  # the slider counts something else
    assert page.locator(".moments i").count() > 5


def test_a_run_ends_where_its_lanes_part_with_its_result(again):
    page = again()
    decode(page, BEAMS)
    for lane in (0, 1):
        page.wait_for_function(f"({WINDOW})({lane})[0] <= 2")
        assert page.evaluate(WINDOW, lane)[1] < 40  # the end would be another window
    expect(page.locator(".bar.status .moment")).to_have_text(
        page.evaluate("decodingExplorer.app.moments.result")
    )
    page.locator("#explorer-compare").scroll_into_view_if_needed()
    expect(page.locator("#explorer-compared .result")).to_contain_text("The text of Beam search is likeliest")
    page.keyboard.press("Home")
    page.keyboard.press("End")  # the end itself
    page.wait_for_function(f"({WINDOW})(0)[0] > 2")


def test_a_branch_ends_where_it_leaves_its_lane(again):
    page = again()
    decode(page, [{"strategy": "beam"}, {"strategy": "greedy"}])
    page.get_by_role("region", name="Lane 1").locator(".chips-row .dp-chip").nth(-6).click()
    page.get_by_role("button", name="Branch here with").nth(1).click()
    page.wait_for_function("decodingExplorer.lanes.length === 3 && decodingExplorer.state === 'done'")
    page.wait_for_function("decodingExplorer.app.moments.homes?.size === 3")
    token = page.evaluate("decodingExplorer.app.lanes[2].setup.begin.tokens.length")
    assert token > 30
    for lane in (1, 2):
        page.wait_for_function(
            f"(([lo, columns]) => lo <= {token} && {token} < lo + columns)(({WINDOW})({lane}))"
        )


def test_best_first_search_ends_on_its_branches(again):
    page = again()
    decode(page, [{"strategy": "best_first"}])
    page.wait_for_function(f"({WINDOW})(0)[0] <= 5")
    nodes = "decodingExplorer.app.lanes[0].scene.drawn.filter(m => m.kind === 'node').map(m => m.y)"
    page.wait_for_function(f"new Set({nodes}).size >= 3")


def test_the_strip_has_four_numbers_the_others_behind_more_and_each_word_has_its_meaning(again):
    page = again()
    decode(page, [{"strategy": "speculative"}])
    lane = page.locator(".lane").first
    words = lane.locator(".costs dt:visible")
    expect(words).to_have_text(["tokens / target forward", "drafted tokens used", "rounds", "tokens/s"])
    press(page, "more")
    expect(words).to_have_count(8)
    assert "—" not in lane.locator(".costs").inner_text()
    words.nth(1).get_by_role("button").click()
    expect(lane.locator(".cost-says")).to_have_text(
        "Accepted divided by drafted tokens, which are those sent to the target for verification; this is "
        "not a measure of speed."
    )
    page.keyboard.press("Escape")
    expect(lane.locator(".cost-says")).to_be_hidden()
    press(page, "less")
    expect(words).to_have_count(4)


def add(page, condition: str, value: str | None = None) -> None:
    """Sets a breakpoint in the panel."""
    form = page.locator(".stop-form")
    form.get_by_label("Condition").select_option(condition)
    if value is not None:
        form.get_by_label("Value").fill(value)
    form.get_by_role("button", name="Add").click()


def test_a_run_stops_at_a_breakpoint_goes_on_and_marks_it_when_it_is_over(again):
    page = again()
    ready(page)
    page.evaluate("lanes => decodingExplorer.app.applySetup({ lanes })", BEAMS)
    start(page, "Once upon a time", 24)
    press(page, "Stop when …")
    add(page, "entropy >", "high")
    expect(page.locator(".stop-panel .fault")).to_contain_text("it can when: entropy > 4")
    add(page, "rejection at depth", "1")
    expect(page.locator(".stops li")).to_have_text(["rejection at depth 1×"])
    expect(page.locator(".stop-panel .fault")).to_have_text("")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Stop when … (1)")).to_be_focused()
    press(page, "Run")
    page.wait_for_function("decodingExplorer.app.run?.stopped")
    status = page.locator(".status-text")
    expect(status).to_contain_text("of lane 2: rejection at depth 1, at token")
    expect(status).to_contain_text("Run continues.")
    assert page.evaluate("decodingExplorer.state") == "paused"
    expect(page.locator(".moments .is-breakpoint")).to_have_count(1)
    link = page.evaluate("ExplorerPage.linkOf(decodingExplorer.app.setup())")
    while page.evaluate("decodingExplorer.state") != "done":
        press(page, "Run")
        page.wait_for_function("decodingExplorer.state !== 'running'")
    holds = page.evaluate("[...decodingExplorer.app.moments.stops.values()].map(some => some.length)")
    assert holds[0] == 0 and holds[1] >= 1
    page.evaluate("decodingExplorer.app.stopWhen.set([])")
    expect(page.locator(".moments .is-breakpoint")).to_have_count(0)
    page.evaluate("link => { location.hash = new URL(link).hash; }", link)
    expect(page.get_by_role("button", name="Stop when … (1)")).to_be_visible()
