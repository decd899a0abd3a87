"""The memory map: one row until layers differ, then one for each; KL and bytes as they were recorded."""

from decoders.trace.events import Cell, Commit, Propose, Step
from decoders.trace.scores import Measure, ScoreName
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header
from visualizers.views.any_lane.memory import ALL, Memory


def step(index, node, cells, kl, kept):
    events = [Propose(node, node - 1, 7, -0.1, "target"), Commit([node], [-0.1])]
    events += [Measure(node, ScoreName.KL_FROM_FULL_CACHE, kl, {"changed": float(kl > 1)}), *cells]
    return Step(index, [*events, Measure(node, ScoreName.MEMORY_BYTES, kept, {"full": 400.0})])


def drawn(ops, known):
    for op in ops:
        if "kind" in op:
            known[op["id"]] = dict(op)
        elif "set" in op:
            known.setdefault(op["id"], {}).update(op["set"])
    return known


def test_rows_come_when_layers_differ_and_nothing_is_guessed():
    view = Memory(Header([5, 6], {5: b"a", 6: b"b", 7: b"c"}, {"memory": "subgen"}))
    known = drawn(to_json(view.head().ops), {})
    alike = [Cell(0, 0, 5, "full", level=ALL), Cell(1, 0, 6, "full", level=ALL)]
    drawn(to_json(view.feed(step(0, 2, alike, 0.01, 400.0))), known)
    assert known["m-1.0"]["state"] == "chosen" and "m0.0" not in known
    differ = [Cell(0, 1, 5, "evicted", level="layer 0"), Cell(0, 1, 5, "clustered", level="layer 1")]
    drawn(to_json(view.feed(step(1, 3, differ, 2.0, 100.0))), known)
    assert known["m-1.0"]["gone"] and known["m-1.1"]["gone"] and known["r-1"]["gone"]
    assert known["m0.0"]["state"] == "unreached" and known["m1.0"]["state"] == "live"
    assert known["m0.1"]["state"] == known["m1.1"]["state"] == "chosen"
    assert known["d3"]["role"] == "ink" and known["d4"]["role"] == "live"
    assert known["heading"]["lead"] == "25% of the full cache"
    assert "first differs at position 4" in known["heading"]["heading"]
