"""Reads a link that carries a whole setup after its #: what a stranger may have written is checked here, and
nothing is run. The page makes such links (assets/web/page/link.js).
"""

import asyncio
import base64
import json
import re
import zlib
from typing import Annotated, Any

from pydantic import Field

from decoders import memory_options
from decoders.registry import strategies
from decoders.strategy import Strategy
from explorer.page_requests import Call
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from explorer.runs.validation import MAX_LANES, MAX_NEW_TOKENS, MAX_PROMPT_CHARACTERS, as_json

VERSION = 1
MAX_BYTES = 200_000  # of a setup as JSON, and letters of a link
MAX_LIST, MAX_NAME = 100, 500
CHOSEN = ("target", "draft", "dtype", "device")
DAMAGED = "This link is damaged: part of it is missing. Ask for it again."


class Link(Call):
    """What stands after the # of a link, without its name."""

    packed: Annotated[str, Field(max_length=MAX_BYTES)]


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""

    async def explorer_link(request: Link) -> str:
        """`{packed}` gives `{setup}`, what the page may put in place."""
        await asyncio.to_thread(loader.done.wait)  # the strategies are known when the models are
        return await as_json(asyncio.to_thread(lambda: {"setup": checked(unpacked(request.packed))}))

    return [explorer_link]


def unpacked(packed: str) -> dict:
    """The setup in a link: JSON, deflated, in base64 for addresses. Raises ValueError with one sentence."""
    try:
        if not re.fullmatch(r"[A-Za-z0-9_-]*", packed):
            raise ValueError
        bytes_ = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        unpacker = zlib.decompressobj(wbits=-15)
        text = unpacker.decompress(bytes_, MAX_BYTES)
        if not unpacker.eof:
            raise ValueError
        fields = json.loads(text.decode())
        json.dumps(fields, ensure_ascii=False).encode()  # half a character can be sent nowhere
    except (ValueError, zlib.error, RecursionError) as error:
        raise ValueError(DAMAGED) from error
    if not isinstance(fields, dict):
        raise ValueError(DAMAGED)
    if not whole(fields.get("version"), VERSION, VERSION):
        version = short(fields.get("version"))
        raise ValueError(f"This link has version {version}; this page reads version {VERSION}.")
    return fields


def checked(given: dict) -> dict:
    """A setup made of what a link may carry and nothing else. Raises ValueError with one sentence."""
    prompt, count, lanes = (given.get(name) for name in ("prompt", "max_new_tokens", "lanes"))
    if not (isinstance(prompt, str) and len(prompt) <= MAX_PROMPT_CHARACTERS):
        raise ValueError(f"The prompt of a link has at most {MAX_PROMPT_CHARACTERS} characters.")
    if not whole(count, 1, MAX_NEW_TOKENS):
        raise ValueError(f"The number of tokens in a link must be from 1 to {MAX_NEW_TOKENS}.")
    if not (isinstance(lanes, list) and 1 <= len(lanes) <= MAX_LANES):
        raise ValueError(f"A link must have one to {MAX_LANES} lanes.")
    setup = {"prompt": prompt, "max_new_tokens": count, "lanes": [checked_lane(one) for one in lanes]}
    models, chat = given.get("models"), given.get("chat", False)
    if isinstance(models, dict) and named(models.get("target")):
        setup["models"] = {name: models[name] for name in CHOSEN if named(models.get(name))}
    if chat is None or (isinstance(chat, dict) and isinstance(chat.get("system") or "", str)):
        setup["chat"] = chat
    return setup


def checked_lane(given: Any) -> dict:
    """A lane with only what a lane has. Raises ValueError with one sentence."""
    name = given.get("strategy") if isinstance(given, dict) else given
    if not isinstance(given, dict) or not isinstance(name, str) or name not in strategies():
        raise ValueError(f"This link asks for the strategy {short(name)}, which this app does not know.")
    strategy, seed = strategies()[name], given.get("seed")
    lane = {"strategy": name, "parameters": checked_parameters(strategy, given.get("parameters"))}
    lane["seed"] = 0 if seed is None else seed
    if not whole(lane["seed"], 0, 2**53 - 1):
        raise ValueError("This link has an unusable seed.")
    if given.get("view") in strategy.views_with(lane["parameters"]):
        lane["view"] = given["view"]
    if begin := given.get("begin"):
        if not (
            isinstance(begin, dict) and tokens(begin.get("tokens")) and tokens(begin.get("forced") or [])
        ):
            raise ValueError(DAMAGED)
        lane["begin"] = begin
    return lane


def checked_parameters(strategy: Strategy, given: Any) -> dict:
    """The parameters of a lane. Raises ValueError with one sentence."""
    if not isinstance(given or {}, dict):
        raise ValueError(DAMAGED)
    known = {parameter.name for parameter in strategy.parameters} | memory_options.all_parameters().keys()
    for name, value in (given or {}).items():
        if name not in known or not plain(value):
            what = f"{short(name)} of {strategy.title}"
            raise ValueError(f"This link asks for {what}, which this app does not know.")
    return given or {}


def whole(value: Any, low: int, high: int) -> bool:
    """Whether it is a whole number from `low` to `high`."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def plain(value: Any) -> bool:
    """Whether it is a text, a number, true or false, or a list of numbers."""
    if isinstance(value, list):
        return len(value) < MAX_LIST and all(type(one) in (int, float) for one in value)
    return isinstance(value, (str, int, float))


def tokens(value: Any) -> bool:
    """Whether it is a list of token ids."""
    few = isinstance(value, list) and len(value) <= MAX_NEW_TOKENS
    return few and all(whole(token, 0, 2**31) for token in value)


def named(value: Any) -> bool:
    """Whether it may be the name of something."""
    return isinstance(value, str) and len(value) <= MAX_NAME


def short(value: Any) -> str:
    """A value that a stranger wrote, in few words."""
    return "something" if isinstance(value, (dict, list)) else str(value)[:40]
