"""Spans and loops of a text: what is counted where."""

import math

import pytest

from decoders.trace.events import Commit, Distribution, Propose, Step, Verdict
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.trace import Trace
from visualizers.analysis.loops_and_thinking import (
    ALL,
    IN_LOOP,
    NOT_STORED,
    OUTSIDE,
    Report,
    cells,
    loops_and_thinking,
)

WORDS = [b"<think>", b"a", b"</think>", b"b", *(b"w%d" % i for i in range(9))]
NATS = math.log(2)


def trace_of(tokens: list[int], *, prompt: int = 3, **parameters) -> Trace:
    """One token a step, with 1 bit of entropy before even places of the output and 3 before others."""
    trace = Trace("any", "Any", parameters, 0, {"target": "t"}, [prompt], dict(enumerate(WORDS)))
    for at, token in enumerate(tokens):
        row = Distribution(at, "target", [[token, -0.1], [2, -3.0]], 0.1, (1 if at % 2 == 0 else 3) * NATS)
        born = Propose(at + 1, at, token, -0.1, "target")
        trace.append(Step(at, [row, born, Commit([at + 1], [-0.1])], float(at)))
    return trace


def drafted(tokens: list[int], accepted: list[bool]) -> Trace:
    """One draft a step: the token itself where it is accepted, else the last word."""
    trace = trace_of([])
    for at, (token, passes) in enumerate(zip(tokens, accepted, strict=True)):
        tip, guess, own = 2 * at, 2 * at + 1, 2 * at + 2
        tip = 0 if at == 0 else trace.steps[-1].of(Commit)[0].nodes[-1]
        events = [
            Propose(guess, tip, token if passes else 12, -0.5, "draft"),
            Verdict(guess, "accepted" if passes else "rejected", p=0.5, q=0.6),
            Measure(tip, ScoreName.TOTAL_VARIATION, 0.25 if passes else 0.75),
        ]
        if passes:
            events.append(Commit([guess], [-0.1]))
        else:
            events += [
                Propose(own, tip, token, -0.5, "target"),
                Verdict(own, "resampled"),
                Commit([own], [-0.1]),
            ]
        trace.append(Step(at, events, float(at)))
    return trace


def table(report: Report) -> dict[str, list[str]]:
    return {name: rest for name, *rest in cells(report)}


UNIT = [4, 5, 6, 7, 8, 9, 10]


def test_copies_in_a_loop_are_told_from_what_they_copy():
    report = loops_and_thinking(trace_of([*UNIT, *UNIT, 4, 11]))
    assert [report.row(name).tokens for name in (IN_LOOP, OUTSIDE, ALL)] == [8, 8, 16]
    assert report.row(IN_LOOP).entropy == pytest.approx((4 * 3 + 4 * 1) / 8)
    assert report.longest and report.text_of(report.longest) == "w0w1w2w3w4w5w6"
    assert report.sentence.startswith(
        "From token 1 on, 7 tokens are written 2 times. The target's mean entropy"
    )


def test_a_text_without_loop_and_reasoning_says_so():
    report = loops_and_thinking(trace_of(UNIT))
    assert [one.name for one in report.rows] == [ALL] and "no loop" in report.sentence


def test_drafted_tokens_count_where_they_stood():
    tokens = [*UNIT, *UNIT]
    report = loops_and_thinking(drafted(tokens, [at >= 6 for at in range(14)]))
    inside, outside = report.row(IN_LOOP), report.row(OUTSIDE)
    assert (inside.accepted, inside.drafted, outside.accepted, outside.drafted) == (7, 7, 1, 7)
    assert "Acceptance is 1.00 in loops and .14 outside;" in report.sentence


def test_the_loss_of_a_relaxed_verifier_is_split_too():
    report = loops_and_thinking(drafted([*UNIT, *UNIT], [at >= 7 for at in range(14)]))
    assert report.lossy
    assert (report.row(IN_LOOP).variation, report.row(OUTSIDE).variation) == (0.25, 0.75)
    assert table(report)[OUTSIDE][-1] == ".75 (7 places)"


def test_reasoning_and_answer_have_rows_of_their_own():
    report = loops_and_thinking(trace_of([0, 1, 1, 2, 3]))
    assert [(one.name, one.tokens) for one in report.rows] == [("reasoning", 4), ("answer", 1), (ALL, 5)]
    assert report.spent == 2 and report.sentence == "2 tokens of reasoning."


def test_the_end_of_thinking_is_read_from_the_stored_tokens():
    report = loops_and_thinking(trace_of([0, 1, 2, 3]))
    assert report.ends == {1: pytest.approx(math.exp(-3.0)), 2: pytest.approx(math.exp(-0.1))}


def test_an_end_that_is_not_stored_is_said_to_be_missing():
    trace = trace_of([1, 1], prompt=0)
    for step in trace.steps:
        step.events[0].top.pop()
    report = loops_and_thinking(trace)
    assert report.ends == {0: None, 1: None}
    assert f"p(end of thinking) is {NOT_STORED} at 2 places." in report.sentence


def test_a_recorded_end_of_thinking_goes_before_stored_tokens():
    trace = trace_of([1, 1], prompt=0)
    trace.steps[0].events.append(Measure(0, ScoreName.END_OF_THINKING, 0.125, scale=1.0))
    assert loops_and_thinking(trace).ends[0] == 0.125


def test_a_forced_end_is_named_with_its_budget():
    trace = trace_of([1, 2, 3], prompt=0, thinking_budget=1)
    trace.steps[1].events.append(Measure(2, ScoreName.THINKING_BUDGET, 1.0, limit=1.0))
    report = loops_and_thinking(trace)
    assert report.forced == [1]
    assert report.sentence == "1 token of reasoning, with a budget of 1 for a span; its end was forced."


def test_only_the_steps_that_are_asked_for_count():
    assert loops_and_thinking(trace_of([*UNIT, *UNIT]), 8).loops == []
