"""The view of samples: texts as a trie whose rows begin where they part, and bars of what was learned."""

from decoders.trace.events import Propose, Verdict
from decoders.trace.scores import Measure, Score
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.sample_trie import SampleTrie, small

WORDS = ["p", "a", "b", "c"]


def learned(node: int, bound: float, masked: float, share: float) -> Score:
    return Measure(node, "allowed future", bound, {"masked": masked, "learned": share})


def root(bound: float) -> Score:
    return Measure(0, "allowed future", bound)


def steps() -> list[list]:
    """`a b`, whose end is rare; then `c`."""
    first = [Propose(1, 0, 1, -0.7, "target", 0), Propose(2, 1, 2, -0.1, "target", 0), Verdict(2, "finished")]
    first += [root(0.505), learned(1, 0.01, 0.5, 0.0099), learned(2, 1.0, 1.0, 1.0)]
    second = [Propose(3, 0, 3, -0.7, "target", 1), Verdict(3, "finished")]
    return [first, [*second, root(0.505), learned(1, 0.02, 0.5, 0.02), learned(3, 1.0, 0.5, 0.98)]]


def test_rows_begin_where_texts_part_and_bars_follow_what_is_learned():
    marks, ops = fold(SampleTrie, steps(), [0], WORDS)
    places = {marks[f"n{n}"]["text"]: (marks[f"n{n}"]["x"], marks[f"n{n}"]["y"]) for n in (1, 2, 3)}
    assert places == {"a": (1, 0), "b": (2, 0), "c": (1, 1)}
    assert [marks[f"n{n}"]["state"] for n in (1, 2, 3)] == ["live", "finished", "finished"]
    assert marks["n1"]["note"] == ".02" and marks["n3"]["note"] == ""
    widths = {
        key: mark["w"] for key, mark in marks.items() if mark["kind"] == "cell" and not mark.get("gone")
    }
    shown = {"m1.2": 0.4, "l1.2": 0.02, "m3.2": 0.4, "l3.2": 0.784}
    assert widths == shown | {"m2.1": 0.8, "l2.1": 0.8}
    assert len(of_kind(marks, "edge")) == 3 and marks["e3"]["y0"] == 0 and marks["e3"]["y1"] == 1
    assert ops[1][-1]["say"] == "2 texts drawn; of what the model would write alone, at most .51 is allowed."


def test_small_probabilities_stay_short():
    assert [small(p) for p in (1.0, 0.34, 0.005, 2e-6, 0.0)] == ["1", ".34", ".01", "2e−6", "0"]
