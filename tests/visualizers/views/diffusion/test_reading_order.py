"""Reading order: both orders with the lines between them, the slanted threshold, and the running numbers."""

import pytest

from decoders.trace.events import Cell, Commit, Forward
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.diffusion.reading_order import ReadingOrder, slanted

WORDS = ["Once", " upon", " a", " time", "<b>"]
MASK = 9
PREFILL = Forward("target", "prefill", 2, 1, 0.0, 0.1)


def forward(iteration: int, read: list[tuple[int, str]], entropies: dict[int, float], filled: tuple) -> list:
    """One forward: positions and states in the order of reading, and the entropies of its masks."""
    inputs = [
        Cell(p, iteration, MASK if state == "mask" else p % 4, state, level="input") for p, state in read
    ]
    states = {p: "committed" if p in filled else "candidate" for p in entropies}
    cells = [Cell(p, iteration, p % 4, states[p], 0.5, entropy=h) for p, h in entropies.items()]
    return [Forward("target", "decode", len(read), 1, 0.1, 0.1), *inputs, *cells]


FIRST = [PREFILL, *forward(1, [(2, "mask"), (3, "mask"), (4, "mask")], {2: 0.5, 3: 0.1, 4: 0.9}, (3,))]
SECOND = [
    *forward(2, [(3, "filled"), (2, "mask"), (4, "mask")], {2: 0.1, 4: 0.6}, (2,)),
    Commit([7, 8], [0.0, 0.0]),
]
THIRD = forward(3, [(2, "cached"), (3, "cached"), (4, "mask"), (5, "mask")], {4: 0.2, 5: 0.9}, (4,))


def folded(*steps, **parameters):
    given = {"tau": 0.4, "distance_penalty": 0.1, "window": 3} | parameters
    return fold(ReadingOrder, list(steps), [0, 1], WORDS, **given)


def test_lines_join_the_places_of_a_position_and_stand_out_where_these_differ():
    marks, _ = folded(FIRST, SECOND)
    lines = [m for m in of_kind(marks, "path") if m["panel"] == "order"]
    assert [(m["points"][0][0], m["points"][1][0]) for m in lines] == [(2, 1), (1, 2), (3, 3)]
    assert [m["role"] for m in lines] == ["link", "link", "line"]
    assert (marks["u2-1"]["x"], marks["p2-1"]["x"], marks["p2-1"]["fill"]) == (2, 1, "dashed")


def test_bars_stand_at_their_place_in_the_text_below_a_slanted_line():
    marks, _ = folded(FIRST)
    assert [(b["x"], b["y1"], b["rank"]) for b in of_kind(marks, "bar")] == [
        (1, 0.5, 2),
        (2, 0.1, 0),
        (3, 0.9, 2),
    ]
    points = marks["s1"]["points"]
    assert [x for x, _ in points] == [0.5, 3.5] and [y for _, y in points] == pytest.approx([0.45, 0.15])


def test_the_slanted_line_is_cut_at_the_panel():
    assert slanted(0.4, 0.2, 1, 6, 1.0) == [[0.5, 0.5], [3.0, pytest.approx(0.0)]]
    assert slanted(3.0, 1.0, 1, 6, 1.0) == [[3.0, 1.0], [4.0, 0.0]]
    assert slanted(3.0, 0.0, 1, 6, 1.0) == [] == slanted(9.0, 1.0, 1, 6, 1.0)
    assert slanted(0.5, 0.0, 2, 3, 1.0) == [[1.5, 0.5], [3.5, 0.5]]


def test_the_numbers_run_from_the_start_and_leave_out_the_prompt():
    marks, _ = folded(FIRST, SECOND, THIRD)
    assert marks["heading"]["lead"] == "0.67 tokens per forward, .20 cached per token read"
    assert marks["heading"]["heading"] == "; forward 3: 1 of 2 masks filled."


def test_only_the_forward_on_show_is_drawn():
    marks, _ = folded(FIRST, SECOND, THIRD)
    assert {
        key.split("-")[0][1:] for key in marks if key not in ("heading", "order", "entropies", "tokens")
    } == {"3"}
