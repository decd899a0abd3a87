"""Accepted lengths: how many drafted tokens each round accepted, one brick per round.

A fold over a lane's costs. A step that sends no draft to the target is not a round.
"""

from decoders.trace.costs import Costs
from decoders.trace.number_format import many
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.drafted import OF_DRAFTS
from visualizers.scene.layout import Columns, Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, view

NEW = {"state": "accepted", "fill": "filled"}
MIN_HEIGHT = 6  # rounds for which the scale has room at first
DRAFTED = ("num_assistant_tokens", "prompt_lookup_num_tokens")  # parameters that say how long a draft may be


@view("accepted_lengths", "Accepted lengths", reads=OF_DRAFTS)
class AcceptedLengths:
    """x counts the accepted tokens of a round from 0, y its rounds upwards."""

    def __init__(self, header: Header):
        self.costs = Costs()
        self.longest = max((int(header.number(name, 0)) for name in DRAFTED), default=0)
        self.heights: dict[int, int] = {}  # accepted tokens -> rounds
        self.high = MIN_HEIGHT
        self.newest: str | None = None

    def head(self) -> Layout:
        """Title, question and layout."""
        return Columns(
            question="How many drafted tokens did each round accept? Do long drafts pay off?",
            first=0,
            columns=self.longest + 1 if self.longest else "seen",
            column=sizes.LETTER,
            tightest=9,
            widest=46,
            left=34,
            axis="accepted tokens per round",
            ops=[
                heading(),
                scene.Panel("rounds", **scale(self.high), share=1, rule=True),
            ],
            legend=[
                ["cell:filled", "■", "accepted", "the newest round; the others in its tint"],
            ],
            overview=None,
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: the brick of its round."""
        made = self.costs.add(step)
        if made is None:
            return []
        taken, drafted, rounds = made.accepted, len(made.nodes), len(self.costs.rounds)
        number = step.index + 1  # as the other views count them, also rounds without a draft
        place = self.heights.get(taken, 0)
        self.heights[taken] = place + 1
        ops: list[Op] = [scene.Change(self.newest, fill="tint")] if self.newest else []
        self.newest = f"b{number}"
        hover = [
            f"round {number}: {taken} of {many(drafted, 'drafted token')} accepted",
            f"{many(self.heights[taken], 'round')} so far accepted {taken}",
        ]
        where = {"panel": "rounds", "x": taken, "y": place + 0.5, "w": 0.86, "h": 0.9}
        brick = {**where, **NEW, "text": str(number), "hover": hover}
        ops.append(scene.Cell(self.newest, **brick))
        if place + 1 > self.high:
            self.high = 2 * self.high
            ops.append(scene.Change("rounds", **scale(self.high)))
        mean = self.costs.accepted / rounds
        long = f"; {mean:.2f} on average over {many(rounds, 'round')}"
        lead = f"round {number} accepted {taken} of {drafted}"
        ops.append(scene.Change("heading", lead=lead, heading=long, short=long))
        return [*ops, scene.Front(taken, 0), scene.Say(f"{lead}{long}.")]


def scale(high: int) -> dict:
    """A panel's scale from 0 at its bottom up to this many rounds, with at most four ticks."""
    every = max(1, -(-high // 4))
    return {"y0": high + 0.3, "y1": 0, "ticks": [[n, str(n)] for n in range(0, high + 1, every)]}
