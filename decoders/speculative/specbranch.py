"""SpecBranch: the draft stops being followed where it is in doubt, and goes on there in several branches.

Shen et al. (2025), SpecBranch. The paper's trained predictor of how a window will fare (H-RAD, three classes)
is replaced by a rule, the draft's own confidence. Above temperature 0 branches are the likeliest tokens,
among which the target draws for itself.
"""

import math
from collections.abc import Iterator

from decoders.lane import Lane
from decoders.registry import Parameter, strategy
from decoders.speculative.forks import best_chances, ended, endless_forks, fork, grow
from decoders.speculative.parts import Draft, badge, described
from decoders.speculative.pearl import CONCURRENT, schedule
from decoders.speculative.sentences import number
from decoders.speculative.shaping import SHAPING
from decoders.speculative.windows import overlapped


def branch_count(most: int, confidence: float) -> int:
    """How many branches leave a place where the draft's best token has this probability."""
    return max(1, math.floor(most * (1.0 - confidence)))


def sure_part(lane: Lane, draft: Draft, window: list[int]) -> int:
    """How many tokens of a window stand before the first one that the draft doubts; all if it doubts none."""
    limit = lane.parameters["epsilon"]
    return next((i for i, n in enumerate(window) if draft.chance[n] < limit), len(window))


def branches(lane: Lane, draft: Draft, end: int, begun: list[int], room: int) -> list[list[int]]:
    """What the draft writes below `end`: branches, of which the first may have begun."""
    if room < 1 or ended(lane, end):
        return []
    (confidence,) = best_chances(lane, end, 1)
    count = branch_count(lane.parameters["max_branches"], confidence)
    found = fork(lane, draft, end, begun, count)
    where = "A token of the window is in doubt" if begun else "No token of the window is in doubt"
    plural = "es" if len(found) > 1 else ""
    lane.note(f"{where}; the best one there has {number(confidence)}: {len(found)} branch{plural}.")
    grow(lane, draft, found, min(lane.parameters["num_assistant_tokens"], room))
    return found


@strategy(
    name="specbranch",
    title="SpecBranch",
    family="speculative",
    needs=("target", "draft"),
    parameters=(
        Parameter("num_assistant_tokens", "int", 4, "Tokens of each branch in a round.", low=1, high=32),
        Parameter("max_branches", "int", 6, "Branches where the draft knows nothing.", low=1, high=16),
        Parameter(
            "epsilon", "float", 0.4, "A token to which the draft gave less is in doubt.", low=0.0, high=1.0
        ),
        CONCURRENT,
        *SHAPING,
    ),
    views=("timeline", "draft_tree", "draft_round", "entropy", "dependencies", "text"),
    badge=lambda parameters: badge(*endless_forks(parameters)),
    parts=lambda parameters: [*described(*endless_forks(parameters)), schedule(parameters)],
)
def specbranch(lane: Lane) -> Iterator[None]:
    """While the target reads the sure part of a window, the draft branches where it is in doubt.

    1. The window that waits is cut before the first token with less than epsilon: the part before is sure.
       Without such a token all of it is. The paper asks a small trained network here.
    2. The target reads the sure part. Meanwhile the draft forks behind it, at the token in doubt or at the
       first one after the window, into `max(1, floor(k (1 - q)))` branches, k being max_branches and q its
       best probability there. Each begins with another of its likeliest tokens and is written on.
    3. The sure part is tested, then the first tokens of the branches. The branch whose first token passes is
       the next window; the others are thrown away.
    4. If a test of the sure part fails, or no branch passes, the target's own token is written and the draft
       starts anew: a rollback.

    One branch and epsilon 0 make it PEARL. Which tokens are in doubt is known before the target speaks, and
    nothing is drawn by the draft, so the text is the target's.
    """
    _, verifier, _ = endless_forks(lane.parameters)

    def write(draft: Draft, end: int, begun: list[int], room: int) -> list[list[int]]:
        return branches(lane, draft, end, begun, room)

    yield from overlapped(lane, verifier, write, sure_part)
