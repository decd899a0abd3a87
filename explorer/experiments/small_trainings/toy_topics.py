"""Short invented stories with several topics each, of which a model has to name all."""

import random
from dataclasses import dataclass

TOPICS: dict[str, tuple[tuple[str, ...], str]] = {  # label -> (sentences, words to fill in)
    "animals": (("{name} saw a {}.", "The {} was big."), "dog cat rabbit bear horse duck fox pig mouse"),
    "food": (("{name} wanted some {}.", "There was {} on the table."), "soup cake bread cheese rice pie"),
    "weather": (("{name} saw the {}.", "The {} was strong."), "rain snow wind sun storm clouds"),
    "toys": (("{name} saw a {}.", "The {} was new."), "ball doll kite robot puzzle teddy train car"),
    "family": (("{name} saw her {}.", "Her {} was kind."), "mom dad brother sister grandma uncle aunt"),
    "water": (("{name} saw a {}.", "The {} was big."), "river lake sea pond pool boat fish wave"),
    "music": (("{name} wanted to hear a {}.", "The {} was loud."), "song drum piano guitar bell flute"),
    "garden": (("{name} saw a {}.", "The {} was pretty."), "flower tree leaf rose seed bush butterfly"),
}
LABELS = tuple(TOPICS)
NAMES = ("Lily", "Anna", "Mia", "Lucy", "Sue", "Jane")
OTHERS = ("{name} was happy.", "{name} went home.", "It was a good day.", "They smiled.")
UNSEEN = 2  # last words of each topic, reserved for test stories
SENTENCES = 3


@dataclass(frozen=True)
class Story:
    """A text, and its topics in order of appearance."""

    text: str
    topics: tuple[str, ...]


def stories(count: int, seed: int, learning: bool) -> list[Story]:
    """`count` stories of three sentences, one to three of them with a topic. learning: without the words that
    are reserved for the test.
    """
    draw = random.Random(seed)
    return [story(draw, learning) for _ in range(count)]


def story(draw: random.Random, learning: bool) -> Story:
    """One story."""
    name, count = draw.choice(NAMES), draw.randint(1, SENTENCES)
    sentences = []
    for topic in draw.sample(LABELS, count):
        patterns, words = TOPICS[topic]
        known = words.split()[: -UNSEEN if learning else None]
        sentences.append((topic, draw.choice(patterns).format(draw.choice(known), name=name)))
    sentences += [("", other.format(name=name)) for other in draw.sample(OTHERS, SENTENCES - count)]
    draw.shuffle(sentences)
    topics = tuple(topic for topic, _ in sentences if topic)
    return Story(" ".join(sentence for _, sentence in sentences), topics)
