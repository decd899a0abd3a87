"""Foresight: which next steps were sampled, the look-ahead from each, and which of them continued.

A fold over Propose, Verdict and Rank ("step" for a step that was pruned, "foresight" for one that was
scored; its number is its cluster). Each step of the strategy is a table: one row per candidate, with its
words, the words ahead of it, its cluster, and its numbers. Knows no strategy.
"""

from typing import Any

from decoders.trace.events import Note, Propose
from decoders.trace.number_format import many
from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Table, scroll_row
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view

HEADER, GAP, CELL = 0.8, 0.3, 0.9  # heights in rows
# Columns of a table: name, where it begins, how many it takes.
STEP, AHEAD, CLUSTER, ADVANTAGE, PROBABILITY = (0.5, 6), (6.5, 6), (12.5, 1), (13.5, 2), (15.5, 2)
SIGNED = "{:+.2f}"
DARKEST = 0.5  # so that words on grey stay readable


@view("foresight", "Foresight", reads=has(Rank, name=ScoreName.FORESIGHT))
class Foresight:
    """x: the columns of the tables; y: steps of the strategy, and in each its candidates."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.y, self.steps = 0.0, 0

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Table(
            question="Which steps were sampled? What did the lookahead find? Which ones continued?",
            ops=[scene.Panel("tables", y0=-0.1, y1=8, share=1, grow=True)],
            widest=90,
            column=sizes.LETTER,
            column_narrow=18,
            wide=26,
            columns=17,
            legend=[
                ["cell:chosen", "■", "chosen", "drawn: the text continues with it"],
                ["cell:live", "▣", "live", "scored, not drawn"],
                ["cell:pruned", "▢", "pruned", "pruned before the lookahead"],
                ["cell:amount", "▪", "soft", "share of its cluster (its number), advantage A, probability"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """One table: a heading, and a row for each candidate in the order in which they were sampled."""
        born, scores, note, ahead = {}, {}, "", {}
        for event in step.events:
            match event:
                case Propose():
                    self.nodes.add(event)
                    born[event.node] = event
                    if event.source == "lookahead":
                        home = ahead.get(event.parent, (event.parent, ""))
                        ahead[event.node] = (home[0], home[1] + self.nodes.text(event.node))
                case Rank(name=ScoreName.STEP | ScoreName.FORESIGHT):
                    scores[event.node] = event
                case Note():
                    note = event.text
        if not scores:
            return []
        self.steps += 1
        words = dict(ahead.values())  # step -> the longest that was seen ahead of it, which comes last
        top = self.y + HEADER
        order = sorted(scores, key=lambda n: (born[n].slot if n in born else -1, n))
        ops = self._heading(note, top, len(order))
        for row, node in enumerate(order):
            ops += self._row(scores[node], self._words(node, born), words.get(node, ""), top + row + 0.5)
        self.y = top + len(order) + GAP
        weighed = [s for s in scores.values() if s.name == ScoreName.FORESIGHT]
        drawn = sum(s.rank is not None for s in weighed)
        counts = f"{many(len(scores), 'candidate')}, {len(weighed)} scored, {drawn} drawn"
        say = f"Step {step.index + 1}: {counts}. {note}"
        return [*ops, scene.Front(1, self.y), scene.Say(say.strip())]

    def _words(self, node: int, born: dict) -> str:
        """The text of a step; empty for a text that had ended."""
        own = [n for n in self.nodes.path(node) if n in born and born[n].source != "lookahead"]
        return "".join(self.nodes.text(n) for n in own) or "(has ended)"

    def _heading(self, note: str, top: float, rows: int) -> list[Op]:
        """The names of the columns, and where a window that scrolls may begin."""
        ops: list[Op] = [scroll_row(self.steps, "tables", self.y, top)]
        names = {
            "step": (f"step {self.steps}", STEP),
            "ahead": ("seen ahead", AHEAD),
            "cluster": ("cl.", CLUSTER),
            "gain": ("A", ADVANTAGE),
            "chance": ("p drawn", PROBABILITY),
        }
        for key, (text, (x, w)) in names.items():
            place = {"x": x + 0.08, "y": self.y + HEADER / 2, "align": "left", "w": w}
            look = {"text": text, "role": "ink" if key == "step" else "soft", "priority": 0, "hover": [note]}
            ops.append(scene.Label(f"h{self.steps}.{key}", panel="tables", **place, **look))
        return ops

    def _row(self, score, step_text: str, ahead: str, y: float) -> list[Op]:
        """A candidate: its words, the words ahead, and its numbers."""
        weighed, parts = score.name == ScoreName.FORESIGHT, score.parts
        state = "chosen" if score.rank is not None else "live" if weighed else "pruned"
        name = f"n{score.node}.{self.steps}"
        hover = [step_text, self._hover(score)]
        look = {"state": state, "fill": "filled" if state == "chosen" else "tint"}
        ops = [self._cell(name, STEP, y, step_text, hover, **look, node=score.node)]
        if not weighed:
            return ops
        seen = [ahead or "the step ends the text", hover[1]]
        words = ahead or "(ends here)"
        ops.append(self._cell(name + "a", AHEAD, y, words, seen, state="pruned", fill="tint"))
        bars = [(PROBABILITY, score.total, f"{score.total:.2f}")]
        gain = parts.get("advantage", 0.0)
        bars.append((ADVANTAGE, 1 / (1 + 2.718281828 ** (-4 * gain)), SIGNED.format(gain).replace("-", "−")))
        if score.number is not None:
            bars.append((CLUSTER, parts.get("share", 0.0), str(score.number)))
        for place, amount, text in bars:
            shade = {"state": "prompt", "fill": "amount", "weight": round(DARKEST * amount, 4)}
            ops.append(self._cell(f"{name}.{place[0]}", place, y, text, hover, **shade))
        return ops

    def _cell(
        self, name: str, place: tuple[float, int], y: float, text: str, hover: list[str], **look: Any
    ) -> Op:
        x, w = place
        where = {"panel": "tables", "x": x + w / 2, "y": round(y, 3), "w": w - 0.08, "h": CELL}
        return scene.Cell(name, **where, text=text, hover=hover, **look)

    def _hover(self, score) -> str:
        """The numbers of a candidate, in words."""
        if score.name == ScoreName.STEP:
            return f"pruned: mean log p of the step {score.total:.2f}".replace("-", "−")
        parts = score.parts
        text = f"log p of the step {parts.get('step', 0.0):.2f}, ahead {parts.get('foresight', 0.0):.2f}"
        if "share" in parts:
            text += f"; {score.level} holds {parts['share']:.2f}"
        text += f"; drawn with {score.total:.3f}"
        return (text + (", drawn" if score.rank is not None else "")).replace("-", "−")
