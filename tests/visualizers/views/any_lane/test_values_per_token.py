"""Values per token: a trace for each number, a bar under each token, and what was not set."""

from decoders.trace.events import Commit, Propose
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.any_lane.values_per_token import ValuesPerToken

WORDS = ["Once", " upon", " a", "<b>", "."]


def token(node: int, *gauges: tuple[str, float, float]) -> list:
    scores = [Measure(node, name, total, {"kept": 3.0}, scale=high) for name, total, high in gauges]
    return [Propose(node, node - 1, node, -0.1, "target"), Commit([node], [-0.1]), *scores]


def test_each_number_has_a_trace_and_a_bar_as_long_as_it_is_high():
    steps = [
        token(2, ("temperature", 0.5, 2.0), ("top_p", 0.9, 1.0)),
        token(3, ("temperature", 1.5, 2.0), ("top_p", 0.0, 1.0)),
    ]
    marks, ops = fold(ValuesPerToken, steps, [0, 1], WORDS)
    assert [row["text"] for row in of_kind(marks, "row")] == ["temperature", "top p"]
    assert marks["p0-2"]["points"] == [[1, 0.25], [2, 0.75]], "as shares of the scale"
    assert marks["p1-2"]["points"] == [[1, 0.9], [2, 0.0]] and marks["p1-2"]["dash"] == "dash"
    full, half = marks["f0-1"], marks["b0-1"]
    assert half["w"] == full["w"] / 4 and half["x"] - half["w"] / 2 == full["x"] - full["w"] / 2
    assert "b1-2" not in marks, "nothing stands for nothing"
    assert marks["heading"]["lead"] == "temperature 1.50, top p 0.00"
    spans = "temperature from 0.50 to 1.50, top p from 0.00 to 0.90"
    assert marks["heading"]["heading"] == f"; so far {spans}." and marks["heading"]["short"].endswith(
        "1.00, 0.45."
    )
    assert ops[1][-1] == {"say": "<b>: temperature 1.50, top p 0.00."}
    assert marks["t1"]["hover"] == ["␣a: temperature 0.50, top p 0.90", "kept 3"]


def test_a_token_without_a_number_has_a_dashed_cell_and_a_third_gauge_no_room():
    steps = [token(2), token(3, ("a", 1.0, 1.0), ("b", 1.0, 1.0), ("c", 1.0, 1.0))]
    marks, ops = fold(ValuesPerToken, steps, [0, 1], WORDS)
    assert marks["t1"]["fill"] == "dashed" and marks["t2"]["fill"] == "tint"
    assert len(of_kind(marks, "row")) == 2 and "d2-2" not in marks
    assert "c 1.00" in ops[1][-1]["say"]


def test_what_a_token_belongs_to_is_a_band_behind_its_values():
    steps = [token(node, ("temperature", 0.5, 2.0)) for node in range(2, 5)]
    marks, _ = fold(ValuesPerToken, steps, [0, 1], ["Once", " upon", "<think>", "so", "</think>"])
    found = of_kind(marks, "band")
    assert [(band["role"], band["x0"], band["panel"]) for band in found] == [
        ("reasoning", 0.5, "traces"),
        ("reasoning", 1.5, "traces"),
        ("reasoning", 2.5, "traces"),
    ]
