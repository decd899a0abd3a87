"""What a constraint is, and the states of one along the tree of a lane.

A constraint is a language of texts, asked prefix by prefix: which tokens may follow, so that some allowed
text still begins like this. Its states are immutable, so they travel with beams, drafts and tree nodes.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from decoders.engine.tree import Tree

CACHE_BYTES = 64 << 20  # of masks and states that a lane keeps; what was dropped is computed again
STATE_BYTES = 16 << 10  # what a state is taken to weigh


class Constraint(Protocol):
    """A language over tokens. `advance` leaves the given state unchanged. `notes` are sentences for the
    reader of a lane.
    """

    vocabulary: int
    notes: Sequence[str] = ()

    def start(self) -> Any:
        """The state of the empty text."""

    def allowed(self, state: Any) -> torch.Tensor:
        """Truth values [V]: which tokens may follow. Those that end a text are left out."""

    def advance(self, state: Any, token: int) -> Any | None:
        """The state after one more token, None if the token is not allowed."""

    def accepts(self, state: Any, token: int) -> bool:
        """Whether one token may follow, without computing the mask of all; never called for a token that ends
        a text.
        """

    def may_end(self, state: Any) -> bool:
        """Whether the text is allowed as it stands."""

    def forced(self, state: Any) -> list[int]:
        """The tokens that must come next, since every allowed text continues with their characters."""


FREE = object()  # the state where the constraint says nothing: before and beside the text, and after its end
FORBIDDEN = object()  # the state after a token that was not allowed


class DeadEnd(ValueError):
    """No token can follow: a sentence that ends a lane."""


DEAD_END = (
    "The constraint leaves no token here: it wants more text, and none of the model's tokens spells what it "
    "wants."
)


class States:
    """The states of a constraint at the nodes of a lane's tree; its text begins after `prompt` tokens."""

    def __init__(self, constraint: Constraint, tree: Tree, prompt: int, eos: frozenset[int]):
        self.constraint, self.tree, self.root, self.eos = constraint, tree, prompt - 1, eos
        room = CACHE_BYTES // (STATE_BYTES + constraint.vocabulary)
        self.room = max(room, 64)
        self.known: OrderedDict[int, Any] = OrderedDict()  # node -> state
        self.masks: OrderedDict[int, torch.Tensor] = OrderedDict()  # node -> [V]

    def at(self, node: int) -> Any:
        """The state after a node, or FREE, or FORBIDDEN."""
        above = []  # nodes whose states are not known, the lowest first
        while node not in self.known:
            if node == self.root:
                self._keep(self.known, node, self.constraint.start())
            elif node < self.root:  # in the prompt, or in another text that the lane decodes beside its own
                self._keep(self.known, node, FREE)
            else:
                above.append(node)
                node = self.tree.parents[node]
        state = self.known[node]
        for below in reversed(above):
            state = self._below(state, self.tree.tokens[below])
            self._keep(self.known, below, state)
        return state

    def _below(self, state: Any, token: int) -> Any:
        if state is FREE or state is FORBIDDEN:
            return state
        if token in self.eos:
            return FREE if self.constraint.may_end(state) else FORBIDDEN
        below = self.constraint.advance(state, token)
        return FORBIDDEN if below is None else below

    def mask(self, node: int) -> torch.Tensor | None:
        """Truth values [V]: which tokens may follow a node, ends of text included. None if the constraint
        does not apply there, or no longer applies because an earlier token was not allowed.
        """
        if node not in self.masks:
            state = self.at(node)
            if state is FREE or state is FORBIDDEN:
                return None
            allowed = self.constraint.allowed(state)
            if self.eos:
                allowed[list(self.eos)] = self.constraint.may_end(state)
            self._keep(self.masks, node, allowed)
        return self.masks[node]

    def allows(self, node: int, token: int) -> bool:
        """Whether one token may follow a node; the other tokens are not checked."""
        state = self.at(node)
        if state is FREE or state is FORBIDDEN:
            return True  # as without a mask
        if token in self.eos:
            return self.constraint.may_end(state)
        return token < self.constraint.vocabulary and self.constraint.accepts(state, token)

    def masks_of(self, nodes: list[int]) -> list[torch.Tensor | None]:
        """The masks of several nodes. Raises DeadEnd if none of them has a token left."""
        masks = [self.mask(node) for node in nodes]
        if nodes and all(mask is not None and not mask.any() for mask in masks):
            raise DeadEnd(DEAD_END)
        return masks

    def over(self, node: int) -> bool:
        """Whether the text is allowed at a node and nothing may follow, not even an end-of-text token."""
        if self.eos or (mask := self.mask(node)) is None or bool(mask.any()):
            return False
        return self.constraint.may_end(self.at(node))

    def over_after(self, node: int, token: int) -> bool:
        """The same after one more token, before that token has a node of its own."""
        if self.eos:
            return False
        state = self._below(self.at(node), token)
        if state is FREE or state is FORBIDDEN or self.constraint.allowed(state).any():
            return False
        return self.constraint.may_end(state)

    def forced(self, node: int) -> list[int]:
        """The tokens that must come after a node."""
        state = self.at(node)
        return [] if state is FREE or state is FORBIDDEN else self.constraint.forced(state)

    def _keep(self, cache: OrderedDict[int, Any], node: int, value: Any) -> None:
        cache[node] = value
        if len(cache) > self.room:
            cache.popitem(last=False)


def masked(scores: torch.Tensor, masks: list[torch.Tensor | None]) -> torch.Tensor:
    """Scores [N, V] with -inf where a row's mask [V] forbids the token. A model may have more or fewer rows
    than the constraint has tokens: rows that no token uses are forbidden.
    """
    left = scores.clone()
    width = scores.shape[-1]
    for row, mask in zip(left, masks, strict=True):
        if mask is not None:
            kept = mask[:width].to(row.device)
            row[: len(kept)].masked_fill_(~kept, -torch.inf)
            row[len(kept) :] = -torch.inf
    return left
