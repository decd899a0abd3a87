"""What a view is: a class that is registered, and what it knows of a lane before its first step."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

from decoders.trace.events import Event, Step
from decoders.trace.trace import Trace
from visualizers.scene.layout import Layout
from visualizers.scene.marks import Op

LARGEST = 1024  # number in a lane's parameters by which a view lays out its rows and columns


@dataclass
class Header:
    """What a view knows of a lane before its first step. `vocabulary` (token id -> bytes) grows with the
    trace.
    """

    prompt: list[int]
    vocabulary: dict[int, bytes]
    parameters: dict = field(default_factory=dict)
    title: str = ""
    lacks: list[str] = field(default_factory=list)  # see `Trace.lacks`

    @classmethod
    def of(cls, trace: Trace) -> "Header":
        """The header of a trace."""
        return cls(trace.prompt, trace.vocabulary, trace.shaping, trace.title, trace.lacks)

    def number(self, name: str, default: float) -> float:
        """A parameter that is a number from 0 on, at most LARGEST; `default` where it is none, since a trace
        from elsewhere may have anything there.
        """
        value = self.parameters.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return min(value, LARGEST)
        return default

    def word(self, name: str, default: str = "") -> str:
        """A parameter that is a text; `default` where it is none."""
        value = self.parameters.get(name)
        return value if isinstance(value, str) else default


@dataclass(frozen=True)
class Reads:
    """What a view is about: events of these classes that pass the test, which sees no others."""

    kinds: tuple[type, ...]
    test: Callable[[Any], bool]


class View(Protocol):
    """What a registered view has: its name and title, its layout, and a step's ops.

    A view is built from a trace's header. It keeps only what it needs to place later marks; it never looks
    ahead.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reads: ClassVar[tuple[Reads, ...]]

    def __init__(self, header: Header): ...

    def head(self) -> Layout: ...

    def feed(self, step: Step) -> list[Op]: ...


VIEWS: dict[str, type[View]] = {}
V = TypeVar("V", bound=View)


def has(kind: type, /, **wanted: Any) -> Reads:
    """Events of one class whose fields have these values; a set holds alternatives."""

    def found(event: Event) -> bool:
        fields = ((getattr(event, name), value) for name, value in wanted.items())
        return all(own in value if isinstance(value, set) else own == value for own, value in fields)

    return Reads((kind,), found)


def view(name: str, title: str, reads: Reads | tuple[Reads, ...] = ()) -> Callable[[type[V]], type[V]]:
    """Class decorator: registers a view under `name`, shown to people as `title`.

    reads: the event, or the events, that a lane must have for the view to be about something there. Without
    them only strategies that name the view have it.
    """

    def register(cls: type[V]) -> type[V]:
        cls.name, cls.title = name, title
        cls.reads = reads if isinstance(reads, tuple) else (reads,)
        VIEWS[name] = cls
        return cls

    return register
