"""Words that stand on a canvas from the start, wherever a person puts them: `5: cat; 12: Once`.

A place counts new tokens from 1.
"""

import json
import re
from typing import Any

from decoders.parameters import free_text
from decoders.refusal import Refusal

FIXED_WORDS = free_text(
    "fixed_words",
    "",
    "Words that are on the canvas from the start, as position: word, separated by semicolons, such as 5: "
    "cat; "
    "12: Once. Positions count new tokens from 1. Text in double quotes is used unchanged; any other "
    "word gets a space before it.",
)
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
PIECE = re.compile(rf"(?:{QUOTED.pattern}|[^;])+")  # up to a semicolon that is not in quotes


def parsed(text: str) -> list[tuple[int, str]]:
    """[(place, word)] of a parameter's text, a quoted word with its quotes. Raises Refusal with one
    sentence.
    """
    pairs = []
    for piece in filter(str.strip, PIECE.findall(text)):
        place, colon, word = (part.strip() for part in piece.partition(":"))
        if not colon or not place.isdecimal() or int(place) < 1 or not word or word == '""':
            raise Refusal(
                f"fixed_words has {piece.strip()[:40]!r}; write position: word, such as 5: cat; 12: Once."
            )
        pairs.append((int(place), word))
    return pairs


def with_word(text: str, place: int, word: str, exactly: bool) -> str:
    """A parameter's text with one more word; it replaces one that stands at the same place. exactly: as it
    is, without a space before it.
    """
    characters = word if exactly else spelled(place, word.strip())
    written = (
        word.strip()
        if stands_without_quotes(word) and not exactly
        else json.dumps(characters, ensure_ascii=False)
    )
    kept = [f"{at}: {old}" for at, old in parsed(text) if at != place]
    return "; ".join([*kept, f"{place}: {written}"])


def stands_without_quotes(word: str) -> bool:
    """Whether a word can stand in a parameter's text without quotes."""
    return bool(word.strip()) and not set(word) & set('";')


def fixed_words_problem(parameters: dict[str, Any]) -> str | None:
    """What is wrong with the words of a lane, as a sentence; None if nothing is."""
    try:
        parsed(parameters["fixed_words"])
    except Refusal as error:
        return str(error)
    return None


def spelled(place: int, word: str) -> str:
    """The characters that a word of a parameter puts on the canvas. Raises Refusal with one sentence."""
    if not QUOTED.fullmatch(word):
        return word if place == 1 else " " + word
    try:
        return json.loads(word, strict=False)
    except ValueError as error:
        raise Refusal(f"{word[:40]} is not a valid quoted word; write a literal backslash twice.") from error


def placed(text: str, start: int, stop: int, encode: Any) -> dict[int, int]:
    """Position -> token of a parameter's words on a canvas of positions start..stop-1. `encode(characters)`
    gives tokens. Raises Refusal with one sentence if one does not fit.
    """
    tokens: dict[int, int] = {}
    for place, word in parsed(text):
        ids = encode(spelled(place, word))
        positions = range(start + place - 1, start + place - 1 + len(ids))
        if positions.stop > stop:
            raise Refusal(
                f"{word!r} does not fit at position {place}: the canvas has {stop - start} positions."
            )
        if not tokens.keys().isdisjoint(positions):
            raise Refusal(f"{word!r} at position {place} overlaps another fixed word; move one of them.")
        tokens |= dict(zip(positions, ids, strict=True))
    return tokens
