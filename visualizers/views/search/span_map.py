"""Span map: how likely each span of a passage is as the answer, by where it begins and how long it is.

A fold over Propose, Rank ("span", and "greedy" for the path of greedy decoding), Verdict and Commit. A row is
a prefix, a cell the token that a span ends with; the darker, the more likely. Prefixes that continue
differently share their first cells; each other continuation has a row of its own.
"""

import math

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.number_format import many
from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

FAINT = -30.0  # log p of a span with the lightest grey


@view("span_map", "Span map", reads=has(Rank, name=ScoreName.SPAN))
class SpanMap:
    """x is the length of a span, y the place at which it begins, in the order of the passage."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.row: dict[int, int] = {}  # drawn node -> row
        self.led: set[int] = set()  # nodes followed by a cell in their row
        self.rows = 0
        self.best: tuple[float, int] | None = None  # the best score so far and its node

    def head(self) -> Layout:
        """Title, question and layout; rows come with the spans."""
        return Rounds(
            question="Which span is the most likely answer? Where does greedy decoding go?",
            ops=[scene.Panel("spans", y0=-0.6, y1=5, share=1, grow=True)],
            row_tall=40,
            column=sizes.WORD,
            wide=70,
            left=92,
            left_narrow=64,
            axis="tokens of the span",
            legend=[
                ["cell:chosen", "■", "chosen", "the answer"],
                ["cell:accepted", "▢", "accepted", "on greedy's path"],
                ["cell:amount", "▪", "soft", "a span that ends here; the stronger the grey, the more likely"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """New spans as cells, then the greedy path and the answer as their states."""
        ops: list[Op] = []
        born, scores, greedy, commits, ended = [], {}, [], [], set()
        for event in step.events:
            match event:
                case Propose():
                    self.nodes.add(event)
                    born.append(event)
                case Rank(name=ScoreName.SPAN):
                    scores[event.node] = event
                case Rank(name=ScoreName.GREEDY_SPAN):
                    greedy.append(event.node)
                case Verdict() if event.status == "finished":
                    ended.add(event.node)
                case Commit():
                    commits += event.nodes
        for event in born:
            if event.node not in ended:  # the end of the answer has no cell
                ops += self._cell(event.node, event.parent, scores.get(event.node))
        for node in (n for n in greedy if n in self.row):
            ops.append(scene.Change(f"n{node}", state="accepted", fill="outline"))
        for node in (n for n in commits if n in self.row):
            ops.append(scene.Change(f"n{node}", state="chosen", fill="filled"))
        if self.row:
            shown = self.row[commits[0]] if commits and commits[0] in self.row else self.rows - 1
            ops.append(scene.Front(max(self.nodes.position[n] for n in self.row), shown + 2))
            ops.append(scene.Say(self._caption(step)))
        return ops

    def _cell(self, node: int, parent: int, score) -> list[Op]:
        ops: list[Op] = []
        first = self.nodes.path(node)[0]
        taken = parent in self.led or parent not in self.row
        self.led.add(parent)
        if taken:  # another continuation has its parent's row
            at, self.rows = self.rows, self.rows + 1
            ops.append(
                scene.Row(
                    f"r{at}", panel="spans", y0=at - 0.5, y1=at + 0.5, text=self.nodes.text(first), rule=False
                )
            )
        self.row[node] = row = at if taken else self.row[parent]
        if score is not None and (self.best is None or score.total > self.best[0]):
            self.best = (score.total, node)
        weight = 0.0 if score is None else max(0.0, min(1.0, 1 - score.total / FAINT))
        look = {"state": "prompt", "fill": "amount", "weight": round(weight, 3)}
        place = {"x": self.nodes.position[node], "y": row, "w": 1, "h": 0.84}
        words = {"text": self.nodes.text(node), "hover": self._hover(node, score)}
        cell = scene.Cell(f"n{node}", panel="spans", node=node, **place, **look, **words)
        return [*ops, cell]

    def _text(self, node: int) -> str:
        return "".join(self.nodes.text(n) for n in self.nodes.path(node))

    def _hover(self, node: int, score) -> list[str]:
        if score is None:
            return [self._text(node), "impossible as an answer"]
        span, end = score.parts.get("span", score.total), score.parts.get("end", 0.0)
        p, q = (probability(math.exp(min(0.0, x))) for x in (span, end))
        return [self._text(node), f"score {score.total:.2f}: span p {p}, end p {q}".replace("-", "−")]

    def _caption(self, step) -> str:
        caption = f"Step {step.index + 1}: {many(len(self.row), 'span')}"
        if self.best is not None:
            caption += f", best {self._text(self.best[1])} with {self.best[0]:.2f}".replace("-", "−")
        return caption + "."
