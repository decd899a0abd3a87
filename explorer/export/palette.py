"""The palette that Python and the browser share (assets/palette.json), as a page gets it: a theme's colours
by what they are for, and CSS variables. No script and no style sheet has a colour of its own.
"""

import json

from explorer.export.page_files import ASSETS

ARCS = 6  # widths of arcs, each in a colour of its own, see assets/web/player/charts.js


def palette() -> dict[str, dict]:
    """What the player draws with in each theme.

    surface, amount, ranks, state, link   as in the file, of states the line of their edges too
    roles     every name that a mark may give as its role
    arcs      of the six widths of an arc; faint: of a hook that is not strong
    strip     of a box in the strip below a picture, by the name of what it stands for
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
    }


def mixed(one: str, other: str, share: float) -> str:
    """A colour between two `#RRGGBB`; share 0 is the one, 1 the other."""
    parts = zip(bytes.fromhex(one[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + bytes(int(a * (1 - share) + b * share + 0.5) for a, b in parts).hex()


def css() -> str:
    """Rules that name the colours of surfaces and states in each theme."""
    rules = []
    for theme, own in palette().items():
        named = dict(own["surface"])
        for name, state in own["state"].items():
            named |= {f"dp-{name}-color": state["color"], f"dp-{name}-tint": state["tint"]}
        given = "".join(f"--{name}:{colour};" for name, colour in named.items())
        rules.append(f":root[data-theme={theme}]{{color-scheme:{theme};{given}}}")
    return "".join(rules)
