"""Monitors: static analysis beside the decoder, asleep until a dot or a bracket, then limiting what follows.

Agrawal et al. (2023), Guiding Language Models of Code with Global Context using Monitors. The members of an
object come from an analysis, such as object_language.py.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import torch

from decoders.constraints.automaton import TOKENS, tokens_below, trie_of_bytes
from decoders.constraints.constraint import Constraint
from decoders.constraints.matchers import Vocabulary
from decoders.constraints.object_language import NAME, Analysis, Signature, chain_before

BREAKS = frozenset(code for code in range(128) if not ("abc" + chr(code)).isidentifier())
TRIGGER = ord(".")
MODES = {
    "every character": "A dot or the end of a name inside a token is seen too.",
    "last character": "As published: only the last character of a token triggers the monitor, and what "
    "follows a name in the same token is not checked.",
}
# the text up to a dot -> what may follow it; none if it is not known, None if nothing may
Members = Callable[[str], frozenset[str] | None]


class Watch(NamedTuple):
    """The text so far; `rest`: the possible endings of the unfinished name, None while the monitor is
    inactive.
    """

    text: bytes
    rest: frozenset[bytes] | None


def decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


class MemberMonitor(Constraint):
    """A constraint: only a member that exists may follow a dot."""

    def __init__(
        self, vocabulary: Vocabulary, members: Members, prompt: bytes = b"", mode: str = "every character"
    ):
        self.words, self.vocabulary, self.members = vocabulary, vocabulary.size, members
        self.prompt, self.every = prompt, mode == "every character"
        self.trie = trie_of_bytes(vocabulary)
        self.special = set(vocabulary.special)
        self.dotted = [
            token
            for token, spelling in enumerate(vocabulary.tokens[: self.vocabulary])
            if TRIGGER in spelling and token not in self.special
        ]

    def start(self) -> Watch:
        """The state after the prompt: active if the prompt ends with a dot, or with an unfinished name after
        a dot.
        """
        if not self.every:
            return self._woken(self.prompt) or Watch(self.prompt, None)
        name = 0
        while name < len(self.prompt) and self.prompt[-1 - name] not in BREAKS:
            name += 1
        before = self.prompt[: len(self.prompt) - name]
        state = self._woken(before) or Watch(before, None)
        for byte in self.prompt[len(self.prompt) - name :]:
            state = self._read(state, byte) or Watch(self.prompt, None)
        return Watch(self.prompt, state.rest)

    def _woken(self, text: bytes) -> Watch | None:
        if text[-1:] != b".":
            return Watch(text, None)
        names = self.members(decoded(text))
        if names is None:
            return None if self.every else Watch(text, None)  # as published, it sleeps on
        return Watch(text, frozenset(name.encode() for name in names) or None)

    def _read(self, state: Watch, byte: int) -> Watch | None:
        """The state after one more byte, None if no member continues like that."""
        text = state.text + bytes([byte])
        if state.rest is None:
            return self._woken(text)
        if byte in BREAKS:
            return self._woken(text) if b"" in state.rest else None
        rest = frozenset(name[1:] for name in state.rest if name[:1] == bytes([byte]))
        return Watch(text, rest) if rest else None

    def advance(self, state: Watch, token: int) -> Watch | None:
        if token in self.special or token >= self.vocabulary:
            return None
        spelling = self.words.tokens[token]
        if self.every:
            for byte in spelling:
                if (state := self._read(state, byte)) is None:
                    return None
            return state
        text = state.text + spelling
        if state.rest is None or (self._fits(state.rest, spelling) and BREAKS & set(spelling)):
            return self._woken(text)
        rest = frozenset(name[len(spelling) :] for name in state.rest if name.startswith(spelling))
        return Watch(text, rest) if rest else None

    @staticmethod
    def _fits(rest: frozenset[bytes], spelling: bytes) -> bool:
        """Whether a token begins a name, or completes one and continues with a character that ends names."""
        return any(
            name.startswith(spelling)
            or (spelling.startswith(name) and len(spelling) > len(name) and spelling[len(name)] in BREAKS)
            for name in rest
        )

    def allowed(self, state: Watch) -> torch.Tensor:
        if state.rest is None:
            allowed = torch.ones(self.vocabulary, dtype=torch.bool)
            allowed[[token for token in self.special if token < self.vocabulary]] = False
            if self.every:
                allowed[[token for token in self.dotted if self.advance(state, token) is None]] = False
            return allowed
        allowed = torch.zeros(self.vocabulary, dtype=torch.bool)
        for name in state.rest:
            allowed[self._spelling(name)] = True
        if self.every:  # what stands after the name
            doubtful = [token for token in self.dotted if allowed[token]]
            allowed[[token for token in doubtful if self.advance(state, token) is None]] = False
        return allowed

    def _spelling(self, name: bytes) -> list[int]:
        """The tokens that begin a name, and those that continue after it with a break."""
        node, tokens = self.trie, []
        for byte in name:
            if (node := node.get(byte)) is None:
                return tokens
            tokens += node.get(TOKENS, [])
        for byte, child in node.items():
            if byte in BREAKS:
                tokens += tokens_below(child)
        return tokens

    def accepts(self, state: Watch, token: int) -> bool:
        return self.advance(state, token) is not None

    def may_end(self, state: Watch) -> bool:
        return state.rest is None or b"" in state.rest

    def forced(self, state: Watch) -> list[int]:
        return []


# --- the number of arguments -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bracket:
    """An open bracket: of a call with a known signature, or of anything else. `commas`: those directly inside
    it.
    """

    signature: tuple[int, int] | None
    commas: int = 0
    filled: bool = False


class Calls(NamedTuple):
    """The text so far, the brackets that are open in it, and the quote that is open, 0 for none."""

    text: bytes
    open: tuple[Bracket, ...]
    quote: int


OPENING, CLOSING, QUOTES, COMMA = frozenset(b"([{"), frozenset(b")]}"), frozenset(b"'\""), ord(",")


class ArgumentMonitor(Constraint):
    """A constraint: a call has as many arguments as its function takes."""

    def __init__(self, vocabulary: Vocabulary, call: Callable[[str], Signature | None], prompt: bytes = b""):
        """call: the text up to a bracket -> the signature of what is called, None if it is not known."""
        self.words, self.vocabulary, self.call = vocabulary, vocabulary.size, call
        self.special, watched = set(vocabulary.special), OPENING | CLOSING | QUOTES | {COMMA, ord("\n")}
        self.watched = [
            token
            for token, spelling in enumerate(vocabulary.tokens[: self.vocabulary])
            if watched & set(spelling) and token not in self.special
        ]
        state = Calls(b"", (), 0)
        for byte in prompt:
            state = self._read(state, byte) or Calls(state.text + bytes([byte]), (), 0)
        self.first = state

    def start(self) -> Calls:
        return self.first

    def _read(self, state: Calls, byte: int) -> Calls | None:
        text, brackets, quote = state.text + bytes([byte]), state.open, state.quote
        top = brackets[-1] if brackets else None
        empty = top is not None and not quote and top.signature is not None and not top.signature[1]
        if empty and byte != ord(")") and not chr(byte).isspace():
            return None
        if quote or byte in QUOTES:
            still = 0 if byte in (quote, ord("\n")) else quote or byte
            return Calls(text, self._filled(brackets), still)
        if byte in OPENING:
            known = self.call(decoded(state.text)) if byte == ord("(") else None
            pair = None if known is None else (known.min_arguments, known.max_arguments)
            return Calls(text, (*self._filled(brackets), Bracket(pair)), 0)
        if byte in CLOSING and top is not None:
            count = top.commas + 1 if top.filled else top.commas
            fits = top.signature is None or top.signature[0] <= count <= top.signature[1]
            return Calls(text, brackets[:-1], 0) if fits else None
        if byte == COMMA and top is not None:
            if top.signature is not None and (not top.filled or top.commas + 2 > top.signature[1]):
                return None
            return Calls(text, (*brackets[:-1], Bracket(top.signature, top.commas + 1)), 0)
        return Calls(text, brackets if chr(byte).isspace() else self._filled(brackets), 0)

    @staticmethod
    def _filled(brackets: tuple[Bracket, ...]) -> tuple[Bracket, ...]:
        if not brackets or brackets[-1].filled:
            return brackets
        top = brackets[-1]
        return (*brackets[:-1], Bracket(top.signature, top.commas, True))

    def advance(self, state: Calls, token: int) -> Calls | None:
        if token in self.special or token >= self.vocabulary:
            return None
        for byte in self.words.tokens[token]:
            if (state := self._read(state, byte)) is None:
                return None
        return state

    def allowed(self, state: Calls) -> torch.Tensor:
        allowed = torch.ones(self.vocabulary, dtype=torch.bool)
        allowed[[token for token in self.special if token < self.vocabulary]] = False
        none = state.open and not state.quote and state.open[-1].signature and not state.open[-1].signature[1]
        asked = range(self.vocabulary) if none else self.watched
        allowed[[token for token in asked if self.advance(state, token) is None]] = False
        return allowed

    def accepts(self, state: Calls, token: int) -> bool:
        return self.advance(state, token) is not None

    def may_end(self, state: Calls) -> bool:
        return all(bracket.signature is None for bracket in state.open)

    def forced(self, state: Calls) -> list[int]:
        return []


USED = re.compile(rf"\.({NAME})\b")


def names_used(project: str, text: str, begin: int) -> list[tuple[int, int]]:
    """For each name after a dot that ends in `text` at the position `begin` or later: (where it is declared,
    where it is used), as positions of characters in the text. Names declared in `project` have no position in
    it.
    """
    pairs, above = [], len(project) + 1
    lines = (project + "\n" + text).split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    for match in USED.finditer(text, begin):
        if match.end() == len(text):
            break  # it may continue
        before = text[: match.start()]
        place = Analysis(project + "\n" + before.rpartition("\n")[0]).declared(chain_before(before), match[1])
        if place is not None and (at := starts[place[0]] + place[1] - above) >= 0:
            pairs.append((at, match.start(1)))
    return pairs


def monitored(project: str) -> tuple[Members, Callable[[str], Signature | None]]:
    """The two questions of the monitors, answered by an analysis of the project and of the text so far."""

    @lru_cache(maxsize=64)
    def read(lines: str) -> Analysis:
        return Analysis(project + "\n" + lines)

    def members(text: str) -> frozenset[str] | None:
        lines, _, line = text.removesuffix(".").rpartition("\n")
        chain = chain_before(line)
        return read(lines).members(chain, line.removesuffix(chain)) if chain else frozenset()

    def call(text: str) -> Signature | None:
        line, chain = text.rpartition("\n")[2].split(), chain_before(text)
        if not chain or (len(line) > 1 and line[-2:][0] in ("def", "class")):
            return None
        return read(text.rpartition("\n")[0]).call(chain)

    return members, call
