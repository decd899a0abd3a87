"""How a token with a verdict looks: fill and glyph, the same in every view, and its mark in a folded row."""

from collections.abc import Iterable

from visualizers.scene.marks import Cell, Number, Op

# The palette's state for each verdict.
STATES = {
    "accepted": "accepted",
    "rejected": "rejected",
    "never reached": "unreached",
    "resampled": "resampled",
    "bonus": "bonus",
    "pruned": "pruned",
    "merged": "pruned",
    "finished": "finished",
    "forced": "forced",
}
GLYPHS = {"resampled": "◆", "bonus": "★", "rejected": "✕", "forced": "⚑", "tolerated": "≈"}


def folds_to(ops: Iterable[Op]) -> Number:
    """The last column that is still drawn when a row is folded, 0 for none."""
    return max((op.x for op in ops if isinstance(op, Cell) and stays(op)), default=0)


def stays(cell: Cell) -> bool:
    """Whether a cell is drawn in a folded row: those of the path, and rejected or undecided ones."""
    return cell.fill == "filled" or cell.state in ("tolerated", "rejected", "live")


def look(state: str) -> dict:
    """State and fill of a cell."""
    tinted = ("rejected", "tolerated", "pruned")
    fills = {"unreached": "dotted", "live": "dashed"} | dict.fromkeys(tinted, "tint")
    return {"state": state, "fill": fills.get(state, "filled")}
