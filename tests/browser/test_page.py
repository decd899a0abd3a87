"""The page in a real browser: what is on the screen is what the traces say, at every step."""

import json
import re

import pytest
from playwright.sync_api import expect

from decoders.explain.verdicts import reason_of
from decoders.trace.events import Verdict
from decoders.trace.trace import from_json
from tests.browser.conftest import BEEN_HERE, HOSTILE
from tests.browser.window import resize
from visualizers.registry import deltas
from visualizers.scene.view import Header

STATES = {"never reached": "unreached"} | {
    name: name for name in ("accepted", "rejected", "resampled", "bonus")
}
# Scrolls to the next figure that waits until it comes near the window; whether all are drawn.
WHOLE = """([plots, count]) => {
  [...document.querySelectorAll(".figure-undrawn")].find((place) => place.offsetParent)?.scrollIntoView();
  return document.querySelectorAll(plots).length === count;
}"""


@pytest.fixture
def page(again):
    """A wide page that the tests share, at its beginning."""
    return again()


def all_drawn(page, plots: str, count: int) -> None:
    """Scrolls until a page has drawn all its figures, `count` of the selector `plots`."""
    page.wait_for_function(WHOLE, arg=[plots, count])


def press(page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def ready(page) -> None:
    """Gradio has mounted and the models are there."""
    page.wait_for_function("decodingExplorer.app.models.state === 'ready'")


def run(page, prompt: str = "Once upon a time", tokens: int = 12) -> None:
    """Decodes to the end and waits for the last paint."""
    start(page, prompt, tokens)
    press(page, "Run")
    finished(page)


def start(page, prompt: str, tokens: int) -> None:
    ready(page)
    page.get_by_role("textbox", name="Prompt").fill(prompt)
    page.get_by_label("max_new_tokens").fill(str(tokens))


def finished(page) -> None:
    page.wait_for_function("decodingExplorer.state === 'done'")
    page.wait_for_function(
        "decodingExplorer.lanes.every(l => l.view === 'text' || l.scene.paintedStep === l.count - 1)"
    )


def seek(page, position: int) -> None:
    page.get_by_role("slider", name="Step position").fill(str(position))


def quiet(page, asked: list[str]) -> None:
    """Waits until nothing has been asked for a while, however slow the machine, and forgets what was."""
    for _ in range(40):
        asked.clear()
        page.wait_for_timeout(2500)
        if not asked:
            return
    pytest.fail("The page never stops asking.")


def marks(page, lane: int, step: int) -> list[dict]:
    return page.evaluate("([lane, step]) => decodingExplorer.lanes[lane].scene.marksAt(step)", [lane, step])


def trace(page, lane: int) -> dict:
    """The lane's trace as the server tells it."""
    return page.evaluate(
        "lane => decodingExplorer.call('explorer_trace', {run: decodingExplorer.run, lane})", lane
    )


def events(found: dict, kind: str, until: int | None = None) -> list[dict]:
    return [
        e
        for s in found["steps"][: None if until is None else until + 1]
        for e in s["events"]
        if e["type"] == kind
    ]


def test_a_stored_run_is_on_screen_before_any_run_and_before_gradio(app, chromium):
    context = chromium.new_context()
    context.add_init_script(BEEN_HERE)
    page = context.new_page()
    page.route(
        re.compile(r"/assets/[^/]+\.js$"), lambda route: route.abort()
    )  # Gradio's front end never comes
    page.goto(app.address, wait_until="domcontentloaded")
    page.wait_for_function("decodingExplorer.drawn")
    assert page.evaluate(
        "decodingExplorer.lanes.map(l => l.scene.marksAt().length > 20 && l.chips.marksAt().length > 20)"
    ) == [
        True,
        True,
    ]
    expect(page.get_by_role("region", name="Lane 1").locator("svg.dp-marks").first).to_be_visible()
    expect(page.get_by_text("step 40 of 40")).to_be_visible()
    press(page, "Play")
    page.wait_for_function("decodingExplorer.lanes[0].shown > 0 && decodingExplorer.lanes[0].shown < 40")
    context.close()


def test_two_lanes_run_and_show_every_node_in_the_state_that_the_trace_says(page):
    run(page)
    beam, speculative = trace(page, 0), trace(page, 1)
    shown = {mark["node"] for mark in marks(page, 0, 10**6) if mark["kind"] in ("node", "tick")}
    assert len(shown) > 80 and {e["node"] for e in events(beam, "Propose")} <= shown
    cells = {m["node"]: m["state"] for m in marks(page, 1, 10**6) if "node" in m and m["kind"] == "cell"}
    for verdict in events(speculative, "Verdict"):
        assert cells[verdict["node"]] == STATES[verdict["status"]]
    assert {e["node"] for e in events(speculative, "Propose")} <= set(cells)
    for lane, (view, found) in enumerate((("beam_tree", beam), ("draft_rounds", speculative))):
        told = from_json(found)
        header = Header(told.prompt, told.vocabulary, told.parameters, told.title)
        head, steps = deltas(view, header, told.steps)
        born = {
            op["id"]
            for ops in [head.get("ops", []), *(s["ops"] for s in steps)]
            for op in ops
            if "kind" in op
        }
        assert set(page.evaluate(f"[...decodingExplorer.lanes[{lane}].scene.history.byId.keys()]")) == born


def test_scrubbing_back_shows_what_the_trace_said_then(page):
    run(page)
    speculative = trace(page, 1)
    last = len(speculative["steps"])
    for position in (last, 2, 1, last):
        seek(page, position)
        page.wait_for_function("n => decodingExplorer.lanes[1].scene.paintedStep === n - 1", arg=position)
        expect(page.get_by_text(f"step {position} of")).to_be_visible()
        here = {
            m["node"]: m["state"] for m in marks(page, 1, position - 1) if "node" in m and m["kind"] == "cell"
        }
        judged = {v["node"]: STATES[v["status"]] for v in events(speculative, "Verdict", position - 1)}
        assert {node: here[node] for node in judged} == judged
        assert set(here) <= {e["node"] for e in events(speculative, "Propose", position - 1)}
        committed = [n for e in events(speculative, "Commit", position - 1) for n in e["nodes"]]
        chips = page.evaluate("decodingExplorer.lanes[1].chips.marksAt()")
        assert [c["node"] for c in chips if c["state"] not in ("prompt", "rejected", "live")] == committed


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
def test_a_long_prompt_is_seen_while_it_is_written_and_a_short_one_stays_as_it_is(again, width, height):
    page = again(width, height)
    ready(page)
    field = page.get_by_role("textbox", name="Prompt")
    rest = field.bounding_box()
    field.focus()
    assert field.bounding_box() == rest
    field.fill("Once upon a time there was a little dog in a red house near the sea. " * 9)
    open_ = field.bounding_box()
    assert open_["height"] >= 3 * rest["height"] and abs(open_["y"] - rest["y"]) < 1
    x, y = open_["x"] + 40, open_["y"] + open_["height"] - 12  # nothing lies over its last line
    assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).ariaLabel", [x, y]) == "Prompt"
    field.blur()
    assert field.bounding_box() == rest


def test_step_does_one_step_in_every_lane_then_run_goes_on(page):
    start(page, "Once", 12)
    counts = "decodingExplorer.lanes.map(l => l.count).join()"
    press(page, "Step")
    page.wait_for_function(counts + " === '1,1'")
    press(page, "Step")
    page.wait_for_function(counts + " === '2,2'")
    expect(page.get_by_text("step 2 of 2")).to_be_visible()
    press(page, "Run")
    finished(page)
    assert page.evaluate("decodingExplorer.lanes[0].count") == len(trace(page, 0)["steps"]) > 2


def test_another_view_of_a_finished_run_is_drawn_whole(page):
    run(page)
    lane = page.get_by_role("region", name="Lane 1")
    lane.get_by_role("tab", name="Entropy").click()
    page.wait_for_function(
        "decodingExplorer.lanes[0].scene.paintedStep === decodingExplorer.lanes[0].count - 1"
    )
    assert len([m for m in marks(page, 0, 10**6) if m["kind"] == "step"]) == 12
    lane.get_by_role("tab", name="Text").click()
    expect(lane.locator(".text-view .dp-chip").first).to_be_visible()


def test_a_click_on_a_token_says_why(page):
    page.get_by_role("region", name="Lane 2").locator(".chips-row .is-rejected").last.click()
    inspector = page.get_by_role("complementary", name="Inspector")
    expect(inspector).to_contain_text("rejected in step")
    told = from_json(trace(page, 1))
    facts = [v for step in told.steps for v in step.of(Verdict) if v.status == "rejected"][-1]
    expect(inspector).to_contain_text(reason_of(facts, told.vocabulary))
    assert inspector.locator(".offer-row.here").count() == 1
    page.keyboard.press("Escape")
    expect(inspector).to_be_hidden()


def test_a_token_that_looks_like_markup_is_shown_as_text(page):
    page.get_by_role("region", name="Lane 2").get_by_role("button", name="Remove lane").click()
    run(page, "scripted", 8)
    lane = page.get_by_role("region", name="Lane 1", exact=True)  # not "Text of lane 1" in Compare
    for tab in ("Beam tree", "Text", "Entropy"):
        if lane.get_by_role("tab", name=tab).count():
            lane.get_by_role("tab", name=tab).click()
            page.wait_for_timeout(200)
    texts = page.evaluate("decodingExplorer.lanes[0].chips.marksAt().map(m => m.text)")
    assert HOSTILE in texts and "<b>" in texts and "</script>" in texts
    assert HOSTILE in lane.locator(".chips-row").inner_text()
    assert page.evaluate("window.hacked") is None and lane.locator("img, b").count() == 0
    page.get_by_role("textbox", name="Prompt").fill(HOSTILE)
    press(page, "Run")
    finished(page)
    assert page.evaluate("window.hacked") is None


def test_an_empty_prompt_is_one_sentence_and_the_page_goes_on(page):
    start(page, "", 8)
    press(page, "Run")
    alert = page.locator("#explorer").get_by_role("alert")
    expect(alert).to_contain_text("The prompt is empty")
    assert "\n" not in alert.inner_text()
    run(page, "Once", 4)
    expect(alert).to_be_hidden()


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ("-5", "not -5."),
        ("0", "not 0."),
        ("2.5", "not 2.5."),
        ("99999999", "not 99999999."),
        ("", "it is empty."),
    ],
)
def test_an_unusable_number_of_tokens_is_refused_in_its_field_before_run(page, tokens, says):
    start(page, "Once", 8)
    field, alert = page.get_by_label("max_new_tokens"), page.locator("#explorer").get_by_role("alert")
    field.fill(tokens)
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(alert).to_have_text(
        re.compile(r"^The number of tokens must be a whole number from 1 to 512[,:] .*\.$")
    )
    expect(alert).to_contain_text(says)
    for name in ("Run", "Step"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    before = page.evaluate("decodingExplorer.run")
    page.evaluate("decodingExplorer.app.press('run')")  # as a key does
    expect(alert).to_contain_text(says)
    assert page.evaluate("decodingExplorer.run") == before
    field.fill("4")
    expect(field).not_to_have_attribute("aria-invalid", "true")
    expect(alert).to_be_hidden()
    run(page, "Once", 4)


def test_an_error_goes_when_its_settings_do_and_when_another_run_is_shown(page):
    run(page, "Once", 4)
    alert = page.locator("#explorer").get_by_role("alert")
    page.get_by_role("textbox", name="Prompt").fill("")
    press(page, "Run")
    expect(alert).to_contain_text("The prompt is empty")
    page.get_by_role("textbox", name="Prompt").fill("Once")
    expect(alert).to_be_hidden()
    page.evaluate("decodingExplorer.app.fail('An error of the run before.')")
    expect(alert).to_be_visible()
    page.evaluate("const { run } = decodingExplorer.app; decodingExplorer.app.show(run, 2)")
    expect(alert).to_be_hidden()


def test_a_prompt_that_is_too_long_for_the_models_is_a_sentence_in_each_lane(page):
    start(page, "word " * 300, 8)
    press(page, "Run")
    alert = page.locator("#explorer").get_by_role("alert")
    expect(alert).to_have_text("No lane can run: each says why.")
    for number in (1, 2):
        hint = page.get_by_role("region", name=f"Lane {number}", exact=True).locator(".hint")
        expect(hint).to_contain_text("the model reads at most")
    run(page, "Once", 4)
    expect(alert).to_be_hidden()


@pytest.mark.parametrize("value", ["0", ""])
def test_an_unusable_parameter_is_a_sentence_in_its_lane_and_the_other_lane_runs(page, value):
    start(page, "Once", 8)
    lane = page.get_by_role("region", name="Lane 1", exact=True)
    lane.get_by_role("button", name="Parameters", exact=True).click()
    lane.get_by_label("num_beams").fill(value)
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done' && decodingExplorer.lanes[1].count > 0")
    expect(lane.locator(".hint")).to_contain_text("num_beams must be")
    lane.get_by_label("num_beams").fill("2")
    run(page, "Once", 4)
    expect(lane.locator(".hint")).to_be_hidden()


def test_two_browsers_do_not_see_each_others_runs(visit, app):
    ours, theirs = visit(), visit()
    run(ours, "A secret of ours", 6)
    run(theirs, "Something else", 6)
    mine = ours.evaluate("decodingExplorer.run")
    assert mine != theirs.evaluate("decodingExplorer.run") and mine not in theirs.content()
    said = theirs.evaluate("id => decodingExplorer.call('explorer_trace', {run: id, lane: 0})", mine + "x")
    assert "is gone" in said["error"]
    text = json.dumps(theirs.evaluate("decodingExplorer.lanes.map(l => l.chips.marksAt().map(m => m.text))"))
    assert "secret" not in text.replace('", "', "")


def test_lanes_are_added_removed_and_run_together(page):
    press(page, "+ Lane")  # beam and speculative decoding are there: contrasts come from other families
    press(page, "+ Lane")
    assert page.evaluate("decodingExplorer.lanes.slice(2).map(l => l.strategy)") == ["greedy", "jacobi"]
    full = page.get_by_role("button", name="+ Lane (at most 4)")
    assert "remove one to add another" in full.get_attribute("title")
    for number, strategy in ((1, "greedy"), (3, "sample"), (4, "jacobi")):
        page.get_by_role("region", name=f"Lane {number}").get_by_label("Strategy").select_option(strategy)
    expect(page.get_by_role("button", name="+ Lane")).to_be_disabled()
    run(page, "Once", 8)
    assert page.evaluate("decodingExplorer.lanes.map(l => l.count > 0)") == [True] * 4
    page.get_by_role("region", name="Lane 2").get_by_role("button", name="Remove lane").click()
    assert page.evaluate("decodingExplorer.lanes.map(l => l.strategy)") == ["greedy", "sample", "jacobi"]
    lane = page.get_by_role("region", name="Lane 3").get_by_role("tab", name="Text")
    lane.click()
    page.wait_for_function("document.querySelectorAll('.lane:nth-child(3) .text-view .dp-chip').length > 4")


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
def test_a_strategy_is_searched_by_the_names_that_people_use(page, width, height):
    resize(page, width, height)
    lane = page.locator(".lane:visible").first
    picker = lane.get_by_label("Strategy")
    groups = picker.locator("optgroup").evaluate_all("all => all.map(one => one.label)")
    assert groups[0] == "Start here" and picker.locator("optgroup").first.locator("option").count() == 6
    titles = picker.locator("optgroup").nth(1).locator("option").all_text_contents()
    assert len(titles) > 10 and titles == sorted(titles, key=str.lower)
    before = picker.input_value()
    picker.select_option("")
    dialog = page.get_by_role("dialog", name="Find a strategy")
    field = dialog.get_by_role("searchbox", name="Search strategies")
    expect(field).to_be_focused()
    expect(dialog.get_by_role("listitem").first).to_contain_text("Greedy")  # what to start with comes first
    picture = dialog.get_by_role("listitem").nth(3).locator("img.in-light")
    page.wait_for_function("image => image.naturalWidth > 0", arg=picture.element_handle())  # a recorded run
    assert picker.input_value() == before
    for words, title in (
        ("nucleus", "Sampling"),
        ("leviathan", "Speculative decoding"),
        ("MCTS", "PG-TD"),
        ("best-of-n", "First"),
    ):
        field.fill(words)
        expect(dialog.get_by_role("listitem").first).to_contain_text(title)
    field.fill("zzz")
    expect(dialog.get_by_role("status")).to_have_text("Nothing found for “zzz”. Try fewer words.")
    field.fill("top-p")
    field.press("Enter")
    expect(dialog).to_be_hidden()
    expect(picker).to_have_value("sample")
    expect(picker).to_be_focused()
    picker.select_option("")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(picker).to_have_value("sample")


def test_lanes_line_up_by_forwards_and_by_seconds(page):
    run(page)
    page.get_by_role("radiogroup", name="Line up lanes by").get_by_role(
        "radio", name="target forwards"
    ).check()
    forwards = page.evaluate("decodingExplorer.lanes.map(l => l.rows.map(r => r.t))")
    expect(page.get_by_text(f"forward {max(map(max, forwards))} of")).to_be_visible()
    position = sorted({t for lane in forwards for t in lane}).index(forwards[1][1]) + 1
    seek(page, position)
    expected = [sum(t <= forwards[1][1] for t in lane) for lane in forwards]
    assert page.evaluate("decodingExplorer.lanes.map(l => l.shown)") == expected
    page.get_by_role("radiogroup", name="Line up lanes by").get_by_role("radio", name="seconds").check()
    expect(page.locator("output")).to_contain_text(" s of ")


def test_playback_follows_at_its_own_speed_and_loses_nothing(page):
    start(page, "Once", 8)
    page.get_by_role("region", name="Lane 1").get_by_label("Strategy").select_option("greedy")
    page.get_by_label("4×").check()
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done'")
    page.wait_for_function("decodingExplorer.app.playback.position === 8")
    assert page.evaluate("decodingExplorer.lanes.map(l => l.shown === l.count)") == [True, True]
    seek(page, 3)
    press(page, "Play")
    page.wait_for_function("!decodingExplorer.app.playback.playing")
    assert page.evaluate("decodingExplorer.app.playback.position") == 8


def test_keys_step_and_run(visit):
    page = visit()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_text("step 39 of 40")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("step 40 of 40")).to_be_visible()
    ready(page)
    page.keyboard.press(" ")
    page.wait_for_function("decodingExplorer.state !== 'none'")
    finished(page)


def test_a_phone_shows_one_lane_at_a_time_without_scrolling_sideways(visit):
    page = visit(390, 844, has_touch=True, color_scheme="dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    ready(page)
    expect(page.get_by_role("region", name="Lane 1")).to_be_visible()
    expect(page.get_by_role("region", name="Lane 2")).to_be_hidden()
    page.get_by_role("button", name=re.compile("^2 ")).click()
    expect(page.get_by_role("region", name="Lane 1")).to_be_hidden()
    page.get_by_role("button", name="Settings").click()
    press(page, "+ Lane")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(
        "[...document.querySelectorAll('.explorer button, #explorer-tabs > .tab-wrapper')]"
        ".every(b => b.getBoundingClientRect().right <= 391)"
    ), "the row of tabs scrolls by itself; all else is on the screen"
