"""The methods with which a strategy records what it does (`propose`, `verdict`, `record_rank` ...): one
event each.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from decoders.engine.tree import Tree
from decoders.logits.distributions import log_softmax, summarise
from decoders.observer import Observer
from decoders.own_code import Stack
from decoders.trace.events import Cell, Depend, Distribution, Event, Note, Propose, Verdict
from decoders.trace.reasons import Code, Reason
from decoders.trace.scores import Measure, Rank, Span, Table
from decoders.trace.trace import Trace


class Recorder:
    """Records the events of the step that runs, with a lane's tree and trace."""

    records_offers = True  # False if nobody reads the trace: distributions take a fifth of a lane's time
    observers: Sequence[Observer] = ()

    def __init__(self, tree: Tree, trace: Trace, bytes_of: Callable[[int], bytes]):
        """bytes_of: the target's. The trace holds the bytes of all tokens that occur in it."""
        self.tree, self.trace, self._bytes_of = tree, trace, bytes_of
        self.events: list[Event] = []
        self.spell(tree.tokens)

    def record(self, *events: Event, code: Stack | None = None) -> None:
        """Records events of the step that runs, in order. `code`: see `lane.Lane.record`."""
        self.events += events

    def check_limits(self) -> None:
        """Called first by each method that may run many times in a step; see `lane.Lane.check_limits`."""
        raise NotImplementedError

    def unseen(self, node: int) -> float | None:
        """The probability of the tokens that the target's row after a node leaves out; None if it has all."""
        return None

    def distribution(
        self,
        nodes: list[int],
        logits: torch.Tensor,
        view: str = "target",
        level: str | None = None,
        whole: bool = True,
    ) -> torch.Tensor:
        """Records the distribution after each of `nodes`, given logits [N, V]; returns log-probabilities [N,
        V]. whole: False if `logits` are log-probabilities already and need not sum to 1.
        """
        self.check_limits()
        logprobs = log_softmax(logits) if whole else logits
        if not self.records_offers:
            return logprobs
        unseen = [self.unseen(node) if view == "target" else None for node in nodes]
        counts = [logprobs.shape[-1]] * len(nodes)
        if view != "target" or any(unseen):  # processors or a server may have left tokens out
            counts = (logprobs > -math.inf).sum(-1).tolist()
        for node, offer, among, left_out in zip(nodes, summarise(logprobs), counts, unseen, strict=True):
            top, rest, entropy = offer
            self.spell(token for token, _ in top)
            self.record(Distribution(node, view, top, rest, entropy, level, among, unseen=left_out))
        if view == "target":
            for observer in self.observers:
                observer.predicted(self, nodes, logprobs)
        return logprobs

    def propose(
        self,
        parent: int,
        token: int,
        logprob: float | None,
        source: str = "target",
        slot: int = 0,
        fill: str | None = None,
        node: int | None = None,
    ) -> int:
        """Records a candidate and returns its node: `node` if it is in the tree already, else a new one."""
        self.check_limits()
        node = self.tree.add(parent, token) if node is None else node
        self.spell((token,))
        self.record(Propose(node, parent, token, logprob, source, slot, fill))
        return node

    def verdict(
        self, node: int, status: str, why: Sequence[Reason] = (), code: Stack | None = None, **fields: Any
    ) -> None:
        """Records what became of a node, and why: codes with numbers, or a sentence of the strategy's own in
        `reason`. fields: of `Verdict`, such as p, q, u, reason, into. `code`: where it was decided, if not
        here.
        """
        self.check_limits()
        self.spell(one.numbers["preferred"] for one in why if one.code is Code.OTHER_PREFERRED)
        self.record(Verdict(node, status, why=tuple(why), **fields), code=code)

    def record_rank(
        self,
        node: int,
        name: str,
        total: float,
        rank: int | None = None,
        level: str | None = None,
        *,
        number: int | None = None,
        units: list[int] | None = None,
        **parts: float,
    ) -> None:
        """Records what a candidate is ranked by, and the parts it adds up from; rank 1 is the best so far.
        `level` names the group in which it is ranked.
        """
        self.check_limits()
        self.record(Rank(node, name, total, parts, level, number, rank, units))

    def record_measure(
        self,
        node: int,
        name: str,
        total: float,
        *,
        level: str | None = None,
        number: int | None = None,
        limit: float | None = None,
        scale: float | None = None,
        **parts: float,
    ) -> None:
        """Records a value at a node. It was compared with `limit`, or lies between 0 and `scale`."""
        self.check_limits()
        self.record(Measure(node, name, total, parts, level, number, limit, scale))

    def record_table(
        self,
        node: int,
        name: str,
        total: float,
        rows: dict[int, float],
        unit: str,
        *,
        level: str | None = None,
        number: int | None = None,
        chosen: int | None = None,
        **parts: float,
    ) -> None:
        """Records values by number, of what `unit` says."""
        self.check_limits()
        listed = [[float(at), value] for at, value in rows.items()]
        self.record(Table(node, name, total, parts, level, number, unit, listed, chosen))

    def record_span(self, name: str, total: float, number: int, first: int, last: int) -> None:
        """Records a stretch of the prompt, at its last token."""
        self.record(Span(last, name, total, number=number, first=first, last=last))

    def cell(
        self,
        position: int,
        iteration: int,
        token: int,
        state: str,
        confidence: float | None = None,
        level: str | None = None,
        entropy: float | None = None,
    ) -> None:
        """Records the token at a position in an iteration; `level` names the text where there are several."""
        self.check_limits()
        self.spell((token,))
        self.record(Cell(position, iteration, token, state, confidence, level, entropy))

    def depend(self, source: int, target: int, weight: float, kind: str) -> None:
        """Records that `target` waited for or came from `source`."""
        self.record(Depend(source, target, weight, kind))

    def note(self, text: str) -> None:
        """Records one sentence for the reader."""
        self.record(Note(text))

    def spell(self, tokens: Iterable[int]) -> None:
        """The trace will name these tokens: it keeps their bytes."""
        vocabulary = self.trace.vocabulary
        for token in tokens:
            if token not in vocabulary:
                vocabulary[token] = self._bytes_of(token)
