"""Checks the settings of a run in one place for the page, the endpoints and saved files.

`Setup` declares the types of a run's settings; `check` checks the values that users typed, once, and returns
a `RunRequest`, which the scheduler and the lanes take as it is.
"""

import json
import logging
import re
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

from decoders.models import address
from decoders.models.catalog import by_role
from decoders.refusal import Refusal
from decoders.strategy import shortened
from decoders.trace import given_tokens as beginnings
from decoders.trace.breakpoints import parse_all
from explorer.off_loop import encoded, soon
from explorer.runs import MAX_LANES
from explorer.schema import Asked, Typed, Value, Whole, read

MAX_NEW_TOKENS = 512
MAX_PROMPT_CHARACTERS = 20_000
MAX_TOKEN_ID = 2**24  # the model, which knows its own vocabulary, checks again
MAX_NAME_CHARACTERS = 500
DTYPES = ("auto", "float32", "bfloat16", "float16")
DEVICES = ("auto", "cpu", "cuda")

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # characters

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Choice:
    """Which models, in which number format, on which device."""

    target: str
    draft: str | None = None  # or several names, separated by commas
    dtype: str = "auto"
    device: str = "auto"

    @property
    def names(self) -> dict[str, str]:
        """Model name by role."""
        return by_role(self.target, self.draft)


def own_home(name: str) -> str:
    """A model's name; ~/folder may name only the user's own home folder."""
    if name.startswith("~") and name[1:2] not in ("", "/", "\\"):
        raise PydanticCustomError(
            "says", "A folder may begin with ~/ (your own home), but not with another user's home."
        )
    return name


ModelName = Annotated[str, AfterValidator(own_home)]


class Models(Asked):
    """Which models; a draft called "none" means no draft."""

    target: ModelName
    draft: ModelName | None = None
    dtype: str | None = None
    device: str | None = None


class SystemMessage(Asked):
    """Marks the prompt as a user's message for the chat template, with an optional system message before
    it.
    """

    system: str | None = None


class Begin(Asked):
    """The tokens with which a lane begins after the prompt: see decoders/trace/given_tokens.py."""

    tokens: list[Whole]
    forced: list[Whole] = []


class Lane(Asked):
    strategy: str
    parameters: dict[str, Value] = {}
    seed: Typed = 0
    begin: Begin | None = None


def not_too_many(lanes: list) -> list:
    """Returns `lanes` if a run can have this many."""
    if not 1 <= len(lanes) <= MAX_LANES:
        raise PydanticCustomError("says", f"A run has one to {MAX_LANES} lanes.")
    return lanes


def nothing_if_off(chat: Any) -> Any:
    """Returns None for false, which saved settings may contain."""
    return None if chat is False else chat


class Setup(Asked):
    """The settings of a run in the form of the page, a link, a lesson or a saved file."""

    prompt: str
    max_new_tokens: Typed
    lanes: Annotated[list[Lane], AfterValidator(not_too_many)]
    models: Models | None = None
    chat: Annotated[SystemMessage | None, BeforeValidator(nothing_if_off)] = None
    stop_when: list[str] = []


@dataclass(frozen=True)
class LaneRequest:
    """A lane of a checked request. Its strategy and the values of its parameters are checked by the lane."""

    strategy: str
    parameters: dict[str, Any]
    seed: int
    begin: dict | None = None  # see decoders/trace/given_tokens.py


@dataclass(frozen=True)
class RunRequest:
    """A request that has been checked: whoever gets one need not look again. models: None for the app's own;
    chat: `{system}` if the prompt is a user's message for the chat template. stop_when: its breakpoints, as
    they are typed.
    """

    prompt: str
    max_new_tokens: int
    lanes: tuple[LaneRequest, ...]
    models: Choice | None = None
    chat: dict | None = None
    stop_when: tuple[str, ...] = ()


def check(given: Setup | dict) -> RunRequest:
    """The settings of a run, checked. Refusal with one sentence if they cannot be used."""
    setup = read(Setup, given)
    if not setup.prompt:
        raise Refusal("The prompt is empty: write the beginning of a text, for example Once upon a time.")
    if len(setup.prompt) > MAX_PROMPT_CHARACTERS:
        raise Refusal(
            f"The prompt has {len(setup.prompt)} characters; at most {MAX_PROMPT_CHARACTERS} are allowed. "
            "Shorten it."
        )
    return RunRequest(
        setup.prompt,
        new_tokens(setup.max_new_tokens),
        tuple(checked_lane(lane, number) for number, lane in enumerate(setup.lanes, 1)),
        check_models(setup.models),
        check_chat(setup.chat),
        tuple(map(str, parse_all(setup.stop_when))),
    )


def checked_lane(lane: Lane, number: int) -> LaneRequest:
    """One lane's settings. Refusal with one sentence."""
    if not isinstance(lane.seed, int) or not 0 <= lane.seed < 2**53:
        raise Refusal(
            f"Lane {number}: the seed must be a whole number of at least 0, not {shortened(lane.seed)}."
        )
    return LaneRequest(lane.strategy, lane.parameters, lane.seed, begin(lane.begin, number))


def check_models(given: Models | dict | None) -> Choice | None:
    """The requested models; None for the app's own. Refusal with one sentence."""
    if given is None:
        return None
    models = read(Models, given)
    drafts = address.listed(models.draft or "none")
    for role, name in (("target", models.target), *(("draft", draft) for draft in drafts)):
        if not 0 < len(name) <= MAX_NAME_CHARACTERS or CONTROL.search(name):
            raise Refusal(f"The {role} needs a name: one that comes with the app, a Hub id or a folder.")
    dtype, device = models.dtype or "auto", models.device or "auto"
    for what, name, allowed in (("dtype", dtype, DTYPES), ("device", device, DEVICES)):
        if name not in allowed:
            raise Refusal(f"There is no {what} {shortened(name)}; use one of {', '.join(allowed)}.")
    draft = models.draft if models.draft != "none" else None
    choice = Choice(models.target, draft or None, dtype, device)
    by_role(choice.target, choice.draft)  # raises Refusal if there are too many
    return choice


def check_chat(given: SystemMessage | None) -> dict | None:
    """`{system}` if the prompt is a user's message for the chat template. Refusal with one sentence."""
    if given is None:
        return None
    system = given.system or ""
    if len(system) > MAX_PROMPT_CHARACTERS:
        raise Refusal(f"A system message has at most {MAX_PROMPT_CHARACTERS} characters; shorten it.")
    return {"system": system}


def new_tokens(wanted: int | float | str) -> int:
    """How many tokens each lane may write. Refusal if the typed value is not a number in range."""
    if not isinstance(wanted, int) or not 1 <= wanted <= MAX_NEW_TOKENS:
        raise Refusal(
            f"max_new_tokens must be a whole number from 1 to {MAX_NEW_TOKENS}, not {shortened(wanted)}."
        )
    return wanted


def begin(given: Begin | None, number: int) -> dict | None:
    """The tokens with which lane `number` begins after the prompt, None for nothing: see
    decoders/trace/given_tokens.py.
    """
    if given is None:
        return None
    try:
        tokens, forced = beginnings.check_given_tokens(given.model_dump(), (), MAX_NEW_TOKENS, MAX_TOKEN_ID)
    except Refusal as error:
        raise Refusal(f"Lane {number}: {error}") from error
    return {"tokens": tokens, "forced": forced}


def sentence(error: Exception, what: str = "This") -> str:
    """An error as one sentence for the page: a refusal as it is, and of any other that `what` failed."""
    if is_ours(error):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory for this run; use fewer lanes, beams or tokens."
    return f"{what} failed inside the program ({type(error).__name__}); the log of the app says where."


def is_ours(error: Exception) -> bool:
    """Whether an error holds a sentence of ours; any other ValueError is a fault."""
    return isinstance(error, Refusal)


async def as_json(awaitable: Awaitable[Any]) -> str:
    """Awaits a result and returns it as JSON text; returns an error as `{"error": sentence}`."""
    try:
        return await soon(encoded, await awaitable)
    except Exception as error:
        if not is_ours(error) and not isinstance(error, MemoryError):
            log.exception("A call of the page failed")
        return json.dumps({"error": sentence(error)})
