"""Words that stand on a canvas from the start, wherever a person puts them: `5: cat; 12: Once`.

A place counts new tokens from 1. Knows texts and tokens, no lane.
"""

from typing import Any

from decoders.strategy import Parameter

FIXED_WORDS = Parameter(
    "fixed_words",
    "text",
    "",
    "Words that stand on the canvas from the start: place: word, several with semicolons between them, such "
    "as 5: cat; 12: Once. Places count new tokens from 1.",
)


def parsed(text: str) -> list[tuple[int, str]]:
    """[(place, word)] of a parameter's text. Raises ValueError with one sentence."""
    found = []
    for piece in filter(str.strip, text.split(";")):
        place, colon, word = piece.partition(":")
        if not colon or not place.strip().isdigit() or int(place) < 1 or not word.strip():
            raise ValueError(
                f"fixed_words has {piece.strip()[:40]!r}; write place: word, such as 5: cat; 12: Once."
            )
        found.append((int(place), word.strip()))
    return found


def problem(parameters: dict[str, Any]) -> str | None:
    """What is wrong with the words of a lane, as a sentence; None if nothing is."""
    try:
        parsed(parameters["fixed_words"])
    except ValueError as error:
        return str(error)
    return None


def placed(text: str, start: int, stop: int, encode: Any) -> dict[int, int]:
    """Position -> token of a parameter's words on a canvas of positions start..stop-1, each with a space
    before it but at the start. `encode(word)` gives tokens. Raises ValueError with one sentence if one does
    not fit.
    """
    tokens: dict[int, int] = {}
    for place, word in parsed(text):
        ids = encode(word if place == 1 else " " + word)
        positions = range(start + place - 1, start + place - 1 + len(ids))
        if positions.stop > stop:
            raise ValueError(f"{word!r} does not fit at place {place}: the canvas has {stop - start} places.")
        if not tokens.keys().isdisjoint(positions):
            raise ValueError(f"{word!r} at place {place} covers another fixed word; move one of them.")
        tokens |= dict(zip(positions, ids, strict=True))
    return tokens
