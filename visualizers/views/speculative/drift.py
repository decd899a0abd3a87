"""Drift: how far the features that a drafter continues with are from the target's own, round by round and
depth by depth.

A fold over Measure (the name "drift", its number the depth below the root) and Verdict. A column per round, a
row per depth, and in each cell the mean over the nodes of that depth that both models have read.
"""

from statistics import fmean

from decoders.trace.events import Verdict
from decoders.trace.scores import Measure, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view

ROWS = 8  # most depths shown
DARKEST = 0.7  # grey of features that have nothing in common
QUESTION = "How far do the drafter's features drift from the target's own as it drafts deeper?"


@view("drift", "Drift", reads=has(Measure, name=ScoreName.DRIFT))
class Drift:
    """x: rounds; y: depths, the root's own feature first; the darker a cell, the farther apart."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.round = 0
        self.seen: dict[int, list[float]] = {}  # depth -> all drifts so far

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Columns(
            question=QUESTION,
            column=sizes.MARKED,
            left=78,
            left_narrow=64,
            axis=None,
            ops=[
                heading(px_narrow=52),
                scene.Panel("rounds", y0=-0.6, y1=0.6, px=22),
                scene.Panel("depths", y0=-0.1, y1=ROWS + 0.1, px=26 * ROWS),
            ],
            legend=[
                ["cell:amount", "▪", "soft", "1 − cosine; darker: farther apart"],
                ["cell:chosen", "▣", "chosen", "a node of that depth was accepted"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """A column, if this step recorded a drift."""
        self.nodes.read(step)
        accepted = {event.node for event in step.of(Verdict) if event.status == "accepted"}
        by_depth: dict[int, list[Measure]] = {}
        for event in step.of(Measure):
            if event.name == ScoreName.DRIFT and event.number is not None:
                by_depth.setdefault(event.number, []).append(event)
        if not by_depth:
            return []
        self.round += 1
        ops = [scene.Label(f"n{self.round}", panel="rounds", x=self.round, y=0, text=str(self.round))]
        for depth, scores in sorted(by_depth.items()):
            if depth not in self.seen and depth < ROWS:
                name = "root" if depth == 0 else f"depth {depth}"
                ops.append(
                    scene.Row(f"r{depth}", panel="depths", y0=depth, y1=depth + 1, text=name, rule=False)
                )
            self.seen.setdefault(depth, []).extend(score.total for score in scores)
            if depth < ROWS:
                ops.append(self._cell(depth, scores, accepted))
        return [*ops, self._heading(), scene.Front(self.round, ROWS / 2), scene.Say(self._caption(by_depth))]

    def _cell(self, depth: int, scores: list[Measure], accepted: set[int]) -> Op:
        """One depth of one round."""
        mean = fmean(score.total for score in scores)
        kept = any(score.node in accepted for score in scores)
        each = [f"{self.nodes.text(score.node)} {score.total:.3f}" for score in scores[:6]]
        rest = f" and {len(scores) - 6} more" if len(scores) > 6 else ""
        where = "after the root" if depth == 0 else f"at depth {depth}"
        hover = [f"1 − cosine {mean:.3f} {where}, over {len(scores)}", ", ".join(each) + rest]
        place = {"panel": "depths", "x": self.round, "y": depth + 0.5, "w": 0.94, "h": 0.86}
        look = {"state": "chosen" if kept else "prompt", "fill": "amount"}
        grey = round(DARKEST * min(1.0, max(0.0, mean)), 4)
        text = {"text": f"{mean:.2f}".removeprefix("0"), "hover": hover, "node": scores[0].node}
        return scene.Cell(f"c{self.round}.{depth}", weight=grey, **place, **look, **text)

    def _heading(self) -> Op:
        """The means so far, depth by depth."""
        means = [f"{fmean(self.seen[depth]):.2f}" for depth in sorted(self.seen)]
        lead = f"1 − cosine {means[0]} at the root"
        rest = f"; deeper {', '.join(means[1:])}, as means so far." if means[1:] else ", as a mean so far."
        return scene.Change("heading", lead=lead, heading=rest)

    def _caption(self, by_depth: dict[int, list[Measure]]) -> str:
        """`Round 3: drift 0.02 at the root, 0.10 at depth 1.`"""
        means = (
            f"{fmean(s.total for s in scores):.2f} " + ("at the root" if depth == 0 else f"at depth {depth}")
            for depth, scores in sorted(by_depth.items())
        )
        return f"Round {self.round}: drift {', '.join(means)}."
