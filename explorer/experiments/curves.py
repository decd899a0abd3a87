"""Charts that are declared by the columns of a table from which their curves are drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.experiments.pictures import Chart, Line
from explorer.experiments.reading import Row

Column = str | Callable[[Row], Any]  # a column of the table, or what follows from a row
Points = tuple[Column, ...]  # position and value, and perhaps the two ends of the value's interval


def every(row: Row) -> bool:
    """Draws all rows."""
    return True


@dataclass(frozen=True)
class Curves:
    """One curve for each of `lines`, label -> columns. x, y: what the axes say; where: which rows are drawn;
    log: whether the x axis is logarithmic.
    """

    title: str
    x: str
    y: str
    lines: dict[str, Points]
    where: Callable[[Row], bool] = every
    log: bool = False

    def __call__(self, rows: list[Row]) -> Chart:
        """The chart of a table's rows."""
        drawn = [row for row in rows if self.where(row)]
        lines = [Line(label, line(drawn, points)) for label, points in self.lines.items()]
        return Chart(self.title, self.x, self.y, lines, self.log)


def over_temperatures(
    title: str, column: str, temperatures: dict[str, float], measures: tuple[str, ...]
) -> Curves:
    """One curve for each measure, over the temperature that a setting, named in `column`, has."""
    lines = {measure: (lambda row: temperatures[row[column]], measure) for measure in measures}
    return Curves(title, "temperature", "share", lines, where=lambda row: row[column] in temperatures)


@dataclass(frozen=True)
class CurvesBy:
    """One curve for each value of `by`, in the order of the rows. The other fields are those of `Curves`."""

    title: str
    x: str
    y: str
    by: Column
    points: Points
    where: Callable[[Row], bool] = every
    log: bool = False

    def __call__(self, rows: list[Row]) -> Chart:
        """The chart of a table's rows."""
        groups: dict[str, list[Row]] = {}
        for row in filter(self.where, rows):
            groups.setdefault(cell(row, self.by), []).append(row)
        lines = [Line(label, line(some, self.points)) for label, some in groups.items()]
        return Chart(self.title, self.x, self.y, lines, self.log)


def cell(row: Row, column: Column) -> Any:
    """The value of a row in a column."""
    return column(row) if callable(column) else row[column]


def line(rows: list[Row], points: Points) -> list[list[float | None]]:
    """The points of a curve, from left to right."""
    return sorted([cell(row, column) for column in points] for row in rows)
