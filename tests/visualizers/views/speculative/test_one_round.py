"""One round on hand-made rounds: the test bar says by itself why a token was accepted or rejected."""

import pytest

from decoders.trace.events import Commit, Propose, Step, Verdict
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind, vocabulary
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header
from visualizers.views.speculative.one_round import AT, BAR, OneRound

WORDS = ["Once", " a", " big", " dog", "<b>"]
PROMPT = [0, 1]


def draft(node: int, parent: int, token: int = 2, slot: int = 0) -> Propose:
    return Propose(node, parent, token, -1.0, "draft", slot)


def round_of(u: float | None = 0.3) -> list:
    """2 accepted, its child 3 rejected, 2's sibling 4 and its child 5 never reached, 6 resampled."""
    return [
        draft(2, 1),
        draft(4, 1, 4, 1),
        draft(3, 2),
        draft(5, 4),
        Verdict(2, "accepted", 0.4, 0.5, u),
        Verdict(3, "rejected", 0.1, 0.5, None if u is None else 0.9),
        Verdict(4, "never reached"),
        Verdict(5, "never reached"),
        Propose(6, 2, 3, -0.5, "target"),
        Verdict(6, "resampled", p=0.6),
        Commit([2, 6], [-0.9, -0.5]),
    ]


def run(steps) -> dict:
    return fold(OneRound, steps, PROMPT, WORDS)[0]


def test_the_bar_is_filled_to_p_over_q_and_the_tick_stands_at_u():
    marks = run([round_of()])
    assert marks["f2"]["w"] == pytest.approx(BAR * 0.8) and marks["f3"]["w"] == pytest.approx(BAR * 0.2)
    assert marks["u2"]["x"] == pytest.approx(1 + AT + BAR * 0.3)
    assert marks["u2"]["x"] < marks["f2"]["x"] + marks["f2"]["w"] / 2  # inside the fill: accepted
    assert marks["u3"]["x"] > marks["f3"]["x"] + marks["f3"]["w"] / 2  # outside: rejected
    assert marks["l3"]["text"] == "p .100  q .500  u .900"


def test_a_token_of_a_further_draft_model_has_its_number():
    events = round_of()
    events[1] = Propose(4, 1, 4, -1.0, "draft 2", 1)
    marks = run([events])
    assert marks["n4"]["text"].endswith(" ²") and not marks["n2"]["text"].endswith(" ²")
    tested = [*events[:4], Verdict(4, "rejected", 0.1, 0.5, 0.9), *events[4:6], *events[8:]]
    assert run([tested])["n4"]["hover"][-1] == "drafted from the second draft model"


def test_a_dot_is_named_in_quotes_so_that_it_is_seen_beside_its_own_mark():
    words = [".", ",", " big", "a", "<b>"]
    marks = fold(OneRound, [[draft(2, 1, 0)]], [3, 1], words)[0]
    assert marks["n2"]["text"] == "“.”"
    assert [m["text"] for m in of_kind(marks, "node") if m["state"] == "chosen"] == ["“,”"]


def test_a_chance_that_the_method_tells_fills_the_bar():
    events = round_of()
    events[4].acceptance = 0.25  # of node 2, whose p / q is 0.8
    marks = run([events])
    assert marks["f2"]["w"] == pytest.approx(BAR * 0.25)
    assert (
        "probability of acceptance .250" in marks["n2"]["hover"][0]
        and "acceptance" not in marks["n3"]["hover"][0]
    )


def test_numbers_of_siblings_that_were_all_rejected_stand_beside_their_bars():
    """Below them is the next bar; the window then reaches a column further."""
    tested = [Verdict(n, "rejected", 0.1, 0.5, 0.9) for n in (3, 4, 5)]
    born = [draft(3, 1), draft(4, 1, 3, 1), draft(5, 1, 4, 2), draft(6, 3)]
    marks, ops = fold(OneRound, [[*born, *tested, Verdict(6, "never reached")]], PROMPT, WORDS)
    assert [marks[f"l{n}"].get("dy", 0) for n in (3, 4, 5)] == [16, 0, 0]  # 3 has a child beside it
    assert marks["l4"]["x"] > marks["b4"]["x"] + marks["b4"]["w"] / 2 and marks["l4"]["y"] == marks["n4"]["y"]
    assert marks["n4"]["y"] - marks["n3"]["y"] > marks["n5"]["y"] - marks["n4"]["y"] > 1
    assert [op["front"] for op in ops[0] if "front" in op] == [[2, 0]]
    alone = run([round_of()])
    assert alone["l3"]["dy"] == 16


def test_a_greedy_verifier_has_no_tick_and_fills_all_or_nothing():
    marks = run([round_of(u=None)])
    assert "u2" not in marks and marks["f2"]["w"] == pytest.approx(BAR) and "f3" not in marks


def test_the_path_is_straight_and_the_targets_own_token_stands_above_it():
    marks = run([round_of()])
    path = marks["n2"]["y"]
    assert marks["n3"]["y"] == path and marks["n6"]["y"] < path < marks["n4"]["y"] == marks["n5"]["y"]
    assert [marks[f"n{n}"]["x"] for n in (2, 3, 4, 5, 6)] == [1, 2, 1, 2, 2]


def test_no_two_nodes_share_a_place():
    places = [(m["x"], m["y"]) for m in of_kind(run([round_of()]), "node")]
    assert len(set(places)) == len(places) == 6


def test_the_next_round_takes_the_place_of_the_last():
    marks = run([round_of(), [Propose(7, 6, 2, -0.5, "target"), Commit([7], [-0.5])]])
    assert {m["node"] for m in of_kind(marks, "node")} == {6, 7}
    view = OneRound(Header(PROMPT, vocabulary(*WORDS), {}))
    assert not [
        op for op in to_json(view.feed(Step(0, round_of()))) if op.get("set")
    ]  # nothing to hide at first


def test_a_number_that_is_watched_against_its_limit_has_a_panel_of_its_own():
    """One dot a score at its node's depth, the limit as a line; gone with its round."""
    scores = [Measure(2, "all accepted", 0.8, limit=0.7), Measure(3, "all accepted", 0.5, limit=0.7)]
    plain = Measure(2, "rank", 3.0)
    first = [*round_of(), *scores, plain]
    marks = run([first])
    dots = {m["node"]: (m["x"], m["y"]) for m in marks.values() if m["kind"] == "symbol"}
    assert dots == {2: (1, 0.8), 3: (2, 0.5)}
    assert marks["w1l"]["points"] == [[0.5, 0.7], [2.5, 0.7]] and marks["w1"]["lead"] == "all accepted"
    assert marks["w1v3"]["text"] == ".500"
    marks = run([first, [Propose(7, 6, 2, -0.5, "target"), Commit([7], [-0.5])]])
    assert not any(str(m.get("panel", "")).startswith("w") and not m.get("gone") for m in marks.values())


def test_a_number_far_above_its_limit_stays_in_its_panel_and_limits_may_differ():
    scores = [Measure(2, "gap", 9.0, limit=1.0), Measure(3, "gap", 0.5, limit=2.0)]
    marks = run([[*round_of(), *scores]])
    assert {m["node"]: m["y"] for m in marks.values() if m["kind"] == "symbol"} == {2: 6.0, 3: 0.5}
    assert marks["w1"]["y0"] > 6.0 and marks["w1v2"]["text"] == "9.00"
    assert marks["w1l"]["points"] == [[0.5, 1.0], [1.5, 1.0], [1.5, 2.0], [2.5, 2.0]]
