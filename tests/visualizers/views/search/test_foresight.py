"""The foresight view: a table a step, every candidate a row, and its numbers are those of the events."""

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.scores import Rank
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.foresight import PROBABILITY, STEP, Foresight

WORDS = ["<end>", ".", "a", "<b>"]


def talk(past) -> list[float]:
    return [0.3, 0.0, 0.35, 0.35] if past[-1] == 1 else [0.0, 0.4, 0.4, 0.2]


def test_every_candidate_is_a_row_with_its_own_numbers():
    model = TableModel(talk, 4, frozenset({0}), words=WORDS)
    given = {"sigma": 0.5, "temperature": 1.0, "delta": 1.0}
    trace = Lane("phi_decoding", [2], {"target": model}, given, 1, Limits(max_new_tokens=16)).run()
    marks, ops = fold(Foresight, [s.events for s in trace.steps], [2], WORDS)
    cells = of_kind(marks, "cell")
    places = [(m["x"], m["y"]) for m in cells]
    assert len(set(places)) == len(places)
    scores = [e for s in trace.steps for e in s.of(Rank) if e.name in ("step", "foresight")]
    names = [m for m in cells if m["x"] == STEP.x + STEP.w / 2]
    assert len(names) == len(scores) > 20
    assert {m["state"] for m in names} == {"chosen", "live", "pruned"}
    drawn = [m for m in names if m["state"] == "chosen"]
    assert len(drawn) == sum(e.rank is not None for e in scores)
    chances = sorted(m["text"] for m in cells if m["x"] == PROBABILITY.x + PROBABILITY.w / 2)
    assert chances == sorted(f"{e.total:.2f}" for e in scores if e.name == "foresight")
    assert any("<b>" in m["text"] for m in names)
    assert all(any("say" in op for op in said) for said in ops)


def test_what_has_no_candidates_draws_nothing():
    _, ops = fold(Foresight, [[Rank(0, "priority", 1.0)]], [0], WORDS)
    assert ops == [[]]
