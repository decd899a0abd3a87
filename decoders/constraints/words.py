r"""Words that the text must not contain, and words that it must: whole words, in any case.

A word is a run of letters, numbers and underscores of any script, with their marks; an apostrophe or a hyphen
ends one, as `\w` of Python's `re` has it. Case and accents are compared as folded_text.py says. A character
may be split over tokens: its bytes are held until it is complete, and bytes that never form a character count
as no letter.

No token may end where a forbidden word is complete: else the mask would only make the model glue letters to
it. So a longer word that begins with a forbidden one is allowed where one token holds both. Required words
forbid nothing but the end of a text that lacks one: nothing here makes a model write them.
"""

import re
from codecs import utf_8_decode
from typing import NamedTuple
from unicodedata import combining

import torch

from decoders.constraints.automaton import TOKENS, OfBytes, tokens_below
from decoders.constraints.folded_text import (
    decomposed,
    folded,
    folded_part,
    in_order,
    is_mark,
    is_word,
    spellings,
)
from decoders.constraints.matchers import Vocabulary
from decoders.constraints.problem import ConstraintProblem


def inflected(stem: str) -> list[str]:
    """A word and what regular endings make of it."""
    if stem[-1] in "eE":
        return [stem, stem + "s", stem + "d", stem[:-1] + "ing"]
    return [stem, *(stem + ending for ending in ("s", "es", "ed", "ing"))]


def alternatives(pieces: list[str], what: str) -> list[str]:
    """Typed words, with those that a star stands for. Raises ConstraintProblem with one sentence."""
    words: list[str] = []
    for piece in filter(None, map(str.strip, pieces)):
        stem = piece.removesuffix("*")
        if not (stem and stem[0].isalnum() and (stem[-1].isalnum() or is_mark(stem[-1]))):
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


class Reading(NamedTuple):
    """The words that the text may be in the middle of: `begun` holds (number of the word, how many of its
    letters are written) pairs, and `marks` the marks after these letters, in any order. `fresh`: whether a
    word may begin with the next character; `held`: the first bytes of an unfinished character.
    """

    begun: frozenset[tuple[int, int]] = frozenset()
    marks: str = ""
    fresh: bool = True
    held: bytes = b""


class WordReader:
    """Reads bytes and finds words of a list; it reports their numbers."""

    def __init__(self, words: list[str]):
        self.words = [folded(word) for word in words]
        self.longest = max(map(len, self.words))
        self.by_letter: dict[str, set[tuple[int, int]]] = {}  # the beginnings of words
        for number, word in enumerate(self.words):
            self.by_letter.setdefault(word[0], set()).add((number, 0))
        self.starts = self._first_characters()

    def read(self, state: Reading, byte: int) -> tuple[Reading, frozenset[int]]:
        """The state after one more byte, and which words are now known to have stood before it."""
        if byte < 128 and not state.held:
            return self._character(state, chr(byte))
        found: frozenset[int] = frozenset()
        held = state.held + bytes([byte])
        characters, used = utf_8_decode(held, "replace", False)
        for part in "".join(map(decomposed, characters)):
            state, more = self._character(state, part)
            found |= more
        return state._replace(held=held[used:]), found

    def _character(self, state: Reading, part: str) -> tuple[Reading, frozenset[int]]:
        """Of a character that is not taken apart further."""
        if combining(part):
            kept = bool(state.begun) and len(state.marks) < self.longest  # else no word goes on with them
            begun, marks = (state.begun, state.marks + part) if kept else (frozenset(), "")
            return Reading(begun, marks, state.fresh), frozenset()
        inside = is_word(part) or (is_mark(part) and not state.fresh)
        found = frozenset() if inside else self.whole(state)
        begun, letters = self._settled(state), folded_part(part)
        if state.fresh:
            begun |= self.by_letter.get(letters[0], set())
        return Reading(self._further(begun, letters), "", not inside), found

    def _settled(self, state: Reading) -> frozenset[tuple[int, int]]:
        """The unfinished words, once their marks are read."""
        return self._further(state.begun, "".join(map(folded_part, in_order(state.marks))))

    def _further(self, begun: frozenset[tuple[int, int]], text: str) -> frozenset[tuple[int, int]]:
        further = ((number, at, at + len(text)) for number, at in begun)
        return frozenset((n, end) for n, at, end in further if self.words[n][at:end] == text)

    def whole(self, state: Reading) -> frozenset[int]:
        """Which words are complete if the text ends here."""
        return frozenset(number for number, at in self._settled(state) if at == len(self.words[number]))

    def may_complete(self, state: Reading) -> bool:
        """Whether an unfinished word could become a word of the list; words that begin later do not count."""
        return bool(state.begun) or (state.fresh and state.held in self.starts)

    def _first_characters(self) -> frozenset[bytes]:
        """The bytes that begin the first character of a word, in any of its spellings."""
        spelt = {*self.by_letter, *(c for c, to in spellings().items() if to[0] in self.by_letter)}
        return frozenset(c.encode()[:n] for c in spelt for n in range(1, len(c.encode())))


class WithoutWords:
    """An automaton of all texts without some words; see `automaton.Automaton`."""

    def __init__(self, words: list[str]):
        self.reader = WordReader(words)

    def start(self) -> Reading:
        return Reading()

    def step(self, state: Reading, byte: int) -> Reading | None:
        below, found = self.reader.read(state, byte)
        return None if found else below

    def may_end(self, state: Reading) -> bool:
        return not self.reader.whole(state)


class ForbiddenWords(OfBytes):
    """The constraint. Most tokens can complete no word, so only the others are tried."""

    def __init__(self, words: list[str], vocabulary: Vocabulary):
        super().__init__(WithoutWords(words), vocabulary, whole=True)
        any_word = re.compile("|".join(map(re.escape, self.automaton.reader.words)))
        self.holding = [
            token for token, text in enumerate(folded_tokens(vocabulary)) if any_word.search(text)
        ]
        self.text = text_tokens(vocabulary)

    def _walked(self, state: Reading) -> torch.Tensor:
        allowed = self.text.clone()
        tried = {*self.holding, *self._completing(state)}
        allowed[[token for token in tried if self.advance(state, token) is None]] = False
        return allowed

    def _completing(self, state: Reading) -> list[int]:
        """The tokens that may complete an unfinished word."""
        stack, tokens = [(self.trie, state)], []
        while stack:
            node, at = stack.pop()
            for byte, child in node.items():
                if byte == TOKENS:
                    tokens += child
                elif (below := self.automaton.step(at, byte)) is None:
                    tokens += tokens_below(child)
                elif self.automaton.reader.may_complete(below):
                    stack.append((child, below))
        return tokens


def folded_tokens(vocabulary: Vocabulary) -> list[str]:
    """The tokens without case, made once per model."""
    if "folded" not in vocabulary.made:
        spelt = vocabulary.tokens[: vocabulary.size]
        vocabulary.made["folded"] = [folded(token.decode("utf-8", "replace")) for token in spelt]
    return vocabulary.made["folded"]


def text_tokens(vocabulary: Vocabulary) -> torch.Tensor:
    """Truth values [V]: which tokens are text."""
    special, spelt = set(vocabulary.special), vocabulary.tokens[: vocabulary.size]
    return torch.tensor([bool(text) and token not in special for token, text in enumerate(spelt)])


class WithWords:
    """An automaton of all texts that have a word of each group; see `automaton.Automaton`. A state consists
    of the numbers of the groups that are met, and the reader's state.
    """

    def __init__(self, groups: list[list[str]]):
        self.reader = WordReader([word for group in groups for word in group])
        self.group_of = [number for number, group in enumerate(groups) for _ in group]
        self.groups = frozenset(self.group_of)

    def start(self) -> tuple[frozenset, Reading]:
        return frozenset(), Reading()

    def step(self, state: tuple[frozenset, Reading], byte: int) -> tuple[frozenset, Reading]:
        met, reading = state
        below, found = self.reader.read(reading, byte)
        return met | {self.group_of[number] for number in found}, below

    def may_end(self, state: tuple[frozenset, Reading]) -> bool:
        met, reading = state
        return self.groups <= met | {self.group_of[number] for number in self.reader.whole(reading)}


class RequiredWords(OfBytes):
    """The constraint. Any text may continue; only its end waits for the words."""

    def __init__(self, groups: list[list[str]], vocabulary: Vocabulary):
        super().__init__(WithWords(groups), vocabulary)
        self.text = text_tokens(vocabulary)

    def allowed(self, state: tuple[frozenset, Reading]) -> torch.Tensor:
        return self.text.clone()
