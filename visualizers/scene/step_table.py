"""Steps as tables: a table for each step, below each other, in columns that a view declares.

A view of this kind has a `layout`, and its `table(step)` says what stands in which column at each step; the
base class draws.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from decoders.trace.events import Step
from visualizers.scene.layout import Layout, scroll_row
from visualizers.scene.marks import Cell, Change, Front, Label, Op, Panel, Say
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header

PANEL = "tables"
NAMES, CELL, GAP = (
    0.9,
    0.9,
    0.35,
)  # heights in rows: the names of the columns, a cell, the space below a table
BETWEEN = 0.08  # columns of the layout between two cells
DARKEST = 0.5  # grey of an amount of 1, so that words on it stay readable


@dataclass(frozen=True)
class Column:
    """Where a column begins, how many columns of the layout it takes, and its name; `strong`: in ink."""

    x: float
    w: float
    name: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Entry:
    """What stands in a column of a row. `amount`: a grey, 0 to 1, where it has no other state and fill."""

    id: str
    column: Column
    text: str
    hover: list[str]
    amount: float = 0.0
    state: str = "prompt"
    fill: str = "amount"
    node: int | None = None


@dataclass(frozen=True)
class Words:
    """A text that runs on to the right of a row. `strong`: in ink."""

    id: str
    x: float
    text: str
    strong: bool
    node: int


@dataclass(frozen=True)
class Contents:
    """The table of a step. `says`: the step in words; `heading`: the sentence above the picture, as lead,
    rest and a short form of the rest; `front`: the row that has to be in sight, the last one if left out;
    `note`: a hover of the names.
    """

    columns: list[Column]
    rows: list[list[Entry | Words]]
    says: str
    heading: tuple[str, str, str] | None = None
    front: int | None = None
    note: str = ""


class StepTable(ABC):
    """The base of such views. `layout`: question, columns and legend; the panel is added."""

    layout: ClassVar[Layout]

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.y, self.tables = 0.0, 0

    def head(self) -> Layout:
        """The layout with its panel."""
        panel = Panel(PANEL, y0=-0.1, y1=8, share=1, grow=True)
        return replace(self.layout, ops=[*self.layout.ops, panel])

    @abstractmethod
    def table(self, step: Step) -> Contents | None:
        """What a step has to show, None if nothing."""

    def feed(self, step: Step) -> list[Op]:
        """The table of one step: the names of its columns, then its rows."""
        made = self.table(step)
        if made is None:
            return []
        self.tables += 1
        top = self.y + NAMES
        ops = [scroll_row(self.tables, PANEL, self.y, top), *self._names(made, self.y + NAMES / 2)]
        for row, entries in enumerate(made.rows):
            ops += [self._drawn(entry, round(top + row + 0.5, 3)) for entry in entries]
        self.y = top + len(made.rows) + GAP
        if made.heading is not None:
            lead, rest, short = made.heading
            ops.append(Change("heading", lead=lead, heading=rest, short=short))
        front = self.y if made.front is None else min(self.y, top + made.front)
        return [*ops, Front(1, front), Say(made.says)]

    def _names(self, made: Contents, y: float) -> list[Op]:
        """The names of the columns."""
        hover = [made.note] if made.note else None
        return [
            Label(
                f"h{self.tables}.{at}",
                panel=PANEL,
                x=round(column.x + column.w / 2, 3),
                y=round(y, 3),
                w=column.w,
                text=column.name,
                role="ink" if column.strong else "soft",
                bold=column.strong,
                align="center",
                priority=0,
                hover=hover,
            )
            for at, column in enumerate(made.columns)
        ]

    def _drawn(self, entry: Entry | Words, y: float) -> Op:
        """One entry of a row."""
        if isinstance(entry, Words):
            return Label(
                entry.id,
                panel=PANEL,
                x=entry.x,
                y=y,
                text=entry.text,
                align="left",
                face="sans",
                role="ink" if entry.strong else "soft",
                bold=entry.strong,
                node=entry.node,
            )
        column = entry.column
        return Cell(
            entry.id,
            panel=PANEL,
            x=round(column.x + column.w / 2, 3),
            y=y,
            w=column.w - BETWEEN,
            h=CELL,
            state=entry.state,
            fill=entry.fill,
            weight=round(DARKEST * min(1.0, entry.amount), 4),
            text=entry.text,
            hover=entry.hover,
            node=entry.node,
        )
