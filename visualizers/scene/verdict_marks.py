"""How a token looks once it has a verdict: fill and glyph, the same in every view. Knows states alone."""

GLYPHS = {"resampled": "◆", "bonus": "★", "rejected": "✕", "forced": "⚑", "tolerated": "≈"}


def look(state: str) -> dict:
    """State and fill of a cell."""
    tinted = ("rejected", "tolerated", "pruned")
    fills = {"unreached": "dotted", "live": "dashed"} | dict.fromkeys(tinted, "tint")
    return {"state": state, "fill": fills.get(state, "filled")}
