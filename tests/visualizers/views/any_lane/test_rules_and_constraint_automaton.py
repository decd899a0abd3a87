"""Rules and Automaton: the typed constraint with a mark where the output stands, and its graph."""

import pytest

from decoders.lane import Lane, Limits
from visualizers.registry import deltas
from visualizers.scene.view import Header
from visualizers.views.any_lane.rules import Rules

PROPERTIES = '{"a": {"enum": ["x", "yy"]}, "bb": {"type": "integer"}}'
SCHEMA = '{"type": "object", "properties": ' + PROPERTIES + ', "required": ["a"]}'


def scene(tiny_model, view, strategy="greedy", **parameters):
    """Head, all ops and the last state of each mark."""
    trace = Lane(strategy, [5], {"target": tiny_model("llama")}, parameters, 0, Limits(12)).run()
    head, steps = deltas(view, Header.of(trace), trace.steps)
    marks: dict = {}
    for op in [*head["ops"], *(op for step in steps for op in step["ops"])]:
        if "kind" in op:
            assert op["id"] not in marks
            marks[op["id"]] = dict(op)
        elif "set" in op:
            assert not {"x", "y", "points"} & op["set"].keys(), "no mark moves"
            marks[op["id"]] |= op["set"]
    return marks, [op["say"] for step in steps for op in step["ops"] if "say" in op]


def bands(marks, role):
    return [m for m in marks.values() if m["kind"] == "band" and m["role"] == role and not m.get("gone")]


def test_the_place_is_marked_and_moves_on(tiny_model):
    marks, said = scene(tiny_model, "rules", constraint="regex", constraint_text="a{3}b{2}")
    assert said[0] == "Step 1: next: a." and said[3] == "Step 4: next: b."
    (amber,) = bands(marks, "amber") or [None]
    assert amber is None  # all is written
    assert marks["heading"]["lead"] == "over"


def test_a_schema_is_broken_at_its_brackets(tiny_model):
    parameters = {"constraint": "json_schema", "constraint_text": SCHEMA}
    view = Rules(Header([5], {}, parameters))
    lines = ["".join(SCHEMA[at] for at in line) for _, line in view.lines]
    assert lines[2] == '"properties": {' and '"a": {"enum": ["x", "yy"]},' in lines
    assert "".join(lines).replace(" ", "") == SCHEMA.replace(" ", "")
    marks, said = scene(tiny_model, "rules", **parameters)
    assert said[0] == 'Step 1: next: "a".' and bands(marks, "panel")


@pytest.mark.parametrize("typed", ["x" * 300, "x y " * 60, "a|b\n" * 3])
def test_long_lines_are_broken_and_nothing_is_lost(typed):
    view = Rules(Header([5], {}, {"constraint": "regex", "constraint_text": typed}))
    assert max(indent + len(line) for indent, line in view.lines) <= 44
    assert [at for _, line in view.lines for at in line] == [n for n, c in enumerate(typed) if c != "\n"]


def test_the_graph_lights_up_where_the_output_stands(tiny_model):
    marks, said = scene(
        tiny_model, "constraint_automaton", constraint="regex", constraint_text="(a|b)(cat|dog)s?"
    )
    states = [m for m in marks.values() if m["id"].startswith("s") and m["kind"] == "symbol"]
    ends = [m for m in marks.values() if m["id"].startswith("o")]
    assert len(states) == 4 and len(ends) == 2
    assert said[0] == "Step 1: next: cat · dog."
    taken = [m["id"] for m in marks.values() if m["kind"] == "path" and m["role"] == "ink"]
    assert 2 <= len(taken) <= 3
    (here,) = [m for m in marks.values() if m["id"].startswith("here") and not m.get("gone")]
    assert any((m["x"], m["y"]) == (here["x"], here["y"]) for m in ends)


def test_no_two_edges_and_no_two_states_share_a_place(tiny_model):
    typed = "a(b|c|de?)*f|g(h|ij)*k?l"
    marks, _ = scene(
        tiny_model,
        "constraint_automaton",
        "sample",
        constraint="regex",
        constraint_text=typed,
        temperature=3.0,
    )
    states = [(m["x"], m["y"]) for m in marks.values() if m["id"].startswith("s") and m["kind"] == "symbol"]
    words = [(m["x"], m["y"]) for m in marks.values() if m["kind"] == "label"]
    assert len(states) == len(set(states)) and len(words) == len(set(words))


def test_where_there_is_no_automaton_a_sentence_says_so(tiny_model):
    grammar = 'root ::= "a" | "(" root ")"'
    marks, _ = scene(tiny_model, "constraint_automaton", constraint="gbnf", constraint_text=grammar)
    assert "no automaton" in marks["heading"]["heading"]
    marks, said = scene(tiny_model, "rules", constraint="regex", constraint_text=r"\p{Ll}{3}")
    assert not said and "not known" in marks["heading"]["heading"]
