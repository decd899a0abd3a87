"""Filter grid: bars against theta, three kinds of ends of a mask, and the oracle's ghosts with the waste."""

from decoders.trace.events import Cell
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.diffusion.filter_grid import BARS, PITCH, TALL, FilterGrid

WORDS = ["_", "a", "b", "c", "<end>"]


def masks(count: int) -> list:
    return [Cell(2 + i, 0, 0, "mask") for i in range(count)]


def iteration(number: int, *cells: tuple) -> list:
    """cells: (column, token, filter's number, state)."""
    said = [Cell(1 + x, number, token, "candidate", sure, "filter") for x, token, sure, _ in cells]
    return [*said, *(Cell(1 + x, number, token, state, 0.5) for x, token, _, state in cells)]


def steps() -> list[list]:
    """Column 2 waits two iterations for the token that it had from the first on; column 4 is cut off."""
    first = iteration(1, (1, 1, 0.99, "filtered"), (2, 2, 0.6, "candidate"), (3, 1, 0.2, "candidate"))
    second = iteration(2, (2, 2, 0.8, "candidate"), (3, 4, 0.7, "forced"))
    third = iteration(3, (2, 2, 0.97, "filtered"))
    return [[*masks(4), *first, Cell(5, 1, 0, "trimmed")], second, third]


def test_a_bar_is_green_above_theta_and_the_line_stands_at_theta():
    marks, _ = fold(FilterGrid, steps(), [0, 0], WORDS, theta=0.96)
    assert [marks[f"b{x}-1"]["state"] for x in (1, 2, 3)] == ["accepted", "prompt", "prompt"]
    assert marks["b2-1"]["h"] == TALL * 0.6 and marks["b2-3"]["state"] == "accepted"
    base = PITCH + BARS
    assert marks["t1"]["points"] == [[0.5, base - TALL * 0.96], [3.5, base - TALL * 0.96]]
    bottom = {
        round(m["y"] + m["h"] / 2, 9) for k, m in marks.items() if k.startswith("b") and k.endswith("-1")
    }
    assert bottom == {round(base, 9)}


def test_filled_by_the_filter_forced_and_cut_off_look_different():
    marks, _ = fold(FilterGrid, steps(), [0, 0], WORDS, theta=0.96)
    looks = {(marks[key]["state"], marks[key]["fill"]) for key in ("g1-1-0", "g3-2-0", "g4-1-1", "g2-1-0")}
    assert looks == {("accepted", "filled"), ("forced", "filled"), ("pruned", "none"), ("prompt", "amount")}
    assert marks["r2"]["right_bold"] == "+1"


def test_ghosts_come_when_nothing_is_open_and_say_what_waiting_cost():
    """Columns 1 to 3 waited 1 + 3 + 2 iterations, an oracle 1 + 1 + 2."""
    marks, ops = fold(FilterGrid, steps()[:2], [0, 0], WORDS, theta=0.96)
    assert not [m for m in of_kind(marks, "cell") if m["fill"] == "dashed"]
    marks, ops = fold(FilterGrid, steps(), [0, 0], WORDS, theta=0.96)
    ghosts = [m for m in of_kind(marks, "cell") if m["fill"] == "dashed"]
    assert [(g["x"], g["y"]) for g in ghosts] == [(2, PITCH)]
    assert ghosts[0]["hover"][1] == "it was filled 2 iterations later"
    text = "Iterations waited, over all positions: 6; an oracle 4; wasted 2 (33%)."
    assert marks["heading"]["heading"] == text


def test_a_step_without_cells_draws_nothing():
    _, ops = fold(FilterGrid, [[]], [0, 0], WORDS)
    assert ops == [[]]
