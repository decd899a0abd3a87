"""Words that the text must not have, as whole words and whatever their case. Knows bytes and tokens.

No token may end where a forbidden word is complete: else the mask would only make the model glue letters to
it. So a longer word that begins with a forbidden one is allowed where one token holds both.
"""

import re

import torch

from decoders.constraints.automaton import TOKENS, OfBytes
from decoders.constraints.grammars import Vocabulary
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


class ForbiddenWords(OfBytes):
    """The constraint. Most tokens can complete no word, so only the others are tried."""

    def __init__(self, words: list[str], vocabulary: Vocabulary):
        super().__init__(WithoutWords(words), vocabulary, whole=True)
        spelt = self.words.tokens[: self.vocabulary]
        any_word = re.compile(b"|".join(map(re.escape, self.automaton.words)))
        self.holding = [token for token, text in enumerate(spelt) if any_word.search(text.lower())]
        self.text = torch.tensor([bool(text) and t not in self.special for t, text in enumerate(spelt)])

    def _walked(self, state: tuple[frozenset, bool]) -> torch.Tensor:
        allowed = self.text.clone()
        completing = (self._begin_with(self.automaton.words[number][at:]) for number, at in state[0])
        tried = {token for tokens in (self.holding, *completing) for token in tokens}
        allowed[[token for token in tried if self.advance(state, token) is None]] = False
        return allowed

    def _begin_with(self, rest: bytes) -> list[int]:
        """The tokens that begin with these letters, whatever their case."""
        nodes, tokens = [self.trie], []
        for byte in rest:
            cases = {byte, ord(chr(byte).upper())} if byte < 128 else {byte}
            nodes = [node[case] for node in nodes for case in cases if case in node]
        while nodes:
            for byte, child in nodes.pop().items():
                if byte == TOKENS:
                    tokens += child
                else:
                    nodes.append(child)
        return tokens
