"""A run stops at its breakpoints, all lanes together, goes on, and tells the same of a run that has ended."""

import asyncio

from decoders.trace.breakpoints import parse_all
from explorer.catalog import recorded_runs
from explorer.export import run_file
from explorer.runs.breakpoints import stops_of
from explorer.runs.scheduler import Runs
from explorer.runs.validation import check
from tests.explorer.runs.test_scheduler import REQUEST, cursors, drain, pull, words
from tests.helpers.scripted_lane import ScriptedLane


def started(house, lanes: list, *conditions: str) -> tuple[Runs, object, list[dict]]:
    runs = house(*lanes)
    return runs, runs.start(check({**REQUEST, "stop_when": list(conditions)}), "a"), cursors(2)


def paused(runs: Runs, run, at: list[dict]) -> str:
    """Pulls until the run stands, and says why."""
    return drain(runs, run.id, at, until=("paused", "done"))[-1]["stopped"]


def test_a_run_pauses_where_a_condition_holds_and_goes_on_when_it_is_told(house):
    lanes = [ScriptedLane(words(9)), ScriptedLane(words(9), 0.002)]
    runs, run, at = started(house, lanes, "token = w3")
    stops = [paused(runs, run, at)]
    assert run.state == "paused" and stops[0].startswith("Stopped after step 4 of lane ")
    assert stops[0].endswith(": token “␣w3”, at token 4.")
    counts = [len(record.rows) for record in run.records]
    assert pull(runs, run.id, at, wait=0.0, known="paused")["stopped"] == stops[0]
    assert [len(record.rows) for record in run.records] == counts  # nothing goes on
    runs.control(run.id, "resume")
    stops.append(paused(runs, run, at))  # the other lane comes there too
    assert {stop.split(" of ")[1][:6] for stop in stops} == {"lane 1", "lane 2"}
    runs.control(run.id, "resume")
    assert drain(runs, run.id, at)[-1]["stopped"] is None
    assert [len(record.rows) for record in run.records] == [9, 9]


def test_lanes_that_differ_stop_once(house):
    lanes = [ScriptedLane(words(6)), ScriptedLane(words(6))]
    lanes[1].tokens[2] = b" other"
    for (
        lane
    ) in lanes:  # tokens of a script are numbered by their place: give the other one a number of its own
        lane.trace.vocabulary[9] = b" other"
    advance = lanes[1].advance

    def other():
        step = advance()
        if step is not None and step.index == 2:
            step.events[2].token = 9
        return step

    lanes[1].advance = other
    runs, run, at = started(house, lanes, "lanes differ")
    assert paused(runs, run, at).endswith(": lanes differ, at token 3.")
    runs.control(run.id, "resume")
    assert drain(runs, run.id, at)[-1]["state"] == "done"


def test_other_conditions_hold_from_the_next_step_on_and_an_ended_run_tells_all(house):
    lanes = [ScriptedLane(words(9)), ScriptedLane(words(9))]
    runs, run, at = started(house, lanes, "token = w0")
    assert paused(runs, run, at)
    conditions = parse_all(["token = w0", "token = w5"])
    runs.stop_when(run, conditions)
    assert run.asked["stop_when"] == ("token = w0", "token = w5")
    runs.control(run.id, "resume")
    while run.state != "done":
        assert paused(runs, run, at) is not None or run.state == "done"
        runs.control(run.id, "resume")
    told = stops_of(run.records, conditions)
    assert [[stop["step"] for stop in lane] for lane in told] == [[0, 5], [0, 5]]
    assert told[0][1]["text"] == "token “␣w5”, at token 6" and told[0][1]["node"] == 6


def test_a_run_keeps_its_conditions_for_a_saved_file(house):
    lanes = [ScriptedLane(words(2)), ScriptedLane(words(2))]
    runs, run, at = started(house, lanes, " Entropy >  4")
    drain(runs, run.id, at)
    assert run.asked["stop_when"] == ("entropy > 4",)
    assert asyncio.run(runs.pull(run.id, at, 0.0))["stopped"] is None


def test_a_saved_run_opens_with_its_conditions():
    traces = recorded_runs.traces()
    setup = {**run_file.settings(traces), "stop_when": ["  Entropy > 4 "]}
    opened, _ = run_file.unpack(run_file.pack(run_file.container(traces, setup)))
    assert opened["stop_when"] == ("entropy > 4",)
