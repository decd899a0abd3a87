"""The quick check never accepts what the schema refuses, and accepts what lanes really write."""

import copy
import json
import random

import jsonschema
import pytest

from decoders.trace import schema
from decoders.trace.fast_validation import compiled, of_events, of_trace
from explorer.catalog import recorded_runs

SCHEMA = schema.schema()
EVENTS_FIT, FITS = of_events(SCHEMA), of_trace(SCHEMA)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
JUNK = [None, True, 0, -1, 1.5, "x", [], [1], [["a", 1]], {}, {"a": "b"}, "accepted", 2**70]


def test_what_lanes_write_passes():
    for traced in recorded_runs.traces():
        record = json.loads(json.dumps(traced.to_json()))
        assert EVENTS_FIT(record["steps"]) and FITS(record)


def test_nothing_that_the_schema_refuses_passes():
    """Single fields of real events replaced, removed and added, five hundred times."""
    draw = random.Random(0)
    record = json.loads(json.dumps(recorded_runs.traces()[1].to_json()))
    steps = [{**step, "events": step["events"][:6]} for step in record["steps"][:4]]
    assert VALIDATOR.is_valid({**record, "steps": steps})
    refused = 0
    for _ in range(500):
        changed = [copy.deepcopy(draw.choice(steps))]  # alone: the general validator reads it all
        event = draw.choice(changed[0]["events"])
        field = draw.choice([*event, "type", "surprise"])
        if draw.random() < 0.2:
            event.pop(field, None)
        else:
            event[field] = draw.choice(JUNK)
        passed = EVENTS_FIT(changed)
        valid = VALIDATOR.is_valid({**record, "steps": changed})
        assert valid or not passed
        refused += not valid
    assert refused > 100


def test_no_head_that_the_schema_refuses_passes():
    """Single fields of a real trace without its events, of its vocabulary and of its steps."""
    draw = random.Random(0)
    record = json.loads(json.dumps(recorded_runs.traces()[1].to_json()))
    record["steps"] = [{**step, "events": []} for step in record["steps"][:4]]
    assert FITS(record)
    refused = 0
    for _ in range(500):
        changed = copy.deepcopy(record)
        part = draw.choice([changed, changed, changed["vocabulary"], changed["models"], *changed["steps"]])
        field = draw.choice([*part, "surprise"])
        if draw.random() < 0.2:
            part.pop(field, None)
        else:
            part[field] = draw.choice(JUNK)
        valid = VALIDATOR.is_valid(changed)
        assert valid or not FITS(changed)
        refused += not valid
    assert refused > 100


@pytest.mark.parametrize("record", JUNK)
def test_what_is_no_trace_does_not_pass(record):
    assert not FITS(record)


@pytest.mark.parametrize("events", ["", {}, None, 7, [7], ["x"], [{}], [{"type": "Explode"}]])
def test_events_are_a_list_of_events(events):
    assert not EVENTS_FIT([{"events": events}])


def test_a_word_it_does_not_know_is_no_silence():
    with pytest.raises(ValueError, match="does not know format"):
        compiled({"type": "string", "format": "date"})
