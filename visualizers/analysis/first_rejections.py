"""Where the drafts of a speculative lane were rejected, and why: at most one position per round, the first at
which no drafted token was accepted.

Folds a trace. Only a model can tell what the drafter would have guessed at that position given the true
tokens before it: that is passed in as `Alone`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from decoders.trace.trace import Trace
from visualizers.analysis.drafted_tokens import row, untold
from visualizers.analysis.lane_stats import REJECTED, LaneFacts
from visualizers.analysis.rejection_causes import Guess, in_order


@dataclass(frozen=True)
class Alone:
    """A drafter's guess for each new token of a text: the fields of `rejection_causes.Guess`."""

    right: Sequence[bool | None]
    known: Sequence[bool]
    sees_path: bool = True

    def at(self, place: int | None) -> Guess | None:
        """The guess at a position; None where it was not measured."""
        if place is None or place >= len(self.right):
            return None
        return Guess(self.right[place], self.known[place], self.sees_path)


def first_rejections(trace: Trace, count: int | None = None, alone: Alone | None = None) -> list[dict]:
    """The rejection of each round of the first `count` steps (None: all) whose draft was not fully accepted.

    Each is the row of the first token rejected at that position (`drafted_tokens.row`), with `round`, `step`,
    `place` (the position in the new text, from 0). The causes that need the drafter's guess are found only
    with `alone` for the same text.
    """
    facts, hidden = LaneFacts(trace, count), untold(trace)
    written = {facts.nodes.parent[token.node]: (at, token.token) for at, token in enumerate(facts.tokens)}
    rows = []
    for number, made in enumerate(facts.rounds, 1):
        accepted_parents = {test.parent for test in made.tests if test.accepted}
        rejected = [t for t in made.tests if t.fate == REJECTED and t.parent not in accepted_parents]
        if not rejected:
            continue
        first = rejected[0]
        place, token = written.get(first.parent, (None, None))
        guess = None if alone is None else alone.at(place)
        one = row(facts, made.drafted, first, token, guess, hidden)
        rows.append(one | {"round": number, "step": made.step, "place": place})
    return rows


def counted(rows: Sequence[dict]) -> dict[str, int]:
    """Number of rejections by cause, in the order of `rejection_causes.CAUSES`; only causes that occur."""
    counts = Counter(one["cause"] for one in rows)
    return {cause: counts[cause] for cause in in_order(counts)}
