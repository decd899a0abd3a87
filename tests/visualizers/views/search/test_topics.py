"""Topics: the track of the best text through the rows of its topics, also where another text overtakes it."""

import math

from decoders.trace.events import Commit, Distribution, Propose, Verdict
from decoders.trace.scores import Rank
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.topics import Topics

WORDS = ["A", " dog", ".", "<t1>", "<t2>", "<end>", " x"]
T1, T2 = 3, 4


def offer(node: int, **likely: float) -> Distribution:
    top = [(WORDS.index(f"<{name}>"), math.log(p)) for name, p in likely.items()]
    return Distribution(node, "processed", top, 0.0, 1.0, "topics", 3)


def steps() -> list[list]:
    """A seam with two topics, of which the best is taken; two beams, the second overtakes the first."""
    return [
        [Propose(1, 0, 1, -1, "target"), Rank(1, "sum_logprob", -1.0, rank=1)],
        [offer(1, t2=0.75, t1=0.25), Propose(2, 1, T2, -1, "target")],
        [
            Propose(3, 2, 1, -1, "target"),
            Propose(4, 2, 6, -1, "target"),
            Rank(3, "sum_logprob", -2.0, rank=1),
            Rank(4, "sum_logprob", -3.0, rank=2),
        ],
        [Propose(5, 4, 2, -1, "target"), Rank(5, "sum_logprob", -3.0, rank=1), Verdict(3, "pruned")],
        [
            offer(5, t2=0.5, t1=0.004),
            Propose(6, 5, T1, -1, "target"),
            Verdict(6, "forced", p=0.004, reason="forced: the plan"),
            Commit([1, 2, 4, 5, 6], [-1.0] * 5),
        ],
    ]


def test_the_track_follows_the_topics_of_the_best_text():
    marks, ops = fold(Topics, steps(), [0], WORDS)
    row = {mark["text"]: -(mark["y0"] + mark["y1"]) / 2 for mark in of_kind(marks, "row")}
    assert set(row) == {"t1", "t2"}
    assert [marks[f"t{n}"]["text"] for n in (1, 2, 4, 5, 6)] == ["␣dog", "t2", "␣x", ".", "t1"]
    assert [marks[f"t{n}"]["x"] for n in (1, 2, 4, 5, 6)] == [1, 2, 3, 4, 5]
    assert "b1" not in marks, "the prompt's sentence has no topic"
    assert [marks[f"b{n}"]["y"] for n in (2, 4, 5, 6)] == [-row["t2"]] * 3 + [-row["t1"]]
    assert marks["b2"]["text"] == ".75" and marks["o2-3"]["text"] == ".25" and marks["o2-3"]["x"] == 2
    assert marks["b2"]["state"] == "chosen" and marks["b6"]["state"] == "forced"
    assert marks["b6"]["hover"] == ["t1: p .0040 of all topics", "forced: the plan"]
    assert (
        marks["heading"]["lead"] == "t2 t1" and marks["heading"]["heading"] == ": 2 topics, 1 set by a plan."
    )
    assert marks["track"]["y0"] < -row["t1"] and marks["track"]["y0"] < -row["t2"]


def test_a_text_that_is_overtaken_is_hidden_and_what_is_not_output_is_live():
    marks, _ = fold(Topics, steps()[:3], [0], WORDS)
    assert marks["t3"]["x"] == 3 and marks["t3"]["state"] == "live" and "t4" not in marks
    marks, _ = fold(Topics, steps()[:4], [0], WORDS)
    assert "t3" not in marks and "b3" not in marks and marks["t4"]["x"] == 3 and marks["t5"]["x"] == 4
