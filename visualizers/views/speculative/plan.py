"""Plan: the table that a method filled before it chose, and its choice.

A fold over Score ("tokens per round" and "cosine" whose parts hold columns by number, as `nodes 3`): one row
per score, named by its level; its part `chosen` is the chosen column. All such scores of a step are one
table. Knows no strategy.
"""

import math

from decoders.trace.events import Score
from visualizers.scene.marks import Header, Op, scroll_row, view

HEADER, GAP, CELL = 1.0, 0.5, 0.92  # heights in rows: numbers of columns, space below a table, a cell
DARKEST = 0.5  # so that numbers on grey stay readable
# Names of the scores that are read, the second one in older traces; name of a part.
NAMES, CHOSEN = ("tokens per round", "tokens a round", "cosine"), "chosen"


@view("plan", "Plan")
class Plan:
    """x: the columns of the tables; y: tables as they were made, and in each its rows."""

    def __init__(self, header: Header):
        self.y, self.tables = 0.0, 0

    def head(self) -> dict:
        """Title, question, layout and legend."""
        return {
            "title": self.title,
            "question": "What was the value of each choice? Which one was taken?",
            "ops": [
                {"id": "heading", "kind": "panel", "y0": 0, "y1": 1, "px": 20, "px_narrow": 36},
                {"id": "tables", "kind": "panel", "y0": -0.1, "y1": 8, "share": 1, "grow": True},
            ],
            "first": 1,
            "row": 18,
            "row_min": 13,
            "row_tall": 30,
            "column": 40,
            "wide": 46,
            "widest": 80,
            "left": 78,
            "left_narrow": 60,
            "right": 8,
            "axis": None,
            "clip": True,
            "legend": [
                ["cell:amount", "▪", "soft", "value, the darker the higher"],
                ["cell:chosen", "▣", "chosen", "taken"],
            ],
        }

    def feed(self, step) -> list[Op]:
        """A table, if this step filled one."""
        rows = [(event, columns(event)) for event in step.events if isinstance(event, Score)]
        rows = [(event, sizes) for event, sizes in rows if sizes]
        if not rows:
            return []
        self.tables += 1
        first = min(min(sizes) for _, sizes in rows)
        values = [value for _, sizes in rows for value in sizes.values()]
        high = max(values)
        # all values below it are palest
        low = min((value for value in values if value > high / 2), default=high)
        top = self.y + HEADER
        ops = [scroll_row(self.tables, "tables", self.y, top), *self._names(rows, first)]
        taken = []
        for at, (event, sizes) in enumerate(rows):
            y = round(top + at + CELL / 2, 4)
            line = {"y0": round(top + at, 4), "y1": round(top + at + CELL, 4), "text": event.level or ""}
            ops.append(
                {"id": f"r{self.tables}.{at}", "kind": "row", "panel": "tables", **line, "rule": False}
            )
            for number, value in sizes.items():
                chosen = event.parts.get(CHOSEN) == number
                shade = DARKEST * max(0.0, value - low) / (high - low) if high > low else 0.0
                look = {"state": "prompt", "fill": "amount", "weight": round(shade, 4)}
                if chosen:
                    look = {"state": "chosen", "fill": "outline"}
                    taken.append((number - first + 1, y))
                words = f"{event.level}, {column_name(event)} {number}: {event.name} {shown(value, 4)}"
                text = {"text": shown(value, 2), "hover": [words, *(["taken"] if chosen else [])]}
                place = {"panel": "tables", "x": number - first + 1, "y": y, "w": 1, "h": CELL}
                ops.append({"id": f"c{self.tables}.{at}.{number}", "kind": "cell", **place, **look, **text})
        self.y = round(top + len(rows) + GAP, 4)
        front = [taken[-1][0] if taken else 1, self.y - GAP]
        return [*ops, self._heading(rows), {"front": front}, {"say": f"{self._words(rows)}."}]

    def _names(self, rows, first: int) -> list[Op]:
        """Above each column its number."""
        ops = []
        for number in sorted({number for _, sizes in rows for number in sizes}):
            at = {"x": number - first + 1, "y": self.y + HEADER - 0.5, "text": str(number), "priority": 3}
            ops.append({"id": f"n{self.tables}.{number}", "kind": "label", "panel": "tables", **at})
        return ops

    def _words(self, rows) -> str:
        """`Table 1: tokens per round, by nodes`."""
        return f"Table {self.tables}: {rows[0][0].name.replace(' a ', ' per ')}, by {column_name(rows[0][0])}"

    def _heading(self, rows) -> Op:
        """What the newest table compares, and the choice in its last row that has one."""
        event, sizes = next(pair for pair in reversed(rows) if CHOSEN in pair[0].parts)
        number = int(event.parts[CHOSEN])
        rest = f"; taken: {column_name(event)} {number}, {event.level}, {shown(sizes[number], 3)}."
        return {"id": "heading", "set": {"lead": self._words(rows), "heading": rest}}


def columns(score) -> dict[int, float]:
    """Column -> value, of a score that is a row of a table; empty for all others."""
    parts = {name: value for name, value in score.parts.items() if name != CHOSEN}
    return {int(name.split()[-1]): value for name, value in parts.items()} if score.name in NAMES else {}


def column_name(score) -> str:
    """`nodes` of `nodes 3`."""
    return next(name.rpartition(" ")[0] for name in score.parts if name != CHOSEN)


def shown(value: float, places: int) -> str:
    """`.98`, `3.04`, `−.20`."""
    text = f"{value:.{places}f}".replace("-", "−")
    return text.replace("0.", ".", 1) if math.fabs(value) < 1 else text
