"""A lane that waits for a program stands aside: others go on, and few programs run at once."""

import math
import threading
from concurrent.futures import Future
from dataclasses import replace

import pytest

from decoders.lane import Lane, Limits
from decoders.models.served_model import ServedModel
from explorer.runs import scheduler
from explorer.runs.callbacks import CALLBACKS
from explorer.runs.scheduler import Runs
from explorer.runs.slices import Sliced, wait
from explorer.runs.validation import check
from explorer.tasks import sandbox
from explorer.tasks.sandbox import process
from tests.explorer.runs.test_scheduler import cursors, drain, wait_for, words
from tests.helpers.scripted_lane import ScriptedLane

ONE = {"prompt": "Once", "max_new_tokens": 8, "lanes": [{"strategy": "scripted"}]}
TESTED = {"scorer": "tests", "num_samples": 1, "num_beams": 1, "block_length": 0}


class SteppingLane(ScriptedLane):
    """Sets `stepped` with its last step."""

    def __init__(self):
        super().__init__(words(3))
        self.stepped = threading.Event()

    def advance(self):
        step = super().advance()
        if self.trace.ended:
            self.stepped.set()
        return step


class Programs:
    """In place of the prompt's tests: a program that ends once `over` is set."""

    def __init__(self, over: threading.Event):
        self.over, self.began, self.calls = over, threading.Event(), 0

    def pass_rate(self, prompt: str, written: str) -> float:
        self.calls += 1
        self.began.set()
        assert self.over.wait(5), "nobody else went on while a program ran"
        return 1.0


@pytest.fixture
def house(monkeypatch):
    """make(lanes of the first run, of the second ...): Runs; nobody needs to pull them."""
    monkeypatch.setattr(scheduler, "UNHEARD_SECONDS", 1e9)
    made = []

    def make(*lanes: list):
        waiting = list(lanes)
        made.append(Runs(lambda request: waiting.pop(0)))
        return made[-1]

    yield make
    for runs in made:
        runs.close()


@pytest.fixture
def tested(tiny_model):
    """tested(programs): a lane whose texts a program judges."""

    made = []

    def make(programs: Programs) -> Lane:
        callbacks = replace(CALLBACKS, pass_rate=programs.pass_rate)
        asked = ("rankgen", [3, 4], {"target": tiny_model()}, TESTED, 0, Limits(max_new_tokens=2))
        made.append(Lane(*asked, callbacks=callbacks))
        return made[-1]

    yield make
    for lane in made:
        lane.close()


@pytest.mark.parametrize("same_run", [True, False], ids=["of the same run", "of another run"])
def test_another_lane_goes_on_while_a_lane_waits_for_a_program(house, tested, same_run):
    other = SteppingLane()
    programs = Programs(other.stepped)
    lane = tested(programs)
    runs = house([lane, other]) if same_run else house([lane], [other])
    started = [runs.start(check(ONE), "a"), *([] if same_run else [runs.start(check(ONE), "b")])]
    for run in started:
        drain(runs, run.id, cursors(len(run.records)))
    assert programs.calls == 1 and [run.state for run in started] == ["done"] * len(started)
    assert not any(record.problem for run in started for record in run.records)


def test_a_step_by_hand_waits_for_its_program_and_the_others_step_once(house, tested):
    over, other = threading.Event(), ScriptedLane(words(3))
    programs = Programs(over)
    runs = house([tested(programs), other])
    run = runs.start(check(ONE), "a", "paused")
    wait_for(lambda: len(run.records[1].rows) == 1)
    while not programs.began.is_set():
        runs.control(run.id, "step")
        wait_for(lambda: programs.began.is_set() or not run.due)
    over.set()
    wait_for(lambda: not run.due)
    assert run.state == "paused" and all(record.problem is None for record in run.records)


def test_a_lane_that_is_stopped_does_not_wait_for_its_program(house, tested):
    over = threading.Event()
    programs = Programs(over)
    runs = house([tested(programs)])
    run = runs.start(check(ONE), "a")
    assert programs.began.wait(5)
    runs.control(run.id, "stop")
    drain(runs, run.id, cursors(1))
    over.set()
    assert run.records[0].trace.ended == "Stopped by hand."


def test_a_program_that_never_began_is_taken_from_the_queue():
    awaited = Future()
    sliced = Sliced(lambda: wait(awaited))
    assert not sliced.resume() and sliced.waits
    with pytest.raises(KeyError):
        sliced.end(KeyError())
    assert awaited.cancelled()


def test_a_job_waits_beside_the_lanes(house):
    awaited, other = Future(), SteppingLane()
    runs = house([other])
    job = runs.on_worker(lambda: wait(awaited))
    runs.start(check(ONE), "a")
    assert other.stepped.wait(5) and not job.done()
    awaited.set_result(7)
    assert job.result(5) == 7


def test_what_a_program_takes_counts_as_the_lane_s_time_and_its_queue_does_not(tested, monkeypatch):
    """So endless programs end at the lane's limit of seconds."""
    lane = tested(Programs(threading.Event()))
    clock = iter([10.0, 15.0, 21.0, 25.0])  # left, call begun, call over, back
    monkeypatch.setattr("decoders.lane.time.perf_counter", lambda: next(clock))
    since = lane._since
    assert lane.elsewhere(lane.callbacks.programs, lambda: 1) == 1
    assert lane._since - since == 15.0 - 6.0


def test_only_so_many_programs_run_at_once(monkeypatch):
    inside, most, together = [], [], threading.Barrier(2, timeout=5)

    def run_in(cell, asked):
        inside.append(1)
        most.append(len(inside))
        together.wait()  # all that may run are running
        inside.pop()
        return process.Ran([], None)

    monkeypatch.setattr(sandbox, "_room", threading.BoundedSemaphore(2))
    monkeypatch.setattr(sandbox, "protection", lambda: sandbox.Protection(True, True, (), ""))
    monkeypatch.setattr(process, "ready", lambda: process.Cell(None, frozenset({"seccomp"})))
    monkeypatch.setattr(process, "prepare", lambda: None)
    monkeypatch.setattr(process, "run_in", run_in)
    asked = ["def f(x): return x", "f", [(1,)]]
    threads = [threading.Thread(target=sandbox.call, args=asked) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(most) == 6 and max(most) == 2


class SlowServer:
    """A server of four tokens that answers once `over` is set."""

    base, vocabulary, top, scores, continues, at_once = "http://slow", 259, None, True, True, 1

    def __init__(self, over: threading.Event):
        self.over, self.calls = over, 0

    def next_tokens(self, texts: list) -> list[dict[int, float]]:
        self.calls += 1
        assert self.over.wait(5), "nobody else went on while a server computed"
        return [dict.fromkeys(range(259), -math.log(259)) for _ in texts]

    def along(self, text: list[int], lengths: list[int]) -> None:
        return None


def test_another_lane_goes_on_while_a_lane_waits_for_a_server(house, tiny_model):
    other, local = SteppingLane(), tiny_model()
    server = SlowServer(other.stepped)
    served = ServedModel("slow", server, 64, local.tokenizer)
    lane = Lane("greedy", [3, 4], {"target": served}, {}, 0, Limits(max_new_tokens=2), callbacks=CALLBACKS)
    runs = house([lane], [other])
    started = [runs.start(check(ONE), "a"), runs.start(check(ONE), "b")]
    for run in started:
        drain(runs, run.id, cursors(1))
    assert server.calls == 2 and not any(run.records[0].problem for run in started)
