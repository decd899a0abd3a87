"""Canaries: short texts whose continuation is known, each of which asks for one ability.

A drafter that fails at one of them where its target does not shows what it lacks: copying from its context,
counting, keeping an indentation, or reading a long context.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from decoders.refusal import Refusal
from explorer.acceptance.prompts import Prompt

SENTENCE = "The old clock in the hall strikes nine, and the cat looks up from the chair."
WORDS = "river candle seven basket window quiet copper ladder garden thunder paper silver"
CODE = """def first(values):
    for value in values:
        if value:
            return value
    return None


def last(values):
    for value in reversed(values):
        if value:
            return value
    return None


def count(values):
    for value in values:
"""
FILLER = (
    "Anna walked along the river and counted the boats. Ben sat on the bridge with a book. The wind was "
    "warm, and the bells of the town rang twice. Later they met at the market, bought bread, and went home. "
)
KNOWN = (  # name, what it asks for, the text, its continuation
    ("a sentence repeated", "copying from near", f"{SENTENCE} " * 3 + SENTENCE, f" {SENTENCE}" * 2),
    (
        "counting",
        "going on with a pattern",
        " ".join(map(str, range(1, 31))),
        "".join(f" {number}" for number in range(31, 43)),
    ),
    ("copying", "copying from further away", f"{WORDS}\nThe same once more:\n", WORDS),
    ("indentation", "keeping an indentation", CODE, "        if value:\n            return value\n"),
)
EMPTY, LONG = "an empty context", "a long context"
LONGEST = 8192  # tokens of the text that asks for a long context
OWN = (  # what the target continues in its own way
    "Once upon a time, there was a little girl named Lily. One day",
    "The first thing to know about the moon is that",
    "def read_file(path):\n",
)
CELLS = 1 << 28  # numbers that one forward over a whole text may give at most


@dataclass(frozen=True)
class Canary:
    """A text [T] and where its known answer begins. `asks`: the ability; `own`: the answer is the target's
    own writing, which differs from place to place enough to compare places with each other. `message`: the
    user's message that the text renders in the target's chat template, if it does.
    """

    name: str
    asks: str
    ids: list[int]
    start: int
    own: bool = False
    message: str | None = None


def known(target: Any, most: int, whole: bool) -> Iterator[Canary]:
    """The canaries with an answer of their own that fit into `most` tokens. `whole`: forwards read the whole
    text at once, so that a long one must fit into memory.
    """
    for name, asks, text, answer in KNOWN:
        before = target.encode(text)
        after = target.encode_after(before, answer)
        if len(before) + len(after) <= most:
            yield Canary(name, asks, [*before, *after], len(before))
    yield Canary(EMPTY, "beginning a text", target.encode(SENTENCE), 1)
    longest = min(most, LONGEST, CELLS // target.engine.vocabulary if whole else LONGEST)
    once = target.encode(FILLER)
    again = target.encode_after(once, FILLER)
    ids = (once + again * (longest // max(1, len(again)) + 1))[:longest]
    if len(ids) > 2 * len(once):
        yield Canary(LONG, "reading a long context", ids, len(once))


def prompts(target: Any, given: list[Prompt]) -> Iterator[tuple[str, str, str | None]]:
    """(name, prompt, message) of the texts that the target continues: those that are given, else `OWN`; in a
    chat template if the target has one.
    """
    texts = [one.text for one in given] or list(OWN)
    for at, text in enumerate(texts, 1):
        name = f"its own writing {at}"
        if not target.chats:
            yield name, text, None
            continue
        try:
            yield name, target.render(text), text
        except Refusal:
            yield name, text, None
