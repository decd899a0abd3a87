"""The threshold view: who wrote which token, the number and its limit, and what was read to catch up."""

from decoders.trace.events import Commit, Forward, Propose
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.any_lane.threshold import Threshold

WORDS = ["Once", " upon", " a", "<b>", "."]


def token(node: int, number: float, level: str, *before, own: float = 1.0) -> list:
    commit = Commit([node], [-0.1])
    propose = Propose(node, node - 1, node, -0.1, "target")
    return [*before, propose, commit, Measure(node, "mean", number, {"entropy": own}, level=level, limit=1.5)]


def test_tokens_stand_in_the_row_of_what_was_done_and_crossings_are_amber():
    steps = [token(2, 1.0, "small"), token(3, 2.0, "small"), token(4, 1.8, "large")]
    marks, ops = fold(Threshold, steps, [0, 1], WORDS)
    assert [row["text"] for row in of_kind(marks, "row")] == ["small", "large"]
    assert [marks[f"t{x}"]["y"] for x in (1, 2, 3)] == [0.5, 0.5, 1.5]
    assert {band["x0"] for band in of_kind(marks, "band")} == {1.5, 2.5}
    assert marks["m2"]["points"] == [[1, 1.0], [2, 2.0]] and marks["l1"]["points"] == [[0.5, 1.5], [1.5, 1.5]]
    assert marks["heading"]["lead"] == "small 67 %, large 33 %"
    assert marks["heading"]["heading"] == " of 3 tokens; 1 change."
    assert ops[1][-1] == {"say": "<b>: small; mean 2.00, limit 1.50, entropy 1.00."}


def test_what_a_model_reads_to_catch_up_is_hatched_in_its_row():
    read = Forward("large", "prefill", 2, 1, 0.0, 0.1)
    first = Forward("small", "prefill", 2, 1, 0.0, 0.1)
    steps = [token(2, 2.0, "small", first), token(3, 2.0, "small"), token(4, 1.0, "large", read)]
    marks, _ = fold(Threshold, steps, [0, 1], WORDS)
    (hatched,) = [cell for cell in of_kind(marks, "cell") if cell["fill"] == "hatched"]
    assert (hatched["x"], hatched["y"], round(hatched["w"])) == (1.5, 1.5, 2)
    assert marks["heading"]["heading"].endswith("1 change, 2 tokens read to catch up.")


def test_the_panel_grows_with_the_number_and_tokens_without_one_have_a_cell():
    steps = [token(2, 1.0, "small", own=7.2), [Propose(3, 2, 3, -1.0, "target"), Commit([3], [-1.0])]]
    marks, _ = fold(Threshold, steps, [0, 1], WORDS)
    assert marks["number"]["y0"] == 8 and marks["t2"]["text"] == "<b>"
