"""How the scene of a view is laid out: its columns, rows, gutters and panels, and its legend."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from visualizers.scene import sizes
from visualizers.scene.marks import Mark, Number, Op, Panel, Row


@dataclass(slots=True, kw_only=True)
class Layout:
    """What the player asks of a view before its first step. Sizes are pixels; NAME_narrow: on a phone.

    question: what the picture answers. ops: marks that are there before the first step. legend: entries
    [key, glyph, role, text], shown when a mark with that key, "kind:state" ("cell:rejected"; kinds without
    state use their role or glyph), is in the window; role is a state, ink or soft.

    first: the leftmost column. column: its least width (wide: on wide screens; widest: its greatest; tight:
    narrowed to it so that all columns fit; tightest: so that all up to the front fit). columns: most columns
    expected; "seen": as many as any step so far had; "panel": as many as panels say. steady: a front that
    goes back leaves the window as wide as it was, and it widens by thirds. span: x is time, all of which is
    shown, from a zero that lanes share. by_depth: on a phone x is the marks' `depth`, in that many columns,
    and only the panel that grows is drawn. turn: columns after which edges turn; notes end before.

    row: a row's least height. rows: most rows there can be; without it rows grow downwards and scroll.
    row_min, row_tall: heights to which rows are lowered or raised so that they fill their panel. gap: between
    panels. left, right: gutters. clip: marks end at the right gutter. fold: nodes left of the window are
    folded into a straight spine. fold_rows: what becomes of rows above those that are open: "stairs" without
    text, or one row of what was "settled" there.

    overview: how the strip below shows the whole run: "rows" unchanged, "piled" marks of a column, "amount"
    of a step as a grey; without it there is no strip. patched: words have a patch of background. notes:
    "under": notes stand below their node's row, not beside it. note_title: what notes at the front are. axis:
    the title of x; None: no ticks.
    """

    question: str
    ops: list[Mark] = field(default_factory=list)
    legend: list[list[str]] = field(default_factory=list)
    first: int | None = None
    columns: int | str | None = None
    column: Number | None = None
    column_narrow: Number | None = None
    wide: Number | None = None
    widest: Number | None = None
    tight: Number | None = None
    tightest: Number | None = None
    tightest_narrow: Number | None = None
    steady: bool | None = None
    span: bool | None = None
    by_depth: int | None = None
    turn: float | None = None
    row: Number | None = None
    rows: Number | None = None
    row_min: Number | None = None
    row_tall: Number | None = None
    gap: Number | None = None
    left: Number | None = None
    left_narrow: Number | None = None
    right: Number | None = None
    right_narrow: Number | None = None
    clip: bool | None = None
    fold: bool | None = None
    fold_rows: str | None = None
    overview: str | None = None
    patched: bool | None = None
    notes: str | None = None
    note_title: str | None = None
    axis: str | None = "token position"

    def to_json(self) -> dict[str, Any]:
        """As the player reads it: without what is not set; `axis` is always there."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        said = {name: value for name, value in own.items() if value is not None}
        return {**said, "axis": self.axis, "ops": to_json(self.ops)}


@dataclass(slots=True, kw_only=True)
class Columns(Layout):
    """A column for each token; above each other, what is said of it."""

    first: int | None = 1
    column: Number | None = sizes.TOKEN
    right: Number | None = sizes.MARGIN
    overview: str | None = "amount"


@dataclass(slots=True, kw_only=True)
class Rounds(Layout):
    """Rounds, iterations or steps below each other, in columns of tokens."""

    first: int | None = 1
    column: Number | None = sizes.TOKEN
    row: Number | None = sizes.ROW
    right: Number | None = sizes.MARGIN
    overview: str | None = "piled"


@dataclass(slots=True, kw_only=True)
class Table(Layout):
    """A table for each step, below each other, in columns of its own."""

    first: int | None = 1
    row: Number | None = sizes.ROW
    left: Number | None = sizes.MARGIN
    right: Number | None = sizes.MARGIN
    clip: bool | None = True
    axis: str | None = None


@dataclass(slots=True, kw_only=True)
class Tree(Layout):
    """Branches that grow to the right."""

    first: int | None = 0
    left: Number | None = sizes.MARGIN
    overview: str | None = "rows"


@dataclass(slots=True, kw_only=True)
class Graph(Layout):
    """Boxes that stay where they are, and what leads from one to another."""

    left: Number | None = sizes.MARGIN
    right: Number | None = sizes.MARGIN
    axis: str | None = None


def heading(
    lead: str | None = None,
    heading: str | None = None,
    short: str | None = None,
    px_narrow: int | None = sizes.HEADING_NARROW,
) -> Panel:
    """The line above a picture that says what has come out so far; two lines on a phone."""
    return Panel(
        "heading",
        panel="heading",
        y0=0,
        y1=1,
        px=sizes.HEADING,
        px_narrow=px_narrow,
        lead=lead,
        heading=heading,
        short=short,
    )


def token_line() -> Panel:
    """The line with the tokens of the text."""
    return Panel("tokens", y0=-0.55, y1=0.55, px=sizes.TOKENS)


def to_json(ops: Iterable[Op]) -> list[dict[str, Any]]:
    """Ops as the player reads them."""
    return [op.to_json() for op in ops]


def scroll_row(number: int, panel: str, y0: float, y1: float) -> Row:
    """A row without a name: a window that scrolls may begin there."""
    return Row(f"r{number}", panel=panel, y0=round(y0, 3), y1=round(y1, 3), rule=False, text="")
