"""The verbs with which a strategy records what it does: `propose`, `verdict`, `rank` ... each records an
event.

Knows events, and the tokens that occur in them; nothing of models, strategies or limits.
"""

import math
from collections.abc import Iterable
from typing import Any

import torch

from decoders.constraints.constraint import States, masked
from decoders.engine.tree import Tree
from decoders.logits.distributions import entropies, log_softmax, summarise
from decoders.trace.events import Cell, Depend, Distribution, Event, Note, Propose, Score, Verdict
from decoders.trace.trace import Trace

MIN_LOGPROB = -1e4  # stands for the logarithm of nothing
TOP_FORBIDDEN = 4  # tokens that the record of a constraint names; the others are one number


class Recorder:
    """What a lane records with: its tree, its trace and the events of the step under way."""

    tree: Tree
    trace: Trace
    models: dict[str, Any]
    constraint: States | None = None
    records_offers = True  # False for lanes whose traces nobody reads: it takes a fifth of the time
    _events: list[Event]

    def breathe(self) -> None:
        """Each verb that may be used many times in a step does this first; see `lane.Lane.breathe`."""
        raise NotImplementedError

    def unseen(self, node: int) -> float | None:
        """The mass of the tokens that the target's row after a node does not name; None if it names all."""
        return None

    def distribution(
        self,
        nodes: list[int],
        logits: torch.Tensor,
        view: str = "target",
        level: str | None = None,
        whole: bool = True,
    ) -> torch.Tensor:
        """Records what was on offer after each of `nodes`; returns the log-probabilities [N, V]. whole: False
        if `logits` are log-probabilities of some tokens, beside which others may come.
        """
        self.breathe()
        logprobs = log_softmax(logits) if whole else logits
        if not self.records_offers:
            return logprobs
        unseen = [self.unseen(node) if view == "target" else None for node in nodes]
        counts = [logprobs.shape[-1]] * len(nodes)
        if view != "target" or any(unseen):  # processors may have removed some, or a server not named them
            counts = (logprobs > -math.inf).sum(-1).tolist()
        for node, offer, among, left_out in zip(nodes, summarise(logprobs), counts, unseen, strict=True):
            top, rest, entropy = offer
            self._meet(token for token, _ in top)
            self._events.append(Distribution(node, view, top, rest, entropy, level, among, unseen=left_out))
        if view == "target" and self.constraint is not None:
            self._record_forbidden(nodes, logprobs)
        return logprobs

    def _record_forbidden(self, nodes: list[int], logprobs: torch.Tensor) -> None:
        """Records what the constraint removes from rows [N, V]: the most likely forbidden tokens, the mass of
        the others, how many there are, and the entropy of what is left.
        """
        for node, row in zip(nodes, logprobs, strict=True):
            if (mask := self.constraint.mask(node)) is None:
                continue
            left = masked(row[None], [mask])[0]
            forbidden = left == -torch.inf
            removed = row[forbidden]
            top = removed.topk(min(TOP_FORBIDDEN, len(removed)))
            ids = forbidden.nonzero()[:, 0][top.indices].tolist()
            pairs = [[i, v] for i, v in zip(ids, top.values.tolist(), strict=True) if v > -1e30]
            rest = max(0.0, float(removed.double().exp().sum()) - sum(math.exp(v) for _, v in pairs))
            kept = float(left.double().logsumexp(0))
            entropy = float(entropies(log_softmax(left))) if kept > -math.inf else 0.0
            self._meet(token for token, _ in pairs)
            kept = max(kept, MIN_LOGPROB)  # JSON has no infinity
            self._events.append(
                Distribution(node, "forbidden", pairs, rest, entropy, among=len(removed), kept=kept)
            )

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
        """A candidate exists; returns its node: `node` if it stands in the tree already, unrecorded."""
        self.breathe()
        node = self.tree.add(parent, token) if node is None else node
        self._meet((token,))
        self._events.append(Propose(node, parent, token, logprob, source, slot, fill))
        return node

    def verdict(self, node: int, status: str, **why: Any) -> None:
        """What became of a node: p, q, u, reason, into."""
        self.breathe()
        self._events.append(Verdict(node, status, **why))

    def record_score(
        self,
        node: int,
        name: str,
        total: float,
        rank: int | None = None,
        level: str | None = None,
        **parts: float,
    ) -> None:
        """A node was given a score; rank 1 is the best so far. `level` names the group it counts in."""
        self.breathe()
        self._events.append(Score(node, name, total, parts, rank, level))

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
        """What stands at a position in an iteration; `level` names the text, where there are several."""
        self.breathe()
        self._meet((token,))
        self._events.append(Cell(position, iteration, token, state, confidence, level, entropy))

    def depend(self, source: int, target: int, weight: float, kind: str) -> None:
        """`target` waited for or came from `source`."""
        self._events.append(Depend(source, target, weight, kind))

    def note(self, text: str) -> None:
        """One sentence for a person."""
        self._events.append(Note(text))

    def _meet(self, tokens: Iterable[int]) -> None:
        vocabulary = self.trace.vocabulary
        for token in tokens:
            if token not in vocabulary:
                vocabulary[token] = self.models["target"].bytes_of(token)
