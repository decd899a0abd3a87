"""What a lane cost, computed from its events, and metrics with vLLM's names. Knows events, no trace."""

import math
from dataclasses import dataclass, field

from decoders.trace.events import DRAFT_ROLES, Commit, Distribution, Forward, Propose, Score, Step, Verdict

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
    "merged",
}
TOTAL_VARIATION = "total variation"  # name of the scores that say how lossy a position was

# Name -> definition, printed wherever a metric is shown.
METRICS = {
    "mean_acceptance_length": "1 + accepted / rounds: tokens gained per round, the target's own included",
    "draft_acceptance_rate": "accepted / proposed: share of the drafted tokens that were accepted",
    "acceptance_histogram": "rounds by number of accepted tokens: entry k counts the rounds that accepted k",
    "per_step_drafted": "drafted tokens, round by round",
    "per_step_accepted": "accepted tokens, round by round",
    "mean_total_variation": "of a relaxed verifier, half the sum of |d - p|, averaged over tested "
    "positions: d is the distribution that the token there was drawn from, p the target's",
}


@dataclass
class Costs:
    """Running totals of a lane.

    Counts are what the strategy requested, as if it were alone; `shared_tokens` of them were not computed
    again. A forward through some of a model's layers counts as that share of a forward, and its tokens as
    that share of tokens, so these four counts are integers unless layers are skipped.

    Not part of `totals()`: `log_kept`, the sum over new tokens of the log of the mass that a constraint kept
    (None without one), and `best_tokens`, the length of the newest candidate of rank 1, for lanes that write
    nothing until they end.
    """

    steps: int = 0
    target_forwards: float = 0
    draft_forwards: float = 0
    lens_forwards: int = 0
    target_tokens: float = 0
    draft_tokens: float = 0
    shared_tokens: int = 0
    proposed: int = 0
    accepted: int = 0
    new_tokens: int = 0
    best_tokens: int = 0
    logprob: float = 0.0
    log_kept: float | None = None
    seconds: float = 0.0
    per_step_drafted: list[int] = field(default_factory=list)
    per_step_accepted: list[int] = field(default_factory=list)
    drafted_nodes: set[int] = field(default_factory=set)
    variations: list[float] = field(default_factory=list)  # total variation at each tested position
    kept: dict[int, float] = field(default_factory=dict)  # node -> log of the mass kept after it
    parents: dict[int, int] = field(default_factory=dict)
    # of rows that list only the most likely tokens: length of the shortest, and largest mass left out
    named: int | None = None
    unseen: float = 0.0
    depths: dict[int, int] = field(default_factory=dict)  # node -> new tokens from the prompt to it

    def add(self, step: Step) -> None:
        """Adds one step. A step that only records the tokens with which a lane begins costs nothing but its
        seconds and lens forwards.
        """
        self.seconds = step.seconds
        if step.index == 0 and any(event.given for event in step.of(Propose)):
            self.lens_forwards += len(step.of(Forward))
            return
        self.steps += 1
        drafted, accepted, verified = 0, 0, False
        for event in step.events:
            if type(event) is Propose:
                self.depths[event.node] = self.depths.get(event.parent, 0) + 1
                self.parents[event.node] = event.parent
            match event:
                case Forward():
                    self._forward(event)
                    verified = verified or event.kind == "verify"
                case Propose() if event.source not in UNTESTED:
                    self.drafted_nodes.add(event.node)
                    drafted += 1
                case Verdict() if event.status == "accepted" and event.node in self.drafted_nodes:
                    accepted += 1
                case Score() if event.name == TOTAL_VARIATION:
                    self.variations.append(event.total)
                case Distribution() if event.unseen is not None:
                    among = len(event.top) if event.among is None else event.among
                    self.named = among if self.named is None else min(self.named, among)
                    self.unseen = max(self.unseen, event.unseen)
                case Score() if event.rank == 1:
                    self.best_tokens = self.depths.get(event.node, self.best_tokens)
                case Distribution() if event.kept is not None:
                    self.kept[event.node] = event.kept
                    self.log_kept = self.log_kept or 0.0
                case Commit():
                    kept = [self.kept[p] for n in event.nodes if (p := self.parents.get(n)) in self.kept]
                    self.log_kept = math.fsum((self.log_kept or 0.0, *kept)) if kept else self.log_kept
                    self.new_tokens += len(event.nodes)
                    self.logprob += math.fsum(x for x in event.logprobs if x is not None)
        self.proposed += drafted
        self.accepted += accepted
        if verified or drafted:  # a first round is labelled "prefill"
            self.per_step_drafted.append(drafted)
            self.per_step_accepted.append(accepted)

    def _forward(self, event: Forward) -> None:
        if event.kind == "lens":
            self.lens_forwards += 1
            return
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
    def mean_total_variation(self) -> float | None:
        """The mean total variation between the target's distribution and that of a relaxed verifier; None if
        none ran.
        """
        return math.fsum(self.variations) / len(self.variations) if self.variations else None

    def metrics(self) -> dict:
        """The speculative metrics by vLLM's names; empty if the lane had no draft-verify round."""
        rounds = len(self.per_step_drafted)
        if not rounds:
            return {}
        histogram = [0] * (max(self.per_step_accepted) + 1)
        for accepted in self.per_step_accepted:
            histogram[accepted] += 1
        lossy = {"mean_total_variation": self.mean_total_variation} if self.variations else {}
        return {
            "mean_acceptance_length": 1 + sum(self.per_step_accepted) / rounds,
            "draft_acceptance_rate": self.accepted / self.proposed if self.proposed else 0.0,
            "acceptance_histogram": histogram,
            "per_step_drafted": list(self.per_step_drafted),
            "per_step_accepted": list(self.per_step_accepted),
            **lossy,
        }


def snapped(number: float) -> float:
    """`number` rounded to an integer if it differs only by floating-point error, else unchanged."""
    whole = round(number)
    return whole if abs(number - whole) < 1e-9 else number
