"""Records in sections: each field of a person's record is a section that one stream can write, and all end
with the same colour, which the first section makes up.
"""

import random
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from explorer.tasks.facts import COLOURS
from explorer.tasks.records import KEYS, make_record

LEADER = "color"
ITEMS = (LEADER, *KEYS)  # what a section may be about
SECTIONS = len(ITEMS)


@dataclass(frozen=True)
class Record:
    """A prompt that asks for YAML, the record, its colour, and its keys in the order of the sentence."""

    prompt: str
    values: dict
    colour: str
    keys: tuple[str, ...]

    @property
    def sections(self) -> list[str]:
        """The lines of the answer, the last one without its end."""
        lines = [f"{LEADER}: {self.colour}"]
        lines += [f"{key}: {self.values[key]} {self.colour}" for key in self.keys]
        return [*(f"{line}\n" for line in lines[:-1]), lines[-1]]

    @property
    def plan(self) -> list[int]:
        """The plan item of each slot: which stream owns which field. Each pair has its own item."""
        return [slot * SECTIONS + ITEMS.index(key) for slot, key in enumerate((LEADER, *self.keys))]

    def tokens(self, tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
        """The tokens of each section; the last one ends the text."""
        cut = [tokenizer(section)["input_ids"] for section in self.sections]
        return [*cut[:-1], [*cut[-1], tokenizer.eos_token_id]]


def record(rng: random.Random) -> Record:
    """A random record; its colour is independent of it."""
    asked = make_record(rng, "yaml")
    values = asked.facts["record"]
    keys = sorted(KEYS, key=lambda key: asked.prompt.find(str(values[key])))
    return Record(asked.prompt, values, rng.choice(COLOURS), tuple(keys))


def answer(text: str) -> list[tuple[str, str, str]]:
    """(key, value, colour) of each line of an answer; for the first one the value is its colour."""
    result = []
    for line in text.splitlines():
        key, _, rest = line.partition(": ")
        value, _, colour = rest.rpartition(" ")
        result.append((key, value, colour.strip()))
    return result
