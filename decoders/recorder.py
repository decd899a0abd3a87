"""The methods with which a strategy records what it does (`propose`, `verdict`, `record_score` ...): one
event each.

Knows events and the tokens that occur in them; no strategies and no limits.
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

MIN_LOGPROB = -1e4  # stands for log 0
TOP_FORBIDDEN = 4  # forbidden tokens that are recorded by name; the others are one mass


class Recorder:
    """Records events of the current step, with a lane's tree and trace."""

    tree: Tree
    trace: Trace
    models: dict[str, Any]
    constraint: States | None = None
    records_offers = True  # False if nobody reads the trace: distributions take a fifth of a lane's time
    _events: list[Event]

    def breathe(self) -> None:
        """Called first by each method that may run many times in a step; see `lane.Lane.breathe`."""
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
        self.breathe()
        logprobs = log_softmax(logits) if whole else logits
        if not self.records_offers:
            return logprobs
        unseen = [self.unseen(node) if view == "target" else None for node in nodes]
        counts = [logprobs.shape[-1]] * len(nodes)
        if view != "target" or any(unseen):  # processors or a server may have left tokens out
            counts = (logprobs > -math.inf).sum(-1).tolist()
        for node, offer, among, left_out in zip(nodes, summarise(logprobs), counts, unseen, strict=True):
            top, rest, entropy = offer
            self._meet(token for token, _ in top)
            self._events.append(Distribution(node, view, top, rest, entropy, level, among, unseen=left_out))
        if view == "target" and self.constraint is not None:
            self._record_forbidden(nodes, logprobs)
        return logprobs

    def _record_forbidden(self, nodes: list[int], logprobs: torch.Tensor) -> None:
        """Records what the constraint removes from log-probabilities [N, V]: the most likely forbidden
        tokens, the mass of the other forbidden ones, how many are forbidden, and the entropy of what is left.
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
        """Records a candidate and returns its node: `node` if it is in the tree already, else a new one."""
        self.breathe()
        node = self.tree.add(parent, token) if node is None else node
        self._meet((token,))
        self._events.append(Propose(node, parent, token, logprob, source, slot, fill))
        return node

    def verdict(self, node: int, status: str, **why: Any) -> None:
        """Records what became of a node; `why` holds fields of `Verdict`: p, q, u, reason, into."""
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
        """Records a node's score and the parts it adds up from; rank 1 is the best so far. `level` names the
        group in which it is ranked.
        """
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
        """Records the token at a position in an iteration; `level` names the text where there are several."""
        self.breathe()
        self._meet((token,))
        self._events.append(Cell(position, iteration, token, state, confidence, level, entropy))

    def depend(self, source: int, target: int, weight: float, kind: str) -> None:
        """Records that `target` waited for or came from `source`."""
        self._events.append(Depend(source, target, weight, kind))

    def note(self, text: str) -> None:
        """Records one sentence for the reader."""
        self._events.append(Note(text))

    def _meet(self, tokens: Iterable[int]) -> None:
        vocabulary = self.trace.vocabulary
        for token in tokens:
            if token not in vocabulary:
                vocabulary[token] = self.models["target"].bytes_of(token)
