"""What a lane cost, computed from its events, and metrics with vLLM's names.

A drafted token is one that was sent to the target for verification, as vLLM counts (num_draft_tokens), in the
round that verified it. What a drafter wrote is a candidate; a rerank, a constraint or a rejection before it
may drop a candidate before the target sees it, and then it was not drafted.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from decoders.roles import DRAFT_ROLES
from decoders.trace.endings import inside_the_text, limited
from decoders.trace.events import Commit, Distribution, Forward, Propose, Step, Verdict
from decoders.trace.scores import Measure, Rank, ScoreName

# Sources of nodes that are not drafts for the target to verify: its own tokens, start values, tokens that
# only score a prefix, tokens taken without a test, and parts of a text that is written out of order.
UNTESTED = {
    "target",
    "guess",
    "lookahead",
    "small",
    "prefix",
    "suffix",
    "middle",
    "left to right",
    "placed",
    "constraint",
    "mixture",
    "stream",
    "flow",
    "merged",
}
VERIFYING = ("verify", "decode", "prefill")  # kinds of a target's forward that may verify a draft

# Name -> definition, printed wherever a metric is shown.
METRICS = {
    "mean_acceptance_length": "1 + accepted / rounds: tokens gained per round that sent a draft to the "
    "target, the target's own included",
    "draft_acceptance_rate": "accepted / proposed: share of the tokens sent to the target for verification "
    "that were accepted",
    "acceptance_histogram": "rounds by number of accepted tokens: entry k counts the rounds that accepted k",
    "per_step_drafted": "tokens sent to the target for verification, round by round",
    "per_step_accepted": "accepted tokens, round by round",
    "draft_token_candidates": "tokens that the drafter wrote; some methods drop a part of them before the "
    "target sees it, which vLLM does not count as drafted",
    "cut_rounds": "rounds whose draft reached the limit on new tokens, or in which the text ended inside the "
    "draft: vLLM drafts and accepts past the end",
    "mean_acceptance_length_uncut": "1 + accepted / rounds without the cut rounds, which compares with the "
    "mean of vLLM",
    "mean_total_variation": "of a relaxed verifier, half the sum of |d - p|, averaged over tested "
    "positions: d is the distribution that the token there was drawn from, p the target's",
}


@dataclass(frozen=True)
class DraftRound:
    """A round that sent a draft to the target: its drafted nodes, and how many of them were accepted.
    `deepest`: new tokens from the prompt to the deepest one; `open_end`: whether the last token that the
    round committed was drafted.
    """

    nodes: tuple[int, ...]
    accepted: int
    deepest: int
    open_end: bool


@dataclass
class StepSoFar:
    """What a step has done so far. `before`: verifying forwards before it; `own`: the target's own tokens;
    `sent`: candidates that the target was sent, of which `accepted` passed; `committed`: the newest node that
    it has committed.
    """

    before: int
    own: set[int] = field(default_factory=set)
    sent: list[int] = field(default_factory=list)
    accepted: int = 0
    committed: int | None = None


@dataclass
class Costs:
    """Running totals of a lane.

    Counts are what the strategy requested, as if it were alone; `shared_tokens` of them were not computed
    again. A forward through some of a model's layers counts as that share of a forward, and its tokens as
    that share of tokens, so these four counts are integers unless layers are skipped.

    Not part of `totals()`: `log_kept`, the sum over new tokens of the log of the mass that a constraint kept
    (None without one), `slots`, the KV slots held at the end of the newest step, and `ahead`, the tokens of
    the best candidate that are not final yet.
    """

    steps: int = 0
    target_forwards: float = 0
    draft_forwards: float = 0
    lens_forwards: int = 0
    target_tokens: float = 0
    draft_tokens: float = 0
    shared_tokens: int = 0
    accepted: int = 0
    new_tokens: int = 0
    logprob: float = 0.0  # of the committed tokens whose log-probability is known
    unknown: int = 0  # committed tokens whose log-probability is not
    log_kept: float | None = None
    slots: int | None = None
    best: int | None = None  # node of the newest candidate of rank 1
    tip: int | None = None  # newest committed node
    seconds: float = 0.0
    rounds: list[DraftRound] = field(default_factory=list)
    unsent: dict[int, int] = field(default_factory=dict)  # candidate -> forwards of the target before it
    drafted_nodes: set[int] = field(default_factory=set)  # candidates that were sent to the target
    verifying: int = 0  # forwards of the target that may have verified something
    variations: list[float] = field(default_factory=list)  # total variation at each tested position
    kept: dict[int, float] = field(default_factory=dict)  # node -> log of the mass kept after it
    parents: dict[int, int] = field(default_factory=dict)
    # of rows that list only the most likely tokens: length of the shortest, and largest mass left out
    named: int | None = None
    unseen: float = 0.0
    depths: dict[int, int] = field(default_factory=dict)  # node -> new tokens from the prompt to it
    logprobs: dict[int, float] = field(default_factory=dict)  # node -> its proposer's, where known
    final: set[int] = field(default_factory=set)  # nodes that are committed
    pruned: set[int] = field(default_factory=set)

    def add(self, step: Step) -> DraftRound | None:
        """Adds one step and returns its round, if it sent a draft to the target. A step that only records the
        tokens with which a lane begins costs nothing but its seconds and lens forwards.
        """
        self.seconds, self.slots = step.seconds, step.slots
        if step.index == 0 and any(event.given for event in step.of(Propose)):
            self.lens_forwards += len(step.of(Forward))
            return None
        self.steps += 1
        now = StepSoFar(self.verifying)
        for event in step.events:
            match event:
                case Forward():
                    self._forward(event)
                case Propose():
                    self._propose(event, now)
                case Verdict():
                    self._verdict(event, now)
                case Distribution():
                    self._distribution(event)
                case Commit():
                    self._commit(event, now)
                case Measure(name=ScoreName.TOTAL_VARIATION):
                    self.variations.append(event.total)
                case Rank(rank=1):
                    self.best = event.node
        self.accepted += now.accepted
        self.drafted_nodes.update(now.sent)
        if not now.sent:
            return None
        deepest = max(self.depths[node] for node in now.sent)
        open_end = now.committed in self.drafted_nodes
        self.rounds.append(DraftRound(tuple(now.sent), now.accepted, deepest, open_end))
        return self.rounds[-1]

    def _propose(self, event: Propose, now: StepSoFar) -> None:
        self.parents[event.node] = event.parent
        self.depths[event.node] = self.depths.get(event.parent, 0) + 1
        if event.logprob is not None:
            self.logprobs[event.node] = event.logprob
        if event.source not in UNTESTED:
            self.unsent[event.node] = self.verifying
        elif event.source == "target":
            now.own.add(event.node)

    def _verdict(self, event: Verdict, now: StepSoFar) -> None:
        if event.status == "pruned":
            self.pruned.add(event.node)
        # A target's own token that is tested against a q is the first of its draft (PaSS).
        if event.node in now.own and event.status == "accepted" and event.q is not None:
            self.unsent[event.node] = now.before
        if event.node in self.unsent and self._was_sent(event, now.before, now.committed):
            now.sent.append(event.node)
            now.accepted += event.status == "accepted"
        if event.node in now.sent or event.status == "merged":  # merged: counted as another node
            self.unsent.pop(event.node, None)

    def _distribution(self, event: Distribution) -> None:
        if event.unseen is not None:
            among = len(event.top) if event.among is None else event.among
            self.named = among if self.named is None else min(self.named, among)
            self.unseen = max(self.unseen, event.unseen)
        elif event.kept is not None:
            self.kept[event.node] = event.kept
            self.log_kept = self.log_kept or 0.0

    def _commit(self, event: Commit, now: StepSoFar) -> None:
        kept = [self.kept[p] for n in event.nodes if (p := self.parents.get(n)) in self.kept]
        self.log_kept = math.fsum((self.log_kept or 0.0, *kept)) if kept else self.log_kept
        self.new_tokens += len(event.nodes)
        self.final.update(event.nodes)
        self.logprob += math.fsum(x for x in event.logprobs if x is not None)
        self.unknown += event.logprobs.count(None)
        if event.nodes:
            self.tip = now.committed = event.nodes[-1]

    def _was_sent(self, verdict: Verdict, before: int, committed: int | None) -> bool:
        """Whether this verdict is of a candidate that the target was sent. `before`: how many verifying
        forwards there were before the step; `committed`: the newest node that the step has committed.

        Not sent are candidates pruned before the forward that verifies their round, and those that a draft
        model wrote while the target verified, if they are given up after its commit. Imported rounds have no
        forwards and list only what was sent.
        """
        if verdict.status == "pruned":
            return self.verifying > self.unsent[verdict.node]
        if verdict.status == "never reached" and self.verifying:
            return self.verifying > before and committed is None
        return verdict.status in ("accepted", "rejected", "never reached")

    def _forward(self, event: Forward) -> None:
        if event.kind == "lens":
            self.lens_forwards += 1
            return
        self.verifying += event.model == "target" and event.kind in VERIFYING
        of = "draft" if event.model in DRAFT_ROLES else "target"
        for name, count in ((f"{of}_forwards", 1), (f"{of}_tokens", event.tokens)):
            total = getattr(self, name)
            whole = event.share == 1.0
            setattr(self, name, total + count if whole else snapped(total + event.share * count))
        self.shared_tokens += event.shared

    def totals(self) -> dict:
        """The totals that traces and `--json` list, as plain numbers. `seconds`: the lane's own computing
        time.
        """
        names = (
            "steps",
            "target_forwards",
            "draft_forwards",
            "lens_forwards",
            "target_tokens",
            "draft_tokens",
            "shared_tokens",
            "draft_token_candidates",
            "proposed",
            "accepted",
            "new_tokens",
            "logprob",
            "seconds",
        )
        totals = {name: getattr(self, name) for name in names}
        totals["tokens_per_second"] = self.new_tokens / self.seconds if self.seconds > 0 else 0.0
        return totals

    @property
    def ahead(self) -> list[int]:
        """The nodes of the best candidate that follow the committed ones: what a search would output now,
        though it may still change its mind. Empty if all is final, or if that candidate was given up.
        """
        nodes, node = [], self.best
        while node in self.parents and node not in self.final:
            nodes.append(node)
            node = self.parents[node]
        goes_on = node == self.tip if self.tip is not None else node not in self.parents
        return nodes[::-1] if goes_on and self.best not in self.pruned else []

    @property
    def mean_total_variation(self) -> float | None:
        """The mean total variation between the target's distribution and that of a relaxed verifier; None if
        none ran.
        """
        return math.fsum(self.variations) / len(self.variations) if self.variations else None

    @property
    def draft_token_candidates(self) -> int:
        """Tokens that drafters wrote, those included that were dropped before the target saw them."""
        return len(self.unsent) + len(self.drafted_nodes)

    @property
    def proposed(self) -> int:
        """Drafted tokens: sent to the target for verification."""
        return len(self.drafted_nodes)

    @property
    def per_step_drafted(self) -> list[int]:
        """Drafted tokens of each round that drafted."""
        return [len(made.nodes) for made in self.rounds]

    @property
    def per_step_accepted(self) -> list[int]:
        """Accepted tokens of each round that drafted."""
        return [made.accepted for made in self.rounds]

    def whole_rounds(self, ended: str | None) -> list[DraftRound]:
        """The rounds that the end of the lane did not cut short; `ended`: why the lane is over.

        If a limit on new tokens ended the lane, every round is cut whose draft reached the last position that
        the limit allows a draft. If the text ended inside a draft, the last round is cut: nothing after the
        end was drafted or accepted.
        """
        if limited(ended):
            return [made for made in self.rounds if made.deepest < self.new_tokens - 1]
        if self.rounds and self.rounds[-1].open_end and inside_the_text(ended):
            return self.rounds[:-1]
        return self.rounds

    def metrics(self, ended: str | None = None) -> dict:
        """The speculative metrics by vLLM's names, and those of METRICS that vLLM lacks; empty if no round
        sent a draft to the target. `ended`: why the lane is over, None if it is not; see `whole_rounds`.
        """
        if not self.rounds:
            return {}
        whole = [made.accepted for made in self.whole_rounds(ended)]
        lossy = {"mean_total_variation": self.mean_total_variation} if self.variations else {}
        return {
            "mean_acceptance_length": 1 + self.accepted / len(self.rounds),
            "draft_acceptance_rate": self.accepted / self.proposed,
            "acceptance_histogram": histogram(self.per_step_accepted),
            "per_step_drafted": self.per_step_drafted,
            "per_step_accepted": self.per_step_accepted,
            "draft_token_candidates": self.draft_token_candidates,
            "cut_rounds": len(self.rounds) - len(whole),
            "mean_acceptance_length_uncut": 1 + math.fsum(whole) / len(whole) if whole else None,
            **lossy,
        }


def histogram(accepted: list[int]) -> list[int]:
    """Entry k counts the rounds that accepted k tokens."""
    counts = [0] * (max(accepted) + 1)
    for number in accepted:
        counts[number] += 1
    return counts


def snapped(number: float) -> float:
    """`number` rounded to an integer if it differs only by floating-point error, else unchanged."""
    whole = round(number)
    return whole if abs(number - whole) < 1e-9 else number


def costs_of(steps: Iterable[Step]) -> Costs:
    """The costs of the first steps of a lane."""
    costs = Costs()
    for step in steps:
        costs.add(step)
    return costs
