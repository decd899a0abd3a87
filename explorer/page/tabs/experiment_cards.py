"""The catalogue of the tab Experiments as HTML: groups of cards, each with a small picture of its result, a
title, and the finding. A card is a link, so that it can be copied and opened with the keyboard.

Takes plain answers (assets/experiments).
"""

import html
import math
from collections.abc import Callable

from explorer.catalog import search
from explorer.experiments.groups import GROUPS

LINK, ALL = "#experiment=", "#experiments"  # fragments of the page's address: one experiment, all of them
WIDE, HIGH, EDGE = 116, 68, 5  # width, height and margin of a picture
DASHES = ("", "5 3", "1.5 3", "8 3 1.5 3")
MAX_ROWS, MAX_COLUMNS = 14, 9  # of a picture of a table
MAX_QUOTED = 60  # characters of a search that are quoted


def catalogue(answers: list[dict], words: str) -> str:
    """The cards that match a search, by group; without search words all, the most surprising first, and on a
    phone the first of each group (assets/web/page/long-lists.js).
    """
    groups = grouped(answers)
    fits = [
        (title, cards)
        for title, members in groups.items()
        if (cards := search.best(members, words, search_terms))
    ]
    if not fits:
        return f"<p>No experiment matches “{html.escape(words.strip()[:MAX_QUOTED])}”. Try fewer words.</p>"
    if words.strip():
        return "".join(f"<h3>{html.escape(title)}</h3>{listed(cards)}" for title, cards in fits)
    return "".join(
        f"<h3>{html.escape(title)}</h3>{listed(cards, 'long-list')}"
        f'<button type="button" class="rest-of-list">Show all {len(cards)} of this group</button>'
        for title, cards in fits
    )


def listed(answers: list[dict], look: str = "") -> str:
    """Cards as a list."""
    return f'<ul class="{look}">{"".join(map(card, answers))}</ul>'


def grouped(answers: list[dict]) -> dict[str, list[dict]]:
    """Maps each group to its answers, in order; answers without a group come last."""
    known = {answer["name"]: answer for answer in answers}
    groups = {title: [known.pop(name) for name in names if name in known] for title, names in GROUPS.items()}
    return groups | ({"Others": list(known.values())} if known else {})


def search_terms(answer: dict) -> list[str]:
    """The texts in which a search looks, by weight: names, the finding, and everything else."""
    group = next((title for title, names in GROUPS.items() if answer["name"] in names), "")
    return [
        f"{answer['title']} {answer['name'].replace('-', ' ')}",
        answer["finding"],
        " ".join([answer["asks"], *answer["says"], *answer["columns"], group]),
    ]


def card(answer: dict) -> str:
    """The card of an experiment, which is a link to it."""
    title, finding = html.escape(answer["title"]), html.escape(answer["finding"])
    return (
        f'<li><a href="{LINK}{html.escape(answer["name"])}">{picture(answer)}'
        f"<span><b>{title}</b> {finding}</span></a></li>"
    )


# ---- pictures ----------------------------------------------------------------------------------------------


def picture(answer: dict) -> str:
    """A small picture without text: the answer's curves, or its table as shades."""
    drawn = curves(answer["chart"]) if answer.get("chart") else shades(answer)
    return f'<svg viewBox="0 0 {WIDE} {HIGH}" aria-hidden="true">{drawn}</svg>'


def curves(chart: dict) -> str:
    """The lines of a chart; the first one is drawn stronger."""
    place = math.log if chart.get("log") else float
    lines = [
        [(place(point[0]), point[1]) for point in line["points"] if point[1] is not None]
        for line in chart["lines"]
    ]
    across, up = scale([x for line in lines for x, _ in line]), scale([y for line in lines for _, y in line])
    drawn = []
    for at, line in reversed(list(enumerate(lines))):
        points = [
            (EDGE + (WIDE - 2 * EDGE) * across(x), HIGH - EDGE - (HIGH - 2 * EDGE) * up(y)) for x, y in line
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        drawn.append(
            f'<polyline class="{"first" if at == 0 else ""}" stroke-dasharray="{dash(at)}" points="{path}"/>'
        )
        if len(points) < 13:
            drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2 if at == 0 else 1.5}"/>' for x, y in points]
    return "".join(drawn)


def dash(at: int) -> str:
    """The dash pattern of a line, by its index."""
    return DASHES[at % len(DASHES)]


def shades(answer: dict) -> str:
    """The numbers of a table, column by column, as shades."""
    columns = [shares(column) for column in zip(*answer["rows"], strict=True) if is_numbers(column)]
    columns = columns[:MAX_COLUMNS]
    every = max(1, math.ceil(len(answer["rows"]) / MAX_ROWS))
    columns = [column[::every] for column in columns]
    wide, high = (WIDE - 2 * EDGE) / len(columns), (HIGH - 2 * EDGE) / len(columns[0])
    return "".join(
        f'<rect x="{EDGE + wide * x:.1f}" y="{EDGE + high * y:.1f}" width="{wide - 1:.1f}" '
        f'height="{high - 0.6:.1f}" fill-opacity="{0.08 + 0.7 * share:.2f}"/>'
        for x, column in enumerate(columns)
        for y, share in enumerate(column)
        if share is not None
    )


def is_numbers(column: tuple) -> bool:
    """Whether a column holds numbers, at least one of them."""
    return not any(isinstance(cell, str) for cell in column) and any(cell is not None for cell in column)


def shares(column: tuple) -> list[float | None]:
    """Scales the values of a column to [0, 1]; None stays None."""
    place = scale([cell for cell in column if cell is not None])
    return [None if cell is None else place(cell) for cell in column]


def scale(values: list[float]) -> Callable[[float], float]:
    """Returns a function that maps the range of `values` to [0, 1]; it returns 0.5 if all are equal."""
    low, high = min(values), max(values)
    return lambda value: 0.5 if low == high else (value - low) / (high - low)
