"""A language given byte by byte, as a constraint over tokens: a token may follow iff each of its bytes may.

The vocabulary is a trie of bytes, walked together with the automaton; dead branches are skipped.
"""

from collections.abc import Hashable
from typing import Protocol

import torch

from decoders.constraints.constraint import Constraint
from decoders.constraints.matchers import Vocabulary

MASKS = 256  # masks that one automaton keeps
TOKENS = -1  # in a node of the trie: the tokens that end there


class Automaton(Protocol):
    """States are immutable; equal states allow the same texts."""

    def start(self) -> Hashable:
        """The state of the empty text."""

    def step(self, state: Hashable, byte: int) -> Hashable | None:
        """The state after one more byte, None if no allowed text continues like that."""

    def may_end(self, state: Hashable) -> bool:
        """Whether the text is allowed as it stands."""


def trie_of_bytes(vocabulary: Vocabulary) -> dict:
    """The tokens that are text as a trie: byte -> child, TOKENS -> [token, ...]; made once per model."""
    if "bytes" not in vocabulary.made:
        root: dict = {}
        special = set(vocabulary.special)
        for token, spelling in enumerate(vocabulary.tokens[: vocabulary.size]):
            if token in special or not spelling:
                continue
            node = root
            for byte in spelling:
                node = node.setdefault(byte, {})
            node.setdefault(TOKENS, []).append(token)
        vocabulary.made["bytes"] = root
    return vocabulary.made["bytes"]


def tokens_below(node: dict) -> list[int]:
    """The tokens that end at a node of a trie of bytes, or below it."""
    stack, tokens = [node], []
    while stack:
        for byte, child in stack.pop().items():
            if byte == TOKENS:
                tokens += child
            else:
                stack.append(child)
    return tokens


class OfBytes(Constraint):
    """A constraint whose language an automaton reads."""

    def __init__(self, automaton: Automaton, vocabulary: Vocabulary, whole: bool = False):
        """whole: allow only tokens after which the text may end."""
        self.automaton, self.words, self.whole = automaton, vocabulary, whole
        self.vocabulary, self.trie = vocabulary.size, trie_of_bytes(vocabulary)
        self.special = set(vocabulary.special)
        self.masks: dict[Hashable, torch.Tensor] = {}

    def start(self) -> Hashable:
        return self.automaton.start()

    def allowed(self, state: Hashable) -> torch.Tensor:
        if state not in self.masks:
            if len(self.masks) >= MASKS:
                self.masks.pop(next(iter(self.masks)))
            self.masks[state] = self._walked(state)
        return self.masks[state].clone()

    def _walked(self, state: Hashable) -> torch.Tensor:
        allowed, step = torch.zeros(self.vocabulary, dtype=torch.bool), self.automaton.step
        tokens, stack = [], [(self.trie, state)]
        while stack:
            node, at = stack.pop()
            for byte, child in node.items():
                if byte == TOKENS:
                    tokens += child if not self.whole or self.automaton.may_end(at) else []
                elif (below := step(at, byte)) is not None:
                    stack.append((child, below))
        allowed[tokens] = True
        return allowed

    def advance(self, state: Hashable, token: int) -> Hashable | None:
        if token in self.special or token >= self.vocabulary or not self.words.tokens[token]:
            return None
        for byte in self.words.tokens[token]:
            if (state := self.automaton.step(state, byte)) is None:
                return None
        return None if self.whole and not self.automaton.may_end(state) else state

    def accepts(self, state: Hashable, token: int) -> bool:
        return self.advance(state, token) is not None

    def may_end(self, state: Hashable) -> bool:
        return self.automaton.may_end(state)

    def forced(self, state: Hashable) -> list[int]:
        """Tokens that are the only allowed one. All spellings of a forced text are allowed, so most runs end
        at once.
        """
        run = []
        while not self.may_end(state) and int((allowed := self.allowed(state)).sum()) == 1:
            run.append(int(allowed.nonzero()[0, 0]))
            state = self.advance(state, run[-1])
        return run
