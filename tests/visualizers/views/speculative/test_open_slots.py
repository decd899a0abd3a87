"""Open slots: in which order they were filled, and which waited."""

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Rank
from tests.helpers.view_folding import fold
from visualizers.views.speculative.open_slots import OpenSlots

WORDS = ["Once", " upon", " a", " the", " cat"]


def a_round(first: int) -> list:
    """A chain of two, then a sibling of its first token, which was worth more than going on."""
    a, b, c = first, first + 1, first + 2
    return [
        Propose(a, first - 1, 2, -0.5, "draft"),
        Rank(a, "slot", 1.0, {"beside": 0.4, "below": 0.6}),
        Propose(b, a, 3, -0.5, "draft"),
        Rank(b, "slot", 0.6, {"beside": 0.5, "below": 0.1}),
        Propose(c, a, 4, -0.5, "draft"),
        Rank(c, "slot", 0.5, {"beside": 0.3, "below": 0.2}),
        Verdict(a, "accepted"),
        Verdict(b, "rejected"),
        Verdict(c, "accepted"),
        Commit([a, c], [-0.5, -0.5]),
    ]


def test_the_place_that_is_filled_next_stands_out_and_all_others_wait():
    marks, ops = fold(OpenSlots, [a_round(2)], [0, 1], WORDS)
    assert [(marks[f"n{n}"]["x"], marks[f"n{n}"]["state"]) for n in (2, 3, 4)] == [
        (1, "accepted"),
        (2, "rejected"),
        (3, "accepted"),
    ]
    listed = {key: (m["text"], m["state"]) for key, m in marks.items() if key.startswith("h1.")}
    assert listed == {
        "h1.1.0": (".60→a", "chosen"),
        "h1.1.1": (".40↓a", "live"),
        "h1.2.0": (".50↓the", "chosen"),
        "h1.2.1": (".40↓a", "pruned"),
        "h1.2.2": (".10→the", "live"),
        "h1.3.0": (".40↓a", "pruned"),
        "h1.3.1": (".30↓cat", "live"),
        "h1.3.2": (".20→cat", "live"),
        "h1.3.3": (".10→the", "pruned"),
    }
    assert marks["heading"]["lead"] == "Round 1: 3 slots, total value 2.10"
    assert marks["heading"]["heading"].endswith("; tested: 3.") and marks["v1.2"]["y1"] == 0.6


def test_each_step_shows_its_own_round():
    marks, _ = fold(OpenSlots, [a_round(2), [Commit([], [])], a_round(5)], [0, 1], WORDS)
    assert "n2" not in marks and {"n5", "n6", "n7"} <= set(marks)
