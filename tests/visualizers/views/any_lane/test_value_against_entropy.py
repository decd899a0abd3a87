"""Value against entropy: a point per token in the panel of each number, the newest one named."""

import math

from decoders.trace.events import Commit, Distribution, Propose
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.any_lane.value_against_entropy import FEW, ValueAgainstEntropy

WORDS = ["Once", " upon", " a", "<b>"]


def token(node: int, bits: float, *gauges: tuple[str, float, float]) -> list:
    """A token after a place of so many bits, drawn with these numbers."""
    scores = [Measure(node, name, total, scale=high) for name, total, high in gauges]
    offer = Distribution(node - 1, "target", [(2, -0.1)], 0.1, bits * math.log(2), None, 4)
    return [offer, Propose(node, node - 1, 2 + node % 2, -0.1, "target"), Commit([node], [-0.1]), *scores]


def test_a_point_stands_at_its_entropy_and_its_number():
    steps = [
        token(2, 1.5, ("temperature", 0.5, 2.0), ("top_p", 0.9, 1.0)),
        token(3, 9.2, ("temperature", 1.5, 2.0), ("top_p", 0.2, 1.0), ("third", 1.0, 1.0)),
        token(4, 2.0),
    ]
    marks, ops = fold(ValueAgainstEntropy, steps, [0, 1], WORDS)
    points = {(m["panel"], m["x"], m["y"]): m for m in of_kind(marks, "symbol")}
    assert set(points) == {("n0", 1.5, 0.5), ("n0", 9.2, 1.5), ("n1", 1.5, 0.9), ("n1", 9.2, 0.2)}
    assert [points[k]["glyph"] for k in sorted(points)] == ["dot", "star"] * 2
    assert [mark["text"] for mark in of_kind(marks, "label")] == ["<b>", "<b>"], "the newest alone is named"
    assert (marks["h0"]["lead"], marks["h0"]["heading"]) == ("temperature", ", between 0 and 2")
    assert marks["n1"]["y0"] > 0.9 and marks["n1"]["y1"] < 0.2 and marks["n1"]["ticks"][-1][0] <= 1.0
    assert {"front": [9, 0]} in ops[1] and ops[2] == [], "a token without numbers is no point"
    assert "<b>: temperature 1.50, top p 0.20 at 9.20 bits." in ops[1][-1]["say"]


def test_a_correlation_is_told_from_a_few_tokens_on():
    steps = [token(n, n / 2, ("temperature", n / 10, 2.0), ("top_p", 1.0, 1.0)) for n in range(2, 2 + FEW)]
    _, ops = fold(ValueAgainstEntropy, steps, [0, 1], WORDS)
    leads = [[op for op in step if op.get("id") == "heading"][0]["set"]["lead"] for step in ops]
    assert leads[-2] == "temperature —; top p —"
    assert leads[-1] == "temperature +1.00; top p —", "what never changes goes with nothing"
