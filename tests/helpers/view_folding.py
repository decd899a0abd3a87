"""Helpers for tests of views: feed events, apply the ops as the player does, check the invariants of a
scene.
"""

from dataclasses import fields

from decoders.trace.events import Step
from visualizers.registry import head_of
from visualizers.scene import marks as kinds
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header

PLACE = (
    "x",
    "y",
    "x0",
    "x1",
    "y0",
    "y1",
    "w",
    "h",
    "points",
    "panel",
    "height",
)  # fields that may never change after birth
KINDS = {kind.kind: {field.name for field in fields(kind)} for kind in kinds.KINDS}


def vocabulary(*words: str) -> dict[int, bytes]:
    return {index: word.encode() for index, word in enumerate(words)}


def fold(
    view_class, steps: list[list], prompt: list[int], words: list[str], **parameters
) -> tuple[dict, list[list]]:
    """The marks after all steps, and each step's ops. Checks that ids are unique and nothing moves."""
    view = view_class(Header(prompt, vocabulary(*words), parameters))
    head = head_of(view)
    assert head["title"] and head["question"].endswith("?") and head["column"] > 0
    marks = {op["id"]: dict(op) for op in head.get("ops", [])}
    all_ops = []
    for index, events in enumerate(steps):
        ops = to_json(view.feed(Step(index, events)))
        all_ops.append(ops)
        for op in ops:
            if "kind" in op:
                assert op["id"] not in marks, f"{op['id']} is born twice"
                marks[op["id"]] = dict(op)
            elif "set" in op:
                changed = marks[op["id"]]
                unknown = set(op["set"]) - KINDS[changed["kind"]]
                assert not unknown, f"{op} sets {unknown}, which a {changed['kind']} does not have"
                fixed = PLACE if changed["kind"] != "panel" else ("share", "px")
                fixed += ("y1",) if changed.get("grow") else ()  # other scales may grow at both ends
                assert not set(op["set"]) & set(fixed), f"{op} moves a mark"
                marks[op["id"]].update(op["set"])
    return {key: mark for key, mark in marks.items() if not mark.get("gone")}, all_ops


def of_kind(marks: dict, kind: str) -> list[dict]:
    return [mark for mark in marks.values() if mark["kind"] == kind]
