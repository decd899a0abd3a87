"""The lanes with which the page opens for models of which no run is stored: two that these models can run,
with a prompt and a length for them.

Before the models are loaded, their files say what to expect; `that_run` asks the models themselves.
"""

from collections.abc import Iterator
from typing import Any

from decoders.models.address import short
from decoders.models.shared_tokens import same_tokens
from decoders.refusal import Refusal
from explorer.catalog import origins, recorded_runs
from explorer.runs.validation import MAX_NEW_TOKENS, RunRequest

COUNT = 2
MESSAGE = "Tell me a short story."  # to a model with a chat template, in place of the beginning of a text


def lane(strategy: str) -> dict:
    """The settings of a lane: those of the stored run if it has this strategy."""
    stored = {one["strategy"]: one["parameters"] for one in recorded_runs.LANES}
    return {"strategy": strategy, "parameters": stored.get(strategy, {}), "seed": 0}


def expected(names: dict[str, str]) -> list[dict]:
    """The lanes for models of these names (role -> name), by their files; loads no model."""
    if "draft" not in names:
        second = "greedy"
    else:
        second = "universal" if same_tokens(names["target"], names["draft"]) is False else "speculative"
    return [lane("beam"), lane(second)]


def that_run(models: dict) -> list[dict]:
    """The lanes for these loaded models (role -> model): at most two, each of which they can run."""
    return [one for one, _ in zip(runnable(models), range(COUNT), strict=False)]


def runnable(models: dict) -> Iterator[dict]:
    """Lanes that these loaded models can run, those with which the page may open first."""
    from decoders.registry import strategies

    for name in dict.fromkeys((*recorded_runs.OPENING, *origins.START, *strategies())):
        if runs(lane(name), models):
            yield lane(name)


def runs(one: dict, models: dict) -> bool:
    """Whether these loaded models can run a lane."""
    from decoders import suitability  # on demand: imports torch
    from decoders.registry import strategies

    known = strategies().get(one["strategy"])
    return known is not None and suitability.problem(known, known.check(one["parameters"]), models) is None


def suited(models: dict, asked: RunRequest) -> dict[str, Any]:
    """What of a page's settings is to change for these loaded models.

    `lanes`: for each lane another that they can run, or null if it stays; `chats`: whether there is a chat
    template that works; `message`: what one may write there; `room`: the most tokens that fit behind the
    prompt; `sentence`: what the target is.
    """
    target, lanes, free = models["target"], [], runnable(models)
    kept = {one.strategy for one in asked.lanes}
    for one in asked.lanes:
        fits = runs({"strategy": one.strategy, "parameters": one.parameters}, models)
        lanes.append(None if fits else next((new for new in free if new["strategy"] not in kept), None))
    texts, chats = [asked.prompt], target.chats
    if chats:
        try:
            texts.append(target.render(MESSAGE))
        except Refusal:  # of a template that fails, which a run with it will say
            chats = False
    room = min(MAX_NEW_TOKENS, max(1, target.context - max(len(target.cut(text)) for text in texts)))
    settings = {"lanes": lanes, "chats": chats, "message": MESSAGE, "room": room}
    return settings | {"sentence": described(target)}


def described(target: Any) -> str:
    """One sentence on a loaded target, and why it is slow if it is."""
    from decoders.models.memory_estimate import amount, bytes_of

    facts = target.facts()
    size = f"{amount(facts['parameters'])} parameters in {facts['dtype']}, {bytes_of(target.bytes)}"
    context = f", {target.context:,} tokens of context" if target.context < 1 << 30 else ""
    return " ".join(filter(None, (f"{short(target.name)}: {size}{context}.", target.engine.note)))
