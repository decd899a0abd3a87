"""Flow grid: rows for steps, darker cells for positions that changed more often, and the text at the end."""

from decoders.trace.events import Cell, Commit, Propose
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.diffusion.flow_grid import DARKEST, MANY, FlowGrid

WORDS = ["end", "a", "b"]


def step(iteration: int, t: float, jump: float, *cells: Cell) -> list:
    return [Measure(0, "jump_probability", jump, {"t": t}), *cells]


NOISE = [Cell(1, 0, 2, "guess"), Cell(2, 0, 1, "guess")]
FIRST = step(1, 0.0, 0.39, Cell(1, 1, 1, "changed", 0.9), Cell(2, 1, 1, "kept", 0.2))
LAST = step(2, 0.5, 1.0, Cell(1, 2, 2, "changed", 0.6), Cell(2, 2, 0, "changed", 0.8))
TEXT = [Propose(1, 0, 2, -0.5, "flow"), Commit([1], [-0.5]), Cell(2, 2, 0, "trimmed")]


def drawn(steps, **parameters):
    return fold(FlowGrid, steps, [5], WORDS, num_steps=2, **parameters)


def test_a_cell_is_darker_the_more_often_it_changed():
    marks, _ = drawn([NOISE + FIRST, LAST])
    assert marks["g1-0"]["fill"] == "dotted" and "random" in marks["g1-0"]["hover"][0]
    weights = [marks[key]["weight"] for key in ("g1-1", "g2-1", "g1-2", "g2-2")]
    assert weights == [DARKEST / MANY, 0.0, 2 * DARKEST / MANY, DARKEST / MANY]
    assert "changed 2 times" in marks["g1-2"]["hover"][0]
    assert "jump probability .39" in marks["g1-1"]["hover"][1] and "t .00" in marks["g1-1"]["hover"][0]
    dots = {mark["id"] for mark in of_kind(marks, "symbol") if mark["panel"] == "flow"}
    assert dots == {"d1-1", "d1-2", "d2-2"}
    rows = [row for row in of_kind(marks, "row") if row["panel"] == "flow"]
    assert [(row["text"], row["right"]) for row in rows] == [
        ("noise", ""),
        ("t .00", "1 jumped"),
        ("t .50", "2 jumped"),
    ]


def test_the_text_and_what_stands_behind_its_end():
    marks, ops = drawn([NOISE + FIRST, LAST + TEXT])
    assert marks["g1-2"]["state"] == "chosen" and marks["g1-2"]["node"] == 1
    assert marks["g2-2"]["state"] == "pruned"
    assert ops[-1][-1] == {"say": "The text is final: b"}


def test_candidates_stand_below_each_other_and_one_of_them_is_the_text():
    cells = [Cell(1, 0, 1, "guess", level="1"), Cell(1, 0, 2, "guess", level="2")]
    later = [Cell(1, 1, 1, "kept", 0.5, "1"), Cell(1, 1, 2, "kept", 0.5, "2")]
    text = [Propose(1, 0, 1, -0.5, "flow", 0), Propose(2, 0, 2, -0.5, "flow", 1), Commit([2], [-0.5])]
    marks, _ = drawn([cells, step(1, 0.0, 0.39, *later), text], num_candidates=2)
    assert {mark["y"] for mark in of_kind(marks, "cell")} == {0, 1, 4, 5}
    assert [mark["id"] for mark in of_kind(marks, "cell") if mark["state"] == "chosen"] == ["g1-5"]


def test_the_clock_says_where_t_stands():
    marks, ops = drawn([NOISE + FIRST, LAST])
    assert marks["all"]["points"] == [[0.5, 0.5], [2.5, 0.5]]  # over the two columns
    born = {op["id"]: op for step in ops for op in step if "kind" in op}
    assert (born["now0"]["x"], born["now1"]["x"]) == (0.5, 1.5) and "now0" not in marks
    assert marks["now1"]["hover"][0].startswith("t .50")
