"""Canvas drafts as a picture: the path is straight, what parts from it hangs below, and both are named."""

from decoders.trace.events import Cell, Forward, Propose, Verdict
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.diffusion.canvas_drafts import CanvasDrafts

WORDS = ["Once", " a", " cat", " dog", "_"]


def masks(count):
    return [Cell(position, 0, 4, "mask") for position in range(1, 1 + count)]


def forward(rows):
    return Forward("target", "verify", 7 * rows, rows, 0.0, 0.1)


FIRST = [*masks(6), forward(1), Cell(3, 1, 2, "committed", 0.9)]
SECOND = [
    Propose(1, 0, 1, -0.1, "canvas"),
    Propose(2, 1, 2, -0.2, "canvas"),
    Propose(3, 2, 3, -0.3, "canvas"),
    forward(4),
    Verdict(1, "accepted", p=0.9, q=0.9),
    Verdict(2, "rejected", p=0.3, q=0.8, reason="Drafted position 2 “␣cat”; the model fills position 5."),
    Verdict(3, "never reached"),
    Cell(1, 2, 1, "verified", 0.9, "canvas 1"),
    Cell(2, 2, 2, "rejected", 0.8, "canvas 2"),
    Cell(4, 2, 3, "candidate", 0.7, "canvas 3"),
    Cell(1, 2, 1, "verified", 0.9),
    Cell(2, 2, 2, "candidate", 0.3),
    Cell(5, 2, 3, "committed", 0.6),
]


def test_a_chain_with_its_first_mismatch():
    marks, _ = fold(CanvasDrafts, [FIRST, SECOND], [0], WORDS)
    boxes = {k: (m["text"], m["x"], m["state"], m["fill"]) for k, m in marks.items() if k.startswith("b2")}
    assert boxes == {
        "b2.m": ("5 ▢", 0, "chosen", "outline"),
        "b2.1": ("1 ␣a", 1, "accepted", "filled"),
        "b2.2": ("2 ␣cat", 2, "rejected", "outline"),
        "b2.3": ("4 ␣dog", 3, "unreached", "dashed"),
        "b2.own": ("5 ␣dog", 2, "accepted", "tint"),
    }
    assert marks["b2.2"]["glyph"] == "✕" and marks["b2.2"]["hover"][0].startswith("Drafted position 2")
    assert marks["b2.2"]["y"] == marks["b2.3"]["y"] == marks["b2.own"]["y"] + 1
    assert marks["heading"]["lead"] == "1 forward saved"
    assert marks["heading"]["heading"] == ": 3 positions in 2 forwards; 35 tokens evaluated."
    rows = [(m["text"], m["right"], m["right_bold"]) for m in of_kind(marks, "row")]
    assert rows == [("forward 1", "1 canvas", "+1"), ("forward 2", "4 canvases", "+2")]


def test_what_a_policy_fills_at_once_without_a_draft_saves_no_forward():
    at_once = [*masks(3), forward(1), *[Cell(p, 1, 2, "committed", 0.95) for p in (1, 2, 3)]]
    marks, _ = fold(CanvasDrafts, [at_once], [0], WORDS)
    assert marks["heading"]["lead"] == "0 forwards saved"
    assert marks["heading"]["heading"].startswith(": 3 positions in 1 forward;")


def test_a_canvas_that_was_reached_in_another_order():
    """Node 3 is the canvas of node 2, below node 4: what hung below 2 hangs below 3."""
    step = [
        Propose(1, 0, 1, -0.1, "canvas"),
        Propose(2, 1, 2, -0.2, "canvas"),
        Propose(4, 0, 2, -0.2, "canvas", 1),
        Propose(5, 2, 3, -0.2, "canvas"),
        forward(5),
        Verdict(4, "accepted"),
        Cell(2, 2, 2, "candidate", 0.8, "canvas 2"),
        Propose(6, 4, 1, None, "canvas"),
        Verdict(2, "merged", into=6),
        Verdict(6, "accepted"),
        Verdict(1, "rejected"),
        Verdict(5, "rejected"),
        Cell(1, 2, 1, "rejected", 0.9, "canvas 1"),
        Cell(1, 2, 1, "verified", 0.9, "canvas 6"),
        Cell(2, 2, 2, "verified", 0.8, "canvas 4"),
        Cell(4, 2, 3, "rejected", 0.8, "canvas 5"),
        Cell(1, 2, 1, "verified", 0.9),
        Cell(2, 2, 2, "verified", 0.8),
        Cell(5, 2, 3, "committed", 0.6),
    ]
    marks, _ = fold(CanvasDrafts, [FIRST, step], [0], WORDS)
    at = {k[3:]: (m["x"], m["y"] - marks["b2.m"]["y"]) for k, m in marks.items() if k.startswith("b2")}
    assert at["4"] == (1, 0) and at["6"] == (2, 0) and at["own"] == (3, 0)
    assert at["5"][0] == 3 and at["1"][0] == 1 and at["2"][0] == 2
    assert len(set(at.values())) == len(at)
    assert marks["b2.2"]["state"] == "pruned"


def test_other_lanes_leave_it_empty():
    marks, ops = fold(CanvasDrafts, [[Propose(1, 0, 1, -0.1, "draft"), Verdict(1, "accepted")]], [0], WORDS)
    assert ops == [[]] and set(marks) == {"heading", "drafts"}
