"""DuoDecoding: while the target verifies a window, the draft writes one long sequence or several short ones.

Lv et al. (2025), DuoDecoding. The paper runs the draft on the CPU and the target on a GPU, and defines the
method at temperature 0 only. Above it, sequences here still consist of the draft's most likely tokens, and
the target draws its own token.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.parameters import integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.asynchronous.branches import (
    best_probabilities,
    ended,
    endless_forks,
    extend_sequences,
    fork,
)
from decoders.speculative.asynchronous.overlapped_rounds import overlapped
from decoders.speculative.asynchronous.pearl import CONCURRENT, schedule
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.forward_times import tokens_per_target_forward
from decoders.speculative.interfaces import Draft
from decoders.trace.number_format import number

MAX_SEQUENCES = 8  # sequences
BUDGETS = (1, 2, 4, 6, 8, 12, 16, 24, 36, 48, 60)  # tokens; numbers with many divisors


def sequence_count(probs: list[float], second: float, budget: int) -> int:
    """How many sequences share the budget. probs: of first tokens, best first; second: of the best token
    after the best first one.

    One sequence, and one more for each further first token that is more likely than the best first token and
    its best successor together; rounded down to a divisor of the budget.
    """
    count = 1
    while count < min(len(probs), MAX_SEQUENCES) and probs[count] > probs[0] * second:
        count += 1
    return max(k for k in range(1, count + 1) if budget % k == 0)


def measured_budget(lane: Lane) -> int:
    """How many tokens the draft writes in the time of one target forward, as the next number of BUDGETS."""
    tokens = tokens_per_target_forward(lane, BUDGETS[-1])
    budget = min(BUDGETS, key=lambda budget: abs(budget - tokens))
    lane.note(f"A budget of {budget} token{'s' * (budget > 1)} per round.")
    return budget


def sequences(lane: Lane, draft: Draft, end: int, room: int, budget: int) -> list[list[int]]:
    """What the draft writes below `end` with a budget of tokens."""
    if room < 1 or ended(lane, end):
        return []
    branches = fork(lane, draft, end, [], 1)
    (first,) = branches[0]
    if budget > 1 and not ended(lane, first):
        probs, (second,) = best_probabilities(lane, end, MAX_SEQUENCES), best_probabilities(lane, first, 1)
        count = sequence_count(probs, second, budget)
        branches = fork(lane, draft, end, branches[0], count)
        likelier = sum(p > probs[0] * second for p in probs[1:])
        lane.note(
            f"The best two tokens have probability {number(probs[0] * second)} together; {likelier} other "
            f"first tokens have more: {count} sequence{'s' * (count > 1)} of {budget // count}."
        )
    extend_sequences(lane, draft, branches, min(budget // len(branches), room))
    return branches


@draft_and_verify(
    endless_forks,
    name="duodecoding",
    title="DuoDecoding",
    parameters=(
        integer(
            "budget",
            12,
            "Tokens that the draft writes per round; 0: as many as it writes in "
            "the time of one target forward, measured here.",
            low=0,
            high=64,
        ),
        CONCURRENT,
        *GREEDY,
    ),
    papers=("duodecoding",),
    view="timeline",
    further_part=schedule,
)
def duodecoding(lane: Lane) -> Iterator[None]:
    """The draft writes ahead during verification, in several sequences where its first token is uncertain.

    1. As in PEARL, the target reads the pending window while the draft continues it.
    2. The draft considers its best first token and the best token after it. Every other first token that is
       more likely than these two together, `p_i > p_1 m`, begins a sequence of its own: at most 8, and as
       many as divide the budget evenly.
    3. All are written in parallel, level by level, each with its share of the budget.
    4. The target tests the window and then the first tokens. The rest of the sequence whose first token
       passes is the next window; the others are discarded.

    The very first round drafts one token, so that the first token of the text is available at once. Drafting
    the budget should take as long as one target forward. With a budget of 0 both models are timed when the
    lane starts, and the budget is the ratio of their times, rounded to a number with many divisors; it may
    differ from run to run. Sequences are the draft's most likely tokens at any temperature, and the target
    draws its own tokens, so the text is the target's.
    """
    _, verifier = endless_forks(lane.parameters)
    budget = lane.parameters["budget"] or measured_budget(lane)

    def write(draft: Draft, end: int, begun: list[int], room: int) -> list[list[int]]:
        return sequences(lane, draft, end, room, budget if lane.written else 1)

    yield from overlapped(lane, verifier, write)
