"""Gutter: a text line by line, with the probability of a label beside each line, and what its ban changed.

A fold over Measure (the label's probability at a token, named "P(label)"), Distribution (before and after the
ban) and Commit.
"""

import math

from decoders.trace.events import Distribution
from decoders.trace.scores import Measure, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Table
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

HEAT, BEFORE, AFTER, TEXT = 1.0, 2.15, 3.15, 3.8  # columns
BARS = 0.9  # columns of a bar of probability 1
LINE_BREAK = "↵"


@view("gutter", "Gutter", reads=has(Measure, name=ScoreName.P_LABEL))
class Gutter:
    """Rows are lines of the text; beside each the label, and the first token before and after the ban."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.lines: list[str] = []
        self.heat: list[float] = []
        self.at_start = True
        self.before: dict[int, dict[int, float]] = {}  # node -> token -> p
        self.after: dict[int, dict[int, float]] = {}

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Table(
            question="Before which lines does the model want the label? What does its ban change?",
            ops=[
                scene.Panel("names", y0=0, y1=1, px=26, rule=True),
                scene.Panel("lines", y0=-0.1, y1=6, share=1, grow=True),
                *(
                    scene.Label(
                        f"h{x}",
                        panel="names",
                        x=x,
                        y=0.6,
                        text=text,
                        role="soft",
                        size=sizes.SMALL,
                        priority=0,
                        **how,
                    )
                    for x, text, how in (
                        (HEAT, ScoreName.P_LABEL, {"w": 1}),
                        (BEFORE, "before", {"w": 1}),
                        (AFTER, "after", {"w": 1}),
                        (TEXT, "line", {"align": "left"}),
                    )
                ),
            ],
            columns=8,
            row=sizes.BOX,
            column=sizes.WORD,
            column_narrow=48,
            left=40,
            left_narrow=28,
            legend=[
                ["cell:rejected", "■", "rejected", "probability of the label at the start of the line"],
                [
                    "cell:chosen",
                    "■",
                    "chosen",
                    "probability of the line's first token, before the ban and after it",
                ],
            ],
            clip=None,
        )

    def feed(self, step) -> list[Op]:
        """The ops of one token: a new line with its numbers, or more text of the newest one."""
        for event in step.events:
            if isinstance(event, Distribution) and event.view in ("target", "processed"):
                row = {token: math.exp(logprob) for token, logprob in event.top}
                (self.before if event.view == "target" else self.after)[event.node] = row
        _, _, commits = self.nodes.read(step)
        scores = {e.node: e.total for e in step.of(Measure) if e.name == ScoreName.P_LABEL}
        ops: list[Op] = []
        for node in commits:
            ops += self._token(node, scores.get(node))
        if not ops:
            return []
        p = scores.get(commits[-1])
        label_text = "" if p is None else f", where the label has {probability(p)}"
        return [
            *ops,
            scene.Front(1, len(self.lines)),
            scene.Say(f"Line {len(self.lines)}: {self.nodes.text(commits[-1])}{label_text}."),
        ]

    def _token(self, node: int, p: float | None) -> list[Op]:
        text = self.nodes.text(node)
        new = self.at_start
        self.at_start = text.endswith(LINE_BREAK)
        row = len(self.lines) - (not new)
        shown = text.rstrip(LINE_BREAK).replace("␣", " ")
        if new:
            self.lines.append(shown)
            self.heat.append(p or 0.0)
            return self._line(row, node, p)
        self.lines[row] += shown
        return [scene.Change(f"t{row}", text=self.lines[row])]

    def _line(self, row: int, node: int, p: float | None) -> list[Op]:
        y, text = row + 0.5, self.nodes.text(node)
        place = {"panel": "lines", "y0": row, "y1": row + 1}
        ops: list[Op] = [scene.Row(f"r{row}", **place, text=str(row + 1), rule=False)]
        label = {"face": "mono", "role": "ink", "align": "left", "size": sizes.TEXT, "priority": 0}
        line = {"panel": "lines", "x": TEXT, "y": y + 0.06, "text": self.lines[row], "node": node}
        ops.append(scene.Label(f"t{row}", **line, **label))
        if p is None:
            return ops
        parent, token = self.nodes.parent[node], self.nodes.token[node]
        before = self.before.get(parent, {}).get(token)
        after = self.after.get(parent, self.before.get(parent, {})).get(token)
        words = [f"line {row + 1}: the label has {probability(p)}"]
        if before is not None and after is not None:
            words.append(f"{text}: {probability(before)} before the ban, {probability(after)} after it")
        shared = {"panel": "lines", "node": node, "hover": words, "y": y}
        heat = {"state": "rejected", "fill": "tint" if p < 0.5 else "filled", "text": probability(p)}
        if p < 0.005:
            heat = {"state": "prompt", "fill": "outline", "text": probability(p)}
        ops.append(scene.Cell(f"p{row}", **shared, x=HEAT, w=0.9, h=0.8, **heat))
        for name, x, value, look in (
            ("b", BEFORE, before, {"state": "chosen", "fill": "outline"}),
            ("a", AFTER, after, {"state": "chosen", "fill": "filled"}),
        ):
            if value is not None:
                width = round(max(0.02, BARS * value), 4)
                at = {"x": round(x - BARS / 2 + width / 2, 4), "w": width}
                ops.append(scene.Cell(f"{name}{row}", **shared, **at, **look, h=0.5))
        return ops
