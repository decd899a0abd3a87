"""Accepted lengths: a brick per round on the column of what it accepted."""

from decoders.lane import Lane, Limits
from visualizers.registry import deltas
from visualizers.scene.view import Header
from visualizers.views.speculative.accepted_lengths import scale


def test_a_brick_per_round_stands_on_what_was_accepted(tiny_model):
    models = {"target": tiny_model("llama"), "draft": tiny_model("gpt2")}
    parameters = {"num_assistant_tokens": 3, "temperature": 1.0}
    trace = Lane("speculative", [5, 6], models, parameters, 3, Limits(24)).run()
    head, steps = deltas("accepted_lengths", Header.of(trace), trace.steps)
    marks: dict = {}
    for op in [*head["ops"], *(op for step in steps for op in step["ops"])]:
        if "kind" in op:
            marks[op["id"]] = dict(op)
        elif "set" in op:
            marks[op["id"]] |= op["set"]
    bricks = [mark for mark in marks.values() if mark["kind"] == "cell"]
    counts = [sum(brick["x"] == length for brick in bricks) for length in range(4)]
    histogram = trace.costs.metrics()["acceptance_histogram"]
    assert counts == [*histogram, *[0] * (4 - len(histogram))] and sum(counts) > 3
    assert len({(brick["x"], brick["y"]) for brick in bricks}) == len(bricks)
    assert [brick["fill"] for brick in bricks].count("filled") == 1
    assert head["columns"] == 4 and marks["heading"]["lead"].startswith(f"round {len(bricks)} accepted")


def test_the_scale_holds_all_rounds():
    assert [tick for tick, _ in scale(6)["ticks"]] == [0, 2, 4, 6] and scale(48)["y0"] > 48
