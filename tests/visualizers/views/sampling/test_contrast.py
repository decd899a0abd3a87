"""The contrast view draws the rows of the trace side by side, and what a token gained by the second view."""

import math

import pytest

from decoders.trace.events import Commit, Distribution, Propose
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.sampling.contrast import Contrast

WORDS = ["Once", " upon", " a", " big", "<b>", " dog", "."]


def offer(node: int, view: str, probabilities: list[float], level: str | None = None) -> Distribution:
    """A row over tokens 2, 3, ..., most likely first in the event as in a trace."""
    top = sorted(([2 + i, math.log(p)] for i, p in enumerate(probabilities)), key=lambda pair: -pair[1])
    return Distribution(node, view, top, 0.0, 1.0, level)


def weighed(node: int, token: int, wanted: list[float], unwanted: list[float], combined: list[float]) -> list:
    parts = {"wanted": math.log(wanted[token - 2]), "without": math.log(unwanted[token - 2])}
    return [
        offer(node - 1, "target", wanted),
        offer(node - 1, "unwanted", unwanted, "without"),
        offer(node - 1, "combined", combined),
        Propose(node, node - 1, token, math.log(combined[token - 2]), "target"),
        Measure(node, "contrast", 0.0, parts),
        Commit([node], [parts["wanted"]]),
    ]


def test_three_stacks_and_a_gain_in_bits():
    step = weighed(2, 3, [0.5, 0.25, 0.25], [0.75, 0.125, 0.125], [0.2, 0.6, 0.2])
    marks, ops = fold(Contrast, [step], [0, 1], WORDS)
    for panel, wanted in (("wanted", 0.5), ("unwanted", 0.75), ("combined", 0.6)):
        assert marks[f"c1-{panel}-bar0"]["panel"] == panel
        assert (marks[f"c1-{panel}-bar0"]["y0"], marks[f"c1-{panel}-bar0"]["y1"]) == (0, wanted)
    gain = marks["c1-gain"]  # .25 against .125 is one bit
    assert (gain["y0"], gain["y1"]) == (0.0, pytest.approx(1.0))
    assert [marks[f"c1-{p}-share"]["glyph"] for p in ("wanted", "unwanted", "combined")] == [
        "diamond",
        "diamond",
        "dot",
    ]
    assert marks["c1-token"]["fill"] == "outline" and marks["c1-token"]["text"] == "␣big"
    assert marks["c1-model"]["text"] == "␣a .50"  # what the model alone takes
    assert marks["c1-changed"]["glyph"] == "triangle"
    assert ops[0][-1] == {"say": "␣big: gained +1.00 bits."}
    assert marks["c1-token"]["hover"][1] == "most likely: wanted ␣a .50 · without ␣a .75 · combined ␣big .60"


def test_a_choice_that_the_contrast_leaves_alone_is_not_marked():
    marks, _ = fold(Contrast, [weighed(2, 2, [0.7, 0.3], [0.4, 0.6], [0.9, 0.1])], [0, 1], WORDS)
    assert not of_kind(marks, "band") and "c1-changed" not in marks
    assert marks["c1-token"]["fill"] == "tint"


def test_a_loss_hangs_below_zero_down_to_the_panels_foot_and_gains_raise_its_top():
    lost, gained = [[0.6, 0.4], [0.2, 0.8]], [[0.5, 0.5], [0.999, 0.001]]
    far = [[0.999, 0.001], [0.1, 0.9]]
    steps = [weighed(n, 3, *rows, [0.4, 0.6]) for n, rows in enumerate((lost, far, gained), 2)]
    marks, _ = fold(Contrast, steps, [0, 1], WORDS)
    assert (marks["c1-gain"]["y0"], marks["c1-gain"]["y1"]) == (pytest.approx(-1.0), 0.0)
    assert (marks["c2-gain"]["y0"], marks["c2-gain"]["y1"]) == (-3, 0.0)  # −9.81 in words
    assert marks["c2-gain"]["hover"] == ["the amplified view gives it 9.81 bits less than the other"]
    assert marks["c3-gain"]["y1"] == pytest.approx(math.log2(500), abs=1e-3)
    assert (marks["gain"]["y0"], marks["gain"]["y1"]) == (10, -3)
    assert [words for _, words in marks["gain"]["ticks"]] == ["0 bits", "+10", "−3"]


def test_one_view_alone_is_drawn_without_a_gain():
    step = [offer(1, "target", [0.6, 0.4]), Propose(2, 1, 2, -0.5, "target"), Commit([2], [-0.5])]
    marks, _ = fold(Contrast, [step], [0, 1], WORDS)
    assert {bar["panel"] for bar in of_kind(marks, "bar")} == {"wanted"} and not of_kind(marks, "band")


def test_what_a_lane_begins_with_has_a_column_and_rows_of_processors_are_not_drawn():
    given = [Propose(2, 1, 3, None, "copied", fill="fixed"), Commit([2], [None])]
    step = weighed(3, 2, [0.7, 0.3], [0.4, 0.6], [0.9, 0.1])
    step.insert(3, offer(2, "processed", [1.0], "top_k"))
    marks, _ = fold(Contrast, [given, step], [0, 1], WORDS)
    assert marks["c1-token"]["state"] == "prompt" and marks["c2-token"]["state"] == "chosen"
    assert {bar["panel"] for bar in of_kind(marks, "bar")} == {"wanted", "unwanted", "combined", "gain"}
