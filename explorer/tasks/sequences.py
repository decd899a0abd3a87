"""Lists: copy, reverse, sort, replace, insert, remove, count, shuffle; repetition, capitals, opposites."""

import random
from collections import Counter
from typing import Any

from explorer.tasks.problem import Grade, Problem, Task, lines, same_line

WORDS = ("cat", "dog", "bird", "fish", "tree", "star", "moon", "ball", "house", "book", "hat", "cup")
OPPOSITES = (
    ("big", "small"),
    ("hot", "cold"),
    ("happy", "sad"),
    ("fast", "slow"),
    ("day", "night"),
    ("up", "down"),
    ("good", "bad"),
    ("old", "young"),
    ("open", "closed"),
    ("hard", "soft"),
    ("light", "dark"),
    ("in", "out"),
    ("full", "empty"),
    ("early", "late"),
    ("loud", "quiet"),
    ("clean", "dirty"),
)


def items(rng: random.Random, low: int = 3, high: int = 15) -> list[str]:
    """Digits or words, three to fifteen."""
    count = rng.randint(low, high)
    return [str(rng.randint(0, 9)) if rng.random() < 0.7 else rng.choice(WORDS) for _ in range(count)]


def asked(name: str, words: list[str], answer: list[str], extra: str = "", **facts: Any) -> Problem:
    """The form that all list tasks share: `sort: 3 1 2 =>` -> ` 1 2 3`."""
    return Problem(name, f"{name}{extra}: {' '.join(words)} =>", " " + " ".join(answer), facts)


def make_copy(rng: random.Random) -> Problem:
    """Copy the list."""
    words = items(rng)
    return asked("copy", words, words)


def make_reverse(rng: random.Random) -> Problem:
    """Reverse the list."""
    words = items(rng)
    return asked("reverse", words, words[::-1])


def make_sort(rng: random.Random) -> Problem:
    """Sort digits in ascending order."""
    words = [str(rng.randint(0, 9)) for _ in range(rng.randint(3, 12))]
    return asked("sort", words, sorted(words))


def make_last(rng: random.Random) -> Problem:
    """The last item."""
    words = items(rng)
    return asked("last", words, words[-1:])


def make_count(rng: random.Random) -> Problem:
    """How often an item occurs."""
    what = rng.choice(WORDS)
    words = [what if rng.random() < 0.4 else w for w in items(rng)]
    return asked("count", words, [str(words.count(what))], f" {what}")


def make_replace(rng: random.Random) -> Problem:
    """Replace every x by y."""
    words = items(rng, high=12)
    x, y = rng.choice(words), rng.choice(WORDS)
    return asked("replace", words, [y if w == x else w for w in words], f" {x} by {y}")


def make_insert(rng: random.Random) -> Problem:
    """Insert x after the n-th item, counted from 1."""
    words = items(rng, high=10)
    at, x = rng.randint(1, len(words)), rng.choice(WORDS)
    return asked("insert", words, [*words[:at], x, *words[at:]], f" {x} after item {at}")


def make_remove(rng: random.Random) -> Problem:
    """Remove every x."""
    words = items(rng, low=4, high=12)
    x = rng.choice(words)
    if all(w == x for w in words):
        words.append("sun")
    return asked("remove", words, [w for w in words if w != x], f" {x}")


def make_shuffle(rng: random.Random) -> Problem:
    """Any other order; many answers are right."""
    words = items(rng, high=10)
    while len(set(words)) < 2:
        words = items(rng, high=10)
    answer = words
    while answer == words:
        answer = rng.sample(words, len(words))
    return asked("shuffle", words, answer, items=words)


def check_shuffle(problem: Problem, text: str) -> Grade:
    """The same items in another order."""
    given = (lines(text) or [""])[0].split()
    if Counter(given) != Counter(problem.facts["items"]):
        return Grade(False, "The items are not the same.")
    if given == problem.facts["items"]:
        return Grade(False, "The order is the same.")
    return Grade(True, "The same items in another order.")


def make_repeat(rng: random.Random) -> Problem:
    """One word k times."""
    word, k = rng.choice(WORDS), rng.randint(2, 12)
    return Problem("repeat", f"say {word} {k} times:", " " + " ".join([word] * k))


def make_upper(rng: random.Random) -> Problem:
    """A word in capitals."""
    word = rng.choice(WORDS)
    return asked("upper", [word], [word.upper()])


def make_opposite(rng: random.Random) -> Problem:
    """The opposite of each word."""
    pairs = [pair if rng.random() < 0.5 else pair[::-1] for pair in rng.sample(OPPOSITES, rng.randint(1, 3))]
    return asked("opposite", [a for a, _ in pairs], [b for _, b in pairs])


TASKS = (
    Task("copy", "Copy a list.", make_copy, same_line),
    Task("reverse", "Reverse a list.", make_reverse, same_line),
    Task("sort", "Sort digits in ascending order.", make_sort, same_line),
    Task("last", "The last item of a list.", make_last, same_line),
    Task("count", "How often an item occurs.", make_count, same_line),
    Task("replace", "Replace every occurrence of an item.", make_replace, same_line),
    Task("insert", "Insert an item after the n-th.", make_insert, same_line),
    Task("remove", "Remove every occurrence of an item.", make_remove, same_line),
    Task("shuffle", "Shuffle a list.", make_shuffle, check_shuffle),
    Task("repeat", "Repeat a word a given number of times.", make_repeat, same_line),
    Task("upper", "A word in capitals.", make_upper, same_line),
    Task("opposite", "The opposites of words.", make_opposite, same_line),
)
