"""Models in a real browser: others are chosen, asked for their memory, loaded, refused; chat; examples."""

import re
import threading

import pytest
from playwright.sync_api import expect

from decoders.models.loading import load
from explorer.catalog import recorded_runs
from tests.browser.conftest import BEEN_HERE
from tests.browser.test_page import press, ready, trace
from tests.browser.window import resize
from tests.helpers import tiny_models


def start(page, prompt: str, tokens: int) -> None:
    """The models are there, and so are prompt and length, which a phone hides behind the gear."""
    ready(page)
    setup = {"prompt": prompt, "max_new_tokens": tokens}
    page.evaluate("setup => decodingExplorer.app.applySetup(setup)", setup)


def finished(page) -> None:
    """The run is done; a phone draws one lane only."""
    page.wait_for_function("decodingExplorer.state === 'done'")


def panel(page):
    """Opens the panel of models."""
    found = page.locator("#explorer-models")
    if not found.get_by_label("Target model").is_visible():
        found.get_by_role("button", name=re.compile("^Models: ")).click()
    expect(found.get_by_label("Target model")).to_be_visible()
    return found


def write(field, name: str) -> None:
    """Types a name in the place of what stands there, key by key."""
    field.click()
    field.press("Control+a")
    field.press_sequentially(name)


def name_model(found, label: str, name: str) -> None:
    """Types a model's name; leaving the field asks for its memory."""
    field = found.get_by_label(label, exact=True)
    write(field, name)
    field.press("Tab")


def pick(found, label: str, name: str) -> None:
    """Picks a model from the list that its field opens."""
    write(found.get_by_label(label, exact=True), name)
    found.page.get_by_role("option", name=re.compile(rf"^\W*{name}(,|$)")).first.click()


def load_models(page, title: str) -> None:
    """Presses Load; the panel closes when the models are there."""
    found = page.locator("#explorer-models")
    found.get_by_role("button", name="Load", exact=True).click()
    expect(found.get_by_role("button", name=title)).to_be_focused()
    expect(found.get_by_label("Target model")).to_be_hidden()


def choose(page, folder: str) -> None:
    """Loads a folder as the target, without a draft."""
    found = panel(page)
    name_model(found, "Draft model", "none")
    name_model(found, "Target model", folder)
    load_models(page, f"Models: {folder.rsplit('/', 1)[-1]}, no draft")


def chosen(page) -> dict:
    return page.evaluate("decodingExplorer.app.choice")


def test_other_models_keep_prompt_and_lanes(visit, tmp_path):
    """Named on a wide page, loaded on a phone."""
    folder = tiny_models.save(tmp_path / "other", seed=2, endings=0.0)
    page = visit()
    start(page, "the cat", 5)
    page.evaluate(
        "decodingExplorer.app.applySetup({lanes: [{strategy: 'greedy'}, {strategy: 'beam', seed: 3}]})"
    )
    before = page.evaluate("decodingExplorer.app.setup()")
    found = panel(page)
    expect(found.get_by_text("These are in use.")).to_be_visible()
    name_model(found, "Target model", folder)
    name_model(found, "Draft model", "none")
    expect(found.get_by_text(re.compile("parameters × 4 bytes .float32.*of KV cache"))).to_be_visible()
    expect(found.get_by_text(re.compile("of free memory"))).to_be_visible()
    resize(page, 1400), resize(page, 390)
    load_models(page, "Models: other, no draft")
    after = page.evaluate("decodingExplorer.app.setup()")
    assert after["models"] == {"target": folder, "draft": None, "dtype": "auto", "device": "auto"}
    assert {**after, "models": 0} == {**before, "models": 0}
    lacking = page.locator(".lane .strategy option[value=speculative]").first
    assert lacking.is_disabled() and "choose one under Models" in lacking.get_attribute("title")
    expect(panel(page).get_by_text("Models loaded in")).to_be_visible()
    press(page, "Run")
    finished(page)
    assert trace(page, 0)["models"]["target"] == folder


def test_the_first_press_on_load_counts_and_the_lanes_show_that_they_are_of_other_models(visit, tmp_path):
    """A name is typed and Load pressed at once, by mouse: nothing may move under it."""
    folder = tiny_models.save(tmp_path / "other", seed=2, endings=0.0)
    page = visit()
    start(page, "the cat", 5)
    page.evaluate("decodingExplorer.app.applySetup({lanes: [{strategy: 'greedy'}]})")
    press(page, "Run")
    finished(page)
    expect(page.locator(".lane.stale")).to_have_count(0)
    found = panel(page)
    name_model(found, "Draft model", "none")
    field, load = found.get_by_label("Target model"), found.get_by_role("button", name="Load", exact=True)
    write(field, folder)
    box = load.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.wait_for_timeout(150)
    assert load.bounding_box() == box
    page.mouse.up()
    expect(found.get_by_role("button", name="Models: other, no draft")).to_be_visible()
    expect(page.locator(".status-text")).to_contain_text(
        "The lanes still show a run of tiny, draft tiny-draft: press Run."
    )
    expect(page.locator(".lane.stale")).to_have_count(1)
    expect(page.locator(".lane .hint")).to_have_text("Decoded with tiny, draft tiny-draft: press Run")
    press(page, "Run")
    finished(page)
    expect(page.locator(".lane.stale")).to_have_count(0)
    expect(page.locator(".status-text")).not_to_contain_text("still show")


@pytest.mark.parametrize("size", [(1400, 900), (390, 844)], ids=["wide", "phone"])
def test_nothing_moves_when_the_panel_takes_the_place_of_the_line(app, chromium, size):
    context = chromium.new_context(viewport={"width": size[0], "height": size[1]})
    context.add_init_script(BEEN_HERE)
    page = context.new_page()
    page.add_init_script(
        """new PerformanceObserver((list) => (window.shifts = [...(window.shifts || []),
        ...list.getEntries().map((e) => e.value)])).observe({type: "layout-shift", buffered: true})"""
    )
    page.goto(app.address, wait_until="domcontentloaded")
    places = "[...document.querySelectorAll('.lane, .bar')].map((e) => e.getBoundingClientRect().y)"
    line = "(e => [e.textContent, e.getBoundingClientRect().y])(document.querySelector('.models'))"
    drawn = page.wait_for_function(f"window.decodingExplorer && decodingExplorer.drawn && [{places}, {line}]")
    early, (named, at) = drawn.json_value()
    ready(page)
    button = page.locator("#explorer-models > button")
    expect(button).to_contain_text(named.strip("◀ "))
    assert named.startswith("Models: tiny, draft tiny-draft") and button.bounding_box()["y"] == at
    assert page.evaluate(places) == early
    assert sum(page.evaluate("window.shifts || []")) < 0.02
    context.close()


def test_the_status_says_which_models_are_loaded_again(visit, app, tmp_path, monkeypatch):
    folder = tiny_models.save(tmp_path / "dropped", seed=2, endings=0.0)
    page = visit()
    start(page, "the cat", 4)
    choose(page, folder)
    page.evaluate("decodingExplorer.app.applySetup({lanes: [{strategy: 'greedy'}]})")
    (choice,) = [choice for choice in app.loader.sets if choice.target == folder]
    del app.loader.sets[choice]  # as if other models had needed the room
    go_on = threading.Event()

    def slow(*given):
        assert go_on.wait(60)
        return load(*given)

    monkeypatch.setattr("decoders.models.loading.load", slow)
    press(page, "Run")
    expect(page.locator(".status-text")).to_contain_text(f"Loading {folder} …")
    go_on.set()
    finished(page)
    assert trace(page, 0)["models"]["target"] == folder


def test_two_pages_decode_with_their_own_models(visit, tmp_path):
    folder = tiny_models.save(tmp_path / "other", seed=2, endings=0.0)
    ours, theirs = visit(), visit()
    start(ours, "the cat", 4), start(theirs, "the cat", 4)
    choose(ours, folder)
    for page in (ours, theirs):
        page.evaluate("decodingExplorer.app.applySetup({lanes: [{strategy: 'greedy'}]})")
        press(page, "Run")
    for page, name in ((ours, folder), (theirs, "tiny-llama")):
        finished(page)
        assert trace(page, 0)["models"]["target"] == name


def test_what_cannot_be_loaded_is_a_sentence_and_the_old_models_stay(visit, tmp_path):
    """A name without a model on a wide page, models that are refused on a phone."""
    page = visit()
    start(page, "the cat", 4)
    before = chosen(page)
    found = panel(page)
    load = found.get_by_role("button", name="Load", exact=True)
    for name, says in (
        ("./nowhere", "There is no model './nowhere'; use a shipped one"),
        ("~nosuch", "A folder may begin with ~/ (your own home)"),
    ):
        name_model(found, "Target model", name)
        expect(found.get_by_role("alert")).to_contain_text(says)
        load.click()  # a slow estimate may say it once more: test_models_tab.py has the rest
        expect(found.get_by_role("alert")).to_contain_text(says)
        assert chosen(page) == before
    resize(page, 390)
    name_model(found, "Target model", tiny_models.save_refused(tmp_path))
    pick(found, "Draft model", "llama-tiny-draft")
    expect(found.get_by_text(re.compile("of free memory"))).to_be_visible()
    load.click()
    expect(found.get_by_role("alert")).to_contain_text("is quantised with magic")
    expect(found.get_by_text("The current models stay in use.")).to_be_visible()
    expect(found.get_by_role("button", name="Models: tiny, draft tiny-draft")).to_be_visible()
    assert chosen(page) == before
    press(page, "Run")
    finished(page)


@pytest.fixture
def go_on(monkeypatch):
    """Models load only once this is set."""
    go_on = threading.Event()

    def slow(name, device, dtype, tell):
        while not go_on.wait(0.05):
            tell(f"Loading {name}", 3, 10)
        return load(name, device, dtype, tell)

    monkeypatch.setattr("decoders.models.loading.load", slow)
    yield go_on
    go_on.set()  # the thread that loads is one for all tests


def test_loading_says_how_far_it_is_and_can_be_cancelled(visit, tmp_path, go_on):
    folder = tiny_models.save(tmp_path / "slow", seed=2, endings=0.0)
    page = visit()
    start(page, "the cat", 4)
    before, found = chosen(page), panel(page)
    name_model(found, "Draft model", "none")
    name_model(found, "Target model", folder)
    found.get_by_role("button", name="Load", exact=True).click()
    expect(found.get_by_text(re.compile("3 of 10 weights"))).to_be_visible()
    expect(found.get_by_label("Target model")).to_be_disabled()
    found.get_by_role("button", name="Models: loading …").click()
    expect(found.get_by_label("Target model")).to_be_hidden()
    panel(page).get_by_role("button", name="Cancel").click()
    expect(found.get_by_role("alert")).to_contain_text("Loading was cancelled")
    expect(found.get_by_role("button", name="Models: tiny, draft tiny-draft")).to_be_visible()
    expect(found.get_by_label("Target model")).to_be_enabled()
    assert chosen(page) == before


def test_what_fails_behind_the_closed_panel_is_said_in_the_status_line(visit, tmp_path, go_on):
    page = visit()
    start(page, "the cat", 4)
    found = panel(page)
    name_model(found, "Target model", tiny_models.save_refused(tmp_path / "late"))
    pick(found, "Draft model", "llama-tiny-draft")
    found.get_by_role("button", name="Load", exact=True).click()
    found.get_by_role("button", name="Models: loading …").click()
    go_on.set()
    expect(page.locator(".alert")).to_contain_text("is quantised with magic")


def test_models_that_a_setup_asks_for_are_not_loaded_by_themselves(visit, app, tmp_path):
    folder = tiny_models.save(tmp_path / "asked", endings=0.0)
    page = visit()
    ready(page)
    page.evaluate("name => decodingExplorer.app.applySetup({prompt: 'hi', models: {target: name}})", folder)
    found = page.locator("#explorer-models")
    expect(found.get_by_text("Nothing is loaded until you press Load")).to_be_visible()
    expect(found.get_by_label("Target model")).to_have_value(folder)
    expect(found.get_by_label("Draft model", exact=True)).to_have_value("none")
    assert chosen(page)["target"] == "tiny"
    load_models(page, "Models: asked, no draft")
    assert chosen(page)["target"] == folder
    page.evaluate("decodingExplorer.app.applySetup({prompt: 'hi', models: decodingExplorer.app.choice})")
    page.wait_for_timeout(500)
    expect(found.get_by_label("Target model")).to_be_hidden()


def test_chat_shows_the_rendered_prompt_and_decodes_it(visit, tmp_path):
    """Typed on a phone, decoded and changed again on a wide page; both have room for the rendered prompt."""
    folder = tiny_models.save(tmp_path / "talker", chat=True, endings=0.0)
    page = visit(390, 844)
    start(page, "<b>hi</b>", 3)
    expect(panel(page).get_by_label("Chat")).to_be_hidden()
    choose(page, folder)
    expect(page.locator(".status-text")).to_contain_text("It has a chat template")
    found = panel(page)
    found.get_by_label("Chat").check()
    found.get_by_label("System message").fill("be brief")
    rendered = found.get_by_test_id("highlighted-text")
    expect(rendered).to_contain_text(re.compile(r"b\s+r\s+i\s+e\s+f\s+<\|end\|>"))
    tokens = rendered.locator(".text").all_text_contents()
    assert "".join(tokens) == "system: be brief<|end|>user: <b>hi</b><|end|>assistant:"
    expect(rendered.locator(".text:not(.unlabeled)")).to_have_text(["<|end|>", "<|end|>"])
    expect(
        found.get_by_text(re.compile("Rendered prompt: .* tokens, exactly what is decoded"))
    ).to_be_visible()
    expect(found.get_by_role("button", name="Models: talker, no draft · chat")).to_be_visible()
    resize(page, 390), resize(page, 1400)
    page.evaluate("decodingExplorer.app.applySetup({lanes: [{strategy: 'greedy'}]})")
    press(page, "Run")
    finished(page)
    decoded = trace(page, 0)
    said = b"".join(bytes.fromhex(decoded["vocabulary"][str(t)]) for t in decoded["prompt"])
    assert said == b"system: be brief<|end|>user: <b>hi</b><|end|>assistant:"
    assert page.evaluate("decodingExplorer.app.setup().chat") == {"system": "be brief"}
    found.get_by_label("Chat").uncheck()
    page.wait_for_function("decodingExplorer.app.setup().chat === null")
    expect(found.get_by_role("button", name=re.compile(r"^Models: talker, no draft\W*$"))).to_be_visible()
    page.evaluate("decodingExplorer.app.applySetup({chat: {system: 'rhyme'}})")
    expect(found.get_by_label("Chat")).to_be_checked()
    expect(found.get_by_label("System message")).to_have_value("rhyme")


def test_an_example_brings_its_prompt_and_its_lanes(again):
    page = again()
    ready(page)
    page.evaluate("decodingExplorer.app.data.shipped.names.push('tiny')")  # else it asks for those that do
    number, example = next((i, e) for i, e in enumerate(recorded_runs.prompts()) if "lanes" in e)
    picker = page.get_by_label("Example prompts")
    picker.select_option(str(number))
    setup = page.evaluate("decodingExplorer.app.setup()")
    assert setup["prompt"] == example["prompt"]
    assert [lane["strategy"] for lane in setup["lanes"]] == [lane["strategy"] for lane in example["lanes"]]
    expect(page.locator(".status-text")).to_contain_text(example["message"])
    page.wait_for_function("decodingExplorer.state === 'done'")  # it has been run at once
    assert page.evaluate("decodingExplorer.lanes.every((lane) => lane.count > 0)")
    picker.select_option("0")
    after = page.evaluate("decodingExplorer.app.setup()")
    assert after["prompt"] == recorded_runs.prompts()[0]["prompt"] and after["lanes"] == setup["lanes"]


def test_an_example_and_a_card_ask_for_the_models_that_they_need(again):
    """Nothing is loaded by that; the panel says who asks."""
    page = again(1400, 900)
    ready(page)
    page.get_by_label("Example prompts").select_option(label="Experts that were not chosen")
    found = page.locator("#explorer-models")
    target = found.get_by_label("Target model")
    expect(target).to_have_value(re.compile("^llama-tiny-moe"))
    expect(found).to_contain_text("Nothing is loaded until you press Load.")
    found.get_by_role("button", name=re.compile("^Models: ")).click()
    expect(target).to_be_hidden()
    page.evaluate("decodingExplorer.app.showSection('methods')")
    page.get_by_role("button", name="Open SCMoE in a lane", exact=True).click()
    expect(target).to_be_visible()
    expect(target).to_have_value(re.compile("^llama-tiny-moe"))
    assert chosen(page)["target"] != "llama-tiny-moe"


def test_a_second_draft_model_drafts_in_specinfer(visit):
    """Picked on a wide page, loaded on a phone."""
    page = visit()
    start(page, "Once upon a time", 12)
    found, plain = panel(page), "llama-tiny-draft"
    names = {"Target": "llama-tiny", "Draft": "llama-tiny-draft-distilled", "Second draft": plain}
    for label, name in names.items():
        pick(found, f"{label} model", name)
    expect(found.get_by_text(re.compile("of free memory|Loaded already"))).to_be_visible()
    resize(page, 1400), resize(page, 390)
    load_models(page, "Models: llama-tiny, draft llama-tiny-draft-distilled and llama-tiny-draft")
    assert chosen(page)["draft"] == "llama-tiny-draft-distilled, llama-tiny-draft"
    page.evaluate("decodingExplorer.app.applySetup({lanes: [{strategy: 'specinfer'}]})")
    press(page, "Run")
    finished(page)
    models = trace(page, 0)["models"]
    assert models["draft"] == "llama-tiny-draft-distilled" and models["draft 2"] == "llama-tiny-draft"
    expect(panel(page).get_by_label("Second draft model")).to_have_value(re.compile("^llama-tiny-draft,"))


def test_a_list_lies_over_all_that_it_covers_and_no_text_runs_under_the_arrow_of_a_field(again):
    page = again()
    ready(page)
    found = panel(page)
    hidden = """options => options.filter(option => {
        const { left, top, bottom } = option.getBoundingClientRect(), y = (top + bottom) / 2;
        const list = option.parentElement.getBoundingClientRect();
        const seen = y > list.top && y < Math.min(list.bottom, innerHeight);
        return seen && !option.contains(document.elementFromPoint(left + 30, y)); }).length"""
    clear = """fields => fields.every(field => {
        const arrow = field.parentElement.querySelector(".icon-wrap").getBoundingClientRect();
        const room = parseFloat(getComputedStyle(field).paddingRight);
        return field.getBoundingClientRect().right - room <= arrow.left + 1; })"""
    for width in (1400, 390):
        resize(page, width)
        found.get_by_label("Draft model", exact=True).click()
        options = found.get_by_role("option")
        expect(options.first).to_be_visible()
        assert options.evaluate_all(hidden) == 0
        assert found.get_by_role("combobox").evaluate_all(clear)
        page.evaluate("document.activeElement.blur()")
        expect(options).to_have_count(0)


def test_the_fields_of_the_panel_stand_on_one_line_beside_load_and_cut_no_name(again):
    page = again()
    ready(page)
    fields = panel(page).get_by_role("combobox")
    tops = fields.evaluate_all("fields => fields.map((field) => field.getBoundingClientRect().bottom)")
    assert len(tops) == 5 and max(tops) - min(tops) < 1
    left = "(fields) => fields[0].getBoundingClientRect().left"
    assert fields.evaluate_all(left) < 30  # as all else on the page, not centred
    room = """fields => fields.slice(0, 2).every((field) => {
        const style = getComputedStyle(field), pen = document.createElement("canvas").getContext("2d");
        pen.font = style.font;
        return pen.measureText("llama-tiny-draft-distilled, 0.9 M, loss 2.80").width
            <= field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight); })"""
    assert fields.evaluate_all(room)
    panel(page).get_by_label("Draft model", exact=True).click()
    expect(page.get_by_role("option").first).to_be_visible()
    page.get_by_role("button", name="Load", exact=True).click(trial=True)  # the open list does not cover it
    page.evaluate("document.activeElement.blur()")
