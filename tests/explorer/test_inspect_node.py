"""The inspector's facts are those of the events, and the mass on offer is always accounted for."""

import math

import pytest

from decoders.trace import Commit, Distribution, Propose, Score, Step, Trace, Verdict
from explorer.inspect_node import PATH, ROWS, inspect


def made() -> Trace:
    """A prompt of two tokens, a rejected draft (node 2) and the token that replaced it (node 3)."""
    vocabulary = {0: b"a", 1: b" b", 2: b"<i>", 3: b"\n"}
    trace = Trace("any", "Any", {}, 0, {"target": "t"}, [0, 1], vocabulary)
    events = [
        Propose(2, 1, 2, math.log(0.5), "draft"),
        Distribution(1, "draft", [[2, math.log(0.5)], [3, math.log(0.25)]], 0.25, 1.0),
        Distribution(1, "target", [[3, math.log(0.75)], [2, math.log(0.125)]], 0.125, 0.5),
        Verdict(2, "rejected", 0.125, 0.5, 0.9, "The draw is above p / q."),
        Propose(3, 1, 3, math.log(0.75), "target"),
        Verdict(3, "resampled", 0.75, reason="Drawn from the residual."),
        Score(3, "sum_logprob", -0.3, rank=1),
        Commit([3], [math.log(0.75)]),
    ]
    trace.append(Step(0, events, 0.1))
    return trace


def test_a_rejected_token_is_explained_by_its_numbers_and_its_successor():
    found = inspect(made(), 2)
    assert (found["token"], found["path"], found["born"], found["source"]) == ("<i>", ["a", "␣b"], 1, "draft")
    assert found["verdicts"] == [
        {
            "step": 1,
            "status": "rejected",
            "p": 0.125,
            "q": 0.5,
            "u": 0.9,
            "reason": "The draw is above p / q.",
        }
    ]
    assert [(s["text"], s["status"], s["p"]) for s in found["siblings"]] == [("↵", "resampled", 0.75)]
    assert [o["view"] for o in found["offers"]] == ["target", "draft"]
    rows = [(r["text"], round(r["p"], 6), r["here"]) for r in found["offers"][0]["rows"]]
    assert rows == [("↵", 0.75, False), ("<i>", 0.125, True)]
    assert found["offers"][0]["rest"] == 0.125 and found["offers"][0]["entropy"] == 0.5


def test_scores_belong_to_their_node():
    assert inspect(made(), 3)["scores"] == [{"step": 1, "name": "sum_logprob", "total": -0.3, "rank": 1}]
    assert inspect(made(), 2)["scores"] == []


def test_the_prompt_was_given():
    found = inspect(made(), 0)
    assert (
        found["source"] == "prompt"
        and found["born"] is None
        and found["path"] == []
        and found["offers"] == []
    )


def test_an_unknown_node_is_one_sentence():
    with pytest.raises(ValueError, match="no token of the trace"):
        inspect(made(), 99)


def test_long_lists_are_cut_but_keep_the_token_itself_and_all_mass():
    count = 4 * ROWS
    trace = Trace("any", "Any", {}, 0, {}, list(range(3 * PATH)), {t: b"x%d" % t for t in range(200)})
    tip = len(trace.prompt) - 1
    share = 0.9 / count
    top = [[t, math.log(share)] for t in range(count)]
    proposed = Propose(tip + 1, tip, count - 1, math.log(share), "target")
    trace.append(Step(0, [Distribution(tip, "target", top, 0.1, 3.0), proposed], 0.1))
    found = inspect(trace, tip + 1)
    offer = found["offers"][0]
    assert len(found["path"]) == PATH and found["path"][-1] == f"x{tip}"
    assert len(offer["rows"]) == ROWS + 1 and offer["rows"][-1] == {
        "text": f"x{count - 1}",
        "p": pytest.approx(share),
        "here": True,
    }
    assert sum(r["p"] for r in offer["rows"]) + offer["rest"] == pytest.approx(1)
