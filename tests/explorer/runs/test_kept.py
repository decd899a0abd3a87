"""What is kept of runs is bounded by bytes, and what a page asks is made in pieces beside the event loop."""

import asyncio
import gc
import json
import sys
import threading
import time
from types import FunctionType, ModuleType

import pytest

from decoders.lane import Lane, Limits
from explorer.off_loop import encoded
from explorer.runs import kept, memory_sizes, slices
from explorer.runs import scheduler as runs_module
from explorer.runs.run_state import answer
from explorer.runs.scheduler import Runs
from explorer.runs.validation import check
from explorer.runs.view_cache import Fold
from tests.explorer.runs.test_scheduler import cursors, drain, pull, wait_for, words
from tests.helpers.long_lane import LongLane
from tests.helpers.scripted_lane import ScriptedLane

ONE = {"prompt": "Once", "max_new_tokens": 8, "lanes": [{"strategy": "scripted"}]}


@pytest.fixture
def house(monkeypatch):
    """make(maker): Runs whose lanes come from `maker()`, looked at all the time; closed in the end."""
    monkeypatch.setattr(runs_module, "MEMORY_CHECK_SECONDS", 0.0)
    monkeypatch.setattr(slices, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(kept, "RECENT_SECONDS", 0.0)
    made = []

    def make(maker=lambda: ScriptedLane(words(12))) -> Runs:
        made.append(Runs(lambda request: [maker()]))
        return made[-1]

    yield make
    for runs in made:
        runs.close()


def finished(runs: Runs, session: str):
    """A run that has ended and whose picture has been read."""
    run = runs.start(check(ONE), session)
    drain(runs, run.id, cursors(1))
    return run


def test_many_short_runs_stay_within_the_bytes_and_the_oldest_go(house, monkeypatch):
    runs = house()
    each = finished(runs, "first").bytes
    monkeypatch.setattr(kept, "KEPT_BYTES", 5 * each + each // 2)
    mine = [finished(runs, f"s{i}") for i in range(40)]
    wait_for(lambda: sum(run.bytes for run in list(runs.runs.values())) <= kept.KEPT_BYTES)
    assert list(runs.runs) == [run.id for run in mine[-5:]]
    with pytest.raises(ValueError, match="This run is gone: .* press Run to decode again"):
        runs.find(mine[0].id)


def test_what_is_under_way_stays_and_what_was_read_lately_goes_last(house, monkeypatch):
    waiting = [LongLane(10**9)]
    runs = house(lambda: waiting.pop() if waiting else ScriptedLane(words(12)))
    under_way = runs.start(check(ONE), "busy")
    old, new = finished(runs, "a"), finished(runs, "b")
    pull(runs, old.id, cursors(1), wait=0)
    pull(runs, under_way.id, cursors(1), wait=0)
    monkeypatch.setattr(kept, "KEPT_BYTES", old.bytes + 1)
    wait_for(lambda: new.id not in runs.runs)
    assert under_way.id in runs.runs and old.id in runs.runs
    monkeypatch.setattr(kept, "KEPT_BYTES", 0)
    pull(runs, under_way.id, cursors(1), wait=0)
    wait_for(lambda: old.id not in runs.runs)
    assert under_way.id in runs.runs and under_way.state == "running"


def test_views_that_nobody_reads_go_first_and_come_back_alike(house, monkeypatch):
    runs = house()
    run = finished(runs, "a")
    before = pull(runs, run.id, cursors(1), wait=0)["lanes"]
    record = run.records[0]
    monkeypatch.setattr(kept, "FOLD_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(kept, "KEPT_BYTES", record.kept + 1)
    runs.on_worker(lambda: None).result(5)
    wait_for(lambda: not record.folds)
    monkeypatch.setattr(kept, "KEPT_BYTES", 2**30)
    assert pull(runs, run.id, cursors(1), wait=0)["lanes"] == before


def test_if_all_is_under_way_the_largest_run_ends_with_a_sentence(house, monkeypatch):
    waiting = [ScriptedLane(words(4000), 0.001), LongLane(10**9)]
    runs = house(lambda: waiting.pop(0))
    large, small = runs.start(check(ONE), "a"), runs.start(check(ONE), "b")
    at = cursors(1)
    while at[0]["rows"] < 5:
        at[0]["rows"] += len(pull(runs, large.id, at, 0.1)["lanes"][0]["rows"])
    monkeypatch.setattr(kept, "RECENT_SECONDS", 60.0)
    monkeypatch.setattr(kept, "KEPT_BYTES", 1)
    monkeypatch.setattr(kept, "MAX_BYTES", large.bytes)
    wait_for(lambda: pull(runs, large.id, at, 0)["state"] == "stopped")
    last = pull(runs, large.id, at, 0)["lanes"][0]
    assert last["problem"] == kept.CROWDED and last["count"] >= 5
    assert small.id in runs.runs


def sizes(*roots) -> dict[int, int]:
    """The bytes of every object that the interpreter reaches from `roots`, without code, by its id."""
    found, waiting = {}, list(roots)
    while waiting:
        one = waiting.pop()
        if id(one) in found or isinstance(one, type | ModuleType | FunctionType):
            continue
        found[id(one)] = sys.getsizeof(one)
        waiting.extend(gc.get_referents(one))
    return found


@pytest.mark.parametrize("name", ["beam", "value_mcts", "speculative_tree", "lookahead"])
def test_the_bytes_are_about_what_the_interpreter_holds(name, target_for, tiny_model):
    models = {"target": target_for(name), "draft": tiny_model("llama", 1)}
    trace = Lane(name, [40, 41, 42, 40, 41], models, {}, 0, Limits(max_new_tokens=30)).run()
    held = sizes(trace.steps)
    told = sum(memory_sizes.step_bytes(step) - memory_sizes.ROW for step in trace.steps)
    assert 0.7 < told / sum(held.values()) < 1.5
    folds = [Fold(one, trace) for one in ("entropy", "dependencies", "text")]
    for fold in folds:
        fold.ops(len(trace.steps) - 1)
    drawn = sizes(*(fold.deltas for fold in folds), *(fold.view for fold in folds))
    drawn = sum(size for key, size in drawn.items() if key not in held)
    assert 0.7 < sum(fold.bytes for fold in folds) / drawn < 1.5


def test_a_large_picture_comes_in_pieces_and_all_of_it(house, monkeypatch):
    runs = house()
    run = finished(runs, "a")
    whole = answer(run, cursors(1))["lanes"][0]
    monkeypatch.setattr(runs_module, "PIECE_OPS", 4)
    at, ops, rows, states = cursors(1), [], [], []
    while True:
        told = pull(runs, run.id, at, wait=0, known="running")
        lane = told["lanes"][0]
        assert sum(map(len, lane["ops"][:-1])) < 4 and lane["count"] == 12
        ops, rows = ops + lane["ops"], rows + lane["rows"]
        at = [{"view": "entropy", "ops": len(ops), "rows": len(rows)}]
        states.append(told["state"])
        if not told["more"]:
            break
    assert (ops, rows) == (whole["ops"], whole["rows"])
    assert len(states) > 2 and states[-1] == "done" and set(states[:-1]) == {"running"}


def test_views_are_folded_beside_the_event_loop(house, monkeypatch):
    runs, threads, feed = house(), set(), Fold._feed

    def heard(fold, step):
        threads.add(threading.current_thread().name.split("_")[0])
        return feed(fold, step)

    monkeypatch.setattr(Fold, "_feed", heard)
    finished(runs, "a")
    assert threads == {"answers"}


def test_two_pages_may_read_one_picture_at_the_same_time(house):
    runs = house(lambda: ScriptedLane(words(300)))
    run = finished(runs, "a")
    run.records[0].folds.clear()

    async def both() -> list[dict]:
        return await asyncio.gather(*(runs.pull(run.id, cursors(1), 0) for _ in range(4)))

    first, *others = [found["lanes"] for found in asyncio.run(both())]
    assert all(other == first for other in others) and len(first[0]["ops"]) == 300


def test_an_ended_lane_keeps_no_view_that_grows(house):
    run = finished(house(), "a")
    wait_for(lambda: all(fold.view is None for fold in run.records[0].folds.values()))
    assert all(fold.bytes == fold.kept for fold in run.records[0].folds.values())


def test_text_in_pieces_is_what_json_gives():
    values = [
        {"a": [1, 2.5, None, True, 'é"\n'], "b": {}, "c": [], "d": {"e": [[[{"f": [[1], [2]]}]]]}},
        {1: "a number as a name", None: 2},
        (1, (2, 3)),
        "text",
        3,
        None,
    ]
    for value in values:
        assert encoded(value) == json.dumps(value, separators=(",", ":"))


def test_a_run_waits_for_its_page_for_hours(house):
    runs = house()
    run = finished(runs, "a")
    run.heard = time.monotonic() - 3 * 3600
    finished(runs, "b")
    assert pull(runs, run.id, cursors(1), wait=0)["lanes"][0]["count"] == 12
