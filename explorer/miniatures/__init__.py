"""Miniatures: the idea of a far paper on points in the plane, small enough to be computed while one waits.

A file of this folder is a miniature: its docstring is the title and what one sees, `PAPER` the slug whose
idea it shows, `tell()` computes its `Story`. It is not the paper: its card says so. Knows none of them by
name.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from explorer.experiments.pictures import Chart


@dataclass(frozen=True)
class Panel:
    """A cloud of points that moves: `frames` [N, 2], one per step; the last one stays while others continue.

    `names`: what each step is; `shades` of the points per step, from 0 (pale) to 1 (dark); `edges`: pairs of
    points that are joined; `after` [M, 2]: points that stay, such as the data.
    """

    title: str
    frames: list[np.ndarray]
    names: list[str]
    shades: list[np.ndarray] | None = None
    edges: list[tuple[int, int]] = field(default_factory=list)
    behind: np.ndarray | None = None


@dataclass(frozen=True)
class Story:
    """What a miniature shows: panels, each with a slider, sentences with its numbers, perhaps curves."""

    panels: list[Panel]
    says: list[str]
    chart: Chart | None = None


@dataclass(frozen=True)
class Miniature:
    """The idea of one paper, as something that one can step through."""

    name: str
    title: str
    asks: str
    paper: str
    tell: Callable[[], Story]


@cache
def miniatures() -> dict[str, Miniature]:
    """All miniatures by the slug of their paper."""
    by_paper = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        if not hasattr(module, "tell"):
            continue  # what several share
        title, _, asks = (module.__doc__ or "").partition("\n\n")
        name = info.name.replace("_", "-")
        by_paper[module.PAPER] = Miniature(
            name, " ".join(title.split()).removesuffix("."), " ".join(asks.split()), module.PAPER, module.tell
        )
    return by_paper


@cache
def told(slug: str) -> Story:
    """The story of the miniature of a paper, computed once. KeyError for a paper without one."""
    return miniatures()[slug].tell()
