"""Mirostat: the worked numbers, its state, its law, and the surprise it aims at."""

import math

import pytest
import torch

from decoders.chooser import Script
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.sampling.mirostat import cutoff, exponent, kept
from decoders.trace.events import Commit
from decoders.trace.scores import Measure, Score

ZIPF = torch.arange(1, 201, dtype=torch.float64) ** -1.2
ZIPF = ZIPF / ZIPF.sum()


def run(model, new_tokens, seed=0, chooser=None, **parameters):
    limits = Limits(max_new_tokens=new_tokens)
    return Lane("mirostat", [0], {"target": model}, parameters, seed, limits, chooser).run()


def told(trace) -> list[Score]:
    return [s for step in trace.steps for s in step.of(Measure) if s.name == "mirostat"]


def test_the_worked_numbers_of_a_zipf_row():
    assert exponent(ZIPF) == pytest.approx(1.2, abs=1e-12)
    assert cutoff(1.2, 6.0, 200) == pytest.approx(11.93, abs=5e-3)
    assert cutoff(1.2, 5.0, 200) == pytest.approx(6.70, abs=5e-3)
    assert kept(ZIPF, 6.0, "1") == 13 and kept(ZIPF, -50.0, "1") >= 1


def test_where_the_formula_fails_nearly_all_are_kept():
    assert cutoff(1.0, 5.0, 200) == 199.0
    assert cutoff(1e-9, 5000.0, 200) == 199.0
    assert kept(torch.full((8,), 0.125, dtype=torch.float64), 3.0, "1") == 8


def test_the_limit_follows_the_surprise_under_the_model_itself():
    model = TableModel(lambda past: [0.5, 0.25, 0.15, 0.1], 4)
    trace = run(model, 2, tau=3.0, chooser=Script([1, 0]))
    first, second = told(trace)
    assert first.total == 6.0 and first.parts["surprise"] == pytest.approx(2.0)
    assert second.total == pytest.approx(7.0), "mu goes from 6 to 7 after a token with p = .25"


def test_version_2_keeps_what_surprises_at_most_mu():
    p = torch.tensor([0.5, 0.25, 0.125, 0.0625, 0.0625], dtype=torch.float64)
    assert [kept(p, mu, "2") for mu in (0.5, 1.0, 2.5, 4.0)] == [1, 1, 2, 5]


@pytest.mark.parametrize(("version", "rate"), [("1", 1.0), ("2", 0.1)])
def test_the_mean_surprise_comes_near_the_target(version, rate):
    row = ZIPF.tolist()
    trace = run(TableModel(lambda past: row, 200), 300, seed=3, tau=3.0, rate=rate, version=version)
    logprobs = [lp for step in trace.steps for c in step.of(Commit) for lp in c.logprobs]
    assert -sum(logprobs) / len(logprobs) / math.log(2) == pytest.approx(3.0, abs=0.3)
