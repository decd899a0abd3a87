"""Long steps in slices: the others get their turns in between, and a step that is left can be ended."""

import asyncio
import threading
import time

import pytest
import torch

from decoders.limits import AtLimit
from explorer.runs import slices
from explorer.runs.scheduler import Runs
from explorer.runs.slices import Sliced, between
from explorer.runs.validation import check
from tests.explorer.runs.test_scheduler import cursors, drain, pull, wait_for, words
from tests.helpers.long_lane import LongLane
from tests.helpers.scripted_lane import ScriptedLane

ONE = {"prompt": "Once", "max_new_tokens": 8, "lanes": [{"strategy": "scripted"}]}


@pytest.fixture(autouse=True)
def shortest_slices(monkeypatch):
    """Work is left at every opportunity."""
    monkeypatch.setattr(slices, "SLICE_SECONDS", 0.0)


@pytest.fixture
def house():
    """make(*lanes): Runs that start with these lanes, one a run; closed in the end."""
    made = []

    def make(*lanes):
        waiting = list(lanes)
        made.append(Runs(lambda request: [waiting.pop(0)]))
        return made[-1]

    yield make
    for runs in made:
        runs.close()


def test_work_is_left_at_each_pause_and_taken_up_again():
    told = []

    def work() -> str:
        for number in range(3):
            between()
            told.append(number)
        return "done"

    sliced, counts = Sliced(work), []
    while not sliced.resume():
        counts.append(len(told))
    assert counts == [0, 1, 2] and told == [0, 1, 2] and sliced.result == "done"


def test_work_that_is_left_can_be_ended_where_it_stands():
    left = []

    def work() -> str:
        try:
            between()
        except AtLimit as error:
            left.append(str(error))
        return "ended"

    outer = Sliced(lambda: inner.end(AtLimit("Enough.")))  # from other work in slices, as jobs are
    inner = Sliced(work)
    assert not inner.resume() and outer.resume()
    assert left == ["Enough."] and inner.result == "ended"


def test_nothing_is_left_where_others_would_be_harmed():
    def work() -> int:
        with torch.inference_mode():  # would be on for all others of this thread
            between()
        with torch.no_grad():
            between()
        beside = threading.Thread(target=between)  # has no slice of its own
        beside.start()
        beside.join()
        return 1

    sliced = Sliced(work)
    assert sliced.resume() and sliced.result == 1
    between()  # outside of any slice


def test_others_go_on_while_one_step_is_long(house):
    long = LongLane(10**9)  # more than any machine does meanwhile
    runs = house(long, ScriptedLane(words(6)))
    heavy, light = runs.start(check(ONE), "a"), runs.start(check(ONE), "b")
    wait_for(lambda: long.done)
    drain(runs, light.id, cursors(1))
    pull(runs, heavy.id, cursors(1), wait=0)
    assert light.state == "done" and 0 < long.done < long.pieces and not heavy.records[0].rows


def test_a_step_that_is_stopped_in_the_middle_is_told_as_far_as_it_came(house):
    long = LongLane(10**9)
    runs = house(long)
    run, at = runs.start(check(ONE), "a"), cursors(1)
    wait_for(lambda: long.done > 5)
    assert pull(runs, run.id, at, wait=0)["state"] == "running"
    runs.control(run.id, "stop")
    answer = drain(runs, run.id, at)[-1]
    assert answer["lanes"][0]["ended"] == "Stopped by hand." and at[0]["rows"] == 1 == at[0]["ops"]
    assert len(run.records[0].trace.steps[0].events) == long.done and long.closed == 1


def test_pause_holds_a_step_in_the_middle_and_resume_finishes_it(house):
    long = LongLane(400, steps=2, pause=0.001)
    runs = house(long)
    run = runs.start(check(ONE), "a")
    wait_for(lambda: long.done > 5)
    runs.control(run.id, "pause")
    time.sleep(0.05)
    held = long.done
    time.sleep(0.2)
    assert long.done == held < 400 and run.state == "paused"
    assert [trace.steps for trace in runs.snapshot(run)] == [[]]  # whole steps only
    runs.control(run.id, "step")
    wait_for(lambda: len(run.records[0].rows) == 1)
    time.sleep(0.1)
    assert long.done == 400 and run.state == "paused"
    runs.control(run.id, "resume")
    drain(runs, run.id, cursors(1))
    assert long.done == 800 and run.state == "done"


def test_a_dropped_run_is_unwound(house):
    long = LongLane(10**9)
    runs = house(long)
    run = runs.start(check(ONE), "a")
    wait_for(lambda: long.done > 5)
    runs.drop(run.id)
    wait_for(lambda: long.closed)
    assert long.trace.ended == "Stopped by hand." and run.shown_state == "stopped"


def test_a_long_job_is_left_too(house):
    runs = house(ScriptedLane(words(5)))
    counted, over = [], threading.Event()

    def count() -> int:
        while not over.is_set():
            between()
            counted.append(1)
        return len(counted)

    job = runs.on_worker(count)
    run = runs.start(check(ONE), "a")
    drain(runs, run.id, cursors(1))
    assert counted and runs.on_worker(lambda: 7).result(5) == 7 and not job.done()
    over.set()
    assert job.result(5) == len(counted)


def test_a_job_that_nobody_waits_for_any_more_does_no_harm(house):
    runs = house(ScriptedLane(words(2)))

    async def gone() -> None:
        waiting = asyncio.wrap_future(runs.on_worker(time.sleep.__call__))
        waiting.cancel()

    asyncio.run(gone())
    assert runs.on_worker(lambda: 7).result(5) == 7
