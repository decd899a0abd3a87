"""The app started with a model of one's own: what it opens with suits that model, and is decoded at once."""

import json
import re

import pytest
from playwright.sync_api import expect

import app as program
from explorer.catalog import opening_lanes, recorded_runs
from tests.browser.conftest import BEEN_HERE, watched
from tests.browser.test_models import choose
from tests.browser.test_page import finished, press
from tests.helpers import tiny_models
from tests.helpers.launched import launched


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
        address = launched(demo, launch)
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
def test_the_page_opens_with_a_run_of_its_own_models(opened, folders, draft, second):
    own = [folders["draft"] if name == "own" else name for name in draft]
    page = opened("--model", folders["target"], *(["--draft", *own] if own else []))
    titles = page.evaluate("decodingExplorer.app.lanes.map((lane) => lane.title())")
    assert titles == ["Beam search", second]
    finished(page)  # nobody has pressed Run
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
    finished(page)
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


def test_prompt_length_examples_and_lanes_suit_the_model_in_use(opened, folders, tmp_path):
    """A chat model with little context; then, in the page, one without a template."""
    own = tmp_path / "chatty"
    tiny_models.save(own, chat=True, seed=2, endings=0.0)
    config = json.loads((own / "config.json").read_text("utf-8")) | {"max_position_embeddings": 60}
    (own / "config.json").write_text(json.dumps(config), "utf-8")
    page = opened("--model", str(own))
    finished(page)
    status = page.locator("#explorer [role=status]").first
    expect(status).to_contain_text(
        re.compile(r"^chatty: 3\d,\d+ parameters in float32, .* 60 tokens of context")
    )
    expect(status).to_contain_text("The prompt is a message in its chat template.")
    setup = page.evaluate("decodingExplorer.app.setup()")
    assert (setup["prompt"], setup["chat"]) == (opening_lanes.MESSAGE, {"system": ""})
    assert setup["max_new_tokens"] < 40
    examples = page.get_by_label("Example prompts")
    expect(examples.locator("option", has_text="A sum in steps")).to_be_hidden()
    assert examples.locator("optgroup").nth(1).get_attribute("label").startswith("llama-tiny: ")
    page.evaluate("decodingExplorer.app.lanes[1].choose('medusa', {})")
    choose(page, folders["target"])
    expect(status).to_contain_text("Lane 2 is Greedy: these models cannot run Medusa.")
    expect(lane(page, 1).locator(".hint")).to_have_text("Decoded with chatty, no draft: press Run")
    setup = page.evaluate("decodingExplorer.app.setup()")
    assert (setup["prompt"], setup["chat"]) == (recorded_runs.PROMPT, None)
    number = next(i for i, one in enumerate(recorded_runs.prompts()) if "lanes" in one)
    examples.select_option(str(number))
    wanted = page.locator("#explorer-models").get_by_label("Target model")  # the panel opens by itself
    expect(wanted).to_have_value(re.compile("^llama-tiny,"))
