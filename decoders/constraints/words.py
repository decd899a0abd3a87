"""Words that the text must not contain, and words that it must: whole words, in any case. Knows bytes and
tokens.

No token may end where a forbidden word is complete: else the mask would only make the model glue letters to
it. So a longer word that begins with a forbidden one is allowed where one token holds both. Required words
forbid nothing but the end of a text that lacks one: nothing here makes a model write them.
"""

import re

import torch

from decoders.constraints.automaton import TOKENS, OfBytes
from decoders.constraints.matchers import Vocabulary
from decoders.constraints.problem import ConstraintProblem

IN_WORD = frozenset(b for b in range(256) if b >= 128 or chr(b).isalnum() or b == ord("_"))


def inflected(stem: str) -> list[str]:
    """A word and what regular endings make of it."""
    if stem.endswith("e"):
        return [stem, stem + "s", stem + "d", stem[:-1] + "ing"]
    return [stem, *(stem + ending for ending in ("s", "es", "ed", "ing"))]


def alternatives(pieces: list[str], what: str) -> list[str]:
    """Typed words, with those that a star stands for. Raises ConstraintProblem with one sentence."""
    words: list[str] = []
    for piece in filter(None, map(str.strip, pieces)):
        stem = piece.removesuffix("*")
        if not stem or not (stem[0].isalnum() and stem[-1].isalnum()):
            raise ConstraintProblem(
                f"The {what} word {piece!r} must begin and end with a letter or a number; change it."
            )
        words += inflected(stem) if piece.endswith("*") else [stem]
    return list(dict.fromkeys(words))


def words_of(typed: str) -> list[str]:
    """The forbidden words: separated by commas, lines or |; `look*` stands for look, looks, lookes, looked
    and looking, `like*` for like, likes, liked and liking. Raises ConstraintProblem with one sentence.
    """
    words = alternatives(re.split(r"[,|\n]", typed), "forbidden")
    if not words:
        raise ConstraintProblem("The list of forbidden words is empty; type some, such as dog|cat, look*.")
    return words


def groups_of(typed: str) -> list[list[str]]:
    """The words that must occur: of each comma or line one of those between |, with the endings that a star
    stands for. Raises ConstraintProblem with one sentence.
    """
    groups = [alternatives(piece.split("|"), "required") for piece in re.split(r"[,\n]", typed)]
    if not any(groups):
        raise ConstraintProblem("The list of required words is empty; type some, such as dog|cat, look*.")
    return [group for group in groups if group]


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


class WithWords:
    """An automaton of all texts that have a word of each group; see `automaton.Automaton`. A state is the
    numbers of the groups that are met, and one of WithoutWords.
    """

    def __init__(self, groups: list[list[str]]):
        self.reader = WithoutWords([word for group in groups for word in group])
        self.group_of = [number for number, group in enumerate(groups) for _ in group]
        self.groups = frozenset(self.group_of)

    def start(self) -> tuple[frozenset, tuple]:
        return frozenset(), self.reader.start()

    def step(self, state: tuple[frozenset, tuple], byte: int) -> tuple[frozenset, tuple]:
        met, (begun, fresh) = state
        if byte not in IN_WORD:
            whole = self._whole(begun)
            met |= {self.group_of[number] for number, _ in whole}
            begun -= whole
        return met, self.reader.step((begun, fresh), byte)

    def _whole(self, begun: frozenset) -> frozenset:
        """What of the words that may stand here is complete."""
        return frozenset((number, at) for number, at in begun if at == len(self.reader.words[number]))

    def may_end(self, state: tuple[frozenset, tuple]) -> bool:
        met, (begun, _) = state
        return self.groups <= met | {self.group_of[number] for number, _ in self._whole(begun)}


class RequiredWords(OfBytes):
    """The constraint. Any text may continue; only its end waits for the words."""

    def __init__(self, groups: list[list[str]], vocabulary: Vocabulary):
        super().__init__(WithWords(groups), vocabulary)
        spelt = self.words.tokens[: self.vocabulary]
        self.text = torch.tensor([bool(text) and t not in self.special for t, text in enumerate(spelt)])

    def allowed(self, state: tuple[frozenset, tuple]) -> torch.Tensor:
        return self.text.clone()
