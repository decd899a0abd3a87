"""The target's list: the guess's place in it, and a colour of its own for what passes without being best."""

from math import log

from decoders.trace.events import Commit, Distribution, Propose, Verdict
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.speculative.target_top_tokens import TargetTopTokens

WORDS = ["Once", " upon", " a", " the", " cat", "<b>"]


def offer(node: int, *tokens: int, view: str = "target") -> Distribution:
    return Distribution(node, view, [[t, log(0.5 / (i + 1))] for i, t in enumerate(tokens)], 0.1, 1.0)


def a_round() -> list:
    """Best, second best, far off, never reached; then the target's own."""
    drafted = [Propose(2 + i, 1 + i, token, -0.5, "draft") for i, token in enumerate((1, 3, 5, 4))]
    verdicts = [
        Verdict(2, "accepted", 0.5),
        Measure(2, "gap", 0.0, limit=1.0),
        Verdict(3, "accepted", 0.25),
        Measure(3, "gap", 0.7, limit=1.0),
        Verdict(4, "rejected", 0.01),
        Measure(4, "gap", 9.0, limit=1.0),
        Verdict(5, "never reached"),
    ]
    offers = [offer(1, 1, 2, 3, 4), offer(2, 2, 3, 4), offer(3, 4, 2, 3)]
    own = [Propose(6, 3, 4, -0.7, "target"), Verdict(6, "resampled", 0.5)]
    return [*drafted, *offers, *verdicts, *own, Commit([2, 3, 6], [-0.7, -1.4, -0.7])]


def test_each_guess_stands_above_the_target_s_list_with_its_place_outlined():
    marks, ops = fold(TargetTopTokens, [a_round()], [0, 1], WORDS, beta=3)
    states = {key: marks[key]["state"] for key in ("n2", "n3", "n4", "n5")}
    assert states == {"n2": "accepted", "n3": "tolerated", "n4": "rejected", "n5": "unreached"}
    listed = {key: mark for key, mark in marks.items() if key.startswith("l1.")}
    columns = {x: [listed[f"l1.{x}.{place}"]["text"] for place in range(3)] for x in (1, 2, 3)}
    assert columns == {1: ["␣upon", "␣a", "␣the"], 2: ["␣a", "␣the", "␣cat"], 3: ["␣cat", "␣a", "␣the"]}
    outlined = {key: mark["state"] for key, mark in listed.items() if mark["fill"] == "outline"}
    assert outlined == {"l1.1.0": "accepted", "l1.2.1": "tolerated", "l1.3.0": "resampled"}
    assert marks["heading"]["lead"] == "1 of 2 accepted guesses"
    assert [marks[f"b1.{x}"]["w"] for x in (2, 3)] == [round(0.7 * 0.84, 4), 0.84]  # cut where the limit is
    assert (marks["w1.2"]["role"], marks["w1.3"]["role"]) == ("soft", "rejected")
    assert ops[0][-1]["say"].startswith("␣upon  accepted; gap 0.00, limit 1.00; ␣the  accepted, though not")


def test_what_the_processors_left_is_the_list_and_equals_are_best():
    left = Distribution(1, "processed", [[3, log(0.4)], [1, log(0.4)]], 0.0, 0.7)
    drafted, passed = Propose(2, 1, 1, -0.5, "draft"), Verdict(2, "accepted", 0.4)
    events = [drafted, offer(1, 2, 1), left, passed, Commit([2], [-1.0])]
    marks, _ = fold(TargetTopTokens, [events], [0, 1], WORDS)
    assert marks["n2"]["state"] == "accepted" and marks["l1.1.0"]["text"] == "␣the"
    assert not of_kind(marks, "label")


def test_given_tokens_and_steps_without_a_draft_are_no_rounds():
    given = [Propose(2, 1, 3, None, "copied", fill="fixed"), Commit([2], [None])]
    plain = [offer(2, 4), Propose(3, 2, 4, -0.7, "target"), Commit([3], [-0.7])]
    marks, ops = fold(TargetTopTokens, [given, plain], [0, 1], WORDS)
    assert ops == [[], []] and not of_kind(marks, "cell")
