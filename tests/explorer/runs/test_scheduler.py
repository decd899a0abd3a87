"""Runs: fair stepping on one thread, cursors that lose nothing, control, limits, and privacy of ids."""

import asyncio
import time

import pytest

from explorer.runs import scheduler as runs_module
from explorer.runs.scheduler import MAX_RUNS, MAX_RUNS_PER_SESSION, Runs
from explorer.runs.validation import check
from tests.helpers.scripted_lane import ScriptedLane

REQUEST = {
    "prompt": "Once",
    "max_new_tokens": 8,
    "lanes": [{"strategy": "scripted"}, {"strategy": "scripted"}],
}


def words(count: int) -> list[bytes]:
    return [f" w{i}".encode() for i in range(count)]


def cursors(count: int, view: str = "entropy") -> list[dict]:
    return [{"view": view, "ops": 0, "rows": 0} for _ in range(count)]


def pull(runs: Runs, run_id: str, at: list[dict], wait: float = 2.0, known: str = "") -> dict:
    return asyncio.run(runs.pull(run_id, at, wait, known))


def drain(runs: Runs, run_id: str, at: list[dict], until=("done", "stopped", "failed")) -> list[dict]:
    """Pulls until the state is one of `until`; every answer, with `at` moved on."""
    answers, end = [], time.monotonic() + 20
    while time.monotonic() < end:
        answers.append(pull(runs, run_id, at, known="running"))
        for cursor, lane in zip(at, answers[-1]["lanes"], strict=True):
            assert lane["from"] == cursor["ops"] and lane["rows_from"] == cursor["rows"]
            cursor["ops"] += len(lane["ops"])
            cursor["rows"] += len(lane["rows"])
        if answers[-1]["state"] in until:
            return answers
    raise AssertionError(f"the run is still {answers[-1]['state']}")


def test_every_step_arrives_once_and_in_order(house):
    long, short = ScriptedLane(words(7)), ScriptedLane(words(3))
    runs = house(long, short)
    run, at = runs.start(check(REQUEST), "a"), cursors(2)
    answers = drain(runs, run.id, at)
    assert [c["rows"] for c in at] == [7, 3] == [c["ops"] for c in at]
    forwards = [row["t"] for answer in answers for row in answer["lanes"][0]["rows"]]
    assert forwards == [1, 2, 3, 4, 5, 6, 7]
    assert answers[-1]["lanes"][1]["ended"] == "The script has ended."
    assert answers[0]["lanes"][0]["head"]["title"]
    later = [*answers[1:], pull(runs, run.id, at, known="running")]  # a busy machine sends all at once
    assert not any("head" in answer["lanes"][0] for answer in later)
    assert long.threads == short.threads == {"decoding"} and long.closed == short.closed == 1


def test_lanes_take_turns_and_so_do_runs(house):
    first, second = ScriptedLane(words(20), 0.002), ScriptedLane(words(20), 0.002)
    runs = house(first, second)
    run, at = runs.start(check(REQUEST), "a"), cursors(2)
    for answer in drain(runs, run.id, at):
        counts = [lane["count"] for lane in answer["lanes"]]
        assert abs(counts[0] - counts[1]) <= 1


def test_another_view_starts_from_its_beginning_and_keeps_the_rows(house):
    runs = house(ScriptedLane(words(4)), ScriptedLane(words(4)))
    run, at = runs.start(check(REQUEST), "a"), cursors(2)
    drain(runs, run.id, at)
    lanes = pull(
        runs, run.id, [{"view": "dependencies", "ops": 0, "rows": 4}, {"view": "text", "ops": 2, "rows": 4}]
    )["lanes"]
    assert len(lanes[0]["ops"]) == 4 and lanes[0]["rows"] == [] and "head" in lanes[0]
    assert len(lanes[1]["ops"]) == 2 and "head" not in lanes[1]


def test_an_unknown_view_is_one_sentence(house):
    runs = house(ScriptedLane(words(1)), ScriptedLane(words(1)))
    run = runs.start(check(REQUEST), "a")
    with pytest.raises(ValueError, match="no view named"):
        pull(runs, run.id, cursors(2, "no_such_view"))


def test_step_moves_every_lane_by_one_and_waits(house):
    runs = house(ScriptedLane(words(5)), ScriptedLane(words(1)))
    run = runs.start(check(REQUEST), "a", "paused")
    wait_for(lambda: [len(r.rows) for r in run.records] == [1, 1])
    for expected in ([2, 1], [3, 1]):
        runs.control(run.id, "step")
        wait_for(lambda want=expected: [len(r.rows) for r in run.records] == want)
        time.sleep(0.15)
        assert [len(r.rows) for r in run.records] == expected and run.state == "paused"


@pytest.mark.parametrize(("together", "first"), [(20.0, [2, 2]), (0.0, [2, 1])])
def test_the_steps_of_one_press_are_answered_together_unless_one_takes_long(
    house, monkeypatch, together, first
):
    monkeypatch.setattr(runs_module, "TOGETHER_SECONDS", together)
    slow = ScriptedLane(words(5), 0.5)
    runs = house(ScriptedLane(words(5)), slow)
    run, at = runs.start(check(REQUEST), "a", "paused"), cursors(2)
    wait_for(lambda: [len(r.rows) for r in run.records] == [1, 1])
    drain(runs, run.id, at, until=["paused"])
    runs.control(run.id, "step")
    answer = pull(runs, run.id, at, 5.0, "paused")
    assert [lane["count"] for lane in answer["lanes"]] == first


def test_pause_holds_resume_goes_on_and_stop_keeps_what_is_there(house):
    lanes = ScriptedLane(words(400), 0.002), ScriptedLane(words(400), 0.002)
    runs = house(*lanes)
    run, at = runs.start(check(REQUEST), "a"), cursors(2)
    pull(runs, run.id, at)
    runs.control(run.id, "pause")
    time.sleep(0.05)
    held = [len(r.rows) for r in run.records]
    time.sleep(0.2)
    assert [len(r.rows) for r in run.records] == held
    runs.control(run.id, "resume")
    wait_for(lambda: len(run.records[0].rows) > held[0])
    runs.control(run.id, "stop")
    kept = drain(runs, run.id, at)[-1]
    assert kept["state"] == "stopped" and kept["lanes"][0]["count"] == at[0]["rows"] > held[0]
    wait_for(lambda: all(lane.closed for lane in lanes))
    assert runs.control(run.id, "resume").state == "stopped"


def test_an_unknown_action_or_run_is_one_sentence(house):
    runs = house(ScriptedLane(words(400), 0.002))
    run = runs.start(check({**REQUEST, "lanes": REQUEST["lanes"][:1]}), "a")
    with pytest.raises(ValueError, match="cannot 'dance'"):
        runs.control(run.id, "dance")
    with pytest.raises(ValueError, match="is gone"):
        runs.control("guess", "stop")
    with pytest.raises(ValueError, match="is gone"):
        pull(runs, run.id[:-1], cursors(1))
    assert run.state == "running"


def test_a_lane_that_fails_says_so_and_the_others_go_on(house):
    runs = house(ScriptedLane(words(5), fail_at=2), ScriptedLane(words(5)))
    run, at = runs.start(check(REQUEST), "a"), cursors(2)
    lanes = drain(runs, run.id, at)[-1]["lanes"]
    assert [c["rows"] for c in at] == [2, 5] and run.state == "done"
    assert "failed inside the program (RuntimeError)" in lanes[0]["problem"] and lanes[1]["problem"] is None


def test_a_run_whose_lanes_all_fail_has_failed(house):
    runs = house(ScriptedLane(words(5), fail_at=0), ScriptedLane(words(5), fail_at=1))
    run = runs.start(check(REQUEST), "a")
    assert drain(runs, run.id, cursors(2))[-1]["state"] == "failed"


def test_a_run_that_nobody_pulls_stands_still_until_someone_does(house, monkeypatch):
    monkeypatch.setattr(runs_module, "UNHEARD_SECONDS", 0.3)
    runs = house(ScriptedLane(words(100), 0.01))
    run = runs.start(check({**REQUEST, "lanes": REQUEST["lanes"][:1]}), "a")
    time.sleep(0.6)
    held = len(run.records[0].rows)
    time.sleep(0.3)
    assert 0 < held < 100 and len(run.records[0].rows) == held
    assert drain(runs, run.id, cursors(1))[-1]["state"] == "done"


def test_a_run_does_not_wait_for_a_page_that_is_still_painting(house):
    runs = house(ScriptedLane(words(60)), ScriptedLane(words(60)))
    run = runs.start(check(REQUEST), "a")
    pull(runs, run.id, cursors(2))  # and then the page paints
    wait_for(lambda: run.state == "done", 5)
    (answer,) = drain(runs, run.id, cursors(2))
    assert [lane["count"] for lane in answer["lanes"]] == [60, 60]


def test_a_forgotten_run_is_dropped_and_its_lanes_are_closed(house, monkeypatch):
    monkeypatch.setattr(runs_module, "FORGET_SECONDS", 0.2)
    lane = ScriptedLane(words(1000), 0.01)
    runs = house(lane)
    run = runs.start(check({**REQUEST, "lanes": REQUEST["lanes"][:1]}), "a")
    wait_for(lambda: lane.closed, 5)
    with pytest.raises(ValueError, match="is gone"):
        runs.find(run.id)


def test_a_session_keeps_its_newest_runs_and_others_keep_theirs():
    runs = Runs(lambda request: [ScriptedLane(words(3))])
    request = {**REQUEST, "lanes": REQUEST["lanes"][:1]}
    other = runs.start(check(request), "b")
    mine = [runs.start(check(request), "a") for _ in range(MAX_RUNS_PER_SESSION + 1)]
    assert set(runs.runs) == {other.id, *(run.id for run in mine[1:])}
    assert len({run.id for run in mine}) == len(mine) and all(len(run.id) >= 24 for run in mine)
    runs.close()


def test_a_full_house_says_so_and_does_not_drop_what_runs(monkeypatch):
    runs = Runs(lambda request: [ScriptedLane(words(1000), 0.001)])
    request = {**REQUEST, "lanes": REQUEST["lanes"][:1]}
    for i in range(MAX_RUNS):
        runs.start(check(request), f"s{i}")
    with pytest.raises(ValueError, match="in progress already"):
        runs.start(check(request), "late")
    runs.control(next(iter(runs.runs)), "stop")
    assert runs.start(check(request), "late").id in runs.runs and len(runs.runs) == MAX_RUNS
    runs.close()


def test_a_slow_page_does_not_stop_the_run_and_loses_nothing(house):
    runs = house(ScriptedLane(words(12)), ScriptedLane(words(12)))
    run, at = runs.start(check(REQUEST), "a"), cursors(2)
    time.sleep(1.0)  # the page paints something dear
    first = pull(runs, run.id, at)
    assert first["lanes"][0]["count"] >= 2
    drain(runs, run.id, at)
    assert [c["rows"] for c in at] == [12, 12]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"prompt": ""}, "The prompt is empty"),
        ({"prompt": None}, "prompt must be text, not null"),
        ({"prompt": "x" * 30_000}, "30000 characters"),
        ({"lanes": []}, "one to 4 lanes"),
        ({"lanes": [{"strategy": "greedy"}] * 5}, "one to 4 lanes"),
        ({"lanes": [{"strategy": 3}]}, "Lane 1: strategy must be text, not 3"),
        ({"lanes": [{}]}, "Lane 1: strategy is missing"),
        ({"lanes": [{"strategy": "greedy", "seed": -1}]}, "seed must be a whole number"),
        ({"lanes": [{"strategy": "greedy", "seed": True}]}, "seed must be a whole number"),
        ({"max_new_tokens": 0}, "max_new_tokens must be"),
        ({"max_new_tokens": 10**9}, "max_new_tokens must be"),
        ({"max_new_tokens": "40"}, "max_new_tokens must be"),
    ],
)
def test_unusable_requests_are_one_sentence(change, says):
    with pytest.raises(ValueError, match=says) as error:
        check({**REQUEST, **change})
    assert "\n" not in str(error.value) and str(error.value).endswith(".")


def test_a_run_whose_page_is_gone_stands_still_within_two_seconds(house):
    assert runs_module.UNHEARD_SECONDS < 2.0  # by the clock of a machine that has time for it
    runs = house(ScriptedLane(words(4000), 0.001), ScriptedLane(words(4000), 0.001))
    run, at = runs.start(check(REQUEST), "a"), cursors(2)
    pull(runs, run.id, at)
    last = None
    while last != len(run.records[0].rows):
        last = len(run.records[0].rows)
        time.sleep(0.5)
    assert 0 < last < 4000 and run.state == "running"
    pull(runs, run.id, at)  # it was only slow: nothing is lost, and it goes on
    wait_for(lambda: len(run.records[0].rows) > last)


def test_a_page_that_closes_stops_its_own_runs_at_once(house):
    runs = house(ScriptedLane(words(4000), 0.001), ScriptedLane(words(4000), 0.001))
    mine, theirs = runs.start(check(REQUEST), "mine"), runs.start(check(REQUEST), "theirs")
    wait_for(lambda: mine.records[0].rows and theirs.records[0].rows)
    runs.leave("mine")
    runs.leave("")
    time.sleep(0.05)
    held, other = len(mine.records[0].rows), len(theirs.records[0].rows)
    time.sleep(0.7)
    assert len(mine.records[0].rows) == held and len(theirs.records[0].rows) > other
    pull(runs, mine.id, cursors(2))  # back again
    wait_for(lambda: len(mine.records[0].rows) > held)


def test_a_page_may_ask_for_its_own_runs_only(house):
    runs = house(ScriptedLane(words(4)), ScriptedLane(words(4)))
    run = runs.start(check(REQUEST), "mine")
    public = runs.show([ScriptedLane(words(1)).trace], run_id="example")
    assert runs.belongs(run.id, "mine") and not runs.belongs(run.id, "theirs")
    assert not any(runs.belongs(run.id, session) for session in (None, "", 3, ["mine"]))
    assert runs.belongs(public.id, "theirs") and runs.belongs("no such run", "theirs")


def test_a_dropped_run_gives_its_lanes_back(house):
    lanes = ScriptedLane(words(4000), 0.001), ScriptedLane(words(4000), 0.001)
    runs = house(*lanes)
    run = runs.start(check(REQUEST), "a")
    runs.drop(run.id)
    runs.drop(run.id)
    wait_for(lambda: all(lane.closed for lane in lanes))
    assert run.state == "stopped" and run.id not in runs.runs


def wait_for(condition, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)
