"""The view of drift: means by round and depth, and which depths held an accepted node."""

from decoders.trace.events import Note, Propose, Verdict
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.speculative.drift import Drift


def test_cells_are_the_means_of_a_depth_and_chosen_where_a_node_was_accepted():
    steps = [
        [Note("nothing yet")],
        [
            Propose(2, 1, 1, -0.1, "draft", 0, "fixed"),
            Propose(3, 1, 0, -2.0, "draft", 1, "fixed"),
            Verdict(2, "accepted"),
            Verdict(3, "never reached"),
            Measure(1, "drift", 0.1, level="depth 0", number=0),
            Measure(2, "drift", 0.2, level="depth 1", number=1),
            Measure(3, "drift", 0.4, level="depth 1", number=1),
            Measure(1, "another", 3.0),
        ],
        [
            Measure(4, "drift", 0.3, level="depth 0", number=0),
            Measure(5, "drift", 0.9, level="depth 9", number=9),
        ],
    ]
    marks, ops = fold(Drift, steps, [0, 1], ["Once", " upon"])
    assert ops[0] == []
    cells = {key: mark for key, mark in marks.items() if key.startswith("c")}
    assert {key: (m["text"], m["x"], m["y"], m["state"]) for key, m in cells.items()} == {
        "c1.0": (".10", 1, 0.5, "prompt"),
        "c1.1": (".30", 1, 1.5, "chosen"),
        "c2.0": (".30", 2, 0.5, "prompt"),
    }
    assert cells["c1.1"]["weight"] > cells["c1.0"]["weight"]
    assert [row["text"] for row in of_kind(marks, "row") if row["text"]] == ["root", "depth 1"]
    assert marks["heading"]["lead"] == "1 − cosine 0.20 at the root"
    assert marks["heading"]["heading"] == "; deeper 0.30, 0.90, as means so far."
    says = [op["say"] for step in ops for op in step if "say" in op]
    assert says[0] == "Round 1: drift 0.10 at the root, 0.30 at depth 1."
