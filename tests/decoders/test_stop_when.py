"""A lane in Python that stops where conditions hold, and writes what it writes without them."""

import math

import pytest

from decoders.lane import Lane, Limits
from decoders.refusal import Refusal
from decoders.stop_when import stops
from decoders.trace.events import Distribution
from tests.helpers import tiny_models

PROMPT = [40, 41, 42, 40, 41]


@pytest.fixture(scope="module")
def model():
    return tiny_models.make("llama", seed=3)


def lane(model) -> Lane:
    return Lane("greedy", PROMPT, {"target": model}, {}, limits=Limits(12))


def entropies(trace) -> list[float]:
    return [
        event.entropy / math.log(2)
        for step in trace.steps
        for event in step.of(Distribution)
        if event.view == "target" and event.level is None
    ]


def test_it_stops_at_every_step_that_is_above_and_goes_on(model):
    whole = lane(model).run()
    middle = sum(sorted(entropies(whole))[6:8]) / 2
    wanted = [i for i, bits in enumerate(entropies(whole)) if bits > middle]
    one, steps = lane(model), []
    for found in stops(one, [f"entropy > {middle:.12f}"]):
        steps.append(found[0].step)
        assert len(one.trace.steps) == found[0].step + 1  # it waits here
    assert steps == wanted and len(steps) > 2
    assert one.trace.ended == whole.ended and one.trace.text() == whole.text()


def test_who_has_seen_enough_closes_the_lane_with_a_reason(model):
    one = lane(model)
    found = next(stops(one, ["entropy > 0"]))
    one.close(found[0].sentence)
    assert len(one.trace.steps) == 1 and one.trace.ended.startswith("entropy ")


def test_what_is_asked_of_several_lanes_is_refused(model):
    with pytest.raises(Refusal, match="several lanes"):
        next(stops(lane(model), ["lanes differ"]))
