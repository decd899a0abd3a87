"""Suffix tree: the match, what followed it, what was drafted, and what became of it."""

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import OTHERS, Table
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.speculative.suffix_tree import SPINE, SuffixTree

WORDS = ["Once", " upon", " a", " the", " cat", " dog"]


def a_round(first: int) -> list:
    """Two tokens matched; of four occurrences two are followed by cat, one by dog; cat is drafted, then a."""
    cat, a, own = first, first + 1, first + 2
    return [
        Propose(cat, first - 1, 4, -0.7, "store"),
        Propose(a, cat, 2, 0.0, "store"),
        Table(first - 1, "suffix score", 0.5, {}, "prompt", None, "matched", [[1, 0.5]]),
        Table(first - 1, "suffix score", 1.0, {}, "store", None, "matched", [[1, 0.3], [2, 1.0]], 2),
        Table(first - 1, "continuations", 4, {}, None, None, "token", [[4, 2], [5, 1], [OTHERS, 1]]),
        Table(cat, "continuations", 2, {}, None, None, "token", [[2, 2]]),
        Table(a, "continuations", 2, {}, None, None, "token", []),
        Verdict(cat, "accepted", 0.9),
        Verdict(a, "rejected", 0.1),
        Propose(own, cat, 3, -0.1, "target"),
        Verdict(own, "resampled", 0.8),
        Commit([cat, own], [-0.1, -0.1]),
    ]


def test_the_match_and_the_tree_below_it():
    marks, ops = fold(SuffixTree, [a_round(3)], [0, 1, 2], WORDS)
    assert [(marks[f"m1.{x}"]["text"], marks[f"m1.{x}"]["state"]) for x in (1, 2)] == [
        ("␣upon", "chosen"),
        ("␣a", "chosen"),
    ]
    tree = {marks[f"n{n}"]["text"]: (marks[f"n{n}"]["x"], marks[f"n{n}"]["state"]) for n in (3, 4, 5)}
    assert tree == {"␣cat": (3, "accepted"), "␣a": (4, "rejected"), "␣the": (4, "resampled")}
    assert marks["n3"]["note"] == "2 · .50" and marks["n4"]["note"] == "2" and marks["n5"]["note"] == ""
    assert "never followed here" in marks["n5"]["hover"][0]
    heading = marks["heading"]["lead"] + marks["heading"]["heading"]
    assert heading == (
        "Round 1: the last 2 tokens occur 4 times in the store; 2 drafted, 1.00 expected, 1 accepted."
    )
    assert marks["heading"]["short"] == ": 2 tokens, 4 × in the store; 1 of 2 accepted."


def test_what_was_not_drafted_is_grey_and_the_rest_is_one_mark():
    marks, _ = fold(SuffixTree, [a_round(3)], [0, 1, 2], WORDS)
    beside = {m["text"]: (m["state"], m["note"]) for m in of_kind(marks, "node") if m["id"].startswith("o")}
    assert beside == {"␣dog": ("pruned", "1 · .25"), "others": ("pruned", "1 · .25")}


def test_every_length_of_match_has_its_score_in_both_trees():
    marks, _ = fold(SuffixTree, [a_round(3)], [0, 1, 2], WORDS)
    bars = {(round(b["x"]), b["rank"]): b["y1"] for b in of_kind(marks, "bar")}
    assert bars == {(2, 0): 0.5, (2, 2): 0.3, (1, 2): 1.0}
    assert [m["text"] for m in of_kind(marks, "label")] == ["1.00"]


def test_a_long_match_is_folded_into_the_first_column():
    scores = [[float(m), float(m)] for m in range(1, 13)]
    events = [
        Table(19, "suffix score", 12.0, {}, "prompt", None, "matched", scores, 12),
        Propose(20, 19, 4, None, "prompt"),
        Verdict(20, "accepted"),
        Commit([20], [-0.1]),
    ]
    marks, _ = fold(SuffixTree, [events], [0] * 20, WORDS)
    spine = [m for key, m in marks.items() if key.startswith("m1.") and m["kind"] == "node"]
    assert len(spine) == SPINE and spine[0]["text"] == "Once"
    assert spine[0]["note"] == "6 more"
    assert spine[0]["hover"][1] == "the match begins 6 tokens earlier"
    assert max(b["y1"] for b in of_kind(marks, "bar") if round(b["x"]) == 1) == 12.0


def test_rounds_without_a_draft_say_so_and_each_step_shows_its_own():
    nothing = [
        Table(5, "suffix score", 0.0, {}, "prompt", None, "matched", []),
        Propose(6, 5, 5, -0.1, "target"),
        Commit([6], [-0.1]),
    ]
    marks, ops = fold(SuffixTree, [a_round(3), nothing], [0, 1, 2], WORDS)
    assert "n3" not in marks and marks["n6"]["state"] == "chosen"
    assert ops[-1][-1] == {"say": "Round 2: no draft; the last token is new."}


def test_other_lanes_are_not_drawn():
    _, ops = fold(SuffixTree, [[Propose(2, 1, 3, -0.1, "target"), Commit([2], [-0.1])]], [0, 1], WORDS)
    assert ops == [[]]
