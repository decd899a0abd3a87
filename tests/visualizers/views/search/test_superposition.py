"""The superposition view: a column a place, its drafts by rank, with their shares of the next mixture."""

from decoders.lane import Lane, Limits
from decoders.trace.events import Commit, Distribution, Propose, Verdict
from decoders.trace.scores import Measure, Rank
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.superposition import Superposition

WORDS = ["Once", " upon", " a", "<b>", " dog"]


def steps() -> list[list]:
    born = [Propose(2, 1, 2, -0.5, "target"), Propose(3, 1, 3, -1.0, "target", 1)]
    ranks = [Rank(2, "sum_logprob", -0.5, rank=1), Rank(3, "sum_logprob", -1.0, rank=2)]
    shared = Distribution(2, "combined", [[4, -0.1], [2, -2.5]], 0.0, 0.4, "the row")
    shares = [Measure(2, "share", 0.75), Measure(3, "share", 0.25)]
    likeness = Measure(2, "linearity", 0.9, {"after 0 layers": 1.0, "after 1 layers": 0.9})
    more = [Propose(4, 2, 4, -0.2, "target"), Propose(5, 2, 2, -0.4, "target", 1), Verdict(3, "pruned")]
    ends = [Rank(4, "length_penalised", -0.35), Rank(5, "sum_logprob", -0.9, rank=1)]
    last = [Commit([2, 4], [-0.4, -0.3]), Verdict(5, "pruned")]
    return [[*born, *ranks], [shared, *shares, likeness, *more, *ends], last]


def test_drafts_stand_by_rank_and_their_cells_darken_with_their_share():
    marks, ops = fold(Superposition, steps(), [0, 1], WORDS, num_beams=2, linearity=True)
    assert (marks["c2"]["x"], marks["c2"]["y"]) == (1, 0) and marks["c3"]["y"] == 1
    assert marks["c2"]["weight"] > marks["c3"]["weight"] > 0
    assert marks["c2"]["hover"][1] == "score D −0.50, 0.75 of the mixture"
    assert marks["c3"]["text"] == "<b>"
    ended, alive = marks["c4"], marks["c5"]  # those that end stand below those that live
    assert (ended["state"], ended["y"], alive["y"], alive["x"]) == ("finished", 1, 0, 2)
    assert {e: marks[e]["state"] for e in ("e2", "e3", "e4", "e5")} == {
        "e2": "chosen",
        "e3": "pruned",
        "e4": "chosen",
        "e5": "pruned",
    }
    assert [bar["x"] for bar in of_kind(marks, "bar")] == [2, 2]
    assert marks["l2"]["y"] == 0.9 and "after 0 layers 1.000" in marks["m2"]["hover"][1]
    assert [op[-1]["say"] for op in ops] == [
        "Step 1: 2 drafts live, ␣a leads with −0.50.",
        "Step 2: 1 draft live, ␣a leads with −0.90.",
        "Step 3: the output is …␣a␣dog.",
    ]


def test_a_real_run_is_drawn_whole(tiny_model, prompt):
    model = tiny_model("llama")
    trace = Lane("superposed", prompt, {"target": model}, {"num_beams": 4}, limits=Limits(9)).run()
    words = {t: b.decode("latin-1") for t, b in trace.vocabulary.items()}
    listed = [words.get(t, "") for t in range(max(words) + 1)]
    marks, _ = fold(Superposition, [s.events for s in trace.steps], prompt, listed, num_beams=4)
    places = [(m["x"], m["y"]) for m in of_kind(marks, "cell")]
    assert len(places) == len(set(places)) > 9
    chosen = [m for m in of_kind(marks, "edge") if m["state"] == "chosen"]
    assert len(chosen) == len(trace.output())
