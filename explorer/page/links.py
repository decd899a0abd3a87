"""Reads links that carry a whole setup after their #. A stranger may have written one, so everything in it is
checked here, and nothing is run. The page makes such links (assets/web/page/link.js).
"""

import asyncio
import base64
import json
import re
import zlib
from typing import Annotated, Any

from pydantic import Field

from decoders import memory_options
from decoders.refusal import Refusal
from decoders.registry import strategies
from decoders.strategy import Strategy
from decoders.trace.breakpoints import parse_all
from decoders.view_names import current
from explorer.page_requests import Call
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from explorer.runs.validation import MAX_LANES, MAX_NEW_TOKENS, MAX_PROMPT_CHARACTERS, as_json
from visualizers.registry import names

VERSION = 1
MAX_BYTES = 200_000  # of a setup as JSON; also the maximum length of a link
MAX_LIST, MAX_NAME = 100, 500
CHOSEN = ("target", "draft", "dtype", "device")
DAMAGED = "This link is damaged: part of it is missing. Ask for it again."


class Link(Call):
    """The fragment of a link after `#setup=` or `#run=`."""

    packed: Annotated[str, Field(max_length=MAX_BYTES)]


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""

    async def explorer_link(request: Link) -> str:
        """`{packed}` gives `{setup}`, a checked setup that the page can apply."""
        await asyncio.to_thread(loader.done.wait)  # strategies are imported by the time models are loaded
        return await as_json(asyncio.to_thread(lambda: {"setup": check_setup(unpack(request.packed))}))

    return [explorer_link]


def unpack(packed: str) -> dict:
    """Decodes a setup: URL-safe base64 of deflated JSON. Raises Refusal with one sentence."""
    try:
        if not re.fullmatch(r"[A-Za-z0-9_-]*", packed):
            raise ValueError
        bytes_ = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        unpacker = zlib.decompressobj(wbits=-15)
        text = unpacker.decompress(bytes_, MAX_BYTES)
        if not unpacker.eof:
            raise ValueError
        fields = json.loads(text.decode())
        json.dumps(fields, ensure_ascii=False).encode()  # a lone surrogate cannot be encoded
    except (ValueError, zlib.error, RecursionError) as error:
        raise Refusal(DAMAGED) from error
    if not isinstance(fields, dict):
        raise Refusal(DAMAGED)
    if not is_whole_number(fields.get("version"), VERSION, VERSION):
        version = shorten(fields.get("version"))
        raise Refusal(f"This link has version {version}; this page reads version {VERSION}.")
    return fields


def check_setup(given: dict) -> dict:
    """Returns a setup with only the fields that a link may carry. Raises Refusal with one sentence."""
    prompt, count, lanes = (given.get(name) for name in ("prompt", "max_new_tokens", "lanes"))
    if not (isinstance(prompt, str) and len(prompt) <= MAX_PROMPT_CHARACTERS):
        raise Refusal(f"The prompt of a link has at most {MAX_PROMPT_CHARACTERS} characters.")
    if not is_whole_number(count, 1, MAX_NEW_TOKENS):
        raise Refusal(f"The number of tokens in a link must be from 1 to {MAX_NEW_TOKENS}.")
    if not (isinstance(lanes, list) and 1 <= len(lanes) <= MAX_LANES):
        raise Refusal(f"A link must have one to {MAX_LANES} lanes.")
    setup = {"prompt": prompt, "max_new_tokens": count, "lanes": [check_lane(lane) for lane in lanes]}
    models, chat = given.get("models"), given.get("chat", False)
    if isinstance(models, dict) and is_name(models.get("target")):
        setup["models"] = {name: models[name] for name in CHOSEN if is_name(models.get(name))}
    if chat is None or (isinstance(chat, dict) and isinstance(chat.get("system") or "", str)):
        setup["chat"] = chat
    if (conditions := given.get("stop_when")) is not None:
        if not (isinstance(conditions, list) and all(isinstance(one, str) for one in conditions)):
            raise Refusal(DAMAGED)
        setup["stop_when"] = [str(condition) for condition in parse_all(conditions)]
    return setup


def check_lane(given: Any) -> dict:
    """Returns a lane with only the fields of a lane. Raises Refusal with one sentence."""
    name = given.get("strategy") if isinstance(given, dict) else given
    if not isinstance(given, dict) or not isinstance(name, str) or name not in strategies():
        raise Refusal(f"This link asks for the strategy {shorten(name)}, which this app does not know.")
    strategy, seed = strategies()[name], given.get("seed")
    lane = {"strategy": name, "parameters": check_parameters(strategy, given.get("parameters"))}
    lane["seed"] = 0 if seed is None else seed
    if not is_whole_number(lane["seed"], 0, 2**53 - 1):
        raise Refusal("This link has an unusable seed.")
    view = given.get("view")
    if isinstance(view, str) and current(view) in names():
        lane["view"] = current(view)
    if begin := given.get("begin"):
        forced = begin.get("forced") or [] if isinstance(begin, dict) else None
        if not (isinstance(begin, dict) and is_token_list(begin.get("tokens")) and is_token_list(forced)):
            raise Refusal(DAMAGED)
        lane["begin"] = begin
    return lane


def check_parameters(strategy: Strategy, given: Any) -> dict:
    """Returns the parameters of a lane if all are known. Raises Refusal with one sentence."""
    if not isinstance(given or {}, dict):
        raise Refusal(DAMAGED)
    known = {parameter.name for parameter in strategy.parameters} | memory_options.all_parameters().keys()
    for name, value in (given or {}).items():
        if name not in known or not is_parameter_value(value):
            what = f"{shorten(name)} of {strategy.title}"
            raise Refusal(f"This link asks for {what}, which this app does not know.")
    return given or {}


def is_whole_number(value: Any, low: int, high: int) -> bool:
    """Whether `value` is a whole number from `low` to `high`."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_parameter_value(value: Any) -> bool:
    """Whether `value` is a string, a number, a boolean, or a list of numbers."""
    if isinstance(value, list):
        return len(value) < MAX_LIST and all(type(entry) in (int, float) for entry in value)
    return isinstance(value, (str, int, float))


def is_token_list(value: Any) -> bool:
    """Whether `value` is a list of token ids."""
    short_list = isinstance(value, list) and len(value) <= MAX_NEW_TOKENS
    return short_list and all(is_whole_number(token, 0, 2**31) for token in value)


def is_name(value: Any) -> bool:
    """Whether `value` can be the name of something."""
    return isinstance(value, str) and len(value) <= MAX_NAME


def shorten(value: Any) -> str:
    """A value that a stranger wrote, short enough to quote in a sentence."""
    return "something" if isinstance(value, (dict, list)) else str(value)[:40]
