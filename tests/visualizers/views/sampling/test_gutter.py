"""The view with a gutter: a row per line, the label's probability and two bars of its first token."""

import math

from decoders.trace.events import Commit, Distribution, Propose
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.sampling.gutter import AFTER, BEFORE, HEAT, Gutter

WORDS = ["p", "read", " a", "\n", "open"]


def token(node: int, token: int, label: float, before: float, after: float | None = None) -> list:
    rows = [Distribution(node - 1, "target", [(token, math.log(before))], 0.0, 1.0)]
    if after is not None:
        rows.append(Distribution(node - 1, "processed", [(token, math.log(after))], 0.0, 1.0))
    score = Measure(node, "P(label)", label, scale=1.0)
    return [
        *rows,
        Propose(node, node - 1, token, math.log(before), "target", 0),
        score,
        Commit([node], [-0.1]),
    ]


def steps() -> list[list]:
    return [
        token(1, 4, 0.75, 0.2, 0.8),
        token(2, 2, 0.0, 0.9, 0.9),
        token(3, 3, 0.0, 1.0),
        token(4, 1, 0.3, 0.5),
    ]


def test_a_line_has_its_label_and_two_bars():
    marks, ops = fold(Gutter, steps(), [0], WORDS)
    assert [row["text"] for row in of_kind(marks, "row")] == ["1", "2"]
    assert [marks[f"t{row}"]["text"] for row in range(2)] == ["open a", "read"]
    assert (marks["p0"]["x"], marks["p0"]["text"], marks["p0"]["fill"]) == (HEAT, ".75", "filled")
    assert (marks["p1"]["text"], marks["p1"]["fill"]) == (".30", "tint")
    widths = {key: marks[key]["w"] for key in ("b0", "a0", "b1", "a1")}
    assert widths == {"b0": 0.18, "a0": 0.72, "b1": 0.45, "a1": 0.45}
    left = {round(marks[key]["x"] - marks[key]["w"] / 2, 4) for key in ("b0", "b1")}
    assert left == {BEFORE - 0.45} and abs(marks["a0"]["x"] - 0.36 - (AFTER - 0.45)) < 1e-6
    assert ops[0][-1] == {"say": "Line 1: open, where the label has .75."}
