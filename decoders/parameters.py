"""A declared parameter: its kind, its range, and how a value is read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from decoders.refusal import Refusal

MAX_CHARACTERS = 4000  # of a text parameter


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

        Raises Refusal with one sentence that says what is allowed.
        """
        try:
            parsed = PARSERS[self.kind](value)
        except (TypeError, ValueError):
            raise Refusal(f"{self.name} must be {self.allowed()}, not {shortened(value)}.") from None
        lists = self.kind in ("ints", "floats")
        numbers = parsed if lists else [parsed] if self.kind in ("int", "float") else []
        outside = any(
            n != n or (self.low is not None and n < self.low) or (self.high is not None and n > self.high)
            for n in numbers
        )
        if outside or (self.kind == "choice" and parsed not in self.choices) or (lists and not parsed):
            raise Refusal(f"{self.name} must be {self.allowed()}, not {shortened(value)}.")
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


def integer(
    name: str,
    default: int,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    group: str = "",
) -> Parameter:
    """A whole number."""
    return Parameter(name, "int", default, help, low, high, group=group)


def real(
    name: str,
    default: float,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    group: str = "",
) -> Parameter:
    """A number."""
    return Parameter(name, "float", default, help, low, high, group=group)


def integers(
    name: str, default: list[int], help: str, *, low: float | None = None, high: float | None = None
) -> Parameter:
    """Whole numbers, separated by commas on a command line."""
    return Parameter(name, "ints", default, help, low, high)


def reals(
    name: str,
    default: list[float],
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    group: str = "",
) -> Parameter:
    """Numbers, separated by commas on a command line."""
    return Parameter(name, "floats", default, help, low, high, group=group)


def switch(name: str, default: bool, help: str, group: str = "") -> Parameter:
    """On or off."""
    return Parameter(name, "bool", default, help, group=group)


def choice(name: str, default: str, help: str, choices: Iterable[str], group: str = "") -> Parameter:
    """One of `choices`."""
    return Parameter(name, "choice", default, help, choices=tuple(choices), group=group)


def free_text(name: str, default: str, help: str, group: str = "") -> Parameter:
    """A text."""
    return Parameter(name, "text", default, help, group=group)


def shortened(value: Any) -> str:
    """A value as a message quotes it, shortened."""
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:60] + " …"


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[str(value).lower()]


def _int(value: Any) -> int:
    if isinstance(value, bool) or float(value) != int(float(value)):
        raise Refusal(value)
    return int(float(value))


def _float(value: Any) -> float:
    if isinstance(value, bool):
        raise Refusal(value)
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS:
        raise Refusal(value)
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
            raise Refusal(value) from error

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
