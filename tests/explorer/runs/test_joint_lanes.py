"""Lanes of the app that decode at the same time run their forwards together, each as if it were alone."""

import time

import pytest

from decoders.lane import Lane, Limits
from decoders.trace.events import Forward
from explorer.runs import scheduler
from explorer.runs.callbacks import CALLBACKS
from explorer.runs.scheduler import Runs
from explorer.runs.validation import RunRequest, check
from tests.explorer.runs.test_scheduler import wait_for

PROMPTS = [[3, 4, 5], [9, 9], [40, 41, 42, 40]]
LANES = [("greedy", 0), ("sample", 1), ("beam", 2), ("speculative", 0)]
FAILS = [200, 1, 200]


@pytest.fixture
def runs(tiny_model, monkeypatch):
    monkeypatch.setattr(scheduler, "UNHEARD_SECONDS", 1e9)  # nobody pulls here
    models = {"target": tiny_model(), "draft": tiny_model("llama", 1)}

    def make(request: RunRequest) -> list[Lane]:
        prompt = [int(token) for token in request.prompt.split()]
        limits = Limits(max_new_tokens=request.max_new_tokens)
        return [
            Lane(one.strategy, prompt, models, {}, one.seed, limits, callbacks=CALLBACKS)
            for one in request.lanes
        ]

    made = Runs(make)
    yield made
    made.close()
    assert all(model.engine.cache.used == 0 and not model.engine.joint.waiting for model in models.values())


def asked(prompt: list[int], lanes: list[tuple[str, int]], new_tokens: int = 16) -> RunRequest:
    lanes = [{"strategy": name, "parameters": {}, "seed": seed} for name, seed in lanes]
    return check({"prompt": " ".join(map(str, prompt)), "max_new_tokens": new_tokens, "lanes": lanes})


def finish(runs: Runs, *started) -> list:
    """The traces of these runs, as soon as all are over."""
    for run in started:
        wait_for(lambda run=run: run.state not in ("running", "paused"))
    return [record.trace for run in started for record in run.records]


def forwards(trace) -> list[Forward]:
    return [event for step in trace.steps for event in step.of(Forward)]


def test_lanes_and_runs_decode_together_what_they_decode_alone(runs):
    alone = [finish(runs, runs.start(asked(prompt, [lane]), "a"))[0] for prompt in PROMPTS for lane in LANES]
    assert all(event.lanes == 1 for trace in alone for event in forwards(trace))
    started = [runs.start(asked(prompt, LANES), "b", "paused") for prompt in PROMPTS]
    for run in started:
        runs.control(run.id, "resume")
    together = finish(runs, *started)
    assert [trace.output() for trace in together] == [trace.output() for trace in alone]
    assert max(event.lanes for trace in together for event in forwards(trace)) > len(LANES)


def test_a_step_by_hand_moves_every_lane_once(runs):
    run = runs.start(asked(PROMPTS[0], LANES), "a", "paused")
    for count in (1, 2, 3):
        wait_for(lambda want=count: [len(record.rows) for record in run.records] == [want] * len(LANES))
        time.sleep(0.05)
        assert [len(record.rows) for record in run.records] == [count] * len(LANES)
        runs.control(run.id, "step")


def test_a_run_that_is_paused_or_dropped_in_the_middle_holds_nobody_up(runs, tiny_model):
    first = runs.start(asked(PROMPTS[0], LANES[:2], 200), "a")
    second = runs.start(asked(PROMPTS[0], LANES[:2], 200), "b")
    third = runs.start(asked(PROMPTS[1], LANES[:2], 60), "c")
    wait_for(lambda: len(third.records[1].rows) > 3)
    runs.control(first.id, "pause")
    runs.drop(second.id)
    traces = finish(runs, third)
    assert all(len(trace.output()) for trace in traces) and first.state == "paused"
    runs.control(first.id, "stop")
    finish(runs, first)


def test_an_error_ends_the_lane_that_it_belongs_to(runs, tiny_model, monkeypatch):
    engine = tiny_model().engine
    real = engine.joint.run

    def run(request):
        if " ".join(map(str, FAILS)) in " ".join(map(str, request.tokens)):
            raise RuntimeError("no memory")
        return real(request)

    expected = finish(runs, runs.start(asked(PROMPTS[0], LANES[:1]), "a"))[0].output()
    monkeypatch.setattr(engine.joint, "run", run)
    good = runs.start(asked(PROMPTS[0], LANES[:1]), "a", "paused")
    bad = runs.start(asked(FAILS, LANES[:1]), "b", "paused")
    for one in (good, bad):
        runs.control(one.id, "resume")
    assert finish(runs, good)[0].output() == expected
    finish(runs, bad)
    assert bad.state == "failed" and "RuntimeError" in bad.records[0].problem
