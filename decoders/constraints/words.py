"""Words that the text must not have, as whole words and whatever their case. Knows bytes, no tokens.

No token may end where a forbidden word is complete: else the mask would only make the model glue letters to
it. So a longer word that begins with a forbidden one is allowed where one token holds both.
"""

import re

from decoders.constraints.problem import ConstraintProblem

IN_WORD = frozenset(b for b in range(256) if b >= 128 or chr(b).isalnum() or b == ord("_"))


def inflected(stem: str) -> list[str]:
    """A word and what regular endings make of it."""
    if stem.endswith("e"):
        return [stem, stem + "s", stem + "d", stem[:-1] + "ing"]
    return [stem, *(stem + ending for ending in ("s", "es", "ed", "ing"))]


def words_of(typed: str) -> list[str]:
    """The forbidden words: separated by commas, lines or |; `look*` stands for look, looks, lookes, looked
    and looking, `like*` for like, likes, liked and liking. Raises ConstraintProblem with one sentence.
    """
    words: list[str] = []
    for piece in filter(None, (piece.strip() for piece in re.split(r"[,|\n]", typed))):
        stem = piece.removesuffix("*")
        if not stem or not (stem[0].isalnum() and stem[-1].isalnum()):
            raise ConstraintProblem(
                f"The forbidden word {piece!r} must begin and end with a letter or a number; change it."
            )
        words += inflected(stem) if piece.endswith("*") else [stem]
    if not words:
        raise ConstraintProblem("The list of forbidden words is empty; type some, such as dog|cat, look*.")
    return list(dict.fromkeys(words))


class WithoutWords:
    """An automaton; see `automaton.Automaton`. A state is what could become a forbidden word: (number of the
    word, letters of it that stand) pairs, and whether a word may begin with the next byte.
    """

    def __init__(self, words: list[str]):
        self.words = [word.lower().encode() for word in words]

    def start(self) -> tuple[frozenset, bool]:
        return frozenset(), True

    def step(self, state: tuple[frozenset, bool], byte: int) -> tuple[frozenset, bool] | None:
        begun, fresh = state
        inside, lower = byte in IN_WORD, byte | 32 if 65 <= byte <= 90 else byte
        if not inside and self._whole(begun):
            return None
        tried = [*begun, *((number, 0) for number in range(len(self.words)) if fresh)]
        goes_on = (
            (number, at + 1)
            for number, at in tried
            if at < len(self.words[number]) and self.words[number][at] == lower
        )
        return frozenset(goes_on), not inside

    def _whole(self, begun: frozenset) -> bool:
        return any(at == len(self.words[number]) for number, at in begun)

    def may_end(self, state: tuple[frozenset, bool]) -> bool:
        return not self._whole(state[0])
