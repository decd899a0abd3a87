"""A lane that follows a file: it has the steps that a writer adds, in order, and ends as the file does."""

import json
import threading
import time

import pytest

from decoders import files
from decoders.limits import AtLimit
from decoders.refusal import Refusal
from decoders.trace.trace import Trace
from decoders.watch.vllm.folder import Folder
from decoders.watch.vllm.runner import RunnerRecorder
from decoders.watch.vllm.writer import Writer
from explorer.runs import followed_lane, scheduler
from explorer.runs.followed_lane import REPLACED, STOPPED, FollowedLane
from explorer.runs.scheduler import Runs
from explorer.runs.slices import Sliced
from tests.decoders.watch.test_vllm import texts, word
from tests.explorer.runs.test_scheduler import cursors, drain, wait_for, words
from tests.helpers import vllm_stand_in as stand_in
from tests.helpers.scripted_lane import ScriptedLane

STEPS = 6


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Looks at the file every few milliseconds."""
    monkeypatch.setattr(followed_lane, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(followed_lane, "SHARE", 0)


@pytest.fixture
def runs(monkeypatch):
    monkeypatch.setattr(scheduler, "UNHEARD_SECONDS", 1e9)  # nobody needs to pull
    made = Runs(lambda request: [])
    yield made
    made.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "20261129-063000-one.trace.json"


def grown(count: int, ended: str | None = None) -> Trace:
    """A trace of so many steps."""
    lane = ScriptedLane(words(STEPS))
    for _ in range(count):
        lane.advance()
    lane.trace.ended = ended
    return lane.trace


def write(path, trace: Trace) -> None:
    files.write(path, json.dumps(trace.to_json()))


def follow(path) -> FollowedLane:
    return FollowedLane(path, *followed_lane.read(path))


def followed(lane: FollowedLane) -> str:
    """The reason why a lane ends, all steps taken."""
    until = time.monotonic() + 10
    while lane.trace.ended is None:
        assert time.monotonic() < until
        lane.advance()
    return lane.trace.ended


def test_the_steps_that_another_thread_writes_come_in_order_until_the_trace_ends(path, runs):
    write(path, grown(1))
    lane, go = follow(path), threading.Semaphore(0)

    def writer() -> None:
        for count in range(2, STEPS + 1):
            go.acquire()
            write(path, grown(count, "The text is over." if count == STEPS else None))

    thread = threading.Thread(target=writer)
    thread.start()
    run = runs.begin(lambda: [lane], "me", {"prompt": "Once"})
    for count in range(1, STEPS):
        wait_for(lambda count=count: len(run.records[0].rows) == count)
        assert lane.trace.ended is None and run.shown_state == "running"
        go.release()
    at = cursors(1)
    answers = drain(runs, run.id, at)
    thread.join()
    assert answers[-1]["state"] == "done" and answers[-1]["lanes"][0]["ended"] == "The text is over."
    assert lane.trace.to_json() == json.loads(path.read_text(encoding="utf-8"))


def test_what_the_recorder_of_vllm_writes_is_listed_and_followed_step_by_step(tmp_path, monkeypatch):
    """Recorder, spool, writer, table and lane, one after the other; only vLLM's runner is a stand-in."""
    stand_in.install(monkeypatch)
    runner, writer = stand_in.Runner(texts(1, max_tokens=30)), Writer(tmp_path, lambda _: word)
    own = RunnerRecorder(runner, tmp_path / ".spool", 20, stand_in.ENGINE)
    runner.step()
    writer.turn()
    folder = Folder(tmp_path)
    lane = follow(folder.file(folder.requests()[0].name))
    for count in range(1, 6):
        assert lane.advance().index == count - 1
        assert folder.requests()[0].steps == count and folder.requests()[0].running
        runner.step()
        writer.turn()
    own.close()
    writer.turn()
    ended, (listed,) = followed(lane), folder.requests()
    assert listed.ended == ended and listed.tokens == len(lane.trace.output())
    assert (listed.drafted, listed.accepted) == (lane.trace.costs.proposed, lane.trace.costs.accepted)
    assert listed.drafted > 0 and not listed.running
    assert lane.trace.to_json() == json.loads(lane.path.read_text(encoding="utf-8"))


def test_the_worker_does_other_work_while_a_lane_waits(path, runs, monkeypatch):
    monkeypatch.setattr(followed_lane, "LOOK_SECONDS", 60.0)
    write(path, grown(1))
    run = runs.begin(lambda: [follow(path)], "me", {})
    wait_for(lambda: run.records[0].waits)
    assert runs.on_worker(lambda: "done").result(timeout=5) == "done"


@pytest.mark.parametrize("count", range(STEPS + 1))
def test_it_can_be_stopped_after_any_step(path, runs, count):
    write(path, grown(count))
    run = runs.begin(lambda: [follow(path)], "me", {})
    record = run.records[0]
    wait_for(lambda: record.waits and len(record.rows) == count)
    runs.control(run.id, "stop")
    wait_for(lambda: run.shown_state == "stopped" and record.trace.ended is not None)
    assert record.trace.ended == STOPPED and record.problem is None
    assert len(record.trace.steps) == count == len(record.rows)


def test_work_that_waits_for_the_file_ends_at_once(path):
    write(path, grown(0))
    lane = follow(path)
    work = Sliced(lane.advance)
    assert not work.resume() and work.awaited is not None
    work.end(AtLimit("Stopped by hand."))
    assert work.result is None and work.stack.dead


def test_a_note_that_the_last_step_gets_after_the_end_is_kept(path):
    """vLLM's sampler may hear of the end late; the file is then written once more."""
    from decoders.trace.events import Note

    trace = grown(3, "The text is over.")
    write(path, trace)
    lane = follow(path)
    assert [lane.advance().index for _ in range(2)] == [0, 1]
    trace.steps[-1].events.append(Note("One round more."))
    write(path, trace)
    assert followed(lane) == "The text is over."
    assert lane.trace.steps[-1].of(Note)[0].text == "One round more."


def test_a_file_that_is_cut_is_tried_again(path):
    write(path, grown(2))
    lane = follow(path)
    path.write_bytes(path.read_bytes()[:300])
    assert [lane.advance().index for _ in range(2)] == [0, 1]
    lane._look()
    assert lane.failed == 1 and lane.ending is None
    write(path, grown(3, "The text is over."))
    assert followed(lane) == "The text is over." and len(lane.trace.steps) == 3


def test_a_file_that_stays_cut_ends_the_lane_with_one_sentence(path):
    write(path, grown(2))
    lane = follow(path)
    path.write_bytes(b"{")
    assert followed(lane).startswith("Following ended. This file is not a trace")
    assert len(lane.trace.steps) == 2


def test_a_file_that_goes_ends_the_lane_with_one_sentence(path):
    write(path, grown(2))
    lane = follow(path)
    path.unlink()
    assert followed(lane) == f"Following ended. {followed_lane.GONE}"
    with pytest.raises(Refusal, match="Its file is gone"):
        follow(path)


def test_a_file_that_nobody_writes_ends_the_lane_with_one_sentence(path, monkeypatch):
    write(path, grown(2))
    lane = follow(path)
    monkeypatch.setattr(followed_lane, "SILENT_SECONDS", 0.05)
    assert followed(lane) == followed_lane.SILENT.format(0.05) and len(lane.trace.steps) == 2


def test_another_trace_in_the_file_ends_the_lane(path):
    write(path, grown(3))
    lane = follow(path)
    other = grown(1)
    write(path, other)
    assert followed(lane) == REPLACED and len(lane.trace.steps) == 3


def test_a_file_that_becomes_too_large_ends_the_lane(path, monkeypatch):
    write(path, grown(1))
    lane = follow(path)
    monkeypatch.setattr(followed_lane, "MAX_TRACE_BYTES", 10)
    write(path, grown(2))
    assert followed(lane).startswith("Following ended. The trace has become larger than")
