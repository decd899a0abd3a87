"""Candidate matrix: the texts to choose from, their pairwise distances, and the one that is nearest to all.

A fold over Propose, Rank ("word_error_rate", whose parts are the rates against each candidate) and Commit.
Knows no strategy.
"""

from dataclasses import replace

from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Table
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

DARKEST = 0.6  # so that numbers on grey stay readable
NUMBER, MEAN, RATE = 1.0, 1.5, 1.3  # widths in columns


@view("candidate_matrix", "Candidate matrix", reads=has(Rank, name=ScoreName.WORD_ERROR_RATE))
class CandidateMatrix:
    """A row per candidate: its mean word error rate, those against each text, and its own text."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.single = header.number("num_candidates", 1) == 1

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Table(
            question="How much do the candidates agree? Which one is nearest to all?",
            ops=[scene.Panel("table", y0=-0.1, y1=8, share=1, grow=True)],
            column=sizes.LETTER,
            column_narrow=16,
            wide=36,
            widest=60,
            columns=28,
            legend=[
                ["cell:chosen", "■", "chosen", "chosen: the lowest mean"],
                ["cell:amount", "▪", "soft", "word error rate, if the candidate of that column were right"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """All of it, in the step that scores the candidates."""
        _, _, commits = self.nodes.read(step)
        scores = [e for e in step.of(Rank) if e.name == ScoreName.WORD_ERROR_RATE]
        if commits and self.single:
            words = {
                "text": "One candidate: nothing to choose between. Raise num_candidates.",
                "role": "soft",
            }
            at = {"panel": "table", "x": 0.6, "y": 0.5, "align": "left", "face": "sans"}
            return [scene.Label("single", **at, **words)]
        if not scores:
            return []
        order = sorted(scores, key=lambda event: event.node)  # candidates in the order of their numbers
        chosen = next(i for i, event in enumerate(order) if event.rank == 1)
        ops = self._heading(len(order))
        for i, event in enumerate(order):
            ops += self._row(i, event, i == chosen, len(order))
        mean = probability(order[chosen].total)
        caption = f"Candidate {chosen + 1} is chosen: mean word error rate {mean} against all."
        return [*ops, scene.Front(1, 0), scene.Say(caption)]

    def _heading(self, count: int) -> list[Op]:
        """The names of the columns."""
        names = [("mean", NUMBER, MEAN)]
        names += [(str(j + 1), NUMBER + MEAN + j * RATE, RATE) for j in range(count)]
        look = {"role": "soft", "align": "center", "priority": 0, "panel": "table", "y": 0.5}
        labels = [
            scene.Label(f"h{at}", x=round(0.5 + x + w / 2, 3), w=w, text=text, **look)
            for at, (text, x, w) in enumerate(names)
        ]
        return [row("heading", 0), *labels]

    def _row(self, i: int, event, chosen: bool, count: int) -> list[Op]:
        """A candidate: its number, its mean rate, the rates against all, and its text."""
        y, name = i + 1.5, f"candidate {i + 1}"
        text = "".join(map(self.nodes.text, self.nodes.path(event.node))).replace("␣", " ").strip()
        hover = [text, f"{name}: mean word error rate {probability(event.total)}"]
        number = replace(self._cell(f"n{i}", 0, NUMBER, y, str(i + 1), 0.0, chosen, hover), node=event.node)
        mean = self._cell(f"a{i}", NUMBER, MEAN, y, short(event.total), event.total, chosen, hover)
        ops: list[Op] = [row(f"row{i}", i + 1), number, mean]
        for j, rate in enumerate(event.parts.values()):
            words = [f"{name} against {j + 1}: word error rate {probability(rate)}"]
            ops.append(
                self._cell(f"w{i}.{j}", NUMBER + MEAN + j * RATE, RATE, y, short(rate), rate, False, words)
            )
        x = round(0.8 + NUMBER + MEAN + count * RATE, 3)
        look = {"align": "left", "face": "sans", "role": "ink" if chosen else "soft", "bold": chosen}
        place = {"panel": "table", "x": x, "y": y}
        return [*ops, scene.Label(f"t{i}", **place, **look, text=text, node=event.node)]

    def _cell(
        self, key: str, x: float, w: float, y: float, text: str, amount: float, chosen: bool, hover: list[str]
    ) -> Op:
        place = {"panel": "table", "x": round(0.5 + x + w / 2, 3), "y": y, "w": w - 0.08, "h": 0.9}
        look = {"state": "chosen", "fill": "filled"} if chosen else {"state": "prompt", "fill": "amount"}
        look |= {"weight": round(DARKEST * min(1.0, amount), 4)}
        return scene.Cell(key, **place, **look, text=text, hover=hover)


def row(key: str, y: float) -> Op:
    """A row without a name: a window that scrolls may begin there."""
    return scene.Row(key, panel="table", y0=y, y1=y + 1, rule=False, text="")


def short(rate: float) -> str:
    """Two places: `.28`, `0`, `1.33`."""
    return "0" if not rate else f"{rate:.2f}".removeprefix("0")
