"""Sentences with errors made by rules, and their corrections: letters omitted, doubled or swapped, a verb in
the wrong number, a repeated word, a missing capital or full stop.

Makes its own simple sentences; `spoil` also works on others.
"""

import random
from collections import Counter
from collections.abc import Callable

from explorer.tasks.problem import Grade, Problem, Task, lines

NAMES = ("Tom", "Lily", "Ben", "Mia", "Sam", "Anna", "Max", "Lucy", "Tim", "Sara")
ANIMALS = ("cat", "dog", "bird", "rabbit", "horse", "goat", "bear", "lion", "monkey", "duck")
THINGS = ("ball", "flower", "basket", "kite", "stone", "cookie", "blanket", "lantern", "apple", "drum")
KINDS = ("little", "brown", "happy", "clever", "hungry", "quiet", "brave", "sleepy", "yellow", "shiny")
PLACES = ("garden", "forest", "kitchen", "river", "school", "market", "bridge", "meadow")
FEELINGS = ("happy", "tired", "proud", "afraid", "hungry", "ready")
VERBS = {
    "sees": "see",
    "likes": "like",
    "finds": "find",
    "has": "have",
    "follows": "follow",
    "takes": "take",
    "carries": "carry",
    "watches": "watch",
    "loves": "love",
    "hides": "hide",
    "goes": "go",
    "is": "are",
}
WITH_OBJECT = tuple(verb for verb in VERBS if verb not in ("goes", "is"))
NUMBERS = {**VERBS, **{many: one for one, many in VERBS.items()}, "was": "were", "were": "was"}
SHORTEST = 4  # minimum letters of a word that is misspelt
TWO_ERRORS = 0.4  # share of sentences with a second error


def misspellings(word: str) -> list[str]:
    """The word with one letter omitted, doubled, or swapped with the next; the first letter is kept."""
    places = range(1, len(word))
    lost = [word[:i] + word[i + 1 :] for i in places]
    doubled = [word[: i + 1] + word[i:] for i in places]
    swapped = [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(1, len(word) - 1)]
    return sorted({w for w in lost + doubled + swapped if w != word})


WORDS = (*ANIMALS, *(f"{a}s" for a in ANIMALS), *THINGS, *KINDS, *PLACES, *FEELINGS, *NUMBERS)
MEANT = Counter(wrong for word in set(WORDS) for wrong in misspellings(word))
UNCLEAR = {wrong for wrong, count in MEANT.items() if count > 1} | set(WORDS)  # could mean another word


def misspell(words: list[str], rng: random.Random) -> bool:
    """Misspells one lower-case word of at least SHORTEST letters, in place; verbs are left to `misnumber`."""
    at = [i for i, w in enumerate(words) if len(w) >= SHORTEST and w.isalpha() and w.islower()]
    at = [i for i in at if words[i] not in NUMBERS]
    if not at:
        return False
    place = rng.choice(at)
    choices = [wrong for wrong in misspellings(words[place]) if wrong not in UNCLEAR]
    if choices:
        words[place] = rng.choice(choices)
    return bool(choices)


def misnumber(words: list[str], rng: random.Random) -> bool:
    """Puts the first verb in the other number, in place: `the dogs runs`."""
    at = next((i for i, word in enumerate(words) if word in NUMBERS), None)
    if at is not None:
        words[at] = NUMBERS[words[at]]
    return at is not None


def stutter(words: list[str], rng: random.Random) -> bool:
    """Repeats one word, in place."""
    place = rng.randrange(1, len(words) - 1)
    words.insert(place, words[place])
    return True


def uncapital(words: list[str], rng: random.Random) -> bool:
    """Makes the first letter lower case, in place."""
    small = words[0][0].lower() + words[0][1:]
    changed, words[0] = small != words[0], small
    return changed


def unstop(words: list[str], rng: random.Random) -> bool:
    """Removes the full stop at the end, in place."""
    ends = words[-1].endswith(".")
    words[-1] = words[-1].rstrip(".")
    return ends


ERRORS: tuple[Callable[[list[str], random.Random], bool], ...] = (
    misspell,
    misspell,
    misspell,
    misnumber,
    misnumber,
    stutter,
    uncapital,
    unstop,
)


def spoil(sentence: str, rng: random.Random) -> str:
    """Adds one or two errors of different kinds to a sentence of at least three words with a full stop."""
    words, made = sentence.split(" "), []
    wanted = 2 if rng.random() < TWO_ERRORS else 1
    while len(made) < wanted:
        error = rng.choice([e for e in ERRORS if e not in made])
        if error(words, rng):
            made.append(error)
    return " ".join(words)


def noun_phrase(nouns: tuple[str, ...], rng: random.Random, many: bool = False) -> str:
    """`the little dog`, `the dogs`."""
    kind = f"{rng.choice(KINDS)} " if rng.random() < 0.5 else ""
    return f"the {kind}{rng.choice(nouns)}{'s' if many else ''}"


def sentence(rng: random.Random) -> str:
    """`Lily sees the yellow ball.`, `The brave dogs go to the river.`"""
    many = rng.random() < 0.4
    subject = noun_phrase(ANIMALS, rng, many) if many or rng.random() < 0.5 else rng.choice(NAMES)
    verb = rng.choice((rng.choice(WITH_OBJECT), rng.choice(WITH_OBJECT), "goes", "is"))
    if verb == "is":
        rest = rng.choice(FEELINGS)
    elif verb == "goes":
        rest = f"to the {rng.choice(PLACES)}"
    else:
        rest = noun_phrase(THINGS, rng)
        rest += f" in the {rng.choice(PLACES)}" if rng.random() < 0.3 else ""
    return f"{subject[0].upper()}{subject[1:]} {VERBS[verb] if many else verb} {rest}."


def make_correct(rng: random.Random) -> Problem:
    """`correct: the dogs runs to teh park =>`; subjects are right, and each error has one correction."""
    right = sentence(rng)
    return Problem("correct", f"correct: {spoil(right, rng)} =>", f" {right}")


def check_correct(problem: Problem, text: str) -> Grade:
    """The first line must be the corrected sentence; the grade names the first wrong word."""
    given, wanted = (lines(text) or [""])[0], problem.answer.strip()
    if given == wanted:
        return Grade(True, "All errors are corrected, and nothing else is changed.")
    pairs = zip(given.split(), wanted.split(), strict=False)
    different = next(((a, b) for a, b in pairs if a != b), None)
    if different is None:
        return Grade(False, f"The sentence has {len(wanted.split())} words, not {len(given.split())}.")
    return Grade(False, f"It must be {different[1]!r}, not {different[0][:40]!r}.")


TASKS = (Task("correct", "Correct the errors of a sentence.", make_correct, check_correct),)
