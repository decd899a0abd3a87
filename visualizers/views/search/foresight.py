"""Foresight: which next steps were sampled, the look-ahead from each, and which of them continued.

A fold over Propose, Verdict and Rank ("step" for a step that was pruned, "foresight" for one that was scored;
its number is its cluster). Each step of the strategy is a table: one row per candidate, with its words, the
words ahead of it, its cluster, and its numbers.
"""

import math
from dataclasses import replace

from decoders.trace.events import Note, Propose, Step
from decoders.trace.number_format import many
from decoders.trace.scores import Rank, ScoreName
from visualizers.scene import sizes
from visualizers.scene.layout import Table
from visualizers.scene.step_table import Column, Contents, Entry, StepTable
from visualizers.scene.view import has, view

STEP, AHEAD = Column(0.5, 6, strong=True), Column(6.5, 6, "seen ahead")
CLUSTER, ADVANTAGE, PROBABILITY = Column(12.5, 1, "cl."), Column(13.5, 2, "A"), Column(15.5, 2, "p drawn")


@view("foresight", "Foresight", reads=has(Rank, name=ScoreName.FORESIGHT))
class Foresight(StepTable):
    """Tables: steps of the strategy, and in each its candidates in the order in which they were sampled."""

    layout = Table(
        question="Which steps were sampled? What did the lookahead find? Which ones continued?",
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

    def table(self, step: Step) -> Contents | None:
        """The candidates of a step."""
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
            return None
        words = dict(ahead.values())  # step -> the longest that was seen ahead of it, which comes last
        order = sorted(scores, key=lambda n: (born[n].slot if n in born else -1, n))
        rows = [self._row(scores[n], self._words(n, born), words.get(n, "")) for n in order]
        weighed = [s for s in scores.values() if s.name == ScoreName.FORESIGHT]
        drawn = sum(s.rank is not None for s in weighed)
        counts = f"{many(len(scores), 'candidate')}, {len(weighed)} scored, {drawn} drawn"
        first = replace(STEP, name=f"step {self.tables + 1}")
        columns = [first, AHEAD, CLUSTER, ADVANTAGE, PROBABILITY]
        return Contents(columns, rows, f"Step {step.index + 1}: {counts}. {note}".strip(), note=note)

    def _words(self, node: int, born: dict) -> str:
        """The text of a step; empty for a text that had ended."""
        own = [n for n in self.nodes.path(node) if n in born and born[n].source != "lookahead"]
        return "".join(self.nodes.text(n) for n in own) or "(has ended)"

    def _row(self, score: Rank, words: str, ahead: str) -> list[Entry]:
        """A candidate: its words, the words ahead, and its numbers."""
        weighed, parts = score.name == ScoreName.FORESIGHT, score.parts
        state = "chosen" if score.rank is not None else "live" if weighed else "pruned"
        name, hover = f"n{score.node}.{self.tables + 1}", [words, hovered(score)]
        look = {"state": state, "fill": "filled" if state == "chosen" else "tint"}
        row = [Entry(name, STEP, words, hover, **look, node=score.node)]
        if not weighed:
            return row
        seen = [ahead or "the step ends the text", hover[1]]
        row.append(Entry(name + "a", AHEAD, ahead or "(ends here)", seen, state="pruned", fill="tint"))
        gain = parts.get("advantage", 0.0)
        signed = f"{gain:+.2f}".replace("-", "−")
        row.append(Entry(name + "g", ADVANTAGE, signed, hover, 1 / (1 + math.exp(-4 * gain))))
        row.append(Entry(name + "p", PROBABILITY, f"{score.total:.2f}", hover, score.total))
        if score.number is not None:
            row.append(Entry(name + "c", CLUSTER, str(score.number), hover, parts.get("share", 0.0)))
        return row


def hovered(score: Rank) -> str:
    """The numbers of a candidate, in words."""
    if score.name == ScoreName.STEP:
        return f"pruned: mean log p of the step {score.total:.2f}".replace("-", "−")
    parts = score.parts
    text = f"log p of the step {parts.get('step', 0.0):.2f}, ahead {parts.get('foresight', 0.0):.2f}"
    if "share" in parts:
        text += f"; {score.level} holds {parts['share']:.2f}"
    text += f"; drawn with {score.total:.3f}"
    return (text + (", drawn" if score.rank is not None else "")).replace("-", "−")
