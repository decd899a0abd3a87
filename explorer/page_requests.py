"""What the page may ask: one model for each server function, named after it. Nothing else checks requests.

What a person types (a prompt, a seed, a name) has a kind here and is judged where it is used, with a sentence
for the page; what the page itself chooses must be as it is written here. `sessions.validated` reads these.
"""

import functools
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from explorer.runs.validation import MAX_LANES, Models, Setup, SystemMessage
from explorer.schema import Asked, Name, Typed, Value, Whole
from visualizers.registry import names

Session = Annotated[str, Field(min_length=16, max_length=64)]  # a secret that a page makes for itself


@functools.cache
def views() -> frozenset[str]:
    """The names of all views."""
    return frozenset(names())


def view_of_app(name: str) -> str:
    """`name`, if a view is called so."""
    if name not in views():
        raise PydanticCustomError("kind", "the name of a view")
    return name


View = Annotated[Name, AfterValidator(view_of_app)]


class Call(Asked):
    """What every call carries: whose it is. Runs of others answer as if they were not there."""

    session: Session | None = None


class OfRun(Call):
    """A call about a run."""

    run: Name


class OfLane(OfRun):
    """A call about one lane of a run, counted from 0."""

    lane: Whole


class Leave(Asked):
    """What a page says that closes."""

    session: Session


class Start(Setup, Call):
    session: Session
    state: Literal["running", "paused"] = "running"


class Control(OfRun):
    action: Literal["pause", "resume", "step", "stop"]


class Cursor(Asked):
    """How much of a lane the page has: the view on show, its ops, and rows of costs."""

    view: View
    ops: Whole
    rows: Whole


class Pull(OfRun):
    """`wait`: seconds; `state`: the one that the page knows."""

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


class Save(OfRun):
    """`lane`: None for the whole run; `views`: what each lane of the page shows; `step` and `look`: of a
    figure or a picture; `kind` and `ending`: of a graph; `lesson`: the one that the page leads
    through, None for none.
    """

    form: Literal["trace", "run", "page", "costs", "drafted", "figure", "picture", "slide", "graph"]
    kind: Name = "tokens"
    ending: Literal["graphml", "gexf", "dot", "json"] = "graphml"
    step: Whole | None = None
    look: Literal["light", "dark"] = "light"
    lane: Whole | None = None
    views: Annotated[list[Name | None], Field(max_length=MAX_LANES)] | None = None
    lesson: Name | None = None


class Progress(Call):
    """`models`: None for those that the app was started with; `sentence`: what the page shows already."""

    models: Models | None = None
    sentence: str | None = None


class Wanted(Asked):
    """What something that was opened asks of the panel Models; `models`: None for those in use."""

    models: Models | None = None
    chat: SystemMessage | None = None


class Talk(Wanted):
    """The models in use, and the prompt that their chat template renders where there is a chat."""

    prompt: str


class Branch(OfLane):
    """`token` or the typed `text` is forced in the place of `node`, or stands from the start at `position` of
    a canvas (the prompt counts); `replace`: the lane that makes room.
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
    """A lane of a run, what the page calls it, and how many of its steps count."""

    lane: Whole
    number: Whole
    shown: Whole


class Compare(OfRun):
    lanes: Annotated[list[Shown], Field(min_length=1, max_length=MAX_LANES)]


class Lesson(OfRun):
    lesson: Name


class StoredCall(Call):
    """A decoding of a stored experiment, `number` from 1 on."""

    session: Session
    name: Name
    number: Whole


class Constraint(Call):
    """What is typed for the constraint of a lane: the parameters whose names begin so."""

    parameters: dict[Name, Value]
    models: Models | None = None


class Find(Call):
    """What a person looks for in the list of strategies, and the models of the page."""

    words: Annotated[str, Field(max_length=200)]
    models: Models


class Link(Call):
    """A link of the page's settings, to be made into a QR code."""

    link: Annotated[str, Field(max_length=200_000)]


def asked_of(function: Any) -> type[Asked]:
    """The model that a server function's request has: what it is annotated with. TypeError if with none."""
    model = function.__annotations__.get("request")
    if not (isinstance(model, type) and issubclass(model, Asked)):
        raise TypeError(f"{function.__name__} must say with what model its request is read.")
    return model
