"""Places and facts of loops, on traces that are written by hand."""

import math

import pytest

from explorer.lessons import loop_stops
from explorer.lessons.facts import Reading
from tests.visualizers.analysis.test_loops_and_thinking import UNIT, drafted, trace_of

LOOPED = trace_of([*UNIT, *UNIT, *UNIT, 11])


def lanes(trace) -> dict[int, Reading]:
    return {1: Reading(trace)}


def test_a_loop_is_found_at_the_end_of_its_first_copy():
    found = loop_stops.loop(lanes(LOOPED), 1)
    assert found.step == 13 and found.nodes == {1: list(range(1, 15))}
    assert (found.values["first"], found.values["second"], found.values["copies"]) == (1, 8, 3)
    assert found.values["p_last"] == pytest.approx(math.exp(-0.1))
    assert found.values["stays"] == pytest.approx(math.exp(-0.7))
    assert found.values["phrase"] == "w0w1w2w3w4w5w6"


def test_a_whole_loop_is_seen_at_the_end_with_its_last_copy():
    found = loop_stops.loop(lanes(LOOPED), 1, whole=True)
    assert found.step == 21 and found.nodes == {1: list(range(15, 22))}


def test_a_text_without_a_loop_has_no_such_place():
    own = lanes(trace_of(UNIT))
    assert loop_stops.loop(own, 1) is None and loop_stops.loop_exit(own, 1) is None
    assert loop_stops.loop_acceptance(own, 1, "in") is None
    assert (loop_stops.loop_tokens(own, 1), loop_stops.loop_drafted(own, 1, "out")) == (0, 0)


def test_the_weakest_token_of_the_first_copy_is_named_with_what_comes_second():
    trace = trace_of([*UNIT, *UNIT, *UNIT])
    trace.steps[9].events[-1].logprobs[0] = -1.5
    found = loop_stops.loop_exit(lanes(trace), 1)
    assert (found.values["position"], found.values["last_position"]) == (10, 17)
    assert found.values["p"] == pytest.approx(math.exp(-1.5))
    assert (found.values["other"], found.values["p_other"]) == ("</think>", pytest.approx(math.exp(-3.0)))


def test_drafts_are_counted_on_both_sides():
    own = lanes(drafted([*UNIT, *UNIT], [at >= 6 for at in range(14)]))
    assert loop_stops.loop_acceptance(own, 1, "in") == 1.0
    assert loop_stops.loop_acceptance(own, 1, "out") == pytest.approx(1 / 7)
    assert loop_stops.loop_drafted(own, 1, "in") == 7 and loop_stops.loop_tokens(own, 1) == 7
    assert loop_stops.loop_per_round(own, 1, "out") == 1.0
