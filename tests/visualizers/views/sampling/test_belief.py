"""Belief and coupling: what stands in the pictures are the numbers of the events, letter by letter."""

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.testing import random_table
from decoders.trace.scores import Measure, Rank, Score
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.sampling.belief import Belief, bits
from visualizers.views.sampling.coupling import AFTER, BEFORE, FIRST, SIGN, WIDE, Coupling, short

WORDS = ["<i>", "b", "c", "d", "e", "f", "g", "h", "i"]
GIVEN = {"message": "abca", "weights": [4, 2, 1], "confidence": 0.9}


def trace_of(**given):
    model = TableModel(random_table(2, 9, 0.7), 9, words=WORDS)
    return Lane("coupling", [1], {"target": model}, GIVEN | given, 1, Limits(20)).run()


def drawn(view, trace):
    return fold(view, [s.events for s in trace.steps], [1], WORDS, **trace.parameters)


def scores(trace, name: str) -> list[Score]:
    return [e for s in trace.steps for e in s.of(Score) if e.name == name]


def test_beliefs_are_columns_and_letters_boxes_under_their_tokens():
    trace = trace_of(bits=1.0)
    marks, ops = drawn(Belief, trace)
    letters, after = scores(trace, "letter"), after_tokens(trace)
    cells = {mark["id"]: mark for mark in of_kind(marks, "cell")}
    columns = {m["x"] for key, m in cells.items() if key.startswith("t")}
    assert columns == set(range(1, 21))
    shown = [m["text"] for key, m in cells.items() if key.startswith("s")]
    assert len(shown) == sum(len(e.parts) for e in after) and any(t == "1.00" for t in shown)
    boxes = [m for key, m in cells.items() if key.startswith("l")]
    assert [m["text"] for m in boxes] == [e.level for e in letters] and len(boxes) == 4
    right = [m["state"] == "accepted" for m in boxes]
    assert right == [e.parts["right"] == 1.0 for e in letters] and False in right
    edges = sorted((m["x"] - m["w"] / 2, m["x"] + m["w"] / 2) for m in boxes)
    assert all(b[0] > a[1] for a, b in zip(edges, edges[1:], strict=False))
    assert {m["text"] for m in of_kind(marks, "row")} >= {"tokens", "letters", "bc", "a"}
    assert any("<i>" in m["text"] for m in cells.values())
    assert all(any("say" in op for op in said) for said in ops if said)


def after_tokens(trace) -> list[Score]:
    """The beliefs after a token; those with which a letter begins are left out."""
    return [e for s in trace.steps for e in s.of(Measure) if e.name == "belief" and e.node in committed(s)]


def committed(step) -> list[int]:
    return [n for e in step.events if type(e).__name__ == "Commit" for n in e.nodes]


def test_bits_read_are_those_of_the_beliefs_and_never_more_than_the_budget():
    trace = trace_of()
    marks, _ = drawn(Belief, trace)
    nodes = {n for s in trace.steps for n in committed(s)}
    brought, read, now = 0.0, 0.0, 0.0
    for step in trace.steps:
        for event in step.of(Score):
            if event.name == "belief" and event.node not in committed(step):
                brought += bits(event.parts.values())
                read, now = read + now, 0.0
                fresh = bits(event.parts.values())
            elif event.name == "belief":
                now = fresh - bits(event.parts.values())
    lead = marks["heading"]["heading"]
    assert lead == f", {read + now:.1f} of {brought:.1f} bits read after {len(nodes)} tokens"
    last = max((m for m in marks.values() if m["id"].startswith("i")), key=lambda m: m["points"][1][0])
    assert last["points"][1][1] == pytest.approx(read + now, abs=1e-3)


def test_every_token_of_the_message_is_a_table_of_its_cells():
    trace = trace_of()
    marks, ops = drawn(Coupling, trace)
    cells, tables = of_kind(marks, "cell"), len([said for said in ops if said])
    assert tables == len(after_tokens(trace))
    places = [(m["x"], m["y"]) for m in cells]
    assert len(set(places)) == len(places)
    first = {e.node: e for e in trace.steps[0].of(Measure) if e.name == "coupling"}
    for at, (node, told) in enumerate(first.items()):
        column = [m for m in cells if m.get("node") == node]
        assert {m["x"] for m in column} == {round(FIRST + (at + 0.5) * WIDE, 3)}
        wanted = [told.parts.get(sign, 0.0) for sign in ("a", "b", "c")]
        assert [m["text"] for m in column] == [short(x) if x else "" for x in wanted]
    filled = [m for m in cells if m["state"] == "chosen"]
    assert len(filled) == 2 * tables and BEFORE.x >= SIGN.x + SIGN.w and AFTER > 0


def test_other_traces_draw_nothing():
    events = [[Rank(0, "priority", 1.0)]]
    assert fold(Belief, events, [0], WORDS)[1] == [[]] == fold(Coupling, events, [0], WORDS)[1]
