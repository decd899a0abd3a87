"""What forwards would take elsewhere: by hand, and against lanes of small tables."""

import pytest

from decoders.lane import Lane, Limits
from decoders.trace.events import Forward, Step
from tests.visualizers.analysis.test_draft_what_if import models
from visualizers.analysis.roofline import (
    DEVICES,
    DRAFT,
    TARGET,
    Device,
    Size,
    checked,
    forward_work,
    other_machine,
    ridge,
    sentence,
    step_work,
)

# 2 billion bytes of weights in 20 ms; 2 billion operations a token in 1 ms.
DEVICE, SIZE = Device(100, 2, 1000, 10, 1), Size(1, 2, 100)


def lane(strategy: str, **parameters):
    return Lane(strategy, [1], models(), parameters, 0, Limits(24)).run()


def test_a_forward_by_hand():
    one, many = forward_work(DEVICE, SIZE, 1, 0), forward_work(DEVICE, SIZE, 40, 0)
    assert (one.seconds, one.waited) == pytest.approx((0.021, 0.02))
    assert (many.seconds, many.waited) == pytest.approx((0.041, 0.0))  # arithmetic is the slower part
    assert one.joules == pytest.approx(2e9 * 10e-12 + 2e9 * 1e-12)
    assert forward_work(DEVICE, SIZE, 1, 1000).seconds == pytest.approx(0.022)  # 0.1 GB of cache
    assert forward_work(DEVICE, SIZE, 1, 0, share=0.5).seconds == pytest.approx(0.011)


def test_the_ridge_is_where_memory_and_arithmetic_take_the_same_time():
    most = ridge(DEVICE, SIZE)
    assert most == pytest.approx(20)
    here = forward_work(DEVICE, SIZE, most, 0)
    assert here.seconds == pytest.approx(forward_work(DEVICE, SIZE, 1, 0).seconds)
    assert forward_work(DEVICE, SIZE, most + 1, 0).seconds > here.seconds
    assert "no longer for up to 20" in sentence(DEVICE, SIZE)
    assert "verifying takes time" in sentence(Device(1000, 0.5, 0, 0, 0), SIZE)


def test_two_devices_take_as_long_as_the_slower_row():
    forwards = [Forward("draft", "draft", 1, 1, 0.0, 1.0)] * 3 + [Forward("target", "verify", 4, 1, 3.0, 1.0)]
    step, sizes = Step(1, forwards, 4.0), {"target": SIZE, "draft": Size(0.1, 2, 0)}
    in_turn, at_once = (step_work(step, DEVICE, sizes, 0, which) for which in (False, True))
    assert in_turn.seconds == pytest.approx(3 * 0.003 + 0.021)
    assert at_once.seconds == pytest.approx(0.021)
    assert at_once.joules == in_turn.joules


def test_greedy_is_plain_decoding():
    found = other_machine(lane("greedy"), 99, DEVICES["laptop"], TARGET, DRAFT)
    assert found["seconds"] == pytest.approx(found["plain"]["seconds"])
    assert found["joules"] == pytest.approx(found["plain"]["joules"])
    assert found["race"][-1] == [found["seconds"], found["tokens"]] and found["tokens"] == 24


def test_speculation_gains_where_verifying_is_free_and_loses_where_it_is_not():
    trace = lane("speculative", temperature=0.0, num_assistant_tokens=4)
    sizes = Size(8, 2, 0), Size(0.08, 2, 0)
    free, dear = Device(1000, 1000, 0, 1, 1), Device(1e6, 0.1, 0, 1, 1)
    gain = [
        found["plain"]["seconds"] / found["seconds"]
        for found in (other_machine(trace, 99, device, *sizes) for device in (free, dear))
    ]
    rounds = trace.costs.totals()["target_forwards"]
    assert gain[0] == pytest.approx(24 / rounds, rel=0.1)
    assert gain[1] < 1


def test_fewer_steps_cost_less():
    trace = lane("greedy")
    few = other_machine(trace, 3, DEVICE, TARGET, DRAFT)
    assert few["tokens"] == 3 and few["seconds"] < other_machine(trace, 4, DEVICE, TARGET, DRAFT)["seconds"]


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf")])
def test_figures_that_cannot_be_are_refused_in_a_sentence(wrong):
    with pytest.raises(ValueError, match="^memory takes a number above 0, in GB/s.$"):
        checked(Device(wrong, 1, 1, 1, 1))
    assert checked(Device(1, 1, 0, 0, 0)) and checked(Size(1, 2, 0))
