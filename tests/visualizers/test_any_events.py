"""Whatever a strategy emits, the tree views draw it: one mark a candidate, nothing moves, plain JSON."""

import json

from hypothesis import given, note, settings
from hypothesis import strategies as st

from decoders.trace.events import STATUSES, Commit, Propose, Step, Verdict
from decoders.trace.scores import Rank
from tests.helpers.view_folding import PLACE
from visualizers.registry import build
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header

MAYBE = st.one_of(st.none(), st.floats(0, 1))
SOURCES = ("target", "draft", "prompt", "guess")


@st.composite
def lanes(draw) -> list[Step]:
    """Well-formed steps on a prompt of three tokens: births, verdicts, scores and commits in any mixture."""
    steps, node, spine = [], 3, 2
    for index in range(draw(st.integers(1, 6))):
        events = []
        for what in draw(st.lists(st.sampled_from("pppvsc"), max_size=10)):
            if what == "p":
                parent = draw(st.sampled_from([*range(2, node)][-6:]))
                logprob = draw(st.one_of(st.none(), st.floats(-9, 0)))
                source, slot = draw(st.sampled_from(SOURCES)), draw(st.integers(0, 5))
                events.append(Propose(node, parent, draw(st.integers(0, 3)), logprob, source, slot))
                node += 1
            elif node > 3 and what == "v":
                status = draw(st.sampled_from(STATUSES))
                events.append(
                    Verdict(draw(st.integers(3, node - 1)), status, draw(MAYBE), draw(MAYBE), draw(MAYBE))
                )
            elif node > 3 and what == "s":
                rank = draw(st.sampled_from([None, 1, 2]))
                events.append(
                    Rank(draw(st.integers(3, node - 1)), "sum_logprob", draw(st.floats(-99, 0)), rank=rank)
                )
            elif what == "c":
                events.append(
                    Propose(node, spine, draw(st.integers(0, 3)), None, draw(st.sampled_from(SOURCES)))
                )
                events.append(Commit([node], [draw(st.one_of(st.none(), st.floats(-9, 0)))]))
                spine, node = node, node + 1
        steps.append(Step(index, events))
    return steps


VIEWS = (
    "beam_tree",
    "banks",
    "draft_rounds",
    "one_round",
    "text",
    "search_graph",
    "queue",
    "span_map",
    "segments",
    "target_top_tokens",
    "layers",
    "draft_layers",
    "plan",
    "open_slots",
    "suffix_tree",
    "graph",
)


@settings(max_examples=150, deadline=None)
@given(steps=lanes(), beams=st.sampled_from([None, 1, 4, 12]))
def test_any_well_formed_lane_is_drawn(steps, beams):
    """By all the views: to make up a lane takes ten times as long as to draw it."""
    for name in VIEWS:
        note(name)
        draw(name, steps, beams)


def draw(name: str, steps: list[Step], beams: int | None) -> None:
    """Draws a lane with a view and looks at every mark."""
    vocabulary = {0: b"<b>", 1: b" a", 2: b"\xe2\x96"}  # token 3 has not been named yet
    view = build(name, Header([0, 1, 2], vocabulary, {"num_beams": beams, "max_new_tokens": 8}))
    marks = {op["id"]: op for op in to_json(view.head().ops)}
    for step in steps:
        ops = to_json(view.feed(step))
        json.dumps(ops, allow_nan=False)
        for op in ops:
            if "kind" in op:
                assert op["id"] not in marks
                marks[op["id"]] = op
            elif "set" in op:
                assert op["id"] in marks and not set(op["set"]) & set(PLACE)
    if name in ("beam_tree", "draft_rounds", "one_round"):
        proposed = [e.node for s in steps for e in s.of(Propose)]
        drawn = [m["node"] for key, m in marks.items() if key.startswith("n") and m["node"] > 2]
        assert sorted(drawn) == sorted(proposed)
