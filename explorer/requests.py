"""What people ask of a run, checked in one place for the page and the endpoints; errors as sentences.

Knows plain data only.
"""

import json
from dataclasses import dataclass

from decoders import begin as beginnings
from explorer.off_loop import encoded, soon

MAX_LANES = 4
MAX_NEW_TOKENS = 512
MAX_PROMPT_CHARACTERS = 20_000
MAX_TOKEN_ID = 2**24  # the model, which knows its own vocabulary, looks again
MAX_NAME_CHARACTERS = 500
DTYPES = ("auto", "float32", "bfloat16", "float16")
DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Choice:
    """Which models, in which numbers, on which device."""

    target: str
    draft: str | None = None
    dtype: str = "auto"
    device: str = "auto"

    @property
    def names(self) -> dict[str, str]:
        """Model name by role."""
        return {"target": self.target} | ({"draft": self.draft} if self.draft else {})


def check(request: dict) -> dict:
    """The request in its expected form. ValueError with one sentence if a part is missing or out of range."""
    prompt, lanes = request.get("prompt"), request.get("lanes")
    if not isinstance(prompt, str) or not prompt:
        raise ValueError("The prompt is empty: write the beginning of a text, for example Once upon a time.")
    if len(prompt) > MAX_PROMPT_CHARACTERS:
        raise ValueError(
            f"The prompt has {len(prompt)} characters; at most {MAX_PROMPT_CHARACTERS} are taken. Shorten it."
        )
    if (
        not isinstance(lanes, list)
        or not 1 <= len(lanes) <= MAX_LANES
        or not all(isinstance(x, dict) for x in lanes)
    ):
        raise ValueError(f"A run has one to {MAX_LANES} lanes.")
    wanted = new_tokens(request)
    checked = []
    for number, lane in enumerate(lanes, 1):
        seed, parameters = lane.get("seed", 0), lane.get("parameters", {})
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**53:
            raise ValueError(f"Lane {number}: the seed must be a whole number of at least 0, not {seed!r}.")
        if not isinstance(parameters, dict) or not isinstance(lane.get("strategy"), str):
            raise ValueError(f"Lane {number} needs a strategy and its parameters.")
        checked.append(
            {
                "strategy": lane["strategy"],
                "parameters": parameters,
                "seed": seed,
                "begin": begin(lane, number),
            }
        )
    return {
        "prompt": prompt,
        "max_new_tokens": wanted,
        "lanes": checked,
        "models": check_models(request.get("models")),
        "chat": check_chat(request.get("chat")),
    }


def check_models(given: object) -> Choice | None:
    """Which models are asked for; None for the app's own. ValueError with one sentence."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise ValueError("models must name a target, and may name a draft, a dtype and a device.")
    for role, name in (("target", given.get("target")), ("draft", given.get("draft") or "none")):
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARACTERS or "\0" in name:
            raise ValueError(f"The {role} needs a name: one that comes with the app, a Hub id or a folder.")
    for what, allowed in (("dtype", DTYPES), ("device", DEVICES)):
        if given.get(what, "auto") not in allowed:
            raise ValueError(f"There is no {what} {given[what]!r}; use one of {', '.join(allowed)}.")
    draft = given.get("draft") if given.get("draft") != "none" else None
    return Choice(given["target"], draft or None, given.get("dtype", "auto"), given.get("device", "auto"))


def check_chat(given: object) -> dict | None:
    """`{system}` if the prompt is a user's message for the chat template. ValueError with one sentence."""
    if given is None or given is False:
        return None
    system = given.get("system") or "" if isinstance(given, dict) else None
    if not isinstance(system, str) or len(system) > MAX_PROMPT_CHARACTERS:
        raise ValueError(
            f"chat must be null or hold a system message of at most {MAX_PROMPT_CHARACTERS} characters."
        )
    return {"system": system}


def new_tokens(request: dict) -> int:
    """How many tokens each lane may write. ValueError if that is no number in range."""
    wanted = request.get("max_new_tokens")
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 1 <= wanted <= MAX_NEW_TOKENS:
        raise ValueError(f"max_new_tokens must be a whole number from 1 to {MAX_NEW_TOKENS}, not {wanted!r}.")
    return wanted


def begin(lane: dict, number: int) -> dict | None:
    """What a lane begins with behind the prompt, None for nothing: see decoders/begin.py."""
    given = lane.get("begin")
    if given is None:
        return None
    if not isinstance(given, dict):
        raise ValueError(f"Lane {number}: what it begins with must be tokens and forced places.")
    try:
        tokens, forced = beginnings.check(given, (), MAX_NEW_TOKENS, MAX_TOKEN_ID)
    except ValueError as error:
        raise ValueError(f"Lane {number}: {error}") from error
    return {"tokens": tokens, "forced": forced}


def sentence(error: Exception) -> str:
    """An error as one sentence for the page; only our own ValueErrors speak for themselves."""
    if isinstance(error, ValueError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory for this run; take fewer lanes, beams or tokens."
    return f"This lane failed inside the program ({type(error).__name__}); the log of the app says where."


def number(value: object) -> float:
    """`value`, if it is a number. TypeError if it is not."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise TypeError(value)
    return min(max(value, 0), 2**53)


async def said(awaitable) -> str:
    """What is awaited as JSON text; an error as `{"error": sentence}`."""
    try:
        return await soon(encoded, await awaitable)
    except (KeyError, TypeError, IndexError) as error:
        return json.dumps(
            {"error": f"The page asked for something unusable ({type(error).__name__}); reload it."}
        )
    except Exception as error:
        return json.dumps({"error": sentence(error)})
