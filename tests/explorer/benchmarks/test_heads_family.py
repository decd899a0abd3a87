"""The bench of trained drafters: whom it measures, and where it finds the time of drafting."""

import pytest

from decoders.registry import strategies
from decoders.trace.events import Commit, Forward
from decoders.trace.trace import Step, Trace
from explorer import timing
from explorer.benchmarks.heads_family import DRAFT_MODELS, EAGLES, SHORT, drafting, step_time, trained
from tests.helpers import tiny_models


def test_every_strategy_that_needs_heads_is_measured():
    """All that a target without heads refuses or does worse; nobody else."""
    names, bare = {s.name for s in trained()}, tiny_models.make("qwen2")
    refused = {
        s.name
        for s in strategies().values()
        if s.family == "speculative"
        and s.suits(s.check({}), bare)
        and "layers" not in str(s.suits(s.check({}), bare))
    }
    assert refused <= names and {"kangaroo", "m2r2", "eagle3", "hydra", "ppd", *EAGLES} <= names
    assert not {name for name, _ in DRAFT_MODELS.values()} & names
    for name, settings in SHORT.values():
        assert name in EAGLES and strategies()[name].check(settings) != strategies()[name].check({})


def test_drafting_is_split_by_hand():
    """A round of 2 s after a prompt of 1 s: .3 in draft forwards and .1 outside them, then verification."""
    trace = Trace("eagle", "EAGLE", {}, 0, {"target": "t"}, [1, 2])
    trace.append(Step(0, [Forward("target", "prefill", 2, 1, 0.0, 0.9), Commit([2], [0.0])], 1.0))
    events = [
        Forward("draft", "draft", 1, 1, 1.05, 0.2),
        Forward("draft", "draft", 1, 1, 1.28, 0.1),
        Forward("target", "verify", 3, 3, 1.4, 1.2),
        Commit([3], [0.0]),
    ]
    trace.append(Step(1, events, 3.0))
    forwards, outside = drafting([trace])
    assert abs(forwards - 0.3 / 2) < 1e-9 and abs(outside - 0.1 / 2) < 1e-9
    assert drafting([]) == (0.0, 0.0)
    assert step_time([trace]) == pytest.approx(150.0) and step_time([]) is None


def test_on_a_busy_machine_only_computing_counts(monkeypatch):
    """Six tokens in 1 s of computing and 50 s of waiting against six in 2 s; what warms up is not counted."""
    clock, calls = [0.0], []

    def takes(name, seconds):
        def decode(prompt):
            calls.append((name, prompt[0]))
            clock[0] += 100.0 if calls.count((name, 1)) == 1 and prompt == [1] else seconds
            return 6

        return decode

    monkeypatch.setattr(timing.time, "process_time", lambda: clock[0])
    assert timing.computing_ratio(takes("mine", 1.0), takes("other", 2.0), [[1], [2]]) == 2.0
    assert calls == [("mine", 1), ("other", 1)] * 2 + [("mine", 2), ("other", 2)]
