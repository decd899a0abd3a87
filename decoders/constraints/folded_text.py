"""Text as the lists of words compare it: without case, and with accents spelled in one way.

This is Unicode's canonical caseless matching: characters are decomposed, marks are put into canonical order,
and case is folded, which may change the length (ß becomes ss). A typographic apostrophe becomes a plain one.
"""

from functools import cache
from unicodedata import category, combining, normalize

PLAIN = {"’": "'"}  # signs that keyboards and books spell differently
CHANGING = range(0x80, 0x2FA1E)  # the code points that Unicode takes apart or folds


@cache
def decomposed(character: str) -> str:
    """A character taken apart: a letter, then its marks."""
    return normalize("NFD", PLAIN.get(character, character))


@cache
def folded_part(part: str) -> str:
    """One such part without case."""
    return normalize("NFD", part.casefold())


def folded(text: str) -> str:
    """A text without case."""
    if text.isascii():
        return text.lower()
    return "".join(map(folded_part, normalize("NFD", "".join(PLAIN.get(sign, sign) for sign in text))))


def in_order(marks: str) -> str:
    """Marks that follow one letter, in canonical order."""
    return "".join(sorted(marks, key=combining))


def is_mark(character: str) -> bool:
    """Whether a character belongs to the one before it, as an accent or a vowel sign does."""
    return category(character)[0] == "M"


def is_word(character: str) -> bool:
    r"""Whether a character is a letter, a number or an underscore: `\w` of Python's `re`."""
    return character.isalnum() or character == "_"


@cache
def spellings() -> dict[str, str]:
    """The characters beyond ASCII that are something else when folded, and what they are then."""
    return {c: to for c in map(chr, CHANGING) if (to := normalize("NFD", c).casefold()) != c} | PLAIN
