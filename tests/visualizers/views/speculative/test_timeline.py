"""The timeline: bars where forwards were measured, what became of them, and what two devices would do."""

import pytest

from decoders.trace.events import Commit, Forward, Propose, Step, Verdict
from tests.helpers.view_folding import PLACE
from visualizers.analysis.overlap import Bar, Schedule, milliseconds
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header
from visualizers.views.speculative.timeline import Timeline, scale

WORDS = {0: b"<img src=x onerror=alert(1)>", 1: b" a"}


def forward(model: str, start: float, seconds: float, tokens: int = 1, **more) -> Forward:
    return Forward(model, "draft" if model == "draft" else "verify", tokens, tokens, start, seconds, **more)


def hand_trace() -> list[Step]:
    """gamma = 3, a draft forward takes 1 second, one of the target 3: rounds with a1; a2 a3 b1; b2."""
    steps, node, clock = [], 1, 0.0
    verdicts = [
        [(1, "accepted")],
        [(2, "accepted"), (3, "accepted"), (4, "accepted")],
        [
            (5, "accepted"),
            (6, "rejected"),
            (7, "never reached"),
            (8, "never reached"),
            (9, "never reached"),
            (10, "resampled"),
        ],
    ]
    for index, judged in enumerate(verdicts):
        events = []
        for place in range(3):
            events += [forward("draft", clock + place, 1.0), Propose(node, node - 1, 1, -0.1, "draft")]
            node += 1
        events.append(forward("target", clock, 3.0, 3))
        if index == 2:
            events.append(Propose(10, 5, 1, -0.1, "target"))
        events += [Verdict(n, status) for n, status in judged]
        kept = [n for n, status in judged if status in ("accepted", "resampled")]
        events.append(Commit(kept, [-0.1] * len(kept)))
        clock += 3.0
        steps.append(Step(index, events, clock))
    return steps


def drawn(steps: list[Step], **parameters) -> dict[str, dict]:
    """The marks after all steps. Ids are unique and nothing moves."""
    view = Timeline(Header([0], WORDS, parameters))
    marks = {op["id"]: dict(op) for op in to_json(view.head().ops)}
    for step in steps:
        for op in to_json(view.feed(step)):
            if "kind" in op:
                assert op["id"] not in marks
                marks[op["id"]] = dict(op)
            elif "set" in op:
                assert not set(op["set"]) & set(PLACE)
                marks[op["id"]].update(op["set"])
    return marks


def test_the_hand_trace_takes_nine_units_and_the_draft_never_waits():
    marks = drawn(hand_trace(), concurrent=True)
    unit = marks["lanes"]["x_unit"]
    bars = [m for key, m in marks.items() if key.startswith("derived.") and m["kind"] == "cell"]
    assert not any(m["fill"] == "hatched" for m in marks.values() if m["kind"] == "cell")
    ends = [(m["x"] + m["w"] / 2) * unit for m in bars]
    assert max(ends) == pytest.approx(9000)
    assert "9,000 ms with one device per model, 18,000 ms in turn" in marks["heading"]["heading"]
    states = [marks[f"measured.{r}-{i}"]["state"] for r in range(3) for i in range(3)]
    assert states == [*["accepted"] * 5, "rejected", *["unreached"] * 3]
    assert marks["end3-words"]["text"] == "+2◆"
    assert [marks[f"measured.{r}-3"]["y"] > 1 for r in range(3)] == [True] * 3


def test_without_a_schedule_only_what_was_measured_is_drawn():
    marks = drawn(hand_trace())
    assert not any(key.startswith("derived") for key in marks)
    assert marks["heading"]["heading"].startswith(": 6 tokens in 9,000 ms; draft 9,000 ms, target 9,000 ms")


def test_a_model_that_waits_is_hatched():
    events = [
        forward("draft", 0.0, 0.01),
        Propose(1, 0, 1, -0.1, "draft"),
        forward("target", 0.01, 0.02),
        Verdict(1, "accepted"),
        Commit([1], [-0.1]),
    ]
    late = [
        forward("draft", 0.031, 0.01),
        Propose(2, 1, 0, -0.1, "draft"),
        forward("target", 0.041, 0.02),
        Verdict(2, "rejected"),
        Commit([], []),
    ]
    marks = drawn([Step(0, events, 0.03), Step(1, late, 0.061)], concurrent=False)
    gap, unit = marks["measured.1-0-gap"], marks["lanes"]["x_unit"]
    assert gap["fill"] == "hatched" and gap["w"] * unit == pytest.approx(21, abs=0.01)
    assert gap["hover"] == ["draft: no forward for 21.0 ms"]
    assert "concurrent is off" in marks["heading"]["heading"]


@pytest.mark.parametrize(("at_once", "says"), [(0.02, "pays here"), (0.04, "does not pay on this machine")])
def test_overlapping_is_judged_by_rounds_that_were_measured(at_once, says):
    found, clock = Schedule(), 0.0
    for index in range(6):
        overlapped = index >= 3
        takes = at_once if overlapped else 0.03
        begin = clock if overlapped else clock + 0.01
        bars = [Bar(f"{index}a", "draft", clock, 0.01, 1, "draft")]
        bars.append(Bar(f"{index}b", "target", begin, takes if overlapped else 0.02, 1, "verify"))
        found.read(bars, clock + takes, 1)
        clock += takes
    assert (
        says in found.verdict()
        and f"a round takes {milliseconds(at_once)}, in turn 30.0 ms" in found.verdict()
    )
    assert found.cost("draft") == pytest.approx(0.01) and found.cost("target") == pytest.approx(0.02)


def test_the_scale_is_a_round_number():
    bars = [Bar("a", "draft", 0, 0.002, 1, "draft"), Bar("b", "target", 0, 0.03, 1, "verify")]
    assert scale(bars, 0.04) == 2
    bars[1] = Bar("b", "target", 0, 1e-5, 4, "verify", shared=True)  # its prompt was read by another lane
    assert scale(bars, 0.04) == 0.5
    bars[0] = Bar("a", "draft", 0, 1e-5, 4, "draft", shared=True)  # and the draft's too
    assert scale(bars, 0.004) == 1
    assert scale([], 0.0) > 0


def test_milliseconds_have_three_digits():
    assert [milliseconds(s) for s in (0.00123, 0.0123, 0.123, 1.234)] == [
        "1.23 ms",
        "12.3 ms",
        "123 ms",
        "1,234 ms",
    ]
