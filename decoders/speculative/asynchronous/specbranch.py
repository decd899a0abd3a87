"""SpecBranch: where the draft is uncertain, its chain ends and it continues in several branches.

Shen et al. (2025), SpecBranch. The predictor of a window's outcome (H-RAD) is heads/scorers/outlook.py; the
target knows which one fits a pair. Above temperature 0 branches are the most likely tokens, and the target
draws its own token, so its distribution is preserved.
"""

import math
from collections.abc import Iterator

from decoders.heads import Outlook
from decoders.heads.scorers.outlook import ALL, NONE, SOME
from decoders.lane import Lane
from decoders.parameters import choice, integer, real
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
from decoders.speculative.interfaces import Draft
from decoders.trace.number_format import number

HEAD, OWN = "trained predictor", "draft's confidence"
FATES = {NONE: "none", SOME: "a part", ALL: "all"}
MISSING = (
    "No predictor comes with the project for the target {!r} and the draft {!r}: the draft's confidence "
    "alone says where to branch. docs/heads.md says how to train one."
)


def branch_count(max_branches: int, confidence: float) -> int:
    """How many branches start at a position where the draft's best token has this probability."""
    return max(1, math.floor(max_branches * (1.0 - confidence)))


def sure_part(lane: Lane, draft: Draft, window: list[int]) -> int:
    """How many tokens of a window precede the position where branches begin: none if all are expected to be
    rejected, all if all are expected to pass; else those before the first one that the draft is unsure of.
    """
    fate = predicted_outcome(lane) if window else None
    if fate == NONE:
        return 0
    limit = 0.0 if fate == ALL else lane.parameters["epsilon"]
    return next((i for i, n in enumerate(window) if draft.probability[n] < limit), len(window))


def predicted_outcome(lane: Lane) -> int | None:
    """What the predictor expects of the window after the newest token; None if there is no predictor."""
    head = None if lane.parameters["predictor"] == OWN else head_of(lane)
    if head is None:
        return None
    # the states from which the newest token was chosen
    streams = lane.scorers["target"].streams(lane.tree.parents[lane.tip])
    scores = head.scores(streams, lane.tree.tokens[lane.tip]).tolist()
    fate = max(range(len(scores)), key=scores.__getitem__)
    lane.note(
        f"The predictor expects {FATES[fate]} of the window to pass, with probability {number(scores[fate])}."
    )
    return fate


def head_of(lane: Lane) -> Outlook | None:
    """The predictor that was trained for exactly this target and this draft."""
    head = lane.models["target"].heads.get("outlook")
    return head if head is not None and head.settings["of"] == lane.models["draft"].name else None


def branches(lane: Lane, draft: Draft, end: int, begun: list[int], room: int) -> list[list[int]]:
    """What the draft writes below `end`: branches, of which the first may have begun."""
    if room < 1 or ended(lane, end):
        return []
    (confidence,) = best_probabilities(lane, end, 1)
    count = branch_count(lane.parameters["max_branches"], confidence)
    forks = fork(lane, draft, end, begun, count)
    where = "A token of the window is in doubt" if begun else "No token of the window is in doubt"
    plural = "es" if len(forks) > 1 else ""
    lane.note(
        f"{where}; the draft's best token there has probability {number(confidence)}: {len(forks)} "
        f"branch{plural}."
    )
    extend_sequences(lane, draft, forks, min(lane.parameters["num_assistant_tokens"], room))
    return forks


@draft_and_verify(
    endless_forks,
    name="specbranch",
    title="SpecBranch",
    parameters=(
        integer("num_assistant_tokens", 4, "Tokens of each branch per round.", low=1, high=32),
        integer(
            "max_branches", 6, "Number of branches where the draft is completely uncertain.", low=1, high=16
        ),
        real(
            "epsilon",
            0.4,
            "A token to which the draft gives a lower probability is uncertain.",
            low=0.0,
            high=1.0,
        ),
        choice("predictor", HEAD, "What decides where a window is cut.", (HEAD, OWN)),
        CONCURRENT,
        *GREEDY,
    ),
    papers=("speculative-decoding-via-hybrid-drafting-and-rollback",),
    view="timeline",
    further_part=schedule,
)
def specbranch(lane: Lane) -> Iterator[None]:
    """While the target verifies the confident part of a window, the draft branches where it is in doubt.

    1. A small trained network reads the states of the target's last layers at the newest token, and predicts
       how much of the pending window will pass: none, a part, or all. If a part, the window is cut before the
       first token with less than epsilon.
    2. The target reads the part before the cut. Meanwhile the draft forks there, into `max(1, floor(k (1 -
       q)))` branches, k being max_branches and q its best probability at that position. Each begins with
       another of its most likely tokens and is continued.
    3. The confident part is tested, then the first tokens of the branches. The branch whose first token
       passes is the next window; the others are discarded.
    4. If a test of the confident part fails, or no branch passes, the target's own token is written and the
       draft starts again: a rollback.

    With one branch and windows that are never cut it is PEARL. Where no predictor was trained for the two
    models, only the draft's confidence decides where to cut. The cut is chosen before the target's forward,
    and the draft draws nothing at random, so the text is the target's.
    """
    _, verifier = endless_forks(lane.parameters)
    if lane.parameters["predictor"] == HEAD:
        if head_of(lane) is None:
            lane.note(MISSING.format(*(lane.models[role].name for role in ("target", "draft"))))
        lane.scorers["target"].taps = head_of(lane) is not None

    def write(draft: Draft, end: int, begun: list[int], room: int) -> list[list[int]]:
        return branches(lane, draft, end, begun, room)

    yield from overlapped(lane, verifier, write, sure_part)
