"""Fact sheets with a summary: a few clauses about people, and two to four sentences that paraphrase some of
them. Weights and chance decide which ones, so that several summaries are likely.

Not in `TASKS`, since no answer is right or wrong; a summary follows its plan or not.
"""

import math
import random
from dataclasses import dataclass

from explorer.tasks.facts import COLOURS, FOODS, NAMES, PLACES, THINGS

ASKED = "\nSummary:"  # after the facts
PETS = ("cat", "dog", "bird", "fish", "rabbit", "mouse")
SIZES = ("big", "small", "old", "young")
NUMBERS = ("three", "four", "five", "six", "seven", "eight", "nine", "ten")
JOBS = ("doctor", "farmer", "teacher", "king", "baker", "painter")
SOUNDS = ("drum", "piano", "bell", "horn", "flute")
FEARS = ("storms", "snakes", "spiders", "ghosts", "wolves")
GAMES = ("chess", "cards", "tag", "football", "marbles")


@dataclass(frozen=True)
class Kind:
    """A kind of fact: its form in a sheet, its paraphrases in a summary, and its importance."""

    fact: str
    tells: tuple[str, ...]
    weight: float


KINDS = (
    Kind(
        "{name} has a {colour} {thing}",
        ("The true owner of the {colour} {thing} is {name}", "A true owner of a {colour} {thing} is {name}"),
        0.2,
    ),
    Kind(
        "{name} is in {place}",
        ("The way to {name} leads to {place}", "A short way to {place} leads to {name}"),
        0.6,
    ),
    Kind(
        "{name} likes {food}",
        ("The best meal of {name} is {food}", "A meal of {food} tastes best to {name}"),
        -0.3,
    ),
    Kind(
        "{name} has a {size} {pet}",
        ("The animal of {name} is a {size} {pet}", "A {size} {pet} is the animal of {name}"),
        0.4,
    ),
    Kind(
        "{name} is {number} years old",
        ("The last birthday of {name} was number {number}", "A birthday of {name} was number {number}"),
        -0.5,
    ),
    Kind(
        "{name} wants to be a {job}",
        ("The dream of {name} is the work of a {job}", "A dream of {name} is to work as a {job}"),
        0.7,
    ),
    Kind(
        "{name} plays the {sound}",
        ("The music of the {sound} comes from {name}", "A {sound} makes the music that comes from {name}"),
        0.0,
    ),
    Kind(
        "{name} is afraid of {fear}",
        ("The bad night of {name} is full of {fear}", "A night full of {fear} troubles {name}"),
        -0.2,
    ),
    Kind(
        "{name} enjoys {game}",
        ("The favorite match of {name} is one of {game}", "A match of {game} makes {name} happy"),
        -0.4,
    ),
)
FIRST, NOISE = 1.0, 0.5  # extra weight of facts on the first person; scale of the noise
JOINED = 0.3  # probability that `and` joins a fact to the one before


@dataclass(frozen=True)
class Sheet:
    """A text of facts, its clauses, the indices of those in its summary, and the summary's sentences."""

    text: str
    units: list[str]
    tells: list[int]
    summary: list[str]

    @property
    def prompt(self) -> str:
        """The text and the line that asks for a summary."""
        return self.text + ASKED

    @property
    def answer(self) -> str:
        """The summary as it stands after the prompt."""
        return "".join(f" {sentence}" for sentence in self.summary)


def make_sheet(rng: random.Random) -> Sheet:
    """Four to eight facts about two or three people, and a summary of them in the order of the facts."""
    names = rng.sample(NAMES, rng.choice((2, 2, 3)))
    pairs = [(name, kind) for name in names for kind in KINDS]
    facts: list[tuple[str, Kind, dict[str, str]]] = []
    for name, kind in rng.sample(pairs, rng.randint(4, 8)):
        words = {
            "name": name,
            "colour": rng.choice(COLOURS),
            "thing": rng.choice(THINGS),
            "place": rng.choice(PLACES),
            "food": rng.choice(FOODS),
            "size": rng.choice(SIZES),
            "pet": rng.choice(PETS),
            "number": rng.choice(NUMBERS),
            "job": rng.choice(JOBS),
            "sound": rng.choice(SOUNDS),
            "fear": rng.choice(FEARS),
            "game": rng.choice(GAMES),
        }
        facts.append((name, kind, words))
    units = [kind.fact.format(**words) for _, kind, words in facts]
    chosen = salient([kind.weight + FIRST * (name == facts[0][0]) for name, kind, _ in facts], rng)
    summary = [f"{rng.choice(facts[i][1].tells).format(**facts[i][2])}." for i in chosen]
    return Sheet(written(units, rng), units, chosen, summary)


def salient(weights: list[float], rng: random.Random) -> list[int]:
    """The indices of the facts in a summary: about half of them, those with the largest weight plus Gumbel
    noise.
    """
    noisy = [weight - NOISE * math.log(-math.log(rng.random())) for weight in weights]
    count = min(4, max(2, len(weights) // 2 + rng.choice((-1, 0, 0, 0))))
    return sorted(sorted(range(len(weights)), key=lambda i: -noisy[i])[:count])


def written(units: list[str], rng: random.Random) -> str:
    """Clauses as sentences, some with two clauses."""
    text, joint = units[0], False
    for unit in units[1:]:
        joint = not joint and rng.random() < JOINED
        text += f" and {unit}" if joint else f". {unit}"
    return f"{text}."
