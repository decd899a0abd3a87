"""Notes about animals whose facts no model can know, and notes that state the same facts in other words: the
purpose of a retrieval store.
"""

import random
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from explorer.tasks.correction import ANIMALS, KINDS, NAMES, PLACES, THINGS

COLOURS = ("red", "blue", "green", "yellow", "black", "white", "pink", "brown")
FOODS = ("bread", "apples", "nuts", "soup", "cake", "rice", "honey", "milk")
INTRO = "A note about {name} the {kind} {animal}, who lives near the old {place}."
WORDINGS = (
    " {name} has a {colour} {thing} and likes {food}.",
    " {name} likes {food} and has a {colour} {thing}.",
    " There {name} eats {food} with a {colour} {thing}.",
)


@dataclass(frozen=True)
class Note:
    """The animal, and the facts that only this note contains."""

    name: str
    kind: str
    animal: str
    place: str
    colour: str
    thing: str
    food: str

    def intro(self) -> str:
        """The sentence by which it is retrieved."""
        return INTRO.format(**vars(self))

    def text(self, way: int) -> str:
        """The note in one of the WORDINGS."""
        return self.intro() + WORDINGS[way].format(**vars(self))


def note(rng: random.Random) -> Note:
    """A random note."""
    choices = (NAMES, KINDS, ANIMALS, PLACES, COLOURS, THINGS, FOODS)
    return Note(*(rng.choice(some) for some in choices))


def fitted(tokenizer: PreTrainedTokenizerBase, text: str, size: int, filling: int) -> list[int]:
    """Its first `size` tokens, padded if there are fewer."""
    ids = tokenizer(text)["input_ids"][:size]
    return ids + [filling] * (size - len(ids))


def store_of(tokenizer: PreTrainedTokenizerBase, notes: list[Note], chunk: int, filling: int) -> list[int]:
    """Consecutive notes, each two chunks long, with alternating wordings."""
    ids: list[int] = []
    for at, one in enumerate(notes):
        ids += fitted(tokenizer, one.text(at % len(WORDINGS)), 2 * chunk, filling)
    return ids
