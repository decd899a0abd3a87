"""States of a search over whole texts: their node, their cost, and which of their children wait.

A state is a node of the lane's tree with the sum of its log-probabilities. Children are proposed a few at a
time, most likely first; the next ones follow when the last of these is taken out of the queue. So no child is
lost, and the order is that of a queue that holds all of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import torch

from decoders.lane import Lane
from decoders.search.shaped import shaped
from decoders.trace.scores import ScoreName


@dataclass(slots=True)
class Row:
    """The next tokens of an opened state: the log-probabilities [V] that the search uses, the model's own
    [V], and the tokens proposed so far.

    `rest`: (token, logprob) of all others, most likely first, once they are needed.
    """

    parent: "State"
    logprobs: torch.Tensor
    own: torch.Tensor
    proposed: set[int] = field(default_factory=set)
    rest: Iterator[tuple[int, float]] | None = None

    def next(self, count: int) -> list[tuple[int, float]]:
        """The `count` most likely of the tokens not proposed yet."""
        if self.rest is None:
            values, tokens = self.logprobs.sort(descending=True, stable=True)
            ranked = zip(tokens.tolist(), values.tolist(), strict=True)
            known = frozenset(self.proposed)
            self.rest = (offer for offer in ranked if offer[0] not in known)
        return list(islice(self.rest, count))


@dataclass(slots=True)
class State:
    """A prefix of a text: its newest node, the sum of log p, its length in tokens.

    `row`: on the last of the siblings proposed so far, the source of the less likely ones.
    """

    node: int
    total: float = 0.0
    length: int = 0
    complete: bool = False
    row: Row | None = None


class Space:
    """All texts that may follow a lane's prompt, with scores `sum log p / length ** length_penalty`."""

    def __init__(self, lane: Lane, children: int, length_penalty: float, order: str):
        self.lane, self.children, self.length_penalty, self.order = lane, children, length_penalty, order
        self.max_length = lane.left  # in tokens
        self.root = State(lane.tip)
        self.opened: list[int] = []  # nodes, in the order in which they were opened
        self.logprobs: dict[int, float] = {}

    def score(self, state: State) -> float:
        """The length-normalised sum of a prefix as it stands."""
        return state.total / max(1, state.length) ** self.length_penalty

    def bound(self, state: State) -> float:
        """The largest score that a text with this prefix can have: log-probabilities only fall, and
        dividing by the greatest length helps most.
        """
        return self.score(state) if state.complete else state.total / self.max_length**self.length_penalty

    def priority(self, state: State) -> float:
        """The number by which a queue orders its states."""
        return self.score(state) if self.order == "score" else self.bound(state)

    def open(self, states: list[State]) -> list[State]:
        """One forward over these states; their most likely children, proposed and recorded."""
        nodes = [state.node for state in states]
        own, logprobs = self.read(nodes)  # [N, V]
        self.opened += nodes
        count = min(self.children, logprobs.shape[-1])
        top = logprobs.topk(count, dim=-1)
        offers = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        children = []
        for index, (state, (tokens, values)) in enumerate(zip(states, offers, strict=True)):
            best = sorted(zip(tokens, values, strict=True), key=lambda offer: (-offer[1], offer[0]))
            row = Row(state, logprobs[index], own[index])
            children += self._waited_for(row, self._propose(row, best))
        return children

    def read(self, nodes: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """The model's log-probabilities [N, V] after each node, and those that the search uses."""
        return shaped(self.lane, nodes, self.lane.score(nodes))

    def siblings(self, state: State) -> list[State]:
        """The next less likely siblings of a state that was the last of those proposed; else none."""
        row, state.row = state.row, None
        if row is None:
            return []
        return self._waited_for(row, self._propose(row, row.next(self.children)))

    def _waited_for(self, row: Row, made: list[State]) -> list[State]:
        """The same states. The last of them brings its less likely siblings when it leaves the queue; a text
        that ends early is never chosen for this, since its priority may be lower than that of less likely
        prefixes.
        """
        new = made
        while new and len(row.proposed) < len(row.logprobs):
            usable = [state for state in new if not state.complete or state.length == self.max_length]
            if usable:
                usable[-1].row = row
                break
            new = self._propose(row, row.next(self.children))
            made = made + new
        return made

    def _propose(self, row: Row, offers: list[tuple[int, float]]) -> list[State]:
        """States for (token, logprob) pairs, most likely first; impossible tokens are left out."""
        lane, parent, length, made = self.lane, row.parent, row.parent.length + 1, []
        for token, logprob in offers:
            if logprob < -1e30:
                break
            node = lane.propose(parent.node, token, logprob, slot=len(row.proposed))
            row.proposed.add(token)
            ends = token in lane.eos or length == self.max_length
            state = State(node, parent.total + logprob, length, ends)
            self.logprobs[node] = float(row.own[token])
            parts = {"sum_logprob": state.total, "length": float(length)}
            lane.record_rank(node, ScoreName.PRIORITY, self.priority(state), **parts)
            if ends:
                why = "end of text" if token in lane.eos else f"the limit of {self.max_length} new tokens"
                lane.verdict(node, "finished", reason=why)
            made.append(state)
        return made

    def commit(self, state: State) -> None:
        """Commits the text of a state, and frees the slots of all other branches."""
        lane = self.lane
        path = lane.tree.path(state.node, above=lane.tip)
        lane.drop([node for node in self.opened if node not in path and node != lane.tip])
        lane.commit(path, [self.logprobs[node] for node in path])
