"""How the states of a canvas' cells look and read, for all views of canvases."""

import math

from visualizers.scene.words import probability

LOOKS = {  # state of a Cell -> the palette's state, fill, glyph and words
    "committed": ("accepted", "filled", "", "filled in iteration {}"),
    "anchor": ("accepted", "filled", "⚓", "filled in iteration {}, an anchor"),
    "fixed": ("forced", "outline", "⚑", "put there by hand"),
    "relaxed": ("tolerated", "filled", "", "filled in iteration {}, near an anchor"),
    "forced": ("forced", "filled", "", "filled in iteration {}, only because some position must be"),
    "filtered": ("accepted", "filled", "", "filled in iteration {}, by the learned filter"),
    "verified": ("accepted", "filled", "✓", "filled in iteration {}, guessed earlier and verified"),
    "lookahead": ("bonus", "filled", "", "filled in iteration {}, by the branch that won"),
    "changed": ("live", "filled", "", "changed in iteration {}"),
}
FILLED = frozenset(LOOKS)


def bits(nats: float) -> float:
    """Nats as bits, the unit in which entropies are shown."""
    return nats / math.log(2)


def look(state: str) -> dict:
    """Fields of a cell's mark for a filled position."""
    palette, fill, glyph, _ = LOOKS[state]
    return {"state": palette, "fill": fill} | ({"glyph": glyph} if glyph else {})


def fields(event, shown: str) -> dict:
    """Fields of the mark of any cell that is not a mask: its look, its text and its hover."""
    if event.state in FILLED:
        style = look(event.state)
    elif event.state == "trimmed":
        style = {"state": "pruned", "fill": "none"}
    else:  # a candidate, the greyer the more likely
        style = {"state": "prompt", "fill": "amount", "weight": round(event.confidence or 0.0, 3)}
    return {**style, "text": shown, "hover": hover(event, shown)}


def hover(event, shown: str) -> list[str]:
    """At most two lines on a cell: its token and how probable it was."""
    if event.state == "trimmed":
        return [f"{shown}: after the end of the text", "no output"]
    says = (
        LOOKS[event.state][3].format(event.iteration) if event.state in LOOKS else "the most likely token now"
    )
    numbers = []
    if event.confidence is not None:
        numbers.append(f"p {probability(event.confidence)}")
    if event.entropy is not None:
        numbers.append(f"entropy {bits(event.entropy):.2f} bits")
    return [f"{shown}: {says}", ", ".join(numbers)] if numbers else [f"{shown}: {says}"]
