"""Canvas branches as a picture: a row per canvas with its C, the winner, and what the winner filled."""

import pytest

from decoders.trace.events import Cell, Forward, Propose, Verdict
from decoders.trace.scores import Rank, ScoreName
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.diffusion.canvas_branches import BAR, STRIP, CanvasBranches

WORDS = ["Once", " a", " cat", "_"]
FIRST = [
    *[Cell(p, 0, 3, "mask") for p in (1, 2, 3)],
    Forward("target", "prefill", 4, 1, 0.0, 0.1),
    Cell(1, 1, 1, "committed", 0.95),
    Cell(2, 1, 2, "candidate", 0.7),
    Cell(3, 1, 1, "candidate", 0.6),
]
SECOND = [
    Propose(1, 0, 2, -0.3, "lookahead"),
    Propose(2, 0, 1, -0.5, "lookahead", 1),
    Forward("target", "verify", 12, 3, 0.1, 0.1),
    Rank(0, ScoreName.MEAN_CONFIDENCE, 0.69, {"tie": 0.0}, level="canvas anchor"),
    Cell(2, 2, 2, "candidate", 0.72, "canvas anchor"),
    Cell(3, 2, 1, "candidate", 0.66, "canvas anchor"),
    Rank(1, ScoreName.MEAN_CONFIDENCE, 0.97, {"confidence": 0.7, "tie": 0.0}, level="canvas 1"),
    Cell(3, 2, 1, "candidate", 0.97, "canvas 1"),
    Cell(2, 2, 2, "lookahead", 0.7, "canvas 1"),
    Verdict(1, "accepted", p=0.7, reason="mean confidence .97, the anchor's .69; its own token had p .7"),
    Rank(2, ScoreName.MEAN_CONFIDENCE, 0.65, {"confidence": 0.6, "tie": 0.0}, level="canvas 2"),
    Cell(2, 2, 2, "candidate", 0.65, "canvas 2"),
    Cell(3, 2, 1, "lookahead", 0.6, "canvas 2"),
    Verdict(2, "pruned", p=0.6, reason="mean confidence .65, the anchor's .69; its own token had p .6"),
    Cell(2, 2, 2, "lookahead", 0.7),
    Cell(3, 2, 1, "committed", 0.97),
]


def test_the_winner_its_score_and_what_it_filled():
    marks, _ = fold(CanvasBranches, [FIRST, SECOND], [0], WORDS, block_length=32)
    rows = [(m.get("bold") or m["text"], m.get("right_bold") or m["right"]) for m in of_kind(marks, "row")]
    assert rows == [("anchor", ""), ("anchor", "C .69"), ("␣cat", ".97"), ("␣a", "C .65")]
    assert marks["h2"]["text"] == "iteration 2, +2: C .97, anchor .69"
    bars = {key: marks[key]["w"] / BAR[1] for key in ("c2.0", "c2.1", "c2.2")}
    assert bars == pytest.approx({"c2.0": 0.69, "c2.1": 0.97, "c2.2": 0.65})
    assert marks["c2.1"]["state"] == "accepted" and marks["c2.0"]["state"] == "pruned"
    assert marks["t2.1"]["x"] == pytest.approx(BAR[0] + BAR[1] * 0.69)
    assert marks["c2.1"]["hover"][1] == "its own token had p .7"
    states = {p: marks[f"g2.1.{p}"]["state"] for p in (1, 2, 3)}
    assert states == {1: "chosen", 2: "bonus", 3: "accepted"}
    assert marks["g2.0.3"]["fill"] == "amount" and marks["g2.0.3"]["x"] == STRIP + 2.5
    assert marks["heading"]["lead"] == "1 of 3 positions by look-ahead"  # not: forwards saved
    assert marks["heading"]["heading"].startswith(", the others by the policy alone, in 2 forwards;")
    assert marks["heading"]["heading"].endswith("; 16 tokens evaluated, 2.0 canvases per forward.")


def test_a_tie_is_said():
    tied = [
        Rank(0, ScoreName.MEAN_CONFIDENCE, e.total, {"tie": 1.0}, level=e.level)
        if isinstance(e, Rank) and e.node == 0
        else e
        for e in SECOND
        if not isinstance(e, Verdict)
    ]
    marks, _ = fold(CanvasBranches, [FIRST, tied], [0], WORDS, block_length=0)
    assert marks["h2"]["text"] == "iteration 2, +2: C .69, the anchor, a tie"
