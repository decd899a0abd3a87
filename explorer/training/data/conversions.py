"""Short conversions that a model of a few hundred thousand parameters can learn byte by byte: a word
backwards, in capitals, a number in words and back, a date in digits.

A problem is a prompt that ends with `=>`, and an answer without a space in front.
"""

import random
from collections.abc import Callable, Sequence

from explorer.tasks.correction import ANIMALS, FEELINGS, KINDS, PLACES, THINGS

ARROW = "=>"
ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
KNOWN = (*ANIMALS, *FEELINGS, *KINDS, *PLACES, *THINGS)
HELD = 10  # every tenth word, number and date is never fed
Problem = tuple[str, str]
Kind = Callable[[random.Random], Problem]


def in_words(number: int) -> str:
    """0 to 999 in words: `one hundred forty-two`."""
    if number >= 100:
        rest = number % 100
        return f"{ONES[number // 100]} hundred" + (f" {in_words(rest)}" if rest else "")
    if number < 20:
        return ONES[number]
    return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")


def held(text: str) -> bool:
    """Whether a word, number or date is reserved for validation: decided by its bytes, so that no list is
    needed.
    """
    return sum(at * byte for at, byte in enumerate(text.encode(), 1)) % HELD == 0


def word(rng: random.Random) -> str:
    """A known word, or three to eight random letters."""
    if rng.random() < 0.2:
        return rng.choice(KNOWN)
    return "".join(rng.choice(LETTERS) for _ in range(rng.randint(3, 7)))


def back(rng: random.Random) -> Problem:
    """A word backwards; the only problem without a name in front."""
    text = word(rng)
    return f"{text}{ARROW}", text[::-1]


def upper(rng: random.Random) -> Problem:
    """A word in capitals."""
    text = word(rng)
    return f"upper {text}{ARROW}", text.upper()


def digits(rng: random.Random) -> Problem:
    """A number in digits."""
    number = rng.randrange(1000)
    return f"digits {in_words(number)}{ARROW}", str(number)


def date(rng: random.Random) -> Problem:
    """A date in the order of ISO 8601."""
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1900, 2099)
    return f"date {day} {MONTHS[month - 1]} {year}{ARROW}", f"{year}-{month:02}-{day:02}"


def turned(rng: random.Random) -> Problem:
    """Three to seven different letters of the first twelve, backwards."""
    text = "".join(rng.sample(LETTERS[:12], rng.randint(3, 7)))
    return f"{text}{ARROW}", text[::-1]


KINDS: tuple[Kind, ...] = (back, upper, digits, date)


def conversions(
    rng: random.Random, count: int, kinds: Sequence[Kind] = KINDS, unseen: bool = False
) -> list[Problem]:
    """`count` problems of these kinds; with `unseen` only ones that are never fed."""
    made = []
    while len(made) < count:
        prompt, answer = rng.choice(kinds)(rng)
        if held(prompt) == unseen:
            made.append((prompt, answer))
    return made
