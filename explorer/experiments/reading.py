"""How a finding reads the table of an answer: rows by column names, shares and changes in words.

A finding is one sentence that a newcomer understands. Every number in it, and every word that compares, comes
from the table, so that measuring an answer again cannot leave a false sentence behind.
"""

import re
from collections.abc import Callable, Iterable

Row = dict[str, str | int | float | None]


def rows_of(answer: dict) -> list[Row]:
    """The rows of an answer's table, by column name."""
    return [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]


def rows_with(answer: dict, column: str, value: object) -> list[Row]:
    """The rows with this value in this column, in order."""
    return [row for row in rows_of(answer) if row[column] == value]


def grouped(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    """Value of a column -> the rows with this value, in order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[column], []).append(row)
    return groups


def highest(rows: Iterable[Row], column: str) -> Row:
    """The row with the highest value in a column; the first of several."""
    return max(rows, key=lambda row: row[column])


def lowest(rows: Iterable[Row], column: str) -> Row:
    """The row with the lowest value in a column; the first of several."""
    return min(rows, key=lambda row: row[column])


def percent(share: float) -> str:
    """`74%`; below one percent with a decimal, so that a small share is not printed as `0%`."""
    return f"{share:.1%}" if 0 < share < 0.01 else f"{share:.0%}"


def two(value: float) -> str:
    """A number with two decimals and a true minus sign."""
    return f"{value:.2f}".replace("-", "−")


def minus(sentence: str) -> str:
    """A sentence whose negative numbers have a true minus sign."""
    return re.sub(r"(?<=[ (])-(?=[\d.])", "−", sentence)


def moved(before: float, after: float, form: Callable[[float], str] = two) -> str:
    """`rises from 61% to 98%`; `stays at` if both print the same."""
    old, new = form(before), form(after)
    if old == new:
        return f"stays at {new}"
    return f"{'rises' if after > before else 'falls'} from {old} to {new}"


def count(number: int, noun: str) -> str:
    """`1 layer`, `3 layers`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
