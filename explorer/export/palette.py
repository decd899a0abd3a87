"""The palette that Python and the browser share (assets/palette.json), prepared for a page: each theme's
colours by purpose, and CSS variables. No script and no style sheet defines a colour of its own.
"""

import json

from explorer.export.page_files import ASSETS

ARCS = 6  # widths of arcs, each with its own colour, see assets/web/player/charts.js


CLEAR = "rgba(0,0,0,0)"
# The look of nodes, in drawing order: symbol, size in pixels, size where rows are low, line width, and
# whether the node is hollow.
NODES = {
    "prompt": ("circle", 4, 4, 0, False),
    "unreached": ("circle", 5.5, 5.5, 1.2, True),
    "pruned": ("circle", 4, 4, 0, False),
    "finished": ("square", 9, 6, 0, False),
    "rejected": ("x-thin", 9, 9, 2.2, False),
    "bonus": ("star", 13, 13, 0, False),
    "resampled": ("diamond", 11, 11, 0, False),
    "tolerated": ("circle", 9, 9, 0, False),
    "accepted": ("circle", 9, 9, 0, False),
    "forced": ("pentagon", 11, 11, 0, False),
    "chosen": ("circle", 7, 5, 0, False),
    "ended": ("x-thin", 8, 5, 1.8, False),
    "live": ("circle", 7, 5, 1.8, True),
    "live front": ("circle", 10, 7, 0, False),
    "chosen front": ("circle", 11, 8, 0, False),
}
LOW_LINE = {"ended": 1.2}  # the line width where rows are low, if it differs


def palette() -> dict[str, dict]:
    """The colours and looks with which the player draws, by theme.

    surface, amount, ranks, state, link   as in the file; states also have the colour of their edges
    roles     the colour of every role that a mark can name
    arcs      the colours of the six widths of an arc; faint: the colour of a weak hook
    strip     the colours of boxes in the strip below a picture, by what a box stands for
    nodes     the looks of nodes: `{rank, drawn}`, drawn for high rows and for low rows
    cells     state -> fill -> colour, line, and the cell's name in the strip. A filled cell has the state;
              an outlined or tinted one is only close to it
    """
    every = json.loads((ASSETS / "palette.json").read_text())
    return {theme: one_theme(every, theme) for theme in every["surface"]}


def one_theme(every: dict, theme: str) -> dict:
    """The colours of one theme."""
    surface, amount, link = every["surface"][theme], every["amount"][theme], every["link"][theme]
    state = {name: {"edge": one["edge"], **one[theme]} for name, one in every["state"].items()}
    colours = {name: one["color"] for name, one in state.items()}
    named = {"ink": surface["text"], "amber": colours["live"], "link": link}
    accepted = state["accepted"]
    grey = {"prompt": amount[1], "unreached": amount[1], "guess": amount[1], "pruned": amount[2]}
    between = {"band": accepted["tint"], "early": mixed(surface["bg"], accepted["color"], 0.5)}
    return {
        "surface": surface,
        "amount": amount,
        "ranks": every["amount"]["ranks"][theme],
        "state": state,
        "link": link,
        "roles": surface | named | colours,
        "arcs": [mixed(surface["bg"], surface["text"], 0.45 + 0.11 * at) for at in range(ARCS)],
        "faint": mixed(surface["bg"], link, 0.55),
        "strip": colours | grey | between,
        "nodes": {look: node(at, look, colours, surface["bg"]) for at, look in enumerate(NODES)},
        "cells": {name: cell(name, one, surface["bg"]) for name, one in state.items()},
    }


def node(rank: int, look: str, colours: dict[str, str], ground: str) -> dict:
    """The look of a node, see `palette`."""
    symbol, size, small, width, hollow = NODES[look]
    colour = colours["pruned" if look == "ended" else look.split()[0]]
    filled = {"symbol": symbol, "color": ground if hollow else colour}
    wide = filled | {"size": size, "line": {"color": colour, "width": width}}
    low = filled | {"size": small, "line": {"color": colour, "width": LOW_LINE.get(look, width)}}
    return {"rank": rank, "drawn": [wide, low]}


def cell(state: str, own: dict, ground: str) -> dict[str, list]:
    """The looks of a cell of this state, by fill; a tinted cell of some states has a border."""
    colour, none = own["color"], {"width": 0}
    border = 1.4 if state in ("rejected", "tolerated") else 0
    looks = {
        "filled": (colour, none),
        "outline": (ground, {"color": colour, "width": 2}),
        "dashed": (CLEAR, {"color": colour, "width": 1.4, "dash": "4px,3px"}),
        "dotted": (CLEAR, {"color": colour, "width": 1.2, "dash": "1.5px,2px"}),
        "none": (CLEAR, none),
        "tint": (own["tint"], {"color": colour, "width": border}),
    }
    return {fill: [*look, box(state, fill)] for fill, look in looks.items()}


def box(state: str, fill: str) -> str:
    """The name of the box that stands for a cell in the strip below a picture."""
    if fill == "filled" or state in ("rejected", "live", "tolerated"):
        return state
    if fill == "outline":
        return "early" if state == "accepted" else "pruned"
    if state == "chosen" and fill == "tint":
        return "guess"
    return "unreached" if state == "unreached" else "prompt"


def mixed(one: str, other: str, share: float) -> str:
    """Mixes two `#RRGGBB` colours; share 0 gives the first, 1 the second."""
    parts = zip(bytes.fromhex(one[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + bytes(int(a * (1 - share) + b * share + 0.5) for a, b in parts).hex()


def css() -> str:
    """CSS rules that define the colours of surfaces and states in each theme."""
    rules = []
    for theme, own in palette().items():
        named = dict(own["surface"])
        for name, state in own["state"].items():
            named |= {f"dp-{name}-color": state["color"], f"dp-{name}-tint": state["tint"]}
        given = "".join(f"--{name}:{colour};" for name, colour in named.items())
        rules.append(f":root[data-theme={theme}]{{color-scheme:{theme};{given}}}")
    return "".join(rules)
