"""Writes the picture of README that moves, from two recorded runs: `python docs/moving.py`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for `python docs/moving.py`

from decoders.trace.trace import load  # noqa: E402
from explorer.catalog.method_cards import file_of  # noqa: E402
from visualizers.figures.moving import moving  # noqa: E402

LANES = {"beam": "beam_tree", "speculative_tree": "draft_rounds"}  # strategy -> view


def svg(look: str) -> str:
    """The picture. look: "light" or "dark"."""
    return moving([(load(file_of(strategy)), view) for strategy, view in LANES.items()], look)


if __name__ == "__main__":
    for look in ("light", "dark"):
        (ROOT / "docs" / f"moving-{look}.svg").write_text(svg(look), "utf-8")
