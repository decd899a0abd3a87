"""The experts view: a column a token, a row an expert, and the share of all tokens so far."""

import math

import pytest

from decoders.trace.events import Commit, Propose
from decoders.trace.scores import Measure, Table
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.sampling.experts import Experts

WORDS = ["Once", " upon", " a", "<b>"]


def read(node: int, token: int, strong: list[dict], weak: list[int], apart: float) -> list:
    """A step in which `node` is read by these experts, a layer each, and a token follows."""
    events = []
    for layer, (own, other) in enumerate(zip(strong, weak, strict=True), 1):
        for name, weights in (("strong experts", own), ("weak experts", {other: 1.0})):
            rows = [[float(expert), weight] for expert, weight in weights.items()]
            experts = {"number": layer, "unit": "expert", "rows": rows}
            events.append(Table(node, name, 0.5, {"of": 3.0}, f"layer {layer}", **experts))
    events.append(Measure(node, "divergence", apart))
    return [*events, Propose(node + 1, node, token, -0.5, "target"), Commit([node + 1], [-0.5])]


def test_strong_and_weak_experts_stand_in_their_layers_and_shares_follow():
    steps = [
        read(1, 2, [{1: 0.7, 2: 0.3}, {3: 0.6, 1: 0.4}], [3, 2], math.log(2)),
        read(2, 3, [{1: 0.9, 3: 0.1}, {3: 0.5, 2: 0.5}], [2, 2], 3 * math.log(2)),
    ]
    marks, ops = fold(Experts, steps, [0, 1], WORDS)
    strong = {key for key in marks if key.startswith("s")}
    assert strong == {"s1.1.1", "s1.1.2", "s1.2.3", "s1.2.1", "s2.1.1", "s2.1.3", "s2.2.3", "s2.2.2"}
    assert {key for key in marks if key.startswith("w")} == {"w1.1.3", "w1.2.2", "w2.1.2", "w2.2.2"}
    assert marks["s1.1.1"]["x"] < marks["s1.1.2"]["x"] < marks["w1.1.3"]["x"] < 1.5 < marks["s2.1.1"]["x"]
    same, weak = marks["s2.2.2"], marks["w2.2.2"]  # one expert in both views, one above the other
    assert same["x"] == weak["x"] and 1 < same["y"] + same["h"] / 2 < weak["y"] - weak["h"] / 2 < 2
    shares = {key: mark["weight"] for key, mark in marks.items() if key.startswith("u")}
    assert shares == {"u1.1": 1.0, "u1.2": 0.5, "u1.3": 0.5, "u2.1": 0.5, "u2.2": 0.5, "u2.3": 1.0}
    assert marks["u1.2"]["hover"] == ["layer 1, expert 2: read 50 % of the tokens so far"]
    assert [row["text"] for row in of_kind(marks, "row")] == ["layer 1", "layer 2"]
    assert (marks["k1"]["y1"], marks["k2"]["y1"]) == (pytest.approx(1.0), pytest.approx(3.0))
    assert marks["apart"]["y0"] == 4  # the panel grew
    assert marks["t2"]["text"] == "<b>"
    assert ops[0][-2] == {"front": [1, 1]}  # the first layers stay in sight
    assert ops[0][-1] == {"say": "␣a: the views are 1.00 bits apart."}


def test_a_lane_without_a_weak_view_shows_its_own_experts():
    step = [
        e
        for e in read(1, 2, [{1: 1.0}], [2], 1.0)
        if getattr(e, "name", "") not in ("weak experts", "divergence")
    ]
    marks, ops = fold(Experts, [step], [0, 1], WORDS)
    assert "s1.1.1" in marks and not of_kind(marks, "bar") and ops[0][-1] == {"say": "␣a."}


def test_given_tokens_have_a_column_without_experts():
    given = [Propose(2, 1, 3, None, "copied", fill="fixed"), Commit([2], [None])]
    marks, _ = fold(Experts, [given, read(2, 2, [{1: 1.0}], [2], 0.0)], [0, 1], WORDS)
    assert marks["t1"]["x"] == 1 and "s1.1.1" not in marks and 1.5 < marks["s2.1.1"]["x"] < 2
