"""Canvas and Canvas grid: what stands at every position, by marks that change and by marks that stay."""

from decoders.lane import Lane, Limits
from decoders.models.tabular_denoiser import TabularDenoiser
from visualizers.registry import deltas
from visualizers.scene.view import Header

END = 2  # the token that ends a text


def scene(view, name="masked_diffusion", joint=None, **parameters):
    """The marks of a lane's end, by id, and all that was said."""
    target = TabularDenoiser(joint or {(0, 1, END, 1): 1.0}, 3, eos=frozenset({END}))
    found = Lane(name, [0], {"target": target}, parameters, limits=Limits(4)).run()
    _, steps = deltas(view, Header.of(found), found.steps)
    marks, says = {}, []
    for op in (op for delta in steps for op in delta["ops"]):
        if "kind" in op:
            marks[op["id"]] = dict(op)
        elif "set" in op:
            marks[op["id"]] |= op["set"]
        says += [op["say"]] if "say" in op else []
    return marks, says


def test_a_canvas_has_one_mark_per_position_that_changes():
    marks, says = scene("canvas")
    cells = [mark for mark in marks.values() if mark["kind"] == "cell"]
    assert [cell["text"] for cell in cells] == ["a", "b", "c", "_"]
    assert [cell["state"] for cell in cells] == ["chosen", "chosen", "accepted", "pruned"]
    assert says[-1] == "1 position filled, 3 in all."


def test_what_stands_behind_the_end_is_no_anchor_any_more():
    """LocalLeap fills all four at once, as anchors; the last one is after the end of the text."""
    marks, _ = scene("canvas", "local_leap")
    last = marks["c4"]
    assert last["state"] == "pruned" and last["fill"] == "none" and not last["glyph"]
    assert marks["c1"]["glyph"] == "⚓"


def test_a_grid_has_a_row_per_iteration_and_keeps_its_marks():
    marks, says = scene("canvas_grid")
    rows = [mark for mark in marks.values() if mark["kind"] == "row"]
    assert [row["text"] for row in rows] == ["iter 1", "iter 2", "iter 3"]
    assert [row["right_bold"] for row in rows] == ["+1"] * 3
    assert marks["g2-1-0"]["fill"] == "amount" and marks["g2-2-0"]["state"] == "accepted"
    assert says[-1] == "Iteration 3: 1 position filled, 3 in all."
