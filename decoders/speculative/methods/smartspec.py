"""SmartSpec: the draft length with the most accepted tokens per second, by a model of what forwards cost.

Liu et al. (2024), Optimizing Speculative Decoding for Serving Large Language Models Using Goodput. Times come
from a linear model. Its numbers are fixed, in arbitrary units, so that a run can be repeated, unless the lane
is asked to fit them to this machine's clock, which the paper does beforehand.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean

from decoders.lane import Lane
from decoders.parameters import integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.batched.shared_batch import (
    PROMPTS,
    Text,
    batch_rounds,
    chains,
    draft_chains,
    lines,
    too_long,
    too_many,
)
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.draft_length import Length
from decoders.speculative.forward_times import MEASURED, costs_parameter, forward_seconds, shown
from decoders.speculative.interfaces import Draft, Pair, Verification
from decoders.speculative.theory import expected_tokens
from decoders.trace.number_format import many, number
from decoders.trace.scores import ScoreName

START, KEPT = 0.7, 0.85  # the acceptance assumed at first, and how much of the old one an update keeps
EVERY = 20  # rounds between two decisions
PLAIN_BONUS = 1.1  # the factor by which drafting must beat decoding without a draft
SLACK = 1.1  # a factor for the tokens that the caches must have room for


@dataclass(frozen=True)
class CostModel:
    """Time of a round with k guesses for B texts of some length, linear in what is computed. Its unit is
    arbitrary.
    """

    fixed: float = 10.0  # a target forward
    per_cached: float = 0.002  # for each token in the caches
    per_token: float = 0.25  # for each token that the target evaluates
    draft: float = 0.8  # a draft forward
    draft_per_text: float = 0.02

    def seconds(self, k: int, texts: int, length: int) -> float:
        """The time for drafting k tokens for each text and verifying them."""
        target = self.fixed + self.per_cached * texts * length + self.per_token * texts * (k + 1)
        return target + k * (self.draft + self.draft_per_text * texts)


def line(seconds: dict[int, float]) -> tuple[float, float]:
    """(intercept, slope) of the line through the times of two sizes; the slope is never negative."""
    (small, first), (large, second) = sorted(seconds.items())
    slope = max(0.0, (second - first) / (large - small))
    return max(first - slope * small, 1e-9), slope


def measured_costs(lane: Lane, texts: int, max_drafted: int) -> CostModel:
    """A line per model through forwards timed on this machine: the target's over one token and over the most
    that a round of these texts verifies, the draft's over one token and over one token per text. All are
    timed after the lane's prompt, so the fixed time includes the cost of the cache.
    """
    sizes = {"target": [1, texts * (max_drafted + 1)], "draft": [1, max(2, texts)]}
    seconds = {role: forward_seconds(lane, role, counts) for role, counts in sizes.items()}
    measured = (
        f"a {role} forward takes {' and '.join(f'{shown(s)} over {n}' for n, s in by_size.items())} tokens"
        for role, by_size in seconds.items()
    )
    lane.note(f"Measured here: {', '.join(measured)}.")
    (fixed, per_token), (draft, per_text) = line(seconds["target"]), line(seconds["draft"])
    return CostModel(fixed, 0.0, per_token, draft, per_text)


def goodput(k: int, alpha: float, texts: int, length: int, costs: CostModel) -> float:
    """Expected tokens of a round over its time; favoured by PLAIN_BONUS without a draft."""
    rate = texts * expected_tokens(alpha, k) / costs.seconds(k, texts, length)
    return rate * PLAIN_BONUS if k == 0 else rate


def best_goodput(
    alpha: float, texts: int, length: int, costs: CostModel, max_drafted: int, capacity: int = 0
) -> int:
    """The best k up to `max_drafted`: raised from 0 until the goodput falls or the caches would hold more
    than `capacity` tokens (0: no limit).
    """
    best = 0
    for k in range(1, max_drafted + 1):
        if capacity and texts * (length + k + 1) * SLACK > capacity:
            break
        if goodput(k, alpha, texts, length, costs) < goodput(best, alpha, texts, length, costs):
            break
        best = k
    return best


@dataclass
class Goodput:
    """Decides every EVERY rounds, by the running share of accepted guesses. A decision for no guesses is
    final, since nothing more is learned after it.
    """

    max_drafted: int
    capacity: int = 0
    costs: CostModel = CostModel()
    alpha: float = START
    rounds: int = 0
    k: int = 0

    def decide(self, texts: int, length: int, note: Callable[[str], None]) -> int:
        """Guesses for each of this many texts, which have about `length` tokens, in the coming round."""
        if self.rounds % EVERY == 0:
            self.k = best_goodput(self.alpha, texts, length, self.costs, self.max_drafted, self.capacity)
            note(
                f"For {many(texts, 'text')} at once and an acceptance of {number(self.alpha)}, "
                f"{many(self.k, 'guess', 'guesses')} per round {'promises' if self.k == 1 else 'promise'} "
                "the most tokens for the time."
            )
        self.rounds += 1
        return self.k

    def observe(self, drafted: int, accepted: int) -> None:
        """Takes in the outcome of a round."""
        if drafted:
            self.alpha = KEPT * self.alpha + (1.0 - KEPT) * accepted / drafted


SAYS = (
    "The draft length is the one with the best goodput, accepted tokens per time of a round of the whole "
    "batch."
)


def by_goodput(max_drafted: int) -> Length:
    """The policy for one text."""
    policy = Goodput(max_drafted)
    return Length(
        lambda lane: policy.decide(1, lane.tree.depths[lane.tip] + 1, lane.note), SAYS, observe=policy.observe
    )


def smartspec_pair(parameters: dict) -> Pair:
    """Chains of the length with the best goodput; greedy match at temperature 0, else token rejection."""
    temperature = parameters["temperature"]
    return simplest(chains(temperature, SAYS), temperature)


@draft_and_verify(
    smartspec_pair,
    name="smartspec",
    title="SmartSpec",
    parameters=(
        PROMPTS,
        integer(
            "load",
            0,
            "Number of further texts that are assumed beside the batch, as on a busy server.",
            low=0,
            high=1024,
        ),
        integer("num_assistant_tokens", 8, "Maximum length of a draft in tokens.", low=1, high=32),
        costs_parameter(
            "A fixed model of the cost of forwards, or one fitted to forwards timed at the start."
        ),
        integer("capacity", 0, "Total number of tokens in all caches; 0: no limit.", low=0),
        *GREEDY,
    ),
    papers=("optimizing-speculative-decoding-for-serving-large-language",),
    together=too_many,
    suits=too_long,
    view="batch",
)
def smartspec(lane: Lane) -> Iterator[None]:
    """Chooses the draft length with the best goodput: long when idle, short under load.

    1. The acceptance rate alpha over all texts is tracked: `alpha = .85 alpha + .15 newest`.
    2. With k guesses, a round gives `(1 - alpha^(k+1)) / (1 - alpha)` tokens per text and takes a time that
       grows with the batch. Their quotient is the goodput.
    3. Every 20 rounds k is raised from 0 until the goodput falls: one k for all texts.
    4. One target forward checks the chains of all texts, and each keeps what it accepts.

    The lane's prompt is the first text. `load` is how many more texts are assumed beside those that are
    decoded. The times are those of a fixed linear model, not of this machine, unless `costs` is "measured":
    then the model is fitted to forwards timed when the lane starts, and lengths, and above temperature 0
    drawn texts, may differ from run to run. Each text is the target's whatever the length.
    """
    _, verifier = smartspec_pair(lane.parameters)
    max_drafted = lane.parameters["num_assistant_tokens"]
    policy = Goodput(max_drafted, lane.parameters["capacity"])
    if lane.parameters["costs"] == MEASURED:
        policy.costs = measured_costs(lane, 1 + len(lines(lane.parameters)), max_drafted)

    def propose(texts: list[Text]) -> list[Draft]:
        length = math.ceil(fmean(text.length for text in texts))
        k = policy.decide(len(texts) + lane.parameters["load"], length, lane.note)
        lane.record_measure(lane.tip, ScoreName.DRAFT_LENGTH, k)
        return draft_chains(texts, [k] * len(texts))

    def observe(texts: list[Text], drafts: list[Draft], verifications: list[Verification]) -> None:
        policy.observe(sum(len(draft.nodes) for draft in drafts), sum(len(one.path) for one in verifications))

    yield from batch_rounds(lane, propose, verifier, observe)
