"""Superposition: the drafts that share every forward, how much each weighed in it, and what it offered.

A fold over Propose, Verdict, Commit, Distribution (view "combined": the shared row), Measure ("share" of a
draft in a mixture, "linearity": how similar a mixture's states are to the drafts' own) and Rank
("sum_logprob" with a rank: the drafts that live). Never looks ahead.
"""

import math

from decoders.trace.events import Distribution
from decoders.trace.number_format import many
from decoders.trace.scores import Measure, Rank, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

TOP = 5  # tokens stacked of the shared row
SHARED = "combined"
WIDE = 0.74  # a cell, of a column: lines run between them
DARKEST = 0.6  # so that words on grey stay readable


@view("superposition", "Superposition", reads=has(Measure, name=ScoreName.SHARE))
class Superposition:
    """x counts generated tokens from 1; y: the drafts that live in a place by rank, then those that ended."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.row: dict[int, int] = {self.nodes.root: 0}  # node -> its row; the prompt's end stands before all
        self.taken: dict[int, int] = {}  # column -> rows in use
        self.total: dict[int, float] = {}
        self.share: dict[int, float] = {}
        self.shared: list = []  # of the forward of this step: most likely [token, logprob] pairs
        self.ended: set[int] = set()  # nodes with which a draft ended
        self.drafts = int(header.number("num_beams", 1)) or 1
        self.measured = bool(header.parameters.get("linearity"))

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        panels = [
            scene.Panel("shared", y0=1.12, y1=-0.06, px=64, ticks=[[0, "0"], [0.5, "shared"], [1, "1"]])
        ]
        if self.measured:
            panels.append(scene.Panel("linear", y0=1, y1=0, px=40, ticks=[[0, "0"], [1, "cos 1"]]))
        panels.append(scene.Panel("drafts", y0=-0.6, y1=self.drafts + 0.6, share=1, grow=True))
        return Columns(
            question="Which drafts shared each forward? With what weight? Which ones continued?",
            ops=panels,
            row=sizes.BOX,
            row_tall=64,
            column=sizes.WORD,
            wide=78,
            left=52,
            overview="piled",
            clip=True,
            legend=[
                ["cell:amount", "▪", "soft", "a draft's last token; stronger grey: more of the mixture"],
                ["cell:finished", "■", "finished", "a draft that ended"],
                ["edge:live", "─", "live", "continues"],
                ["edge:pruned", "─", "pruned", "dropped later"],
                ["edge:chosen", "━", "chosen", "the output"],
                ["bar", "■", "soft", "top 5 of the shared row"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """What one forward offered, and the drafts after it."""
        self.shared, ended, ranked, ops = [], [], [], []
        _, verdicts, committed = self.nodes.read(step)
        for event in step.events:
            match event:
                case Distribution() if event.view == SHARED:
                    self.shared = event.top[:TOP]
                    ops += self._shared(self.nodes.position[event.node] + 1)
                case Measure(name=ScoreName.SHARE):
                    ops += self._weigh(event.node, event.total)
                case Measure(name=ScoreName.LINEARITY):
                    ops += self._linear(self.nodes.position[event.node] + 1, event)
                case Rank(name=ScoreName.SUM_LOGPROB) if event.rank is not None:
                    ranked.append((event.rank, event.node, event.total))
                case Rank(name=ScoreName.LENGTH_PENALISED) if event.node not in self.row:
                    ended.append((event.node, event.total))
        for _, node, total in sorted(ranked):
            ops += self._draft(node, total)
        for node, total in ended:
            if node not in self.row:
                ops += self._draft(node, total, ended=True)
        gone = [node for node, verdict in verdicts.items() if verdict.status == "pruned"]
        ops += [op for node in gone for op in self._look(node, "pruned")]
        ops += [op for node in committed for op in self._look(node, "chosen")]
        return [*ops, scene.Say(self._caption(step, ranked, committed))] if ops else []

    def _shared(self, x: int) -> list[Op]:
        """The most likely tokens of the row that all drafts shared, stacked."""
        ops, low = [], 0.0
        for rank, (token, logprob) in enumerate(self.shared):
            high = low + math.exp(logprob)
            text = f"{self.nodes.word(token)}: p {probability(high - low)} in the row that all drafts share"
            place = {"panel": "shared", "x": x, "w": 0.84, "y0": round(low, 4), "y1": round(high, 4)}
            ops.append(scene.Bar(f"s{x}-{rank}", **place, rank=rank, hover=[text]))
            low = high
        return ops

    def _linear(self, x: int, score) -> list[Op]:
        """The similarity of the mixture's last state to the mean of the drafts' own."""
        cosines = [f"{name} {value:.3f}" for name, value in score.parts.items()]
        place = {"panel": "linear", "x": x, "y": round(max(0.0, score.total), 4)}
        few = cosines if len(cosines) < 4 else [cosines[0], cosines[len(cosines) // 2], cosines[-1]]
        hover = ["similarity of the mixture's state to the mean of the drafts' own states", ", ".join(few)]
        return [
            scene.Step(f"l{x}", **place),
            scene.Symbol(f"m{x}", **place, glyph="dot", role="ink", hover=hover),
        ]

    def _draft(self, node: int, total: float, ended: bool = False) -> list[Op]:
        """A cell for a draft's newest token, and the line to the draft that it continues."""
        x, parent = self.nodes.position[node], self.nodes.parent[node]
        y = self.row[node] = self.taken.get(x, 0)
        self.taken[x], self.total[node] = y + 1, total
        ops: list[Op] = []
        if parent in self.row:
            ends = {"x0": x - 1 + WIDE / 2, "y0": self.row[parent], "x1": x - WIDE / 2, "y1": y}
            ops.append(scene.Edge(f"e{node}", panel="drafts", **ends, state="live", weight=0.5, node=node))
        look = {"state": "live", "fill": "amount", "weight": 0.0}
        if ended:
            self.ended.add(node)
            look = {"state": "finished", "fill": "tint"}
        place = {"panel": "drafts", "x": x, "y": y, "w": WIDE, "h": 0.82}
        shared = {"text": self.nodes.text(node), "hover": self._hover(node, ended), "node": node}
        return [*ops, scene.Cell(f"c{node}", **place, **look, **shared)]

    def _weigh(self, node: int, share: float) -> list[Op]:
        """The share of a draft's last token in the mixture."""
        if node not in self.row:
            return []
        self.share[node] = share
        change = {"weight": round(DARKEST * share, 4), "hover": self._hover(node, False)}
        return [scene.Change(f"c{node}", **change)]

    def _look(self, node: int, state: str) -> list[Op]:
        """A draft that was given up, or is the output, and the line to it."""
        if node not in self.row:
            return []
        ops = [] if node in self.ended else [scene.Change(f"c{node}", state=state)]
        if self.nodes.parent[node] in self.row:
            weight = 1.0 if state == "chosen" else 0.5
            ops.append(scene.Change(f"e{node}", state=state, weight=weight))
        return ops

    def _hover(self, node: int, ended: bool) -> list[str]:
        """The draft's last words, and its numbers."""
        path = self.nodes.path(node)
        words = "".join(self.nodes.text(n) for n in path)
        lines = [f"score over length {self.total[node]:.3f}" if ended else f"score D {self.total[node]:.2f}"]
        if node in self.share:
            lines.append(f"{self.share[node]:.2f} of the mixture")
        return [words if len(words) <= 60 else "…" + words[-60:], ", ".join(lines).replace("-", "−")]

    def _caption(self, step, ranked: list, committed: list[int]) -> str:
        """The step in words."""
        if committed:
            words = "".join(self.nodes.text(node) for node in committed)
            return f"Step {step.index + 1}: the output is …{words[-60:]}."
        best = min(ranked, default=None)
        leads = f", {self.nodes.text(best[1])} leads with {best[2]:.2f}" if best else ""
        return f"Step {step.index + 1}: {many(len(ranked), 'draft')} live{leads}.".replace("-", "−")
