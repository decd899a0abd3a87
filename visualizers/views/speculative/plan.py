"""Plan: the table that a method filled before it chose, and its choice.

A fold over Table (values by numbers of nodes or of skipped layers): one row per event, named by its level.
All such events of a step are one table.
"""

import math

from decoders.trace.scores import Table
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout, heading, scroll_row
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, has, view

HEADER, GAP, CELL = 1.0, 0.5, 0.92  # heights in rows: numbers of columns, space below a table, a cell
DARKEST = 0.5  # so that numbers on grey stay readable
# Names of the scores that are read, the second one in older traces; name of a part.
UNITS = ("nodes", "skipped")  # columns of the tables that are read


@view("plan", "Plan", reads=has(Table, unit=set(UNITS)))
class Plan:
    """x: the columns of the tables; y: tables as they were made, and in each its rows."""

    def __init__(self, header: Header):
        self.y, self.tables = 0.0, 0

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Columns(
            question="What was the value of each choice? Which one was taken?",
            column=sizes.SHORT,
            ops=[
                heading(),
                scene.Panel("tables", y0=-0.1, y1=8, share=1, grow=True),
            ],
            row=sizes.LINE,
            row_min=13,
            row_tall=30,
            wide=46,
            widest=80,
            left=78,
            left_narrow=60,
            axis=None,
            clip=True,
            legend=[
                ["cell:amount", "▪", "soft", "value; darker: higher"],
                ["cell:chosen", "▣", "chosen", "taken"],
            ],
            overview=None,
        )

    def feed(self, step) -> list[Op]:
        """A table, if this step filled one."""
        rows = [(event, columns(event)) for event in step.of(Table) if event.unit in UNITS and event.rows]
        if not rows:
            return []
        self.tables += 1
        first = min(min(numbered) for _, numbered in rows)
        values = [value for _, numbered in rows for value in numbered.values()]
        high = max(values)
        # all values below it are palest
        low = min((value for value in values if value > high / 2), default=high)
        top = self.y + HEADER
        ops = [scroll_row(self.tables, "tables", self.y, top), *self._names(rows, first)]
        taken = []
        for at, (event, numbered) in enumerate(rows):
            y = round(top + at + CELL / 2, 4)
            line = {"y0": round(top + at, 4), "y1": round(top + at + CELL, 4), "text": event.level or ""}
            ops.append(scene.Row(f"r{self.tables}.{at}", panel="tables", **line, rule=False))
            for number, value in numbered.items():
                chosen = event.chosen == number
                shade = DARKEST * max(0.0, value - low) / (high - low) if high > low else 0.0
                look = {"state": "prompt", "fill": "amount", "weight": round(shade, 4)}
                if chosen:
                    look = {"state": "chosen", "fill": "outline"}
                    taken.append((number - first + 1, y))
                words = f"{event.level}, {event.unit} {number}: {event.name} {shown(value, 4)}"
                text = {"text": shown(value, 2), "hover": [words, *(["taken"] if chosen else [])]}
                place = {"panel": "tables", "x": number - first + 1, "y": y, "w": 1, "h": CELL}
                ops.append(scene.Cell(f"c{self.tables}.{at}.{number}", **place, **look, **text))
        self.y = round(top + len(rows) + GAP, 4)
        front = [taken[-1][0] if taken else 1, self.y - GAP]
        return [*ops, self._heading(rows), scene.Front(*front), scene.Say(f"{self._words(rows)}.")]

    def _names(self, rows, first: int) -> list[Op]:
        """Above each column its number."""
        ops = []
        for number in sorted({number for _, numbered in rows for number in numbered}):
            at = {"x": number - first + 1, "y": self.y + HEADER - 0.5, "text": str(number), "priority": 3}
            ops.append(scene.Label(f"n{self.tables}.{number}", panel="tables", **at))
        return ops

    def _words(self, rows) -> str:
        """`Table 1: tokens per round, by nodes`."""
        return f"Table {self.tables}: {rows[0][0].name}, by {rows[0][0].unit}"

    def _heading(self, rows) -> Op:
        """What the newest table compares, and the choice in its last row that has one."""
        event, numbered = next(pair for pair in reversed(rows) if pair[0].chosen is not None)
        number = event.chosen
        rest = f"; taken: {event.unit} {number}, {event.level}, {shown(numbered[number], 3)}."
        return scene.Change("heading", lead=self._words(rows), heading=rest)


def columns(row: Table) -> dict[int, float]:
    """Column -> value."""
    return {number: values[0] for number, values in row.by_number.items()}


def shown(value: float, places: int) -> str:
    """`.98`, `3.04`, `−.20`."""
    text = f"{value:.{places}f}".replace("-", "−")
    return text.replace("0.", ".", 1) if math.fabs(value) < 1 else text
