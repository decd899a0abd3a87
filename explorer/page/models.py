"""What the page asks about models: which there are, what memory a choice takes, loading it, how far it is,
and the prompt that a chat template makes.

Knows the loader, nothing of runs. Whatever takes time is done on other threads: the event loop never waits.
"""

import asyncio
import time
from dataclasses import asdict

from decoders.models.catalog import shipped_facts
from explorer.page.page_requests import Call, Chat, OfModels, Progress
from explorer.runs.model_pool import Loader, ModelSet
from explorer.runs.validation import (
    DEVICES,
    DTYPES,
    MAX_PROMPT_CHARACTERS,
    Choice,
    check_chat,
    check_models,
    said,
)

WAIT_SECONDS = 1.0  # how long a question for the progress waits for news
MAX_SHOWN = 400  # tokens of a rendered prompt that are shown


def functions(runs, loader: Loader) -> list:
    """The server functions. See `layout.server_functions`."""

    async def explorer_models(request: Call) -> str:
        """What there is to choose from, and what the app was started with."""
        return await said(asyncio.to_thread(offer, loader))

    async def explorer_models_memory(request: OfModels) -> str:
        """What memory `{models}` will take, before they are loaded."""
        return await said(asyncio.to_thread(lambda: loader.need(chosen(request, loader))))

    async def explorer_models_load(request: OfModels) -> str:
        """Begins to load `{models}`; answers at once, as `explorer_models_progress` does."""
        return await said(asyncio.to_thread(lambda: progress(loader.open(chosen(request, loader)))))

    async def explorer_models_progress(request: Progress) -> str:
        """How far `{models}` are: answers when that is no longer `{sentence}`, at the latest in a second."""

        async def news() -> dict:
            found, until = loader.find(chosen(request, loader)), time.monotonic() + WAIT_SECONDS
            while time.monotonic() < until and found.sentence == request.sentence:
                await asyncio.sleep(0.05)
            return progress(found)

        return await said(news())

    async def explorer_models_cancel(request: OfModels) -> str:
        """Stops loading `{models}`."""

        async def stop() -> dict:
            loader.cancel(chosen(request, loader))
            return {}

        return await said(stop())

    async def explorer_chat(request: Chat) -> str:
        """The prompt that the template of `{models}` makes of `{prompt, chat}`: see `rendered`."""

        async def render() -> dict:
            found = await loader.settled(chosen(request, loader))
            prompt, chat = request.prompt[:MAX_PROMPT_CHARACTERS], check_chat(request.chat)
            return await asyncio.to_thread(rendered, found.models["target"], prompt, chat)

        return await said(render())

    return [
        explorer_models,
        explorer_models_memory,
        explorer_models_load,
        explorer_models_progress,
        explorer_models_cancel,
        explorer_chat,
    ]


def chosen(request: OfModels, loader: Loader) -> Choice:
    """The choice in a request, else the app's own."""
    return check_models(request.models) or loader.choice


def offer(loader: Loader) -> dict:
    """Models that come with the project with their facts, other names that may be chosen, dtypes, devices."""
    import torch

    embedded = [m for m in shipped_facts() if loader.allowed is None or m["name"] in loader.allowed]
    names = {m["name"] for m in embedded}
    return {
        "embedded": embedded,
        "others": sorted((loader.allowed or frozenset(loader.names.values())) - names),
        "any": loader.allowed is None,
        "dtypes": list(DTYPES),
        "devices": [d for d in DEVICES if d != "cuda" or torch.cuda.is_available()],
        "own": asdict(loader.choice),
        "loaded": [asdict(s.choice) for s in list(loader.sets.values()) if s.state == "ready"],
    }


def progress(found: ModelSet) -> dict:
    """State, sentence, share of what is being done, and what is known of the models once they are there."""
    said = {"state": found.state, "sentence": found.sentence, "share": found.share}
    if found.state == "ready":
        said["facts"] = {role: model.facts() for role, model in found.models.items()}
    return said


def rendered(target, prompt: str, chat: dict) -> dict:
    """`{text, count, tokens: [[text, special]]}` of a rendered prompt; at most `MAX_SHOWN` of them."""
    text = target.render(prompt, chat["system"])
    ids = target.cut(text)
    special = target.bytes_of.special
    shown = [[target.bytes_of(i).decode("utf-8", "backslashreplace"), i in special] for i in ids[:MAX_SHOWN]]
    return {"text": text, "count": len(ids), "tokens": shown}
