"""Every view shows the tokens that a lane begins with, and marks those that a person put there."""

import pytest

from decoders.trace.events import Commit, Propose, Step
from decoders.trace.given_tokens import decisions, proposals
from visualizers.registry import build
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header

HEADER = Header([0, 1], {0: b"A", 1: b" b", 2: b" copied", 3: b"<img>", 4: b" own"}, {"max_new_tokens": 8})
OWN = Step(1, [Propose(4, 3, 4, -0.5, "target"), Commit([4], [-0.5])], 0.1)


def marks(view: str) -> dict[str, dict]:
    """What a lane draws that begins with one copied and one forced token and decodes one more."""
    built = build(view, HEADER)
    found = {op["id"]: dict(op) for op in to_json(built.head().ops)}
    given = Step(0, [*proposals([2, 3], [1], 2), *decisions([2, 3], [1], 2, {})])
    for step in (given, OWN):
        for op in to_json(built.feed(step)):
            if "kind" in op:
                found[op["id"]] = dict(op)
            elif "set" in op:
                found[op["id"]] |= op["set"]
    return found


@pytest.mark.parametrize(
    ("view", "kind"),
    [
        ("text", "chip"),
        ("beam_tree", "node"),
        ("entropy", "cell"),
        ("parallel_grid", "cell"),
        ("graph", "cell"),
    ],
)
def test_forced_tokens_are_marked_in_every_view(view, kind):
    shown = {mark["node"]: mark for mark in marks(view).values() if mark["kind"] == kind and "node" in mark}
    assert shown[3]["state"] == "forced" and shown[3]["text"] == "<img>"
    assert shown[2]["state"] != "forced" and shown[2]["text"] == "␣copied"


def test_what_is_given_is_no_draft_round():
    found = marks("draft_rounds")
    rows = [mark for mark in found.values() if mark["kind"] == "row"]
    assert [row["text"] for row in rows] == ["round 1"]
    labels = [m["text"] for m in found.values() if m["kind"] == "label" and m.get("panel") == "text"]
    assert labels == ["␣copied", "⚑<img>", "␣own"]
    assert all(mark["node"] == 4 for mark in marks("one_round").values() if mark.get("state") == "live")


def test_sums_begin_where_the_lane_began():
    note = next(m["note"] for m in marks("beam_tree").values() if m.get("node") == 4)
    assert note == "−0.5"
