"""The hypotheses of one beam search in the token tree: which are live, which finished, which branches died.

Shared by beam search and by each group of diverse beam search. Selection and stopping follow transformers
5.23 (`_beam_search`), so that results equal `generate`.
"""

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from decoders.lane import Lane
from decoders.logits.distributions import probabilities
from decoders.parameters import choice, integer, real
from decoders.sampling.next_token import NOTHING_LEFT
from decoders.trace.scores import ScoreName

LENGTH_PENALTY = real(
    "length_penalty",
    1.0,
    "A finished text's score is its log-probability divided by length to this power; 0 ranks by plain sums.",
    low=-10.0,
    high=10.0,
)
EARLY_STOPPING = choice(
    "early_stopping",
    "false",
    "When to stop after num_beams texts have finished. true: at once; false: when no live beam, if it ended "
    "now, would beat the worst of them; never: when no continuation could beat it.",
    ("false", "true", "never"),
)

RETURNED = integer("num_return_sequences", 1, "Finished texts to return.", low=1, high=64)


def too_many_returned(parameters: dict) -> str | None:
    """The message to show if more sequences are asked for than there are beams."""
    beams, wanted = parameters["num_beams"], parameters["num_return_sequences"]
    return (
        f"num_return_sequences is {wanted}, but only {beams} beams are kept; "
        "ask for fewer sequences or more num_beams."
        if wanted > beams
        else None
    )


@dataclass(slots=True)
class Candidate:
    """A continuation under consideration: the sum of its steps' scores, and the penalties included in it."""

    total: float
    penalty: float
    logprob: float
    row: int
    token: int
    may_finish: bool = True  # whether it is among the first `width`


@dataclass(slots=True)
class Hypothesis:
    """A finished text: its last node, the sum of its steps' scores, and that sum divided by length **
    length_penalty. Texts of greater worth come first, whatever their scores.
    """

    node: int
    total: float
    score: float
    worth: float = 1.0


class Beams:
    """Up to `width` live and `width` finished hypotheses below the lane's tip. `group`: its name, if any;
    `added`: the name of the part that the sums include besides log-probabilities, None for none. `bound`: log
    p of a live hypothesis -> the largest sum that a continuation of it can have, for sums that may also rise.
    `worth`: node of a finished text -> its worth; among texts of equal worth the score decides.
    """

    def __init__(
        self,
        lane: Lane,
        width: int,
        group: str | None = None,
        added: str | None = None,
        bound: Callable[[float], float] | None = None,
        worth: Callable[[int], float] | None = None,
    ):
        parameters = lane.parameters
        self.lane, self.width, self.group, self.added = lane, width, group, added
        self.bound, self.worth = bound, worth
        self.draws = bool(parameters.get("do_sample"))  # beam sampling
        self.length_penalty: float = parameters.get("length_penalty", 0.0)
        # one beam is greedy decoding in transformers: the first end of text ends it
        alone = width == 1 and bound is None
        self.early_stopping: str = "true" if alone else parameters.get("early_stopping", "false")
        self.num_candidates = max(2, 1 + len(lane.eos)) * width  # enough that `width` always stay live
        self.length = 0  # tokens in each live hypothesis
        self.live: list[int] = [lane.tip]
        self.totals: list[float] = [0.0]  # of each live hypothesis, best first
        self.penalties: list[float] = [0.0]  # the penalties included in each total
        self.finished: list[Hypothesis] = []  # best first
        self.logprobs: dict[int, float] = {}  # raw, of every candidate that was not dropped at once
        self.needed: dict[int, int] = {}  # node -> children that lead to a live or finished hypothesis

    def _open(self) -> bool:
        """False once no live hypothesis can enter the finished ones, by the rule of early_stopping."""
        if len(self.finished) < self.width:
            return True
        if self.early_stopping == "true" or not self.live:
            return False
        worst = min(ended.score for ended in self.finished)
        if self.early_stopping == "never" and self.bound:
            reach = max(
                self.bound(t + penalty) for t, penalty in zip(self.totals, self.penalties, strict=True)
            )
            # over lengths, reach / length ** penalty is largest at one of the two ends
            ends = (self.length + 1, self.lane.budget)
            return max(reach / n**self.length_penalty for n in ends) > worst
        far = self.early_stopping == "never" and self.length_penalty > 0.0
        length = self.lane.budget if far else self.length
        return self.totals[0] / length**self.length_penalty > worst

    def _best(self, scores: torch.Tensor, logprobs: torch.Tensor) -> list[Candidate]:
        """The candidates considered, best first; ties go to the smaller token, then to the better beam."""
        sums = torch.tensor(self.totals, dtype=scores.dtype, device=scores.device)[:, None] + scores
        flat, vocabulary = sums.flatten(), sums.shape[-1]
        places = self._drawn(flat) if self.draws else flat.topk(min(self.num_candidates, len(flat))).indices
        own = logprobs.flatten()[places].tolist()
        score = own if scores is logprobs else scores.flatten()[places].tolist()
        candidates = []
        for total, index, logprob, s in zip(flat[places].tolist(), places.tolist(), own, score, strict=True):
            row, token = divmod(index, vocabulary)
            if total > -math.inf:
                candidates.append(Candidate(total, self.penalties[row] + logprob - s, logprob, row, token))
        if self.draws:  # the first ones drawn may finish, whatever their probability
            for candidate in candidates[self.width :]:
                candidate.may_finish = False
            return sorted(candidates, key=lambda c: (-c.total, c.token, c.row))
        candidates.sort(key=lambda c: (-c.total, c.token, c.row))
        for candidate in candidates[self.width :]:
            candidate.may_finish = False
        return candidates

    def _drawn(self, sums: torch.Tensor) -> torch.Tensor:
        """Indices into sums [B * V] in the order drawn: without replacement, in proportion to exp(sum)."""
        weights = probabilities(sums[None])[0]
        drawn = []
        for number in range(min(self.num_candidates, int((weights > 0).sum()))):
            drawn.append(self.lane.chooser.categorical(weights, ("sample", self.length, number)).value)
            weights[drawn[-1]] = 0.0
        return torch.tensor(drawn, device=sums.device)

    def advance(
        self, scores: torch.Tensor, logprobs: torch.Tensor, born: dict[tuple[int, int], int] | None = None
    ) -> list[int]:
        """Advances by one position: picks the best continuations and records what became of each candidate.

        scores [B, V] decide, logprobs [B, V] are the target's own; `born`: (live node, token) -> node, for
        children proposed before. Returns the chosen tokens, including those that end a text. Afterwards
        `live` is empty if the search is over.
        """
        born = born or {}
        lane, leaves = self.lane, self.live
        self.length += 1
        candidates = self._best(scores, logprobs)
        nodes = [
            born.pop((leaves[c.row], c.token), None)
            or lane.propose(leaves[c.row], c.token, c.logprob, slot=slot)
            for slot, c in enumerate(candidates)
        ]
        kept, gone, chosen = [], [], []
        for slot, (node, candidate) in enumerate(zip(nodes, candidates, strict=True)):
            ends = self._ends(node, candidate)
            if ends and not candidate.may_finish:
                lane.verdict(node, "pruned", reason=self._why_pruned(candidate, slot, len(candidates), True))
            elif ends:
                gone += self._finish(node, candidate)
            elif self._lives_on(candidate, len(kept)):
                kept.append((node, candidate))
            else:
                lane.verdict(node, "pruned", reason=self._why_pruned(candidate, slot, len(candidates), False))
            if candidate.penalty:
                self.rank(node, candidate.total, candidate.penalty)
            if (ends and candidate.may_finish) or (kept and kept[-1][0] == node):
                chosen.append(candidate.token)
                self.logprobs[node] = candidate.logprob
        for node in born.values():
            lane.verdict(node, "pruned", reason=f"not among the best {len(candidates)}")
        lane.drop(list(born.values()))
        self.live = [node for node, _ in kept]
        self.totals, self.penalties = [c.total for _, c in kept], [c.penalty for _, c in kept]
        self._prune(leaves, gone, "no continuation of it is kept")
        if not self._open():
            leaves, self.live, self.totals, self.penalties = self.live, [], [], []
            self._prune(leaves, [], "the search is over: it could not enter the best finished")
        return chosen

    def _ends(self, node: int, candidate: Candidate) -> bool:
        """Whether the text of a candidate is over: it has ended, or the limit is reached."""
        return self.length == self.lane.budget or self.lane.ends(node)

    def _lives_on(self, candidate: Candidate, kept: int) -> bool:
        """Whether an unfinished candidate stays live when `kept` better ones do."""
        return kept < self.width

    def _enter(self, ended: Hypothesis) -> Hypothesis | None:
        """Adds a text to the finished ones; returns the one that drops out, which may be itself."""
        bisect.insort_right(self.finished, ended, key=lambda h: (-h.worth, -h.score))
        return self.finished.pop() if len(self.finished) > self.width else None

    def _why_pruned(self, candidate: Candidate, slot: int, count: int, ends: bool) -> str:
        """Why the candidate at `slot` of `count`, best first, is not kept; `ends`: its text is over."""
        place = f"rank {slot + 1} of {count}" + (f" in {self.group}" if self.group else "")
        first = "drawn first" if self.draws else "best"
        return (
            f"{place}: only the {self.width} {first} may finish"
            if ends
            else f"{place}, {self.width} are kept"
        )

    def _why_finished(self, node: int, candidate: Candidate) -> str:
        """What ended the text."""
        if self.lane.ends(node):
            return "end of text" if candidate.token in self.lane.eos else "a stop string"
        return f"the limit of {self.lane.budget} new tokens"

    def rank(self, node: int, total: float, penalty: float, rank: int | None = None) -> None:
        """Records the sum by which a hypothesis is chosen, and its parts."""
        if self.added:
            parts = {"sum_logprob": total + penalty, self.added: -penalty}
            self.lane.record_rank(node, ScoreName.AUGMENTED_SUM, total, rank, level=self.group, **parts)
        else:
            self.lane.record_rank(node, ScoreName.SUM_LOGPROB, total, rank)

    def _finish(self, node: int, candidate: Candidate) -> list[int]:
        """Adds a hypothesis to the finished ones if it is good enough; returns the node that dropped out, if
        any.
        """
        lane = self.lane
        score = candidate.total / self.length**self.length_penalty
        ended = Hypothesis(node, candidate.total, score, self.worth(node) if self.worth else 1.0)
        lost = self._enter(ended)
        if lost is ended:
            reason = f"score {ended.score:.4g} is not among the {self.width} best finished"
            lane.verdict(node, "pruned", reason=reason)
            return []
        lane.verdict(node, "finished", reason=self._why_finished(node, candidate))
        parts = {"sum": candidate.total, "length": float(self.length)}
        lane.record_rank(node, ScoreName.LENGTH_PENALISED, ended.score, level=self.group, **parts)
        if lost is None:
            return []
        reason = f"score {lost.score:.4g}: {self.width} better ones have finished"
        lane.verdict(lost.node, "pruned", reason=reason)
        return [lost.node]

    def _prune(self, leaves: list[int], gone: list[int], reason: str) -> None:
        """Prunes branches that no longer lead to a live or finished hypothesis, and frees their slots.

        `leaves` were just expanded (or given up), `gone` are finished hypotheses that dropped out.
        """
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
                self.lane.verdict(node, "pruned", reason=reason)
                node = parents[node]
                if node in needed:
                    needed[node] -= 1
        self.lane.drop(dead)


def rank_live(groups: list[Beams]) -> None:
    """Ranks the live hypotheses of all groups by their sums; 1 is the best."""
    live = [(b.totals[i], b.penalties[i], b.live[i], b) for b in groups for i in range(len(b.live))]
    for rank, (total, penalty, node, beams) in enumerate(sorted(live, key=lambda entry: -entry[0]), 1):
        beams.rank(node, total, penalty, rank)


def close_step(lane: Lane, groups: list[Beams]) -> None:
    """Ranks the live hypotheses and commits what is certain; once the search is over, the best text."""
    rank_live(groups)
    if any(beams.live for beams in groups):
        commit_common_prefix(lane, groups)
    else:
        commit_best_hypothesis(lane, groups)


def commit_common_prefix(lane: Lane, groups: list[Beams]) -> None:
    """Commits the common prefix of all hypotheses that can still win: the live ones and the best finished
    one.
    """
    nodes = [node for beams in groups for node in beams.live]
    nodes += [ended.node for ended in best_finished(groups)[:1]]
    shared = []
    for level in zip(*(lane.tree.path(node, above=lane.tip) for node in nodes), strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    _commit(lane, groups, shared)


def commit_best_hypothesis(lane: Lane, groups: list[Beams]) -> None:
    """Ranks the finished hypotheses of all groups and commits the rest of the best."""
    results = best_finished(groups)
    if not results:
        lane.ended_by = NOTHING_LEFT
        return
    for rank, ended in enumerate(results, 1):
        lane.record_rank(ended.node, ScoreName.LENGTH_PENALISED, ended.score, rank=rank)
    _commit(lane, groups, lane.tree.path(results[0].node, above=lane.tip))


def best_finished(groups: list[Beams]) -> list[Hypothesis]:
    """The finished hypotheses of all groups, best first; ties go to the earlier group."""
    ended = (hypothesis for beams in groups for hypothesis in beams.finished)
    return sorted(ended, key=lambda h: (-h.worth, -h.score))


def _commit(lane: Lane, groups: list[Beams], nodes: list[int]) -> None:
    if nodes:
        logprobs = [next(b.logprobs[node] for b in groups if node in b.logprobs) for node in nodes]
        lane.commit(nodes, logprobs)
