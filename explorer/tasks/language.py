"""A toy language: translation word by word, except that the adjective follows its noun.

Both directions; the vocabulary is made up.
"""

import random

from explorer.tasks.problem import Problem, Task, same_line

NOUNS = {
    "cat": "mira",
    "dog": "hund",
    "bird": "avi",
    "girl": "nela",
    "boy": "palo",
    "tree": "arbo",
    "house": "domu",
    "ball": "bolo",
    "river": "rivo",
    "moon": "luno",
    "king": "rego",
    "fish": "pesko",
}
ADJECTIVES = {
    "big": "gran",
    "small": "peti",
    "red": "ruza",
    "blue": "blua",
    "old": "vexa",
    "happy": "zoli",
    "sad": "trista",
    "good": "bona",
}
VERBS = {
    "sees": "vidas",
    "likes": "amas",
    "finds": "trovas",
    "has": "havas",
    "follows": "sekvas",
    "takes": "prenas",
}
THE = "la"


def phrase(rng: random.Random) -> tuple[list[str], list[str]]:
    """A noun phrase in both languages: `the red cat`, `la mira ruza`."""
    noun = rng.choice(list(NOUNS))
    if rng.random() < 0.5:
        return ["the", noun], [THE, NOUNS[noun]]
    adjective = rng.choice(list(ADJECTIVES))
    return ["the", adjective, noun], [THE, NOUNS[noun], ADJECTIVES[adjective]]


def sentence(rng: random.Random) -> tuple[str, str]:
    """One sentence in both languages, `the red cat sees the dog`, sometimes two joined by `and`."""
    english, toy = [], []
    for part in range(rng.choice((1, 1, 2))):
        if part:
            english.append("and")
            toy.append("e")
        (a, x), (b, y), verb = phrase(rng), phrase(rng), rng.choice(list(VERBS))
        english += [*a, verb, *b]
        toy += [*x, VERBS[verb], *y]
    return " ".join(english), " ".join(toy)


def make_translate(rng: random.Random) -> Problem:
    """`toy: ... =>`: translate from English."""
    english, toy = sentence(rng)
    return Problem("translate", f"toy: {english} =>", f" {toy}")


def make_back(rng: random.Random) -> Problem:
    """`english: ... =>`: translate to English."""
    english, toy = sentence(rng)
    return Problem("translate_back", f"english: {toy} =>", f" {english}")


TASKS = (
    Task(
        "translate",
        "English into a toy language whose adjectives follow their nouns.",
        make_translate,
        same_line,
    ),
    Task("translate_back", "The toy language into English.", make_back, same_line),
)
