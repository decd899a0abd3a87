"""Scores of version 1 are read as the events that stand for them in version 2."""

import pytest

from decoders.trace.events import event_from_json
from decoders.trace.scores import (
    OTHERS,
    AutomatonEdge,
    AutomatonState,
    ConstraintPlace,
    Measure,
    Rank,
    ScoreName,
    Span,
    Table,
)


def read(name: str, total: float = 0.5, node: int = 7, **fields):
    return event_from_json({"type": "Score", "node": node, "name": name, "total": total, **fields})


def test_what_candidates_are_ranked_by():
    assert read("sum", rank=2, level="1") == Rank(7, "sum", 0.5, {}, "1", 1, rank=2)
    assert read("priority", parts={"g": 1.0}) == Rank(7, "priority", 0.5, {"g": 1.0})
    cost = read("path_cost", parts={"edge": 0.1, "layer": 2.0}, level="state 12")
    assert cost == Rank(7, ScoreName.PATH_COST, 0.5, {"edge": 0.1, "layer": 2.0}, "state 12", 12)
    assert read("plan", rank=1, level="3 1 2").units == [3, 1, 2]
    assert read("plan", rank=1, level="by heart").units is None


def test_values_at_a_token():
    assert read("own") == Measure(7, "own", 0.5)
    assert read("gap", parts={"limit": 0.9, "x": 1.0}) == Measure(7, "gap", 0.5, {"x": 1.0}, limit=0.9)
    gauge = read("top_p", parts={"high": 1.0, "kept": 3.0}, level="gauge")
    assert gauge == Measure(7, ScoreName.TOP_P, 0.5, {"kept": 3.0}, scale=1.0)
    draw = read("draw", parts={"low": 0.4, "high": 0.6})
    assert draw == Measure(7, ScoreName.DRAW, 0.5, {"low": 0.4, "high": 0.6})
    assert read("bank_slots", level="bank 3").number == 3


def test_tables():
    plan = read("tokens a round", parts={"chosen": 2.0, "nodes 1": 1.5, "nodes 2": 2.5}, level="2 deep")
    wanted = Table(7, ScoreName.TOKENS_PER_ROUND, 0.5, {}, "2 deep", unit="nodes", rows=[[1, 1.5], [2, 2.5]])
    wanted.chosen = 2
    assert plan == wanted
    assert plan.numbers == {"chosen": 2, "nodes 1": 1.5, "nodes 2": 2.5}
    experts = read("weak experts", parts={"of": 8.0, "expert 3": 0.75}, level="layer 2")
    assert (experts.number, experts.parts, experts.by_number) == (2, {"of": 8.0}, {3: [0.75]})
    parts = {"kept": 0.2, "masked 4": 0.7, "true 4": 0.6, "error 4": 0.1, "masked others": 0.3}
    bias = read("bias", parts=parts | {"true others": 0.4, "allowed error": 0.05}, level="estimated")
    assert bias.parts == {"kept": 0.2, "allowed error": 0.05} and bias.level == "estimated"
    assert bias.by_number == {4: [0.7, 0.6, 0.1], OTHERS: [0.3, 0.4]}


def test_places_in_texts_and_in_an_automaton():
    unit = read("unit", parts={"first": 3.0, "last": 5.0}, level="2")
    assert unit == Span(7, ScoreName.UNIT, 0.5, number=2, first=3, last=5)
    place = read("constraint_place", 1.0, parts={"0-12": 0.0, "4-8": 1.0})
    assert place == ConstraintPlace(7, [[4, 8]], [[0, 12]], True)
    parts = {"from": 0.0, "to": 2.0, "from end": 0.0, "to end": 1.0}
    assert read("automaton_edge", 5.0, parts=parts, level="a b") == AutomatonEdge(
        7, 5, 0, 2, "a b", False, True
    )
    state = read("automaton_state", 2.0, parts={"took 5": 1.0, "took 6": 1.0}, level="state")
    assert state == AutomatonState(7, 2, None, None, [5, 6])
    edge = read("automaton_state", 6.0, parts={"took 5": 1.0, "along": 3.0}, level="edge")
    assert edge == AutomatonState(7, None, 6, 3, [5])


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("automaton_edge", {}),
        ("automaton_state", {"took much": 1.0}),
        ("constraint_place", {"everywhere": 1.0}),
        ("unit", {"first": 1.0}),
        ("cosine", {"skipped it": 1.0, "skipped 2": 0.5}),
        ("bias", {"masked it": 0.5, "true it": 0.5}),
    ],
)
def test_another_program_s_score_of_the_same_name_is_a_value(name, parts):
    assert read(name, parts=parts) == Measure(7, name, 0.5, parts)
