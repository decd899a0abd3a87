"""The hypotheses of one beam search in the token tree: which live, which finished, which limbs died.

Shared by beam search and by each group of diverse beam search. Knows scores and nodes, nothing of how the scores
were made. Selection and stopping follow transformers 5.23 (`_beam_search`), so that results equal `generate`.
"""

import bisect
import math
from dataclasses import dataclass

import torch

from decoders.lane import Lane
from decoders.registry import Parameter

LENGTH_PENALTY = Parameter(
    "length_penalty", "float", 1.0,
    "A finished text's score is its log-probability divided by length to this power; 0 ranks by plain sums.",
    low=-10.0, high=10.0,
)  # fmt: skip
EARLY_STOPPING = Parameter(
    "early_stopping", "choice", "false",
    "true: stop once num_beams texts have finished; false: unless a live beam, ended now, would beat the worst "
    "of them; never: unless any continuation could.",
    choices=("false", "true", "never"),
)  # fmt: skip


@dataclass(slots=True)
class Hypothesis:
    """A finished text: its last node, the sum of its steps' scores, and that over length ** length_penalty."""

    node: int
    total: float
    score: float


def best(totals: torch.Tensor, logprobs: torch.Tensor, count: int) -> list[tuple[float, float, int, int]]:
    """The `count` best of totals [B, V], best first, without -inf: (total, log-probability, row, token)."""
    flat = totals.flatten()
    top = flat.topk(min(count, len(flat)))
    raw = logprobs.flatten()[top.indices].tolist()
    width = totals.shape[-1]
    entries = zip(top.values.tolist(), raw, top.indices.tolist(), strict=True)
    return [(total, lp, i // width, i % width) for total, lp, i in entries if total > -math.inf]


class Beams:
    """Up to `width` live and `width` finished hypotheses below the lane's tip."""

    def __init__(self, lane: Lane, width: int):
        parameters = lane.parameters
        self.lane, self.width = lane, width
        self.length_penalty: float = parameters["length_penalty"]
        # one beam is greedy decoding in transformers: the first end of text ends it
        self.early_stopping: str = "true" if width == 1 else parameters["early_stopping"]
        self.looked_at = max(2, 1 + len(lane.eos)) * width  # so many that `width` always live on
        self.length = 0  # tokens in each live hypothesis
        self.live: list[int] = [lane.tip]
        self.totals: list[float] = [0.0]  # of each live one, best first
        self.finished: list[Hypothesis] = []  # best first
        self.logprobs: dict[int, float] = {}  # raw, of every node that was kept or finished
        self.needed: dict[int, int] = {}  # node -> children that lead to a live or finished hypothesis

    @property
    def open(self) -> bool:
        """False once no live hypothesis can enter the finished ones, by the rule that early_stopping names."""
        if not self.live:
            return False
        if len(self.finished) < self.width:
            return True
        if self.early_stopping == "true":
            return False
        far = self.early_stopping == "never" and self.length_penalty > 0.0
        length = self.lane.budget if far else self.length
        return self.totals[0] / length**self.length_penalty > self.finished[-1].score

    def advance(self, totals: torch.Tensor, logprobs: torch.Tensor, **parts: torch.Tensor) -> list[int]:
        """One position: picks the best continuations by totals [B, V] and tells what became of each candidate.

        logprobs [B, V] are the target's own. `parts` (each [B, V]) are named in the scores of the kept nodes.
        Returns the tokens of the new live hypotheses.
        """
        lane, leaves = self.lane, self.live
        self.length += 1
        last = self.length == lane.budget
        candidates = best(totals, logprobs, self.looked_at)
        nodes = [lane.propose(leaves[row], token, lp, slot=slot)
                 for slot, (_, lp, row, token) in enumerate(candidates)]  # fmt: skip
        live, kept, gone = [], [], []
        for slot, (node, (total, logprob, row, token)) in enumerate(zip(nodes, candidates, strict=True)):
            ends = last or token in lane.eos
            place = f"rank {slot + 1} of {len(candidates)}"
            if ends and slot >= self.width:
                lane.verdict(node, "pruned", reason=f"{place}: only the best {self.width} may finish")
            elif ends:
                why = "end of text" if token in lane.eos else f"the limit of {lane.budget} new tokens"
                gone += self._finish(node, total, why)
            elif len(live) < self.width:
                live.append(node)
                kept.append(total)
                named = {name: float(values[row, token]) for name, values in parts.items()}
                lane.rank(node, "sum_logprob", total, rank=len(live), **named)
            else:
                lane.verdict(node, "pruned", reason=f"{place}, {self.width} are kept")
            self.logprobs[node] = logprob
        self.live, self.totals = live, kept
        self._bury(leaves, gone)
        return [lane.tree.tokens[node] for node in live]

    def _finish(self, node: int, total: float, why: str) -> list[int]:
        """Enters a hypothesis into the finished ones if it is good enough; returns the node that fell out."""
        lane = self.lane
        ended = Hypothesis(node, total, total / self.length**self.length_penalty)
        bisect.insort_right(self.finished, ended, key=lambda h: -h.score)
        lost = self.finished.pop() if len(self.finished) > self.width else None
        if lost is ended:
            reason = f"score {ended.score:.4g} is not among the {self.width} best finished"
            lane.verdict(node, "pruned", reason=reason)
            return []
        lane.verdict(node, "finished", reason=why)
        lane.rank(node, "length_penalised", ended.score, sum_logprob=total, length=float(self.length))
        if lost is None:
            return []
        reason = f"score {lost.score:.4g}: {self.width} better ones have finished"
        lane.verdict(lost.node, "pruned", reason=reason)
        return [lost.node]

    def _bury(self, leaves: list[int], gone: list[int]) -> None:
        """Limbs that lead to no live or finished hypothesis any more are pruned and give their slots back."""
        parents, needed = self.lane.tree.parents, self.needed
        needed.update((leaf, 0) for leaf in leaves if leaf >= self.lane.tree.trunk)
        for node in (*self.live, *(h.node for h in self.finished if parents[h.node] in leaves)):
            if parents[node] in needed:
                needed[parents[node]] += 1
        ends = list(leaves)
        for parent in (parents[node] for node in gone):
            if parent in needed and parent not in leaves:
                needed[parent] -= 1
                ends.append(parent)
        dead = []
        for node in ends:
            while needed.get(node) == 0:
                del needed[node]
                dead.append(node)
                self.lane.verdict(node, "pruned", reason="no continuation of it is kept")
                node = parents[node]
                if node in needed:
                    needed[node] -= 1
        self.lane.drop(dead)


def settle(lane: Lane, groups: list[Beams]) -> None:
    """Commits what all hypotheses share that can still win: the live ones and the best finished one."""
    nodes = [node for beams in groups for node in beams.live]
    nodes += [ended.node for ended in best_finished(groups)[:1]]
    shared = []
    for level in zip(*(lane.tree.path(node, above=lane.tip) for node in nodes), strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    _commit(lane, groups, shared)


def conclude(lane: Lane, groups: list[Beams]) -> None:
    """Ranks the finished hypotheses, prunes the live ones, and commits the rest of the best."""
    for node in (node for beams in groups for node in beams.live):
        lane.verdict(node, "pruned", reason="the search ended: it could not enter the best finished")
    results = best_finished(groups)
    for rank, ended in enumerate(results, 1):
        lane.rank(ended.node, "length_penalised", ended.score, rank=rank)
    _commit(lane, groups, lane.tree.path(results[0].node, above=lane.tip))


def best_finished(groups: list[Beams]) -> list[Hypothesis]:
    """The finished hypotheses of all groups, best first; ties go to the earlier group."""
    return sorted((ended for beams in groups for ended in beams.finished), key=lambda h: -h.score)


def _commit(lane: Lane, groups: list[Beams], nodes: list[int]) -> None:
    if nodes:
        logprobs = [next(b.logprobs[node] for b in groups if node in b.logprobs) for node in nodes]
        lane.commit(nodes, logprobs)
