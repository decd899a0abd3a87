"""Where the rounds of a speculative lane ended, and why: one position per round, the first at which no
drafted token was accepted.

Folds a trace; knows events, nothing of strategies or models. What only a model can tell, how the drafter
would have guessed right there, is passed in as `Alone`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from decoders.trace.trace import Trace
from visualizers.analysis.drafted_tokens import row
from visualizers.analysis.lane_stats import REJECTED, LaneFacts

# entropy from which the target is uncertain; q from which the draft is confident
UNSURE_BITS, SURE = 2.0, 0.5
VOCABULARY, TREE, DRIFT, DEPTH, UNSURE, OTHER, BOTH = (
    "not in the draft's vocabulary",
    "not in the tree",
    "drift",
    "depth",
    "target was uncertain",
    "draft was confident of another token",
    "draft was uncertain",
)
SPLITS = {  # in this order: the first that applies
    VOCABULARY: "The draft can never propose the target's token.",
    TREE: "Several tokens were drafted for this position, and the target's was not among them.",
    DRIFT: "Given the target's own features, the same drafter would have been right here.",
    DEPTH: "Asked for the next token alone, the same drafter would have been right here.",
    UNSURE: f"The target's distribution has at least {UNSURE_BITS:g} bits of entropy here.",
    OTHER: f"The target was confident, and the draft gave another token at least {SURE:g}.",
    BOTH: f"The target was confident, and the draft gave none of its tokens {SURE:g}.",
}


@dataclass(frozen=True)
class Alone:
    """What a drafter guesses for each new token of a text after reading all true tokens (and, for a head, the
    target's true features) before it; None where it cannot guess.

    right: whether its most likely token is the text's; known: whether its vocabulary has the text's token;
    `sees_path`: whether its deeper guesses read drafted tokens, so that its features can drift.
    """

    right: Sequence[bool | None]
    known: Sequence[bool]
    sees_path: bool = True


def lost_places(trace: Trace, count: int | None = None, alone: Alone | None = None) -> list[dict]:
    """The places at which the rounds of the first `count` steps ended without all drafted tokens accepted.

    Each is the row of the first rejected token there (`drafted_tokens.row`), with `round`, `step`, `place`
    (of the new token in the text, from 0), `siblings` (tokens that were drafted for it) and `split`, one of
    SPLITS. With `alone` of this very text the splits that need a model are found too.
    """
    facts = LaneFacts(trace, count)
    written = {facts.nodes.parent[token.node]: (at, token.token) for at, token in enumerate(facts.tokens)}
    rows = []
    for number, made in enumerate(facts.rounds, 1):
        accepted_parents = {test.parent for test in made.tests if test.accepted}
        lost = [test for test in made.tests if test.fate == REJECTED and test.parent not in accepted_parents]
        if not lost:
            continue
        first = lost[0]
        place, token = written.get(first.parent, (None, None))
        one = row(facts, made.drafted, first, token)
        siblings = sum(drafted.parent == first.parent for drafted in made.drafted)
        rows.append(one | {"round": number, "step": made.step, "place": place, "siblings": siblings})
        rows[-1]["split"] = split(rows[-1], alone)
    return rows


def split(lost: dict, alone: Alone | None = None) -> str:
    """Why the round ended at a place, one of SPLITS."""
    place = lost["place"]
    measured = alone is not None and place is not None and place < len(alone.right)
    if measured and not alone.known[place]:
        return VOCABULARY
    if lost["siblings"] > 1:
        return TREE
    if measured and lost["depth"] > 1 and alone.right[place]:
        return DRIFT if alone.sees_path else DEPTH
    if lost["entropy"] is not None and lost["entropy"] >= UNSURE_BITS:
        return UNSURE
    return OTHER if lost["q"] is not None and lost["q"] >= SURE else BOTH


def counted(rows: Sequence[dict]) -> dict[str, int]:
    """Places by split, in the order of SPLITS, those that occur."""
    counts = Counter(one["split"] for one in rows)
    return {name: counts[name] for name in SPLITS if counts[name]}
