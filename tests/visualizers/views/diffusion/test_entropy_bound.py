"""The entropy bound: bars by rising entropy, the sum without the largest, and the strip of cached blocks."""

import pytest

from decoders.trace.events import Cell
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.diffusion.entropy_bound import EntropyBound

WORDS = ["Once", " upon", " a", " time", "<b>"]
MASK = 9


def forward(iteration: int, entropies: dict[int, float], filled: tuple, *before) -> list:
    """One forward over masks at positions with these entropies, some of which it fills."""
    states = {p: "committed" if p in filled else "candidate" for p in entropies}
    cells = [Cell(p, iteration, p % 4, states[p], 0.5, entropy=h) for p, h in entropies.items()]
    return [*before, *cells]


def new(*positions: int) -> list:
    return [Cell(p, 0, MASK, "mask") for p in positions]


FIRST = forward(1, {2: 0.60, 3: 0.05, 4: 0.30, 5: 0.10}, (3, 4, 5), *new(2, 3, 4, 5))
SECOND = forward(2, {2: 0.20}, (2,))
THIRD = forward(
    3, {6: 0.5, 7: 0.4}, (7,), *new(6, 7), *[Cell(p, 3, 0, "cached", level="input") for p in range(2, 6)]
)


def folded(*steps, **parameters):
    return fold(EntropyBound, list(steps), [0, 1], WORDS, **({"gamma": 0.2, "block_length": 4} | parameters))


def test_bars_stand_by_rising_entropy_and_the_curve_leaves_out_the_largest():
    marks, ops = folded(FIRST)
    assert [b["y1"] for b in of_kind(marks, "bar")] == [0.05, 0.10, 0.30, 0.60]
    assert [b["rank"] for b in of_kind(marks, "bar")] == [0, 0, 0, 2]
    curve = next(m for m in of_kind(marks, "path") if m["role"] == "ink")
    assert [y for _, y in curve["points"]] == pytest.approx([0.0, 0.05, 0.15, 0.45])
    assert marks["g1"]["points"] == [[0.5, 0.2], [4.5, 0.2]]
    (band,) = of_kind(marks, "band")
    assert (band["x0"], band["x1"]) == (0.5, 3.5)
    assert marks["heading"]["lead"] == "Block 1, forward 1: 3 of 4 masks filled"
    assert "without the largest 0.150, gamma 0.2 nats" in marks["heading"]["heading"]
    assert ops[0][-2]["say"].startswith("Block 1, forward 1")


def test_a_block_keeps_its_rows_and_the_next_begins_anew():
    marks, _ = folded(FIRST, SECOND)
    rows = [m for m in of_kind(marks, "row") if m["panel"] == "grid"]
    assert [r["text"] for r in rows] == ["forward 1", "forward 2"]
    grid = {k: m for k, m in marks.items() if m.get("panel") == "grid" and m["kind"] == "cell"}
    assert [grid[f"c2-{x}"]["state"] for x in range(1, 5)] == ["accepted", "chosen", "chosen", "chosen"]
    marks, _ = folded(FIRST, SECOND, THIRD)
    assert [m["text"] for m in of_kind(marks, "row") if m["panel"] == "grid"] == ["forward 3"]
    assert len(of_kind(marks, "bar")) == 2


def test_the_strip_says_which_blocks_are_cached():
    before, _ = folded(FIRST, SECOND)
    after, _ = folded(FIRST, SECOND, THIRD)
    strip = [[m["state"] for m in of_kind(x, "cell") if m["panel"] == "cache"] for x in (before, after)]
    assert strip == [["live"], ["chosen", "live"]]


def test_a_bound_above_all_sums_has_no_line():
    marks, _ = folded(FIRST, gamma=50.0)
    assert "g1" not in marks and "gamma 50 nats" in marks["heading"]["heading"]


def test_steps_without_masks_draw_nothing():
    _, ops = folded(FIRST, [Cell(5, 1, 0, "trimmed")])
    assert ops[1] == []
