"""Entropy adaptive decoding: who writes what by the worked numbers, and rows after catching up."""

import math

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.sampling.ead import LARGE, SMALL, Switch, entropy
from decoders.trace.events import Forward, Note, Propose
from decoders.trace.scores import Score
from tests.helpers import tiny_models

WORKED = [0.2, 0.4, 2.5, 2.9, 2.0, 0.5, 0.3, 0.2, 0.1, 0.1]
MEANS = [0.2, 0.3, 1.0333, 1.5, 1.6, 1.66, 1.64, 1.18, 0.62, 0.24]


def run(models, prompt, new_tokens=12, seed=0, **parameters):
    return Lane("ead", prompt, models, parameters, seed, Limits(max_new_tokens=new_tokens)).run()


def writers(trace) -> list[str]:
    return [s.level for step in trace.steps for s in step.of(Score)]


def written(switch: Switch, entropies: list[float]) -> tuple[list[str], list[float]]:
    who, means = [], []
    for bits in entropies:
        who.append(switch.active)
        means.append(switch.update(bits))
    return who, means


@pytest.fixture(scope="module")
def models(tiny_model):
    return {"target": tiny_model("llama"), "draft": tiny_model("llama", 1)}


def test_entropies_are_in_bits():
    assert entropy(torch.zeros(1, 8)) == pytest.approx(3.0)
    assert entropy(torch.tensor([[0.0, -math.inf]])) == pytest.approx(0.0)


def test_the_worked_numbers():
    who, means = written(Switch(SMALL, 1.55, 5, 0), WORKED)
    assert means == pytest.approx(MEANS, abs=1e-4)
    assert [i for i, name in enumerate(who) if name == LARGE] == [5, 6, 7]


def test_a_window_of_one_is_routing_by_each_token():
    who, _ = written(Switch(SMALL, 1.55, 1, 0), WORKED)
    assert who[1:] == [LARGE if bits > 1.55 else SMALL for bits in WORKED[:-1]]


def test_after_a_switch_a_model_stays():
    who, _ = written(Switch(SMALL, 1.0, 1, 3), [2.0, 0.0, 2.0, 0.0, 0.0, 2.0, 2.0, 2.0])
    assert who == [SMALL, LARGE, LARGE, LARGE, SMALL, SMALL, SMALL, LARGE]


def test_the_limits_leave_one_model_alone(models):
    prompt = [40, 41, 42]
    large = tiny_models.generate(models["target"], prompt, max_new_tokens=12)
    small = tiny_models.generate(models["draft"], prompt, max_new_tokens=12)
    always = run(models, prompt, tau=-1.0)
    never = run(models, prompt, tau=20.0, begin_with="draft")
    assert always.output() == large and set(writers(always)) == {LARGE}
    assert never.output() == small and set(writers(never)) == {SMALL}
    assert always.costs.draft_forwards == always.costs.lens_forwards == never.costs.target_forwards == 0
    assert never.costs.proposed == 0, "a token that nobody checks is no draft"


def test_each_token_is_its_writers_and_catching_up_changes_no_row(tiny_model):
    models = {"target": tiny_model("llama", 0, torch.float64), "draft": tiny_model("llama", 1, torch.float64)}
    prompt = [7, 3, 3]
    trace = run(models, prompt, 16, tau=5.5, window=2, stay=1)
    who, text = writers(trace), trace.output()
    assert set(who) == {LARGE, SMALL}
    for place, role in enumerate(who):
        fresh = models[role].model(torch.tensor([[*prompt, *text[:place]]])).logits[0, -1:]
        assert text[place] == int(fresh.argmax())
        told = [s for step in trace.steps for s in step.of(Score)][place]
        assert told.parts["entropy"] == pytest.approx(entropy(fresh), abs=1e-4)
    sources = [e.source for step in trace.steps for e in step.of(Propose)]
    assert sources == ["target" if role == LARGE else "small" for role in who]
    read = [f for step in trace.steps for f in step.of(Forward) if f.kind == "prefill"][1:]
    assert any(f.tokens > 1 for f in read), "who takes over reads what the other model wrote in one forward"


def test_the_targets_share_falls_with_tau_on_a_given_text():
    entropies = [abs(math.sin(7 * i)) * 3 for i in range(60)]
    shares = [written(Switch(SMALL, tau, 5, 0), entropies)[0].count(LARGE) for tau in (-1, 1, 1.5, 2, 2.5)]
    assert shares == sorted(shares, reverse=True) and shares[0] > shares[2] > shares[-1]


def test_the_cost_is_said_in_parameters(models):
    trace = run(models, [40, 41, 42], 6, tau=-1.0)
    said = [note.text for step in trace.steps for note in step.of(Note)]
    assert said[-1].startswith("The target wrote 6 of 6 tokens") and "come to 100 %" in said[-1]
    table = TableModel(lambda past: [0.5, 0.5], 2)
    said = [note.text for s in run({"target": table, "draft": table}, [0], 2).steps for note in s.of(Note)]
    assert said[-1] == "The target wrote 1 of 2 tokens."
