"""Tokens and numbers as a picture shows them: how wide a text is, what fits, how a probability is written."""

import math
import unicodedata

from decoders.trace.events import Verdict

MAX_DIGITS = 6  # of the number of a level
SOURCES = {  # of drafted tokens, where it is not a second model
    "store": "a store of texts",
    "pool": "a pool of n-grams",
    "recycled": "the target's earlier runners-up",
    "trigrams": "a table of trigrams",
    "prompt": "the text so far",
    "window": "what the previous forward drew here",
    "draft 2": "the second draft model",
    "draft 3": "the third draft model",
    "draft 4": "the fourth draft model",
}


LOGPROB = {"logprob": "log p", "sum_logprob": "Σ log p", "mean_logprob": "mean log p"}

MONO = 0.602  # width of a character in a monospaced face, in em


def cells(text: str) -> int:
    """The width of a text in character cells: East Asian wide characters and emoji take two, combining marks
    none.
    """
    return sum(map(cells_of_character, text))


def cells_of_character(character: str) -> int:
    """As `cells`, of one character."""
    if unicodedata.category(character)[0] == "M":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def longest_prefix(text: str, room: int) -> str:
    """The longest beginning of a text that takes at most `room` cells."""
    width = 0
    for i, character in enumerate(text):
        width += cells_of_character(character)
        if width > room:
            return text[:i]
    return text


def fit(text: str, width: float, size: float) -> str:
    """As much of the token as fits into `width` pixels at `size`: all; without its leading ␣; cut with …; or
    nothing.
    """
    room = int(width / (MONO * size) + 1e-6)
    if cells(text) <= room:
        return text
    bare = text[1:] if text.startswith("␣") and len(text) > 1 else text
    if cells(bare) <= room:
        return bare
    kept = longest_prefix(bare, room - 1)
    return kept + "…" if cells(kept) >= 2 else ""


def probability(p: float | None) -> str:
    """`.63`, `1.00`, `.0352`: two places, more for small ones; `?` if unknown."""
    if p is None:
        return "?"
    places = min(6, math.ceil(-math.log10(p)) + 1) if 0 < p < 0.01 else 2
    return f"{p:.{places}f}".removeprefix("0") if p < 1 else f"{p:.2f}"


def score_name(name: str) -> str:
    """The name of a score or of a part of one, as people read it: `sum_logprob` is `Σ log p`."""
    return LOGPROB.get(name, name.replace("_", " "))


def source_lines(source: str | None) -> list[str]:
    """A line of a hover that says where a drafted token came from; none where a second model is meant."""
    return [f"drafted from {SOURCES[source]}"] if source in SOURCES else []


def three_digits(p: float | None) -> str:
    """Three significant digits, for ratios whose parts are printed too: dividing the printed parts gives the
    printed ratio.
    """
    if not p:
        return "?" if p is None else "0"
    places = max(0, 2 - math.floor(math.log10(p))) if 0 < p < 1 else 2
    written = f"{p:.{min(places, 8)}f}"
    return written.removeprefix("0") if written.startswith("0") else f"{p:.2f}"  # .9997 is written 1.00


def compared(verdict: Verdict) -> str:
    """The numbers of a test that are known: p, q, its acceptance probability if not p / q, u."""
    numbers = {
        "p": verdict.p,
        "q": verdict.q,
        "probability of acceptance": verdict.acceptance,
        "u": verdict.u,
    }
    return ", ".join(f"{name} {three_digits(value)}" for name, value in numbers.items() if value is not None)


def numbered(level: str | None, default: int) -> int:
    """The number at the end of a level, such as 3 of `layer 3`; `default` where there is none, since a trace
    from elsewhere may name its levels in any way.
    """
    last = (level or "").rpartition(" ")[2]
    return int(last) if last.isdecimal() and len(last) <= MAX_DIGITS else default
