"""A closed set of token sequences as a trie: a token may follow if some sequence continues with it.

Lists of labels, each used at most once, are in labels.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from decoders.constraints.constraint import Constraint


@dataclass
class TrieNode:
    """A prefix that some sequences share. `ends`: which sequences end here, by their place in the list."""

    children: dict[int, "TrieNode"] = field(default_factory=dict)
    ends: list[int] = field(default_factory=list)


def trie_of(sequences: Iterable[list[int]]) -> TrieNode:
    """The root of a trie. An empty sequence ends at the root."""
    root = TrieNode()
    for number, sequence in enumerate(sequences):
        node = root
        for token in sequence:
            node = node.children.setdefault(token, TrieNode())
        node.ends.append(number)
    return root


class Trie(Constraint):
    """A constraint: the text is one of the sequences. States are trie nodes."""

    def __init__(self, sequences: Iterable[list[int]], vocabulary: int):
        self.vocabulary, self.root = vocabulary, trie_of(sequences)

    def start(self) -> TrieNode:
        return self.root

    def allowed(self, state: TrieNode) -> torch.Tensor:
        allowed = torch.zeros(self.vocabulary, dtype=torch.bool)
        allowed[list(state.children)] = True
        return allowed

    def advance(self, state: TrieNode, token: int) -> TrieNode | None:
        return state.children.get(token)

    def accepts(self, state: TrieNode, token: int) -> bool:
        return token in state.children

    def may_end(self, state: TrieNode) -> bool:
        return bool(state.ends)

    def forced(self, state: TrieNode) -> list[int]:
        run = []
        while not state.ends and len(state.children) == 1:
            ((token, state),) = state.children.items()
            run.append(token)
        return run
