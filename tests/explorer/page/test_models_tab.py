"""The panel Models without a browser: what it offers, what a choice takes, what is refused, how it loads."""

import asyncio
import json
from dataclasses import asdict

import gradio as gr
import pytest

from decoders.models.loading import load
from explorer.page.tabs import models as panel
from explorer.page.tabs.events import inputs
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from explorer.runs.validation import Choice
from explorer.schema import Malformed, read
from tests.helpers import tiny_models
from tests.helpers.ready_loader import ready_loader
from tests.helpers.server_calls import ask


@pytest.fixture
def few():
    """A loader for visitors: two names may be chosen. The second function says what it answers."""
    return Loader("llama-tiny", "llama-tiny-draft", "cpu", frozenset({"llama-tiny-draft"}))


def loaded(loader: Loader, names: tuple, used: str = "") -> list[list]:
    """All updates of a press on Load."""

    async def every() -> list:
        return [one async for one in panel.loading(loader, used, names, lambda share, desc: None)]

    return asyncio.run(every())


def sent(update) -> dict:
    """What an update of a component changes."""
    return update if isinstance(update, dict) else update.constructor_args


def test_visitors_are_offered_what_comes_with_the_app_and_can_send_nothing_else(few):
    offered = {name: text for text, name in panel.offered(few)}
    assert list(offered) == ["llama-tiny", "llama-tiny-draft"]
    assert all(" M, loss " in text for text in offered.values())
    assert panel.devices()[:2] == ["auto", "cpu"]
    with gr.Blocks() as demo:
        panel.build(few)
    (load_event,) = [one for one in demo.fns.values() if len(one.inputs) == 6 and len(one.outputs) == 10]
    model = inputs(load_event)
    fields = dict.fromkeys(model.model_fields, "auto") | {"input_1": "", "input_4": "none"}
    sound = fields | {"input_2": "llama-tiny", "input_3": "none"}
    read(model, sound)
    for odd in ({"input_2": "owner/model"}, {"input_3": "/etc"}, {"input_5": "int3"}, {"input_6": "abacus"}):
        with pytest.raises(Malformed):
            read(model, sound | odd)
    assert "bfloat16" in [value for _, value in load_event.inputs[4].choices]


def test_an_app_for_its_own_user_takes_any_name():
    with gr.Blocks() as demo:
        panel.build(Loader("tiny", None))
    for one in demo.fns.values():
        if len(one.inputs) == 6:
            model = inputs(one)
            fields = dict.fromkeys(model.model_fields, "auto") | {"input_4": "none"}
            read(model, fields | {"input_2": "owner/model@v1", "input_3": "~/drafts/small"})
            with pytest.raises(Malformed):
                read(model, fields | {"input_2": 3})


def test_a_choice_says_what_it_would_take(few):
    says = panel.memory(few, ("llama-tiny-draft", "none", "none", "bfloat16", "auto"), "")
    assert "× 2 bytes (bfloat16)" in says and "alert" not in says
    here = json.dumps({"choice": asdict(few.choice)})
    own = ("llama-tiny", "llama-tiny-draft", "none", "auto", "cpu")
    held = panel.memory(few, own, here)
    assert held.startswith("<p>These are in use.</p><p>llama-tiny: 6.1 million parameters × 4 bytes")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("owner/model",), "This app offers llama-tiny, llama-tiny-draft; its operator"),
        (("",), "The target needs a name"),
        ((None,), "The target needs a name"),
        (("llama-tiny", "none", "none", "int3"), "There is no dtype &#x27;int3&#x27;"),
        (("llama-tiny", "none", "none", "auto", "abacus"), "There is no device &#x27;abacus&#x27;"),
        (("~nosuch",), "A folder may begin with ~/ (your own home), but not with another user&#x27;s home."),
        (("<img src=x>",), "This app offers"),
    ],
)
def test_what_cannot_be_chosen_is_a_sentence_and_nothing_is_loaded(few, names, says):
    names = (*names, *("none", "none", "auto", "cpu")[len(names) - 1 :])
    (updates,) = loaded(few, names)
    for told in (panel.memory(few, names, ""), updates[1]):
        assert says in told and 'role="alert"' in told and "<img" not in told
    assert panel.STAY in updates[1] and list(few.sets) == [few.choice]


def test_models_are_loaded_and_the_page_hears_of_them(tmp_path):
    folder, loader = tiny_models.save(tmp_path / "other", seed=2), ready_loader()
    first, *_, last = loaded(loader, (folder, "none", "none", "auto", "cpu"))
    assert (
        sent(first[0])["label"] == "Models: loading …"
        and not sent(first[3])["interactive"]
        and sent(first[4])["interactive"]
    )
    assert (
        sent(last[0])["label"] == "Models: other, no draft"
        and sent(last[0])["open"] is False
        and sent(last[3])["interactive"]
    )
    told = json.loads(last[2])
    assert told["choice"] == asdict(Choice(folder, None, "auto", "cpu"))
    assert told["facts"]["target"]["parameters"] > 1000 and "Models loaded" in told["sentence"]
    (again,) = loaded(loader, (folder, "none", "none", "auto", "cpu"), last[2])
    assert panel.IN_USE in again[1]


def test_what_cannot_be_loaded_is_said_and_the_page_keeps_its_models(tmp_path):
    loader = ready_loader()
    *_, last = loaded(loader, (tiny_models.save_refused(tmp_path), "none", "none", "auto", "cpu"))
    told = json.loads(last[2])
    assert "is quantised with magic" in told["problem"] and told["choice"] == asdict(loader.choice)
    assert sent(last[0])["label"] == "Models: tiny, draft tiny-draft" and panel.STAY in last[1]


def test_several_drafts_stand_in_two_fields_and_more_in_one():
    assert panel.drafts(None) == ("none", "none") and panel.drafts("a") == ("a", "none")
    assert panel.drafts("a, b") == ("a", "b") and panel.drafts("a,b , c") == ("a, b, c", "none")
    choice = panel.choice_of(" t ", "a", "b", "auto", "auto")
    assert choice.draft == "a, b" and panel.title(choice, {"system": ""}) == "Models: t, draft a and b · chat"
    assert panel.title(Choice("/x/y/", None)) == "Models: y, no draft"


def test_what_is_asked_for_fills_the_fields_and_loads_nothing(few):
    own = Loader("tiny", None)
    asked = json.dumps({"models": {"target": "/x", "draft": "a, b"}, "chat": {"system": "brief"}})
    opened, status, row, on, system, *values = panel.filled(own, asked)
    assert sent(opened)["open"] and sent(row)["visible"] and (on, system) == (True, "brief")
    assert values == ["/x", "a", "b", "auto", "auto"] and panel.ASKED in status
    assert list(own.sets) == [own.choice]
    opened, status, *_, last = panel.filled(
        few, json.dumps({"models": {"target": "owner/model"}, "chat": None})
    )
    assert sent(opened)["open"] and "This app offers" in status and "value" not in sent(last)
    _, status, _, on, system, *_ = panel.filled(few, json.dumps({"models": None, "chat": None}))
    assert (on, system) == (False, "") and status == gr.skip()
    for nonsense in ("", "{", "[]", json.dumps({"models": {"target": 3}}), json.dumps({"chat": 1})):
        assert 'role="alert"' in panel.filled(few, nonsense)[1]


def test_a_chat_template_renders_the_prompt(tmp_path):
    loader = ready_loader()
    loader.models["target"] = load(tiny_models.save(tmp_path, chat=True), "cpu")
    models = {"target": "tiny", "draft": "tiny-draft"}

    def render(**talk) -> list:
        return asyncio.run(panel.rendering(loader, json.dumps({"models": models, "prompt": "hi", **talk})))

    label, shown = render(chat={"system": "be brief"})
    text = "".join(text for text, _ in sent(shown)["value"])
    assert text == "system: be brief<|end|>user: hi<|end|>assistant:"
    assert [text for text, kind in sent(shown)["value"] if kind] == ["<|end|>", "<|end|>"]
    assert (
        sent(label)["label"] == "Models: tiny, draft tiny-draft · chat"
        and f"{len(sent(shown)['value'])} tokens" in sent(shown)["label"]
    )
    _, shown = render(chat={"system": ""}, prompt="x" * 1000)
    assert len(sent(shown)["value"]) == panel.MAX_SHOWN + 1 and "more tokens" in sent(shown)["value"][-1][0]
    assert sent(render(chat=None)[0])["label"] == "Models: tiny, draft tiny-draft"
    for odd in ({"chat": 3}, {"prompt": 3, "chat": None}, {"chat": {"system": "x" * 30_000}}):
        assert sent(render(**odd)[1])["value"] == []
    loader.models["target"] = tiny_models.make(seed=0)
    assert "has no chat template" in sent(render(chat={"system": ""})[1])["label"]


def test_a_page_that_waits_hears_how_far_its_models_are(few):
    progress, _ = panel.functions(Runs(lambda request: []), few)
    assert (
        "press Run to load them again" in ask(progress, {"models": {"target": "llama-tiny-draft"}})["error"]
    )
    for models, says in [
        ({"target": 3}, "models.target must be text, not 3."),
        ({"draft": "llama-tiny"}, "models.target is missing."),
        ({"target": "llama-tiny", "device": ["cpu"]}, "models.device must be text, not a list."),
        ("llama-tiny", "models must be an object, not 'llama-tiny'."),
        (
            {"target": "~nosuch"},
            "A folder may begin with ~/ (your own home), but not with another user's home.",
        ),
    ]:
        assert ask(progress, {"models": models}) == {"refused": says, "status": 422}


def test_settings_become_those_that_suit_the_models():
    loader = ready_loader()
    target = loader.models["target"]
    del loader.models["draft"]
    target.tokenizer = tiny_models.tokenizer.__wrapped__()
    target.tokenizer.chat_template = tiny_models.CHAT
    lanes = [{"strategy": name, "parameters": {}, "seed": 0} for name in ("greedy", "speculative", "none")]
    _, suit = panel.functions(Runs(lambda request: []), loader)
    asked = {"prompt": "the cat", "max_new_tokens": 40, "lanes": lanes, "models": None, "chat": None}
    answer = ask(suit, asked)
    assert [one and one["strategy"] for one in answer["lanes"]] == [None, "beam", "sample"]
    rendered = target.cut(target.render(answer["message"]))
    assert answer["chats"] and answer["room"] == tiny_models.CONTEXT - len(rendered)
    assert answer["sentence"].startswith("tiny-llama: 32,096 parameters in float32, ")
    target.tokenizer.chat_template = "{{ 1 / 0 }}"
    answer = ask(suit, asked)
    assert not answer["chats"] and answer["room"] == tiny_models.CONTEXT - len(target.cut("the cat"))
    assert "The prompt is empty" in ask(suit, asked | {"prompt": ""})["error"]
