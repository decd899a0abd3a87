"""What stops show of a run. That what they quote and outline is seen: tests/browser/test_lessons.py."""

from decoders.trace.trace import Trace
from explorer.lessons import lesson as lessons
from explorer.lessons.facts import Reading
from visualizers.registry import deltas
from visualizers.scene.view import Header

LESSONS = lessons.lessons()


def shown(trace: Trace, view: str, step: int) -> list[dict]:
    """The marks of a view after a step, in order of birth."""
    header = Header(trace.prompt, trace.vocabulary, trace.shaping, trace.title)
    head, fed = deltas(view, header, trace.steps[: step + 1])
    marks = {op["id"]: dict(op) for op in head.get("ops", [])}
    for op in (op for delta in fed for op in delta["ops"]):
        if "kind" in op:
            marks[op["id"]] = dict(op)
        elif "set" in op:
            marks[op["id"]].update(op["set"])
    return [mark for mark in marks.values() if not mark.get("gone") and mark.get("drawn", True)]


def told(name: str, index: int, shipped) -> tuple[dict, dict, dict, list[Trace]]:
    """The stop, what is told of it, the values of its place, and the traces."""
    lesson = LESSONS[name]
    traces, stop = shipped(lesson["setup"]), lesson["stops"][index]
    lanes = {number: Reading(trace) for number, trace in enumerate(traces, 1)}
    return stop, lessons.fill_stop(stop, lanes), lessons.find_place(stop["find"], lanes).values, traces


def test_a_phrase_that_comes_twice_is_outlined_twice(shipped):
    _, said, values, traces = told("why-beam-search-repeats", 0, shipped)
    text = {chip["node"]: chip["position"] for chip in shown(traces[0], "text", said["step"])}
    count = min(values["length"], 12)
    twice = [range(values[start], values[start] + count) for start in ("first", "second")]
    assert [text[node] for node in said["nodes"][1]] == [*twice[0], *twice[1]]


def test_the_right_answer_is_not_mostly_the_first_and_stays_where_it_is(shipped):
    order = []
    for name, lesson in LESSONS.items():
        filled = lessons.fill_lesson(lesson, shipped(lesson["setup"]))["stops"]
        for index, again in enumerate(filled):
            _, said, _, _ = told(name, index, shipped)
            assert said["choices"] == again["choices"]
            if said["choices"]:
                order.append([choice["right"] for choice in said["choices"]].index(True))
    assert len(order) >= 25
    assert 0.25 <= order.count(0) / len(order) <= 0.5
    assert set(order) >= {0, 1, 2}


def test_the_sampler_lesson_draws_its_lanes_on_one_scale_with_one_random_number(shipped):
    stop, said, _, traces = told("temperature-and-top-p", 1, shipped)
    assert {look["view"] for look in stop["look"]} == {"sampler"} and len(stop["look"]) == 4
    drawn = [shown(trace, "sampler", said["step"]) for trace in traces]
    lengths = [[m["w"] for m in marks if m["kind"] == "cell" and m["y"] == 0] for marks in drawn]
    assert len({row[0] for row in lengths}) == 1  # the model's own distribution, the same in all
    assert len({row[-1] for row in lengths}) == 4  # what each samples from
    assert len({m["x"] for marks in drawn for m in marks if m["kind"] == "symbol"}) == 1
