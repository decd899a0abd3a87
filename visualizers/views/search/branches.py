"""Branches: the look-ahead from each candidate where a method looked ahead, and which one it took.

A fold over Propose (source "lookahead"), Rank and Commit: one table per step that looked ahead, one row per
ranked candidate. Where a score has the parts `logprob` and `value`, both stand before their total, else the
mean of the log-probabilities. Knows no strategy.
"""

import math
from typing import Any

from decoders.trace.number_format import many
from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Table, heading, scroll_row
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view

HEADING, GAP, CELL = 0.8, 0.3, 0.9  # heights in rows
SEEN = 7  # rows of a long table that are visible at once in a low lane
# Columns of a table: name, where it begins, how many it takes; with a mean, and with a value.
TOKEN = (0.5, 4)
MEANS = {"seen ahead": (4.5, 10), "mean": (14.5, 3)}
VALUES = {"seen ahead": (4.5, 5.2), "log p": (9.7, 2.6), "value": (12.3, 2.6), "total": (14.9, 2.6)}


@view("branches", "Branches", reads=has(Rank, name={ScoreName.LOOKAHEAD, ScoreName.TOTAL}))
class Branches:
    """x: candidate, what follows it, its value; y: pauses, and in each its candidates."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.y = 0.0
        self.tokens = self.pauses = self.rescued = 0
        self.looked = False  # whether anything was looked ahead so far

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Table(
            question="Where did the method look ahead? What did it see? What did it choose?",
            widest=90,
            column=sizes.LETTER,
            column_narrow=18,
            wide=26,
            columns=17,
            ops=[
                heading(lead="No pause", heading=" so far.", short=" so far."),
                scene.Panel("tables", y0=-0.1, y1=8, share=1, grow=True),
            ],
            legend=[
                ["cell:chosen", "■", "chosen", "taken"],
                ["cell:pruned", "▢", "pruned", "not chosen, or only explored"],
                ["cell:amount", "▪", "soft", "stronger grey: more likely or better"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """One table, if this step looked ahead."""
        born, _, commits = self.nodes.read(step)
        self.tokens += len(commits)
        ahead: dict[int, tuple[int, str]] = {}  # node -> (candidate, the words seen ahead of it so far)
        for event in born:
            if event.source == "lookahead":
                home, words = ahead.get(event.parent, (event.parent, ""))
                ahead[event.node] = (home, words + self.nodes.text(event.node))
        scores = {e.node: e for e in step.of(Rank) if e.rank is not None}
        candidates = [event.node for event in born if event.node in scores]
        valued = any("value" in scores[node].parts for node in candidates)
        if not candidates or not (ahead or valued):
            return []
        self.pauses += 1
        self.rescued += candidates[0] not in commits
        nothing = "(ends here)" if ahead else "(not continued)"
        words = dict(ahead.values())  # candidate -> the longest, which comes last
        top = self.y + HEADING
        columns = VALUES if valued else MEANS
        ops = self._heading(candidates[0], columns)
        best = max(scores[node].total for node in candidates)
        for row, node in enumerate(candidates):
            cells = numbers(scores[node], best) if valued else mean_of(scores[node])
            ops += self._row(scores[node], words.get(node, nothing), cells, columns, node in commits, row)
        taken = next((row + 1 for row, node in enumerate(candidates) if node in commits), 0)
        front = min(top + len(candidates) + GAP, top + max(SEEN - 1, taken))
        self.y = top + len(candidates) + GAP
        lead = f"{self.pauses} of {many(self.tokens, 'token')}"
        rest = "a token other than the most likely was chosen"
        times = f"{self.rescued} time" + ("" if self.rescued == 1 else "s")
        self.looked |= bool(ahead)
        how, brief = (
            ("after looking ahead", "after looking") if self.looked else ("by their values", "by value")
        )
        heading = {
            "lead": lead,
            "heading": f" {how}; {times} {rest}.",
            "short": f" {brief}; {times} not the most likely.",
        }
        return [
            *ops,
            scene.Change("heading", **heading),
            scene.Front(1, front),
            scene.Say(f"{lead}{heading['heading']}"),
        ]

    def _heading(self, first: int, columns: dict[str, tuple[float, float]]) -> list[Op]:
        """The names of the columns, and where a window that scrolls may begin."""
        ops: list[Op] = [scroll_row(self.pauses, "tables", self.y, self.y + HEADING)]
        for text, (x, wide) in {f"token {self.nodes.position[first]}": TOKEN, **columns}.items():
            place = {"x": x + 0.08, "y": round(self.y + HEADING / 2, 3), "align": "left", "w": wide}
            look = {"text": text, "role": "ink" if x == TOKEN[0] else "soft", "priority": 0}
            ops.append(scene.Label(f"h{self.pauses}.{x}", panel="tables", **place, **look))
        return ops

    def _row(
        self, score, seen: str, cells: dict[str, tuple[str, float]], columns: dict, taken: bool, row: int
    ) -> list[Op]:
        """A candidate: the token, what follows it, and its numbers: column -> (text, darkness)."""
        node, word, y = score.node, self.nodes.text(score.node), self.y + HEADING + row + 0.5
        hover = [f"{word}: {hovered(score)}" + (", the most likely" if row == 0 else ""), seen]
        look = {"state": "chosen" if taken else "pruned", "fill": "filled" if taken else "tint"}
        ops = [
            self._cell(f"n{node}", TOKEN, y, word, hover, **look, node=node),
            self._cell(f"a{node}", columns["seen ahead"], y, seen, hover, state="pruned", fill="tint"),
        ]
        for name, (text, amount) in cells.items():
            # words stay readable
            shade = {"state": "prompt", "fill": "amount", "weight": round(amount / 2, 4)}
            ops.append(self._cell(f"{name[0]}{node}", columns[name], y, text, hover, **shade))
        return ops

    def _cell(
        self, name: str, place: tuple[float, int], y: float, text: str, hover: list[str], **look: Any
    ) -> Op:
        x, wide = place
        where = {"panel": "tables", "x": x + wide / 2, "y": round(y, 3), "w": wide - 0.08, "h": CELL}
        return scene.Cell(name, **where, text=text, hover=hover, **look)


def hovered(score) -> str:
    """The numbers of a candidate in words."""
    if "value" not in score.parts:
        return f"mean log p {score.total:.2f}, rank {score.rank}".replace("-", "−")
    parts = f"log p {score.parts['logprob']:.2f}, value {score.parts['value']:.3f}"
    return f"{parts}, total {score.total:.2f}, rank {score.rank}".replace("-", "−")


def mean_of(score) -> dict[str, tuple[str, float]]:
    """The mean log-probability of a candidate and what follows it, as a probability."""
    value = math.exp(min(0.0, score.total))
    return {"mean": (f"{value:.2f}".removeprefix("0"), value)}


def numbers(score, best: float) -> dict[str, tuple[str, float]]:
    """log p, value and total of a candidate; `best`: the largest total of all."""
    logprob, value = score.parts["logprob"], score.parts["value"]
    return {
        "log p": (f"{logprob:.2f}".replace("-", "−"), math.exp(min(0.0, logprob))),
        "value": (f"{value:.2f}", min(1.0, max(0.0, value))),
        "total": (f"{score.total:.2f}".replace("-", "−"), math.exp(score.total - best)),
    }
