"""The app started with a model of one's own: what it opens with can run, and one press on Run shows it."""

import pytest
from playwright.sync_api import expect

import app as program
from tests.browser.conftest import BEEN_HERE, watched
from tests.browser.test_page import finished, press
from tests.helpers import tiny_models


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A target with other tokens than the shipped models, and a draft of its own."""
    home = tmp_path_factory.mktemp("own")
    return {
        "target": tiny_models.save(home / "mine", seed=0, endings=0.0),
        "draft": tiny_models.save(home / "mine-small", seed=1, endings=0.0),
    }


@pytest.fixture
def opened(chromium):
    """opened(*arguments): the page of an app that was started with them, its models loaded."""
    errors, closing = [], []

    def go(*arguments: str):
        options = program.arguments(["--device", "cpu", *arguments])
        demo, launch, loader = program.make(options)
        loader.start()
        _, address, _ = demo.launch(server_name="127.0.0.1", prevent_thread_lock=True, **launch)
        context = chromium.new_context(viewport={"width": 1400, "height": 900})
        context.add_init_script(BEEN_HERE)
        closing.extend((demo.close, context.close))
        page = watched(context, address, errors)
        page.goto(f"{address}?token={options.access.token}")
        page.wait_for_function("window.decodingExplorer && decodingExplorer.app.models.state === 'ready'")
        return page

    yield go
    for close in reversed(closing):
        close()
    assert not errors


def lane(page, number: int):
    return page.get_by_role("region", name=f"Lane {number}", exact=True)


@pytest.mark.parametrize(
    ("draft", "second"),
    [([], "Greedy"), (["own"], "Speculative decoding"), (["llama-tiny-draft"], "Universal drafting")],
)
def test_one_press_on_run_decodes_both_lanes(opened, folders, draft, second):
    own = [folders["draft"] if name == "own" else name for name in draft]
    page = opened("--model", folders["target"], *(["--draft", *own] if own else []))
    titles = page.evaluate("decodingExplorer.app.lanes.map((lane) => lane.title())")
    assert titles == ["Beam search", second]
    expect(page.locator(".lane.stale")).to_have_count(0)  # no picture of another model
    assert page.evaluate("decodingExplorer.lanes.map((lane) => lane.count)") == [0, 0]
    press(page, "Run")
    finished(page)
    written = "(lane) => lane.chips.marksAt().filter((mark) => mark.state !== 'prompt').length"
    assert min(page.evaluate(f"decodingExplorer.app.lanes.map({written})")) >= 40
    for number in (1, 2):
        expect(lane(page, number).locator(".hint")).to_be_hidden()
    expect(page.locator(".lane.stale")).to_have_count(0)
    expect(page.locator("#explorer").get_by_role("alert")).to_be_hidden()
    named = {"target": folders["target"]} | ({"draft": own[0]} if own else {})
    used = page.evaluate("decodingExplorer.call('explorer_trace', {run: decodingExplorer.run, lane: 1})")
    assert used["models"] == named


def test_a_lane_that_is_refused_says_so_in_its_place_and_the_others_run(opened, folders):
    page = opened("--model", folders["target"])
    setup = {
        "prompt": "the cat",
        "max_new_tokens": 6,
        "lanes": [{"strategy": "greedy"}, {"strategy": "medusa"}],
    }
    page.evaluate("setup => decodingExplorer.app.applySetup(setup)", setup)
    gear = lane(page, 2).get_by_role("button", name="Parameters", exact=True)
    gear.click()
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done' && decodingExplorer.lanes[0].count === 6")
    expect(lane(page, 2).locator(".hint")).to_contain_text("Medusa")
    expect(page.locator(".lane.stale")).to_have_count(0)
    expect(page.locator("#explorer [role=status]").first).to_contain_text("Lane 2 says why it stopped.")
    assert gear.get_attribute("aria-expanded") == "true"  # what is wrong may stand there
    page.evaluate("decodingExplorer.app.removeLane(decodingExplorer.app.lanes[0])")
    press(page, "Run")  # none is left that can run: what is drawn stays
    expect(page.locator("#explorer").get_by_role("alert")).to_contain_text("Medusa")
    expect(lane(page, 1).locator(".hint")).to_contain_text("Medusa")
    assert page.evaluate("decodingExplorer.state") == "done"
