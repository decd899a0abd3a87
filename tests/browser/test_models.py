"""Models in a real browser: others are chosen, asked for their memory, loaded, refused; chat; examples."""

import re
import threading

import pytest
from playwright.sync_api import expect

from decoders.models.loading import load
from explorer.catalog import recorded_runs
from tests.browser.test_page import press, ready, trace
from tests.helpers import tiny_models

SIZES = pytest.mark.parametrize("size", [(1400, 900), (390, 844)], ids=["wide", "phone"])


def start(page, prompt: str, tokens: int) -> None:
    """The models are there, and so are prompt and length, which a phone hides behind the gear."""
    ready(page)
    setup = {"prompt": prompt, "max_new_tokens": tokens}
    page.evaluate("setup => decodingExplorer.app.applySetup(setup)", setup)


def finished(page) -> None:
    """The run is done; a phone draws one lane only."""
    page.wait_for_function("decodingExplorer.state === 'done'")


def panel(page, role: str = "target"):
    """Opens the panel of models, on a phone behind the gear."""
    gear = page.get_by_role("button", name="Settings")
    if gear.is_visible() and gear.get_attribute("aria-expanded") == "false":
        gear.click()
    page.get_by_role("button", name=re.compile(f"^{role}: ")).click()
    found = page.get_by_role("dialog", name="Models")
    expect(found.get_by_label(f"{role} model", exact=True)).to_be_focused()
    return found


def name_folder(found, role: str, folder: str) -> None:
    """Types a folder's name; leaving the field asks for its memory."""
    kind = found.get_by_role("group", name=f"Kind of {role} model")
    kind.get_by_role("button", name="folder", exact=True).click()
    field = found.get_by_label(f"{role} model name")
    field.fill(folder)
    field.press("Tab")


def choose(page, folder: str) -> None:
    """Loads a folder as the target, without a draft."""
    found = panel(page)
    found.get_by_label("draft model", exact=True).select_option("none")
    name_folder(found, "target", folder)
    expect(found.get_by_role("button", name="Load")).to_be_enabled()
    found.get_by_role("button", name="Load").click()
    expect(found).to_be_hidden()


def chosen(page) -> dict:
    return page.evaluate("decodingExplorer.app.choice")


@SIZES
def test_other_models_keep_prompt_and_lanes(visit, tmp_path, size):
    folder = tiny_models.save(tmp_path / "other", seed=2, endings=0.0)
    page = visit(*size)
    start(page, "the cat", 5)
    page.evaluate(
        "decodingExplorer.app.applySetup({lanes: [{strategy: 'greedy'}, {strategy: 'beam', seed: 3}]})"
    )
    before = page.evaluate("decodingExplorer.app.setup()")
    found = panel(page)
    expect(found.get_by_text("These are in use.")).to_be_visible()
    name_folder(found, "target", folder)
    found.get_by_label("draft model", exact=True).select_option("none")
    expect(
        found.get_by_text(re.compile("parameters × 4 bytes .float32.*of KV cache a token"))
    ).to_be_visible()
    expect(found.get_by_text(re.compile("of memory that are free"))).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found.get_by_role("button", name="Load").click()
    expect(found).to_be_hidden()
    expect(page.get_by_role("button", name="target: other ▾")).to_be_focused()
    after = page.evaluate("decodingExplorer.app.setup()")
    assert after["models"] == {"target": folder, "draft": None, "dtype": "auto", "device": "auto"}
    assert {**after, "models": 0} == {**before, "models": 0}
    lacking = page.locator(".lane .strategy option[value=speculative]").first
    assert lacking.is_disabled() and "choose one under Models" in lacking.get_attribute("title")
    press(page, "Run")
    finished(page)
    assert trace(page, 0)["models"]["target"] == folder


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
    expect(page.get_by_role("status").filter(has_text="Loading ")).to_contain_text(f"Loading {folder} …")
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


@SIZES
def test_what_cannot_be_loaded_is_a_sentence_and_the_old_models_stay(visit, tmp_path, size):
    page = visit(*size)
    start(page, "the cat", 4)
    before = chosen(page)
    found = panel(page)
    name_folder(found, "target", "./nowhere")
    expect(found.get_by_role("alert")).to_contain_text("There is no model './nowhere'; use one of")
    expect(found.get_by_role("button", name="Load")).to_be_disabled()
    name_folder(found, "target", "~nosuch")
    expect(found.get_by_role("alert")).to_contain_text("A folder may begin with ~/, your own home")
    expect(found.get_by_role("button", name="Load")).to_be_disabled()
    name_folder(found, "target", tiny_models.save(tmp_path))
    found.get_by_label("draft model", exact=True).select_option("llama-tiny-draft")
    expect(found.get_by_role("button", name="Load")).to_be_enabled()
    found.get_by_role("button", name="Load").click()
    expect(found.get_by_role("alert")).to_contain_text("has another tokenizer than the target")
    expect(found.get_by_text("The models in use stay.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(found).to_be_hidden()
    expect(page.get_by_role("button", name="target: tiny ▾")).to_be_focused()
    assert chosen(page) == before
    press(page, "Run")
    finished(page)


def test_models_that_a_setup_asks_for_are_not_loaded_by_themselves(visit, app, tmp_path):
    folder = tiny_models.save(tmp_path / "asked", endings=0.0)
    page = visit()
    ready(page)
    page.evaluate("name => decodingExplorer.app.applySetup({prompt: 'hi', models: {target: name}})", folder)
    found = page.get_by_role("dialog", name="Models")
    expect(found.get_by_text("Nothing is loaded until you press Load")).to_be_visible()
    expect(found.get_by_label("target model name")).to_have_value(folder)
    expect(found.get_by_label("draft model", exact=True)).to_have_value("none")
    assert chosen(page)["target"] == "tiny"
    found.get_by_role("button", name="Load").click()
    expect(found).to_be_hidden()
    assert chosen(page)["target"] == folder
    page.evaluate("decodingExplorer.app.applySetup({prompt: 'hi', models: decodingExplorer.app.choice})")
    expect(found).to_be_hidden()


@SIZES
def test_chat_shows_the_rendered_prompt_and_decodes_it(visit, tmp_path, size):
    folder = tiny_models.save(tmp_path / "talker", chat=True, endings=0.0)
    page = visit(*size)
    start(page, "<b>hi</b>", 3)
    expect(page.get_by_role("checkbox", name="chat")).to_be_hidden()
    choose(page, folder)
    page.get_by_role("checkbox", name="chat").check()
    page.get_by_role("textbox", name="System message").fill("be brief")
    page.get_by_text(re.compile("Rendered prompt: ")).click()
    expect(page.get_by_label("Rendered prompt")).to_have_text(
        "system: be brief<|end|>user: <b>hi</b><|end|>assistant:"
    )
    expect(page.locator(".rendered .special")).to_have_text(["<|end|>", "<|end|>"])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate("decodingExplorer.app.applySetup({lanes: [{strategy: 'greedy'}]})")
    press(page, "Run")
    finished(page)
    found = trace(page, 0)
    said = b"".join(bytes.fromhex(found["vocabulary"][str(t)]) for t in found["prompt"])
    assert said == b"system: be brief<|end|>user: <b>hi</b><|end|>assistant:"
    assert page.evaluate("decodingExplorer.app.setup().chat") == {"system": "be brief"}
    page.get_by_role("checkbox", name="chat").uncheck()
    assert page.evaluate("decodingExplorer.app.setup().chat") is None


def test_an_example_brings_its_prompt_and_its_lanes(visit):
    page = visit()
    ready(page)
    number, example = next((i, e) for i, e in enumerate(recorded_runs.prompts()) if "lanes" in e)
    picker = page.get_by_label("Example prompts")
    picker.select_option(f"lanes {number}")
    setup = page.evaluate("decodingExplorer.app.setup()")
    assert setup["prompt"] == example["prompt"]
    assert [lane["strategy"] for lane in setup["lanes"]] == [lane["strategy"] for lane in example["lanes"]]
    expect(page.locator(".status-text")).to_contain_text(example["says"])
    picker.select_option("prompt 0")
    after = page.evaluate("decodingExplorer.app.setup()")
    assert after["prompt"] == recorded_runs.prompts()[0]["prompt"] and after["lanes"] == setup["lanes"]


def test_an_example_and_a_card_ask_for_the_models_that_they_need(visit):
    """Nothing is loaded by that; the panel says who asks."""
    page = visit(1400, 900)
    ready(page)
    page.get_by_label("Example prompts").select_option(label="Experts that were not chosen")
    found = page.get_by_role("dialog", name="Models")
    expect(found.get_by_label("target model", exact=True)).to_have_value("llama-tiny-moe")
    expect(found).to_contain_text("Nothing is loaded until you press Load.")
    found.get_by_role("button", name="Close models").click()
    page.evaluate("decodingExplorer.app.showSection('methods')")
    page.get_by_role("button", name="Open SCMoE in a lane", exact=True).click()
    expect(found.get_by_label("target model", exact=True)).to_have_value("llama-tiny-moe")
    assert chosen(page)["target"] != "llama-tiny-moe"


@SIZES
def test_a_second_draft_model_drafts_in_specinfer(visit, size):
    page = visit(*size)
    start(page, "Once upon a time", 12)
    found, plain = panel(page, "target"), "llama-tiny-draft"
    names = {"target": "llama-tiny", "draft": "llama-tiny-draft-distilled", "second draft": plain}
    for label, name in names.items():
        found.get_by_label(f"{label} model", exact=True).select_option(name)
    expect(found.get_by_role("button", name="Load")).to_be_enabled()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found.get_by_role("button", name="Load").click()
    expect(found).to_be_hidden()
    assert chosen(page)["draft"] == "llama-tiny-draft-distilled, llama-tiny-draft"
    page.evaluate("decodingExplorer.app.applySetup({lanes: [{strategy: 'specinfer'}]})")
    press(page, "Run")
    finished(page)
    models = trace(page, 0)["models"]
    assert models["draft"] == "llama-tiny-draft-distilled" and models["draft 2"] == "llama-tiny-draft"
    found = panel(page, "draft")
    expect(found.get_by_label("second draft model", exact=True)).to_have_value("llama-tiny-draft")
