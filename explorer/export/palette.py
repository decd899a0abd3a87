"""The palette that Python and the browser share (assets/palette.json), prepared for a page: each theme's
colours by purpose, and CSS variables. No script and no style sheet defines a colour of its own.
"""

import json
import math

from explorer.export.page_files import ASSETS

ARCS = (1.5, 2.5, 3.5, 5, 7, 9)  # widths of arcs in pixels, each with its own colour
# The states in the order in which edges and cells are drawn, and what fills cells, likewise.
DRAWN = (
    "prompt",
    "unreached",
    "pruned",
    "finished",
    "rejected",
    "live",
    "bonus",
    "resampled",
    "tolerated",
    "accepted",
    "forced",
    "chosen",
)
FILLS = ("tint", "amount", "none", "hatched", "dotted", "dashed", "outline", "filled")
# What is drawn over what in the strip below a picture, where two marks share a place.
STRIP = (
    "band",
    "prompt",
    "pruned",
    "unreached",
    "guess",
    "rejected",
    "live",
    "early",
    "bonus",
    "resampled",
    "finished",
    "tolerated",
    "accepted",
    "forced",
    "chosen",
)
FADED = {"pruned", "finished"}  # states whose edges are pale
# What a symbol is drawn as, with its size in pixels.
GLYPHS = {
    "dot": ("circle", 8),
    "diamond": ("diamond", 10),
    "triangle": ("triangle-down", 10),
    "ring": ("circle-open", 9),
    "star": ("star", 11),
    "square": ("square", 9),
}
# The sign of a state in a chip, and how it is read aloud where that is not its name.
SIGNS = {"resampled": "◆", "bonus": "★", "forced": "⚑", "tolerated": "≈"}
WORDS = {
    "resampled": "written instead",
    "live": "not final yet",
    "tolerated": "accepted though not the target's best",
}
# What marks a chip for a step, or for good.
SPANS = {
    "copied": "this round's draft is a copy of this",
    "matched": "the end of the text, and where it stood before",
    "green": "green: the watermark's key prefers this token here",
    "red": "red: not among the tokens that the watermark's key prefers here",
}


def wheel(*radii: float) -> list[list[float]]:
    """A corner at each radius, clockwise around the centre from the top."""
    turns = [2 * math.pi * at / len(radii) - math.pi / 2 for at in range(len(radii))]
    return [[r * math.cos(turn), r * math.sin(turn)] for r, turn in zip(radii, turns, strict=True)]


# Symbols by their polygons, for a radius of one; those that are not here are discs.
SYMBOLS = {
    "square": [[[-1, -1], [1, -1], [1, 1], [-1, 1]]],
    "diamond": [[[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]]],
    "triangle-up": [[[-1.15, 0.5], [1.15, 0.5], [0, -1]]],
    "triangle-down": [[[-1.15, -0.5], [1.15, -0.5], [0, 1]]],
    "pentagon": [wheel(1, 1, 1, 1, 1)],
    "star": [wheel(*(1.4, 0.54) * 5)],
    "x-thin": [[[-1, -1], [1, 1]], [[-1, 1], [1, -1]]],
}
# Dashes of a line by the names in the file, in its widths, of three pixels at least.
DASHES = {"dot": 1, "dash": 3, "longdash": 5}
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

    surface, amount, ranks, state, link, family   as in the file; states also have their word and sign
    roles     the colour of every role that a mark can name
    arcs      the six looks of an arc; faint: the colour of a weak hook
    strip     the colours of boxes in the strip below a picture, by what a box stands for, in drawing order
    nodes     the looks of nodes: `{rank, drawn}`, drawn for high rows and for low rows
    edges     the look of an edge, by state; glyphs: the look of a symbol
    cells     state -> fill -> colour, colour of its words, line, drawing order, and the cell's name in the
              strip. A filled cell has the state; an outlined or tinted one is only close to it
    symbols   the polygons of symbols
    spans     what a marked chip says
    part      colours of the parts of a text, such as reasoning
    """
    every = json.loads((ASSETS / "palette.json").read_text("utf-8"))
    return {theme: one_theme(every, theme) for theme in every["surface"]}


def one_theme(every: dict, theme: str) -> dict:
    """The colours of one theme."""
    surface, amount, link = every["surface"][theme], every["amount"][theme], every["link"][theme]
    state = {
        name: {"word": WORDS.get(name, name), "sign": SIGNS.get(name), **one[theme]}
        for name, one in every["state"].items()
    }
    part = {name: one[theme] for name, one in every["part"].items()}
    colours = {name: one["color"] for name, one in state.items()}
    named = {"ink": surface["text"], "amber": colours["live"], "link": link}
    accepted = state["accepted"]
    grey = {"prompt": amount[1], "unreached": amount[1], "guess": amount[1], "pruned": amount[2]}
    strip = colours | grey
    strip |= {"band": accepted["tint"], "early": mixed(surface["bg"], accepted["color"], 0.5)}
    return {
        "surface": surface,
        "amount": amount,
        "ranks": every["amount"]["ranks"][theme],
        "state": state,
        "link": link,
        "family": {family: known[theme] for family, known in every["family"].items()},
        "roles": surface | named | colours | {name: one["color"] for name, one in part.items()},
        "arcs": [
            {"width": width, "color": mixed(surface["bg"], surface["text"], 0.45 + 0.11 * at)}
            for at, width in enumerate(ARCS)
        ],
        "faint": mixed(surface["bg"], link, 0.55),
        "strip": {name: strip[name] for name in STRIP},
        "nodes": {look: node(at, look, colours, surface["bg"]) for at, look in enumerate(NODES)},
        "edges": {name: edge(name, one["edge"], colours) for name, one in every["state"].items()},
        "cells": {name: cell(name, one, surface) for name, one in state.items()},
        "glyphs": {
            glyph: {"symbol": symbol, "size": size, "hollow": glyph == "diamond"}
            for glyph, (symbol, size) in GLYPHS.items()
        },
        "symbols": SYMBOLS,
        "spans": SPANS,
        "part": part,
    }


def node(rank: int, look: str, colours: dict[str, str], ground: str) -> dict:
    """The look of a node, see `palette`."""
    symbol, size, small, width, hollow = NODES[look]
    colour = colours["pruned" if look == "ended" else look.split()[0]]
    filled = {"symbol": symbol, "color": ground if hollow else colour}
    wide = filled | {"size": size, "line": {"color": colour, "width": width}}
    low = filled | {"size": small, "line": {"color": colour, "width": LOW_LINE.get(look, width)}}
    return {"rank": rank, "drawn": [wide, low]}


def edge(state: str, own: dict, colours: dict[str, str]) -> dict:
    """The look of an edge; trees.js in assets/web/player/ replaces the width of some."""
    return {
        "rank": DRAWN.index(state),
        "color": colours["pruned" if state == "finished" else state],
        "width": own["width"],
        "dash": dash(**own),
        "opacity": 0.7 if state in FADED else 1,
    }


def dash(dash: str, width: float, **_: float) -> str | None:
    """The dash of a line as SVG has it."""
    if dash not in DASHES:
        return None
    length = round(DASHES[dash] * max(3, width), 3)
    return f"{length} {length}"


def cell(state: str, own: dict, surface: dict[str, str]) -> dict[str, dict]:
    """The looks of a cell of this state, by fill; a tinted cell of some states has a border, and the colour
    of a cell with an amount depends on the amount.
    """
    ground = surface["bg"]
    colour, none = own["color"], {"width": 0}
    border = 1.4 if state in ("rejected", "tolerated") else 0
    looks = {
        "filled": (colour, none),
        "outline": (ground, {"color": colour, "width": 2}),
        "dashed": (CLEAR, {"color": colour, "width": 1.4, "dash": "4 3"}),
        "dotted": (CLEAR, {"color": colour, "width": 1.2, "dash": "1.5 2"}),
        "hatched": (CLEAR, {"color": surface["line"], "width": 1}),
        "none": (CLEAR, none),
        "amount": (None, none),
        "tint": (own["tint"], {"color": colour, "width": border}),
    }
    return {
        fill: {
            "line": line,
            "ink": ink(state, fill, own, surface),
            "strip": box(state, fill),
            "rank": FILLS.index(fill) + DRAWN.index(state) / 100,
        }
        | ({"color": filled} if filled else {})
        for fill, (filled, line) in looks.items()
    }


def ink(state: str, fill: str, own: dict, surface: dict[str, str]) -> str:
    """The colour of a cell's words."""
    if fill == "filled":
        return surface["on_fill"]
    if state == "rejected":
        return own["color"]
    return surface["text" if fill in ("tint", "outline") and state not in ("prompt", "pruned") else "soft"]


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
    """CSS rules that define the colours of surfaces, states and families in each theme."""
    rules = []
    for theme, own in palette().items():
        named = dict(own["surface"])
        for name, state in own["state"].items():
            named |= {f"dp-{name}-color": state["color"], f"dp-{name}-tint": state["tint"]}
        named |= {f"family-{name}": colour for name, colour in own["family"].items()}
        for name, part in own["part"].items():
            css_name = f"dp-part-{name.replace(' ', '-')}"
            named |= {f"{css_name}-color": part["color"], f"{css_name}-tint": part["tint"]}
        given = "".join(f"--{name}:{colour};" for name, colour in named.items())
        rules.append(f":root[data-theme={theme}]{{color-scheme:{theme};{given}}}")
    return "".join(rules)
