"""Miniatures: the idea of a paper from another field on points in the plane, computed in a few seconds.

A file of this folder is a miniature: its docstring has the title and a description, `PAPER` is the slug of
the paper, and `story()` computes its `Story`. It does not implement the paper, and its card says so.
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
    """Points that move: `frames` [N, 2], one per step.

    `names`: the name of each step; `shades` [N] per step, from 0 (pale) to 1 (dark); `edges`: pairs of points
    that are joined by a line; `behind` [M, 2]: points that do not move, such as the data.
    """

    title: str
    frames: list[np.ndarray]
    names: list[str]
    shades: list[np.ndarray] | None = None
    edges: list[tuple[int, int]] = field(default_factory=list)
    behind: np.ndarray | None = None


@dataclass(frozen=True)
class Story:
    """What a miniature shows: panels, each with a slider, sentences with its numbers, optionally curves."""

    panels: list[Panel]
    says: list[str]
    chart: Chart | None = None


@dataclass(frozen=True)
class Miniature:
    """The idea of one paper, as figures that one can step through."""

    name: str
    title: str
    asks: str
    paper: str
    story: Callable[[], Story]


@cache
def miniatures() -> dict[str, Miniature]:
    """Slug of a paper -> its miniature."""
    by_paper = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        if not hasattr(module, "story"):
            continue  # a helper of several miniatures
        title, _, asks = (module.__doc__ or "").partition("\n\n")
        name = info.name.replace("_", "-")
        title, asks = " ".join(title.split()).removesuffix("."), " ".join(asks.split())
        by_paper[module.PAPER] = Miniature(name, title, asks, module.PAPER, module.story)
    return by_paper


@cache
def story_of(slug: str) -> Story:
    """The story of the miniature of a paper, computed once. KeyError for a paper without one."""
    return miniatures()[slug].story()
