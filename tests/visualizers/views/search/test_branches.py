"""The branches view: a table a pause, the candidate taken, and how often it was not the most likely."""

from decoders.trace.events import Commit, Propose
from decoders.trace.scores import Rank, Score
from tests.helpers.view_folding import fold
from visualizers.scene.step_table import NAMES
from visualizers.views.search.branches import SEEN, Branches

WORDS = ["Once", " a", " b", " <b>", "."]


def pause(first: int, taken: int, *means: float) -> list:
    """Candidates first, first + 1, ... with one token ahead of each."""
    events, nodes = [], range(first, first + len(means))
    for slot, node in enumerate(nodes):
        events.append(Propose(node, 0, slot + 1, -1.0, "target", slot))
    events += [Propose(node + 10, node, 3, -0.1, "lookahead") for node in nodes]
    order = sorted(nodes, key=lambda node: -means[node - first])
    events += [
        Rank(n, "lookahead", means[n - first], {"ahead": -0.1}, rank=order.index(n) + 1) for n in nodes
    ]
    return [*events, Commit([taken], [-1.0])]


def test_a_table_for_each_pause_with_what_was_seen_and_what_was_taken():
    marks, ops = fold(Branches, [pause(1, 2, -1.0, -0.5)], [0], WORDS)
    assert [marks[f"n{n}"]["state"] for n in (1, 2)] == ["pruned", "chosen"]
    assert marks["n1"]["text"] == "␣a" and marks["a1"]["text"] == "␣<b>"
    assert marks["m2"]["text"] == ".61" and marks["n2"]["y"] > marks["n1"]["y"]
    assert marks["n1"]["hover"] == ["␣a: mean log p −1.00, rank 2, the most likely", "␣<b>"]
    assert marks["heading"]["lead"] == "1 of 1 token"
    assert (
        marks["heading"]["heading"]
        == " after looking ahead; 1 time a token other than the most likely was chosen."
    )
    assert ops[0][-1]["say"].startswith("1 of 1 token after looking ahead")


def test_a_step_without_a_look_draws_nothing_and_counts():
    calm = [Propose(1, 0, 1, -0.1, "target"), Commit([1], [-0.1])]
    marks, ops = fold(Branches, [calm], [0], WORDS)
    assert ops == [[]] and marks["heading"]["lead"] == "No pause"
    marks, _ = fold(Branches, [calm, [*pause(2, 2, -0.2, -0.5)]], [0], WORDS)
    assert marks["heading"]["lead"] == "1 of 2 tokens"
    assert "0 times a token other" in marks["heading"]["heading"]


def test_values_stand_before_their_total_and_a_bare_beginning_is_not_continued():
    weighed = pause(1, 2, 0.3, 1.2)
    parts = {"logprob": -1.0, "value": 0.5}
    weighed = [
        Rank(e.node, "total", e.total, parts, rank=e.rank) if isinstance(e, Score) else e for e in weighed
    ]
    marks, _ = fold(Branches, [weighed], [0], WORDS)
    assert [marks[f"{cell}2"]["text"] for cell in "lvt"] == ["−1.00", "0.50", "1.20"]
    assert marks["t2"]["weight"] == 0.5 > marks["t1"]["weight"] and marks["a2"]["text"] == "␣<b>"
    assert marks["n1"]["hover"][0] == "␣a: log p −1.00, value 0.500, total 0.30, rank 2, the most likely"
    bare = [e for e in weighed if getattr(e, "source", "") != "lookahead"]
    marks, _ = fold(Branches, [bare], [0], WORDS)
    assert marks["a1"]["text"] == "(not continued)"
    assert (
        marks["heading"]["heading"]
        == " by their values; 1 time a token other than the most likely was chosen."
    )


def test_of_a_long_table_the_first_rows_are_in_sight_and_the_one_that_was_taken():
    means = [-1.0 - 0.1 * at for at in range(9)]

    def front(taken: int) -> float:
        words = [*WORDS, *(f" {at}" for at in range(9))]
        _, ops = fold(Branches, [pause(1, taken, *means)], [0], words)
        return next(op["front"][1] for op in ops[0] if "front" in op)

    assert front(1) == NAMES + SEEN < front(9) < NAMES + len(means) + 1
