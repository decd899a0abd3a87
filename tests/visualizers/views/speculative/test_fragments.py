"""The view of fragments: rows of rounds, marks as diamonds without a column, what was cut in its own look."""

from decoders.trace.events import Commit, Propose, Verdict
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.speculative.fragments import Fragments

WORDS = ["p", "mod", "ule", "F", " x", " y"]


def guess(node: int, parent: int, token: int) -> Propose:
    return Propose(node, parent, token, -0.1, "draft", 0)


def own(node: int, parent: int, token: int) -> Propose:
    return Propose(node, parent, token, -0.1, "target", 0)


def steps() -> list[list]:
    """`mod`, then `ule F x` accepted and ` x` cut, then ` y` in place of a rejected guess."""
    first = [own(1, 0, 1), Commit([1], [-0.1])]
    born = [guess(2, 1, 2), guess(3, 2, 3), guess(4, 3, 4)]
    told = [Verdict(2, "accepted"), Verdict(3, "accepted"), Verdict(4, "pruned", reason="Cut.")]
    second = [*born, *told, own(5, 3, 4), Verdict(5, "resampled"), Commit([2, 3, 5], [-0.1] * 3)]
    third = [
        guess(6, 5, 1),
        Verdict(6, "rejected"),
        own(7, 5, 5),
        Verdict(7, "resampled"),
        Commit([7], [-0.1]),
    ]
    return [first, second, third]


def test_a_round_is_a_row_with_its_first_token_what_passed_and_what_was_cut():
    marks, _ = fold(Fragments, steps(), [0], WORDS, mark="F")
    rows = {row["text"]: row for row in of_kind(marks, "row")}
    assert list(rows) == ["round 1", "round 2"]
    assert rows["round 1"]["right"] == "1 fragment" and rows["round 2"]["right"] == "0 fragments"
    cells = {(m["x"], m["y"]): (m["text"], m["state"]) for m in of_kind(marks, "cell")}
    assert cells == {
        (1, 0.5): ("mod", "chosen"),
        (2, 0.5): ("ule", "accepted"),
        (3, 0.5): ("␣x", "tolerated"),
        (3, 1.5): ("␣x", "chosen"),
        (4, 1.5): ("mod", "rejected"),
    }
    assert marks["n0.4"]["hover"] == ["␣x: passed, and was cut", "Cut."]


def test_a_mark_is_a_diamond_between_columns_and_ends_a_band():
    marks, ops = fold(Fragments, steps(), [0], WORDS, mark="F")
    (diamond,) = of_kind(marks, "symbol")
    assert (diamond["x"], diamond["y"], diamond["glyph"]) == (2.5, 0.5, "diamond")
    (band,) = of_kind(marks, "band")
    assert (band["x0"], band["x1"]) == (0.5, 2.5)
    assert [m["text"] for m in of_kind(marks, "label")] == ["mod", "ule", "␣x", "␣y"]
    assert ops[1][-1] == {"say": "Round 1: 2 guesses kept, with 1 mark, 1 that passed was cut."}
