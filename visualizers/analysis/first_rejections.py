"""Where the drafts of a speculative lane were rejected, and why: at most one position per round, the first at
which no drafted token was accepted.

Folds a trace; knows events, nothing of strategies or models. What only a model can tell, the drafter's guess
at that position given the true tokens before it, is passed in as `Alone`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from decoders.trace.trace import Trace
from visualizers.analysis.drafted_tokens import row
from visualizers.analysis.lane_stats import REJECTED, LaneFacts

UNSURE_BITS = 2.0  # entropy from which the target is uncertain
SURE = 0.5  # q from which the draft is confident
VOCABULARY, TREE, DRIFT, DEPTH, UNSURE, OTHER, BOTH = (
    "not in the draft's vocabulary",
    "not in the tree",
    "drift",
    "depth",
    "target was uncertain",
    "draft was confident in another token",
    "draft was uncertain",
)
SPLITS = {  # in this order: the first that applies
    VOCABULARY: "The draft can never propose the target's token.",
    TREE: "Several tokens were drafted for this position, and the target's was not among them.",
    DRIFT: "Given the target's own features, the same drafter would have been right here.",
    DEPTH: "Asked for the next token alone, the same drafter would have been right here.",
    UNSURE: f"The target's distribution has at least {UNSURE_BITS:g} bits of entropy here.",
    OTHER: f"The target was confident, and the draft gave another token at least {SURE:g}.",
    BOTH: f"The target was confident, and the draft gave no token {SURE:g} or more.",
}


@dataclass(frozen=True)
class Alone:
    """A drafter's guess for each new token of a text, given all true tokens before it (and, for a head, the
    target's true features); None where it cannot guess.

    right: whether its most likely token is the text's; known: whether its vocabulary has the text's token;
    sees_path: whether its deeper guesses read drafted tokens, so that its features can drift.
    """

    right: Sequence[bool | None]
    known: Sequence[bool]
    sees_path: bool = True


def first_rejections(trace: Trace, count: int | None = None, alone: Alone | None = None) -> list[dict]:
    """The rejection of each round of the first `count` steps (None: all) whose draft was not fully accepted.

    Each is the row of the first token rejected at that position (`drafted_tokens.row`), with `round`, `step`,
    `place` (the position in the new text, from 0), `siblings` (tokens drafted for it) and `split`, one of
    SPLITS. The causes that need a model are found only with `alone` for the same text.
    """
    facts = LaneFacts(trace, count)
    written = {facts.nodes.parent[token.node]: (at, token.token) for at, token in enumerate(facts.tokens)}
    rows = []
    for number, made in enumerate(facts.rounds, 1):
        accepted_parents = {test.parent for test in made.tests if test.accepted}
        rejected = [t for t in made.tests if t.fate == REJECTED and t.parent not in accepted_parents]
        if not rejected:
            continue
        first = rejected[0]
        place, token = written.get(first.parent, (None, None))
        one = row(facts, made.drafted, first, token)
        siblings = sum(drafted.parent == first.parent for drafted in made.drafted)
        rows.append(one | {"round": number, "step": made.step, "place": place, "siblings": siblings})
        rows[-1]["split"] = split(rows[-1], alone)
    return rows


def split(rejection: dict, alone: Alone | None = None) -> str:
    """The cause of a rejection, one of SPLITS."""
    place = rejection["place"]
    measured = alone is not None and place is not None and place < len(alone.right)
    if measured and not alone.known[place]:
        return VOCABULARY
    if rejection["siblings"] > 1:
        return TREE
    if measured and rejection["depth"] > 1 and alone.right[place]:
        return DRIFT if alone.sees_path else DEPTH
    if rejection["entropy"] is not None and rejection["entropy"] >= UNSURE_BITS:
        return UNSURE
    return OTHER if rejection["q"] is not None and rejection["q"] >= SURE else BOTH


def counted(rows: Sequence[dict]) -> dict[str, int]:
    """Number of rejections by cause, in the order of SPLITS; only causes that occur."""
    counts = Counter(one["split"] for one in rows)
    return {name: counts[name] for name in SPLITS if counts[name]}
