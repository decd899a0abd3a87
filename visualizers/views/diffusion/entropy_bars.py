"""Bars of the entropies of masks in one forward, and the tokens below them, for views that show why some were
filled.
"""

import math

from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.scene.layout import heading, token_line
from visualizers.scene.marks import Op
from visualizers.scene.view import Header
from visualizers.views.diffusion.cell_states import FILLED, hover

WAITING = {"state": "prompt", "fill": "tint"}
FILLED_NOW = {"state": "accepted", "fill": "filled"}


def panels() -> list[Op]:
    """Heading, entropies and tokens, one below the other."""
    return [
        heading(),
        scene.Panel("entropies", y0=1, y1=0, share=1, ticks=ticks(1.0)),
        token_line(),
    ]


def word(header: Header, token: int) -> str:
    """A token as text."""
    return visible(header.vocabulary.get(token, b"?"))


def ceiling(highest: float) -> float:
    """A little above the highest value that is drawn, in nats."""
    return round(1.12 * max(highest, 0.05), 4)


def ticks(top: float) -> list:
    """[value, text] pairs from 0 up to `top`, at most five."""
    every = next(
        step * 10.0**power for power in range(-2, 3) for step in (1, 2, 5) if top / (step * 10.0**power) <= 4
    )
    places = max(0, -math.floor(math.log10(every)))
    return [[round(at * every, 4), f"{at * every:.{places}f}"] for at in range(int(top / every) + 1)]


def bar(header: Header, key: str, x: int, cell) -> list[Op]:
    """The bar of one mask and its token; `cell` is its Cell of this forward."""
    shown, filled = word(header, cell.token), cell.state in FILLED
    words = {"hover": hover(cell, shown)}
    height = {"x": x, "y0": 0, "y1": round(cell.entropy, 4), "w": 0.56, "rank": 0 if filled else 2}
    look = FILLED_NOW if filled else WAITING
    place = {"x": x, "y": 0, "w": 0.96, "h": 0.86}
    return [
        scene.Bar(f"b{key}", panel="entropies", **height, **words),
        scene.Cell(f"t{key}", panel="tokens", **place, **look, text=shown, **words),
    ]


def line(key: str, points: list, role: str, dashed: bool = False) -> Op:
    """A polyline in the panel of the entropies."""
    rounded = [[x, round(y, 4)] for x, y in points]
    style = {"role": role, "width": 1.8} | ({"dash": "dash"} if dashed else {})
    return scene.Path(key, panel="entropies", points=rounded, **style)
