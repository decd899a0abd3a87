"""What a strategy says of itself: its parameters, its parts, and what it needs. Knows no lane and no other
strategy.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from decoders.engine.capabilities import Capability

MAX_CHARACTERS = 4000  # of a parameter that is a text


@dataclass(frozen=True)
class Parameter:
    """One declared parameter. `kind`: int, float, bool, choice (one of `choices`), text, ints or floats
    (comma-separated lists). `group`: the fold in which the page shows it, "" for none.
    """

    name: str
    kind: str
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    group: str = ""

    def parse(self, value: Any) -> Any:
        """`value` (a string from a command line, or a JSON value) as this parameter's type, in range.

        Raises ValueError with one sentence that says what is allowed.
        """
        try:
            parsed = PARSERS[self.kind](value)
        except (TypeError, ValueError):
            raise ValueError(f"{self.name} must be {self.allowed()}, not {shortened(value)}.") from None
        lists = self.kind in ("ints", "floats")
        numbers = parsed if lists else [parsed] if self.kind in ("int", "float") else []
        outside = any(
            n != n or (self.low is not None and n < self.low) or (self.high is not None and n > self.high)
            for n in numbers
        )
        if outside or (self.kind == "choice" and parsed not in self.choices) or (lists and not parsed):
            raise ValueError(f"{self.name} must be {self.allowed()}, not {shortened(value)}.")
        return parsed

    def allowed(self) -> str:
        """What values are allowed, in words."""
        if self.kind == "bool":
            return "true or false"
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        if self.kind == "text":
            return f"a text of at most {MAX_CHARACTERS:,} characters"
        noun = {
            "int": "a whole number",
            "float": "a number",
            "ints": "whole numbers separated by commas, each",
            "floats": "numbers separated by commas, each",
        }[self.kind]
        if self.low is not None and self.high is not None:
            return f"{noun} from {self.low:g} to {self.high:g}"
        return noun + (f" of at least {self.low:g}" if self.low is not None else "")


def shortened(value: Any) -> str:
    """A value as it is quoted in a sentence."""
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:60] + " …"


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[str(value).lower()]


def _int(value: Any) -> int:
    if isinstance(value, bool) or float(value) != int(float(value)):
        raise ValueError(value)
    return int(float(value))


def _float(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError(value)
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS:
        raise ValueError(value)
    return value


def _ints(value: Any) -> list[int]:
    return [_int(v) for v in (value.split(",") if isinstance(value, str) else value)]


def _floats(value: Any) -> list[float]:
    return [_float(v) for v in (value.split(",") if isinstance(value, str) else value)]


def _guard(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def guarded(value: Any) -> Any:
        try:
            return parse(value)
        except (KeyError, OverflowError) as error:
            raise ValueError(value) from error

    return guarded


PARSERS = {
    "int": _guard(_int),
    "float": _guard(_float),
    "bool": _guard(_bool),
    "ints": _guard(_ints),
    "floats": _guard(_floats),
    "choice": str,
    "text": _text,
}


# What shows a lane's constraint: what it removed, where in its text the output stands, and its automaton.
CONSTRAINT_VIEWS = {
    "none": (),
    "json_schema": ("constraint", "rules"),
    **dict.fromkeys(("regex", "lark", "gbnf", "choices"), ("constraint", "rules", "states")),
}


def constraint_views(kind: str) -> tuple[str, ...]:
    """The views that a kind of constraint adds to those of a strategy."""
    return CONSTRAINT_VIEWS.get(kind, ("constraint",))


def constrained(parameters: dict[str, Any]) -> bool:
    """Whether a lane with these parameters has a constraint."""
    return parameters.get("constraint", "none") != "none"


@dataclass(frozen=True)
class Part:
    """A piece that a strategy is composed of. `kind`: drafter, verifier, processors, frontier, value ..."""

    kind: str
    name: str
    says: str  # what it does, in one sentence


@dataclass(frozen=True)
class Strategy:
    """A way of decoding, declared once. `run(lane)` is a generator; each bare `yield` ends a step
    of its `lane.Lane`.
    """

    name: str
    title: str
    family: str
    summary: str
    run: Callable[[Any], Iterator[None]]
    parameters: tuple[Parameter, ...] = ()
    papers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ("target",)
    may_use: tuple[str, ...] = ()  # roles of further models, used if they are there
    writes_with: str = "causal"  # the kind of model whose text it is, see models/companions.py
    any_tokenizer: bool = False  # whether its drafts may cut text into other tokens than the target
    views: tuple[str, ...] = ("entropy", "dependencies", "text")
    badge: Callable[[dict], str] = lambda parameters: ""
    parts: Callable[[dict], list[Part]] = lambda parameters: []
    together: Callable[[dict], str | None] = lambda parameters: (
        None
    )  # a sentence if the values do not fit together
    # role -> what it reads of that model's engine, besides log-probabilities
    reads: Callable[[dict], dict[str, Collection[Capability]]] = lambda parameters: {}
    suits: Callable[[dict, Any], str | None] = lambda parameters, target: (
        None
    )  # a sentence if the target lacks more than its engine could give, such as tokens or experts

    def check(self, given: dict[str, Any]) -> dict[str, Any]:
        """Defaults filled in, values parsed. Raises ValueError with one sentence on unknown names and
        unusable values.
        """
        known = {p.name: p for p in self.parameters}
        for name in given:
            if name not in known:
                offer = ", ".join(known) or "none"
                raise ValueError(f"{self.name} has no parameter {shortened(name)}; it has: {offer}.")
        values = {name: p.parse(given[name]) if name in given else p.default for name, p in known.items()}
        if problem := self.together(values):
            raise ValueError(problem)
        return values

    def views_with(self, parameters: dict[str, Any]) -> tuple[str, ...]:
        """Its views, and those of its constraint."""
        return (*self.views, *constraint_views(parameters.get("constraint", "none")))

    def declaration(self) -> dict:
        """The promised public form, as listed by `strategies --json`."""
        return {
            "name": self.name,
            "title": self.title,
            "family": self.family,
            "summary": self.summary,
            "papers": list(self.papers),
            "needs": list(self.needs),
            "parameters": [
                {k: v for k, v in vars(p).items() if v is not None and v != () and (k, v) != ("group", "")}
                for p in self.parameters
            ],
            "views": list(self.views),
        }
