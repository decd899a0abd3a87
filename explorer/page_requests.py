"""The requests of the page: one model per server function, named after it. Nothing else checks the requests.

What a user types (a prompt, a seed, a name) only gets a type here and is checked where it is used, with a
sentence for the page; what the page itself chooses must match exactly. `sessions.validated` parses them.
"""

import functools
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from decoders.view_names import current
from explorer.runs.validation import MAX_LANES, Models, Setup, SystemMessage
from explorer.schema import Asked, Name, Typed, Value, Whole
from visualizers.registry import names

Session = Annotated[str, Field(min_length=16, max_length=64)]  # a secret that each page generates


@functools.cache
def views() -> frozenset[str]:
    """The names of all views."""
    return frozenset(names())


def view_of_app(name: str) -> str:
    """The name of a view, which may be given by its former name."""
    if (name := current(name)) not in views():
        raise PydanticCustomError("kind", "the name of a view")
    return name


View = Annotated[Name, AfterValidator(view_of_app)]


class Call(Asked):
    """The base of every call: its session. Runs of other sessions answer as if they did not exist."""

    session: Session | None = None


class OfRun(Call):
    """A call about a run."""

    run: Name


class OfLane(OfRun):
    """A call about one lane of a run, counted from 0."""

    lane: Whole


class Leave(Asked):
    """The message of a closing page."""

    session: Session


class Start(Setup, Call):
    session: Session
    state: Literal["running", "paused"] = "running"


class Suit(Setup, Call):
    """The settings of a page whose models have just come into use."""


class Control(OfRun):
    action: Literal["pause", "resume", "step", "stop"]


class StopWhen(Call):
    """The breakpoints of the page, as they are typed, and the run that they are asked of; None: they are
    only read.
    """

    run: Name | None = None
    stop_when: list[str]


class Cursor(Asked):
    """How much of a lane the page has: the displayed view, its ops, and rows of costs."""

    view: View
    ops: Whole
    rows: Whole


class Pull(OfRun):
    """`wait`: in seconds; `state`: the state that the page knows."""

    cursors: Annotated[list[Cursor], Field(max_length=MAX_LANES)]
    wait: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    state: Name = ""


class Inspect(OfLane):
    """Either a node, or a cell: [position, iteration]."""

    node: Whole | None = None
    cell: Annotated[list[Whole], Field(min_length=2, max_length=2)] | None = None

    @model_validator(mode="after")
    def _one(self) -> "Inspect":
        if (self.node is None) == (self.cell is None):
            raise PydanticCustomError("says", "An inspection names either a node or a cell.")
        return self


class Code(OfLane):
    """What the page has of the code of a lane already: so many steps, functions and places."""

    steps: Whole = 0
    functions: Whole = 0
    places: Whole = 0


class Save(OfRun):
    """`lane`: None for the whole run; `views`: the view of each lane on the page; `step` and `look`: of a
    figure or a picture; `width_mm`: of a figure for print; `kind` and `ending`: of a graph; `lesson`: the
    lesson in progress on the page, None for none.
    """

    form: Literal["trace", "run", "page", "costs", "drafted", "figure", "picture", "slide", "print", "graph"]
    kind: Name = "tokens"
    ending: Literal["graphml", "gexf", "dot", "json"] = "graphml"
    step: Whole | None = None
    look: Literal["light", "dark"] = "light"
    width_mm: Annotated[float, Field(ge=60, le=1000)] = 84
    lane: Whole | None = None
    views: Annotated[list[Name | None], Field(max_length=MAX_LANES)] | None = None
    lesson: Name | None = None


class Progress(Call):
    """`models`: None for those that the app was started with; `sentence`: the one that the page already
    shows.
    """

    models: Models | None = None
    sentence: str | None = None


class Wanted(Asked):
    """What an opened link, file, lesson or example asks of the panel Models; `models`: None for those in
    use.
    """

    models: Models | None = None
    chat: SystemMessage | None = None


class Talk(Wanted):
    """The models in use, and the prompt, which their chat template renders if there is a chat."""

    prompt: str


class Branch(OfLane):
    """`token` or the typed `text` is forced in place of `node`, or fixed from the start at `position` of a
    canvas (counting the prompt); `replace`: the lane to replace.
    """

    session: Session
    node: Whole | None = None
    position: Whole | None = None
    token: Whole | None = None
    text: str | None = None
    max_new_tokens: Typed
    replace: Whole | None = None

    @model_validator(mode="after")
    def _one(self) -> "Branch":
        if (self.token is None) == (self.text is None):
            raise PydanticCustomError("says", "A branch names either a token or a text.")
        if (self.node is None) == (self.position is None):
            raise PydanticCustomError("says", "A branch names either a node or a position.")
        return self


class Shown(Asked):
    """A lane of a run, its number on the page, and how many of its steps are shown."""

    lane: Whole
    number: Whole
    shown: Whole


class Compare(OfRun):
    lanes: Annotated[list[Shown], Field(min_length=1, max_length=MAX_LANES)]


class Lesson(OfRun):
    lesson: Name


class StoredCall(Call):
    """A decoding of a stored experiment; `number` counts from 1."""

    session: Session
    name: Name
    number: Whole


class Constraint(Call):
    """The typed constraint of a lane: the parameters whose names begin with "constraint"."""

    parameters: dict[Name, Value]
    models: Models | None = None


class Find(Call):
    """The search words for the list of strategies, and the models of the page."""

    words: Annotated[str, Field(max_length=200)]
    models: Models


class Link(Call):
    """A link with the page's settings, to be turned into a QR code."""

    link: Annotated[str, Field(max_length=200_000)]


def asked_of(function: Any) -> type[Asked]:
    """The model with which a server function annotates its request. TypeError if it has no such
    annotation.
    """
    model = function.__annotations__.get("request")
    if not (isinstance(model, type) and issubclass(model, Asked)):
        raise TypeError(f"{function.__name__} must annotate its request with a model.")
    return model
