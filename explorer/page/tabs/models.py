"""The panel Models of the tab Decode: which models the lanes decode with, and the chat template.

A page keeps decoding with its current models until the chosen ones are loaded; prompt and lanes stay. The
page knows which models are in use; its scripts (assets/web/page/models.js) exchange this with the panel
through hidden components. Slow work runs on other threads, so the event loop never waits.
"""

import asyncio
import html
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict

import gradio as gr

from decoders.models import address
from decoders.models.catalog import shipped_facts
from decoders.refusal import Refusal
from explorer.catalog import opening_lanes
from explorer.export.bars import models_title
from explorer.page.tabs import UNTRACKED, carried
from explorer.page_requests import Progress, Suit, Talk, Wanted
from explorer.runs.model_pool import Loader
from explorer.runs.validation import (
    DEVICES,
    DTYPES,
    MAX_PROMPT_CHARACTERS,
    Choice,
    as_json,
    check,
    check_chat,
    check_models,
)
from explorer.schema import parsed, read

NONE = "none"
WAIT_SECONDS = 1.0  # how long a request for the progress waits for a change
MAX_SHOWN = 400  # how many tokens of a rendered prompt are shown
KINDS = (
    "A field of a model takes a model of the app, a Hub id (`owner/model@revision`), a folder, or a server "
    "(`http://host:port/v1#name`); edits may follow, such as `:bits=4`."
)
FACTS = (
    "For each model of the app, the list gives its parameters in millions and its loss on held-out text in "
    "nats per token."
)
ASKED = "What you opened uses these models. Nothing is loaded until you press Load."
IN_USE, STAY = "These are in use.", "The current models stay in use."
SPECIAL = "special token"
STATUS = '<div role="status">${value}</div>'
PROGRESS = gr.Progress()

WANTED = """ExplorerPage.app.on("wanted", (asked) => { props.value = JSON.stringify(asked); });"""
TALKS = """ExplorerPage.tellPrompt((now) => { props.value = now; });"""
USE = "(text) => ExplorerPage.app.use(JSON.parse(text))"
TALK = "(on, system) => ExplorerPage.app.talk(on ? { system } : null)"


def build(loader: Loader) -> None:
    """Declares the contents of the panel."""
    wanted, talks = carried(WANTED), carried(TALKS)  # requested models; prompt and chat
    used = carried(value=json.dumps({"choice": asdict(loader.choice)}))
    with gr.Accordion(title(loader.choice), open=False, elem_id="explorer-models") as panel:
        with gr.Row(elem_classes="models-row"):  # the list of a field covers what is below, never Load
            chosen = fields(loader)
            load = gr.Button("Load", variant="primary", size="md", scale=0, min_width=80)
            cancel = gr.Button("Cancel", interactive=False, size="md", scale=0, min_width=80)
        gr.Markdown(FACTS if loader.allowed else f"{KINDS} {FACTS}", elem_classes="caption")
        status = gr.HTML(paragraphs([IN_USE]), html_template=STATUS, elem_id="explorer-models-status")
        with gr.Row(visible=False) as talk:
            chat = gr.Checkbox(label="Chat", info="The prompt is a message to the model", min_width=200)
            system = gr.Textbox(label="System message", placeholder="optional", max_lines=4)
            shown = gr.HighlightedText(label="Rendered prompt", show_inline_category=False, scale=2)

    async def offer(used: str, chat: bool, status: str, *names: str | None) -> list:
        device = gr.Dropdown(choices=await asyncio.to_thread(devices))
        talks = gr.Row(visible=chat or await asyncio.to_thread(chats, loader, used))
        if status != paragraphs([IN_USE]):
            return [device, talks, gr.skip()]
        return [device, talks, await asyncio.to_thread(memory, loader, names, used)]

    async def estimate(used: str, *names: str | None) -> str:
        return await asyncio.to_thread(memory, loader, names, used)

    async def fill(asked: str) -> list:
        return await asyncio.to_thread(filled, loader, asked)

    async def start(used, target, draft, second, dtype, device, progress=PROGRESS) -> AsyncIterator[list]:
        names = (target, draft, second, dtype, device)
        async for updates in loading(loader, used, names, progress):
            yield updates

    async def stop(*names: str | None) -> None:
        with suppress(ValueError):  # an invalid choice is not being loaded
            loader.cancel(choice_of(*names))

    async def render(asked: str) -> list:
        return await rendering(loader, asked)

    private = {"api_visibility": "private", "concurrency_limit": None}
    quiet = private | UNTRACKED
    panel.expand(offer, [used, chat, status, *chosen], [chosen[-1], talk, status], **quiet)
    last = quiet | {"trigger_mode": "always_last"}  # the estimate must be about the latest names
    estimated = gr.on([field.input for field in chosen], estimate, [used, *chosen], status, **last)
    wanted.change(fill, wanted, [panel, status, talk, chat, system, *chosen], **quiet)
    outputs = [panel, status, used, load, cancel, *chosen]
    begun = load.click(  # a pending estimate would overwrite the status of loading
        start, [used, *chosen], outputs, show_progress_on=status, cancels=[estimated], **private
    )
    begun.then(None, used, None, js=USE)
    cancel.click(stop, chosen, None, **quiet)
    gr.on([chat.change, system.change], None, [chat, system], None, js=TALK)
    talks.change(render, talks, [panel, shown], **last)


def fields(loader: Loader) -> list[gr.Dropdown]:
    """Declares the fields target, draft, second draft, dtype and device: the inputs of `choice_of`."""
    own, names = loader.choice, offered(loader)
    first, second = drafts(own.draft)
    any_model, none = {"allow_custom_value": loader.allowed is None}, [("none", NONE), *names]
    model, short = {**any_model, "min_width": 230, "scale": 5}, {"min_width": 150, "scale": 0}
    second_model = {**any_model, "min_width": 190, "scale": 2}
    takes_two = "for SpecInfer, which takes two"
    # Each has one line of words, so that all fields stand at one height.
    return [
        gr.Dropdown(names, value=own.target, label="Target model", info="writes the text", **model),
        gr.Dropdown(
            none, value=first, label="Draft model", info="guesses tokens that the target verifies", **model
        ),
        gr.Dropdown(none, value=second, label="Second draft model", info=takes_two, **second_model),
        gr.Dropdown(list(DTYPES), value=own.dtype, label="dtype", info="auto: float32 on a CPU", **short),
        gr.Dropdown(list(DEVICES), value=own.device, label="device", info="auto: CUDA if available", **short),
    ]


def offered(loader: Loader) -> list[tuple[str, str]]:
    """The choices as (label, name): models that come with the app, with their facts, then other names."""
    facts = [m for m in shipped_facts() if loader.allowed is None or m["name"] in loader.allowed]
    known = {m["name"] for m in facts}
    others = sorted((loader.allowed or frozenset(loader.names.values())) - known)
    return [(label(m), m["name"]) for m in facts] + [(name, name) for name in others]


def label(model: dict) -> str:
    """Name, size and loss of a shipped model; the loss is in nats per token, on held-out text."""
    return f"{model['name']}, {model['parameters'] / 1e6:.1f} M, loss {model['held_out_loss']:.2f}"


def devices() -> list[str]:
    """The devices of this machine."""
    import torch  # on demand: slow to import

    return [name for name in DEVICES if name != "cuda" or torch.cuda.is_available()]


def drafts(names: str | None) -> tuple[str, str]:
    """The values of both draft fields; more than two names go into the first, separated by commas."""
    listed = address.listed(names or NONE)
    return (listed[0], listed[1]) if len(listed) == 2 else (", ".join(listed), NONE)


def choice_of(
    target: str | None, draft: str | None, second: str | None, dtype: str | None, device: str | None
) -> Choice:
    """The choice that the fields contain. Raises Refusal with one sentence if it is invalid."""
    several = [name.strip() for name in (draft, second) if name and name.strip() not in ("", NONE)]
    given = {"draft": ", ".join(several) or None, "dtype": dtype, "device": device}
    return check_models({"target": (target or "").strip(), **given})


def choice_in(used: str) -> Choice | None:
    """The models that a page reports as in use; None if the report cannot be parsed."""
    try:
        return check_models(parsed(used.encode())["choice"])
    except (ValueError, TypeError, KeyError):
        return None


def title(choice: Choice, chat: object = None) -> str:
    """The title of the panel, which is all that is visible while it is closed."""
    return models_title(list(choice.names.values()), chat)


def paragraphs(lines: list[str], problem: str = "") -> str:
    """Sentences as HTML, with an error message first if there is a problem."""
    wrong = f'<p class="wrong" role="alert">{html.escape(problem)}</p>' if problem else ""
    return wrong + "".join(f"<p>{html.escape(line)}</p>" for line in lines)


def pressed(loading: bool) -> list:
    """Updates of Load, Cancel and the five fields: which are active while models are loading, or not."""
    free = gr.Dropdown(interactive=not loading)
    return [gr.Button(interactive=not loading), gr.Button(interactive=loading), *[free] * 5]


def memory(loader: Loader, names: tuple, used: str) -> str:
    """How much memory these models will need, estimated before they are loaded, as HTML."""
    try:
        choice = choice_of(*names)
        if choice == choice_in(used):
            return paragraphs([IN_USE, *held(loader, choice)])
        need = loader.need(choice)
    except Refusal as error:
        return paragraphs([], str(error))
    if need["fits"]:
        return paragraphs([*need["parts"], need["sentence"]])
    return paragraphs(need["parts"], need["sentence"])


def held(loader: Loader, choice: Choice) -> list[str]:
    """The memory that models in use take, a sentence for each; none if their files are gone by now."""
    with suppress(Refusal):
        return loader.need(choice)["parts"]
    return []


async def loading(loader: Loader, used: str, names: tuple, progress: gr.Progress) -> AsyncIterator[list]:
    """Loads models. Yields updates of panel, status, models in use, Load, Cancel, and the five fields."""
    now = choice_in(used) or loader.choice
    try:
        choice = choice_of(*names)
        if choice == now:
            yield [gr.skip(), paragraphs([IN_USE]), gr.skip(), *pressed(False)]
            return
        model_set = await asyncio.to_thread(loader.open, choice)
    except Refusal as error:
        yield [gr.skip(), paragraphs([STAY], str(error)), gr.skip(), *pressed(False)]
        return
    yield [
        gr.Accordion(label="Models: loading …"),
        paragraphs([model_set.sentence]),
        gr.skip(),
        *pressed(True),
    ]
    while not model_set.done.is_set():
        progress(model_set.share, desc=model_set.sentence)
        await asyncio.sleep(0.1)
    if model_set.state == "failed":
        stays = json.dumps({"choice": asdict(now), "problem": model_set.sentence})
        yield [gr.Accordion(label=title(now)), paragraphs([STAY], model_set.sentence), stays, *pressed(False)]
        return
    facts = await asyncio.to_thread(lambda: {role: model.facts() for role, model in model_set.models.items()})
    use = json.dumps({"choice": asdict(choice), "sentence": model_set.sentence, "facts": facts})
    closed = gr.Accordion(label=title(choice), open=False)
    yield [closed, paragraphs([model_set.sentence]), use, *pressed(False)]


def chats(loader: Loader, used: str) -> bool:
    """Whether the target in use is loaded and has a chat template."""
    model_set = loader.sets.get(choice_in(used))
    return model_set is not None and model_set.state == "ready" and model_set.models["target"].chats


def filled(loader: Loader, asked: str) -> list:
    """Fills in the models and the chat that a link, a file, a lesson or an example asks for: updates of
    panel, status, the row of the chat, its two fields, and the five fields of the models.
    """
    same = [gr.skip()] * 5
    try:
        wanted = read(Wanted, parsed(asked.encode()))
        choice, chat = check_models(wanted.models), check_chat(wanted.chat)
    except Refusal as error:
        return [gr.skip(), paragraphs([], str(error)), *[gr.skip()] * 3, *same]
    talk = [gr.Row(visible=True) if chat else gr.skip(), chat is not None, (chat or {}).get("system", "")]
    if choice is None:
        return [gr.skip(), gr.skip(), *talk, *same]
    opened, problem = gr.Accordion(open=True), ""
    try:
        loader.check(choice)
    except Refusal as error:
        problem = str(error)
    if problem and loader.allowed is not None:
        return [opened, paragraphs([STAY], problem), *talk, *same]
    values = [choice.target, *drafts(choice.draft), choice.dtype, choice.device]
    return [opened, paragraphs([ASKED], problem), *talk, *values]


async def rendering(loader: Loader, asked: str) -> list:
    """Updates of the panel's title and of the rendered prompt."""
    try:
        talk = read(Talk, parsed(asked.encode()))
        choice, chat = check_models(talk.models) or loader.choice, check_chat(talk.chat)
        if chat is None:
            return [gr.Accordion(label=title(choice)), None]
        target = (await loader.settled(choice)).models["target"]
        count, tokens = await asyncio.to_thread(rendered, target, talk.prompt[:MAX_PROMPT_CHARACTERS], chat)
    except Refusal as error:
        return [gr.skip(), gr.HighlightedText([], label=str(error))]
    label = f"Rendered prompt: {count:,} tokens, exactly what is decoded"
    return [gr.Accordion(label=title(choice, chat)), gr.HighlightedText(tokens, label=label)]


def rendered(target, prompt: str, chat: dict) -> tuple[int, list[tuple[str, str | None]]]:
    """Renders a prompt as a chat: its number of tokens, and the first `MAX_SHOWN` as (text, kind)."""
    ids = target.cut(target.render(prompt, chat["system"]))
    special = target.bytes_of.special
    shown = [
        (target.bytes_of(i).decode("utf-8", "backslashreplace"), SPECIAL if i in special else None)
        for i in ids[:MAX_SHOWN]
    ]
    rest = [(f" … and {len(ids) - MAX_SHOWN:,} more tokens", None)] if len(ids) > MAX_SHOWN else []
    return len(ids), shown + rest


def functions(runs, loader: Loader) -> list:
    """The server functions, see `layout.server_functions`: the progress of models being loaded, and what
    suits them once they are.
    """

    async def explorer_models_progress(request: Progress) -> str:
        """The loading progress of `{models}`; answers when it differs from `{sentence}`, or in a second."""

        async def wait_for_change() -> dict:
            choice = check_models(request.models) or loader.choice
            model_set, until = loader.find(choice), time.monotonic() + WAIT_SECONDS
            while time.monotonic() < until and model_set.sentence == request.sentence:
                await asyncio.sleep(0.05)
            return {"state": model_set.state, "sentence": model_set.sentence}

        return await as_json(wait_for_change())

    async def explorer_suit(request: Suit) -> str:
        """What of the page's settings is to change for its models, see `opening_lanes.suited`."""

        async def suit() -> dict:
            checked = check(request)
            models = (await loader.settled(checked.models)).models
            return await asyncio.to_thread(opening_lanes.suited, models, checked)

        return await as_json(suit())

    return [explorer_models_progress, explorer_suit]
