"""SmartSpec: the draft length with the most accepted tokens a second, by a model of what forwards cost.

Liu et al. (2024), Optimizing Speculative Decoding for Serving Large Language Models Using Goodput. Here one
text of a batch is decoded; the others are assumed to be like it. Times come from a linear model with fixed
numbers, in arbitrary units, and not from this machine's clock, so that a run can be repeated.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from decoders.lane import Lane
from decoders.registry import Parameter, strategy
from decoders.speculative.draft_model import DRAFT_MODEL
from decoders.speculative.lengths import Length, chain
from decoders.speculative.parts import TIMED_VIEWS, Drafter, Verifier, badge, described, drafted
from decoders.speculative.rounds import rounds
from decoders.speculative.sentences import number
from decoders.speculative.shaping import SHAPING
from decoders.speculative.simplest import simplest
from decoders.speculative.theory import expected_tokens

START, KEPT = 0.7, 0.85  # the acceptance assumed at first, and how much of the old one an update keeps
EVERY = 20  # rounds between two decisions
PLAIN_BONUS = 1.1  # no draft must be beaten by this factor
SLACK = 1.1  # of the cache that stays free


@dataclass(frozen=True)
class CostModel:
    """Time of a round with k guesses for B texts of some length, linear in what is computed."""

    fixed: float = 10.0  # a target forward
    per_cached: float = 0.002  # for each token in the caches
    per_token: float = 0.25  # for each token that the target evaluates
    draft: float = 0.8  # a draft forward
    draft_per_text: float = 0.02

    def seconds(self, k: int, texts: int, length: int) -> float:
        """Of drafting k tokens for each text and verifying them."""
        target = self.fixed + self.per_cached * texts * length + self.per_token * texts * (k + 1)
        return target + k * (self.draft + self.draft_per_text * texts)


def goodput(k: int, alpha: float, texts: int, length: int, costs: CostModel) -> float:
    """Expected tokens of a round over its time; favoured by PLAIN_BONUS without a draft."""
    rate = texts * expected_tokens(alpha, k) / costs.seconds(k, texts, length)
    return rate * PLAIN_BONUS if k == 0 else rate


def best_goodput(
    alpha: float, texts: int, length: int, costs: CostModel, most: int, capacity: int = 0
) -> int:
    """The k up to `most`: raised from 0 until the goodput falls or the caches would hold more than `capacity`
    tokens (0: no limit).
    """
    best = 0
    for k in range(1, most + 1):
        if capacity and texts * (length + k + 1) * SLACK > capacity:
            break
        if goodput(k, alpha, texts, length, costs) < goodput(best, alpha, texts, length, costs):
            break
        best = k
    return best


def by_goodput(texts: int, most: int, capacity: int = 0) -> Length:
    """Decides every EVERY rounds, by the running share of accepted guesses. After a decision for no guesses
    nothing more is learnt, so it stands.
    """
    costs, state = CostModel(), {"rounds": 0, "alpha": START, "k": 0}

    def longest(lane: Lane) -> int:
        if state["rounds"] % EVERY == 0:
            length = lane.tree.depths[lane.tip] + 1
            state["k"] = best_goodput(state["alpha"], texts, length, costs, most, capacity)
            many = "1 text" if texts == 1 else f"{texts} texts"
            lane.note(
                f"For {many} at once and an acceptance of {number(state['alpha'])}, {state['k']} guesses a "
                "round promise the most tokens for the time."
            )
        state["rounds"] += 1
        return state["k"]

    def observe(drafted: int, accepted: int) -> None:
        state["alpha"] = KEPT * state["alpha"] + (1.0 - KEPT) * accepted / drafted

    says = "As many as promise the most accepted tokens for the time that a round of the whole batch takes."
    return Length(longest, says, observe=observe)


def parts(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """A chain of the length with the best goodput; greedy match at temperature 0, else token rejection."""
    temperature = parameters["temperature"]
    length = by_goodput(parameters["batch_size"], parameters["num_assistant_tokens"], parameters["capacity"])
    return simplest(drafted(DRAFT_MODEL, chain(length, temperature)), temperature)


@strategy(
    name="smartspec",
    title="SmartSpec",
    family="speculative",
    needs=("target", "draft"),
    parameters=(
        Parameter("batch_size", "int", 1, "Texts that are decoded at once.", low=1, high=1024),
        Parameter("num_assistant_tokens", "int", 8, "Tokens of a draft at most.", low=1, high=32),
        Parameter("capacity", "int", 0, "Tokens that all caches hold together; 0: no limit.", low=0),
        *SHAPING,
    ),
    papers=("optimizing-speculative-decoding-for-serving-large-language",),
    views=TIMED_VIEWS,
    badge=lambda parameters: badge(*parts(parameters)),
    parts=lambda parameters: described(*parts(parameters)),
)
def smartspec(lane: Lane) -> Iterator[None]:
    """Guesses cost the target work, and under load work is dear: the draft is as long as it pays.

    1. The share alpha of accepted guesses is followed: `alpha = .85 alpha + .15 newest`.
    2. For k guesses a round gives `(1 - alpha^(k+1)) / (1 - alpha)` tokens a text and takes a time that
       grows with the batch. The quotient is the goodput.
    3. Every 20 rounds k is raised from 0 until the goodput falls.
    4. The target checks the chain, as in speculative decoding.

    One text of a batch is decoded here; batch_size says how many more are assumed beside it. The times are
    those of a fixed linear model, not of this machine. The text is the target's whatever the length.
    """
    drafter, verifier, _ = parts(lane.parameters)
    yield from rounds(lane, drafter, verifier)
