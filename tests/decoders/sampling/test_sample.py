"""Sampling: exact law, sampled frequencies, the recorded random number, equality with generate at
temperature 0.
"""

from collections import Counter

import pytest
import torch

from decoders.chooser import Exhaustive, Script, invert
from decoders.lane import Lane, Limits
from decoders.logits.distributions import probabilities, processors
from decoders.logits.processor_order import stages
from decoders.models import loading
from decoders.models.table_model import TableModel, exact_distribution
from decoders.trace.events import Commit, Distribution, Propose
from decoders.trace.scores import Measure, Score
from tests.helpers import tiny_models
from tests.helpers.losslessness import statistics


def run(model, prompt, new_tokens=12, seed=0, chooser=None, **parameters):
    lane = Lane(
        "sample", prompt, {"target": model}, parameters, seed, Limits(max_new_tokens=new_tokens), chooser
    )
    return lane.run()


def forgetful(past) -> tuple[float, ...]:
    """A table over three tokens that depends on the last two."""
    a, b = past[-1], past[-2] if len(past) > 1 else 0
    row = [1.0 + a, 2.0 + (a + b) % 3, 0.5 + b]
    return tuple(x / sum(row) for x in row)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"temperature": 0.6},
        {"top_p": 0.7},
        {"temperature": 1.5, "top_k": 2},
        {"typical_p": 0.6, "min_p": 0.2},
    ],
)
def test_the_law_of_the_output_is_the_processed_law_exactly(parameters):
    model = TableModel(forgetful, 3, eos=frozenset({2}))
    stack = processors(parameters, 3)
    law = Exhaustive().distribution(
        lambda chooser: tuple(run(model, [1, 0], 4, chooser=chooser, **parameters).output())
    )
    want = exact_distribution(
        model, [1, 0], 4, lambda row: probabilities(row if stack is None else stack(row, [[0]]))
    )
    assert law.keys() == want.keys()
    assert all(abs(law[text] - want[text]) < 1e-12 for text in want)


def test_4000_draws_have_the_right_frequencies():
    """Chi-square of 4,000 draws finds a temperature of .7 or .9, which 20,000 draws did by their distance."""
    weights = torch.rand(50, generator=torch.Generator().manual_seed(5), dtype=torch.float64) ** 3
    row = (weights / weights.sum()).tolist()
    model = TableModel(lambda past: row, 50)
    drawn = [t for seed in range(20) for t in run(model, [0], 200, seed, temperature=0.8).output()]
    assert len(drawn) == 4000

    def chance(temperature: float) -> float:
        want = (torch.tensor(row, dtype=torch.float64).log() / temperature).softmax(-1).tolist()
        return statistics(Counter(drawn), dict(enumerate(want)))[0]

    assert chance(0.8) > 0.01 and chance(0.7) < 1e-3 and chance(0.9) < 1e-3


def test_the_recorded_number_explains_every_draw(tiny_model):
    parameters = {"temperature": 0.9, "top_k": 20, "repetition_penalty": 1.2}
    trace = run(tiny_model(), [5, 6, 7], 20, seed=3, **parameters)
    stack, text = processors(parameters, 259), [5, 6, 7]
    for step, token in zip(trace.steps, trace.output(), strict=True):
        (draw,) = [s for s in step.of(Measure) if s.name == "draw"]
        logits = tiny_model().model(torch.tensor([text])).logits[0, -1:]
        p = probabilities(stack(logits, [text]))[0]
        assert 0.0 <= draw.total < 1.0
        assert invert(p, draw.total) == token
        assert draw.parts["low"] == pytest.approx(float(p[:token].sum()), abs=1e-6)
        assert draw.parts["low"] <= draw.total < draw.parts["high"]
        told = [(d.view, d.level) for d in step.of(Distribution)]
        before = [("processed", name) for name in stages(parameters)[:-1]]
        assert told == [("target", None), *before, ("processed", None)]
        assert step.of(Distribution)[-1].among == int((p > 0).sum())
        raw = torch.log_softmax(logits[0], -1)
        assert step.of(Distribution)[0].top[0][1] == pytest.approx(raw.max().item(), abs=1e-4)
        text.append(token)


def test_commits_carry_the_raw_log_probability_and_proposals_the_processed_one(tiny_model):
    trace = run(tiny_model(), [5, 6, 7], 5, temperature=0.5)
    raw = tiny_model().model(torch.tensor([[5, 6, 7, *trace.output()]])).logits[0, 2:-1].log_softmax(-1)
    cooled = (
        tiny_model().model(torch.tensor([[5, 6, 7, *trace.output()]])).logits[0, 2:-1] / 0.5
    ).log_softmax(-1)
    for i, (step, token) in enumerate(zip(trace.steps, trace.output(), strict=True)):
        (commit,), (propose,) = step.of(Commit), step.of(Propose)
        assert commit.logprobs[0] == pytest.approx(raw[i, token].item(), abs=1e-4)
        assert propose.logprob == pytest.approx(cooled[i, token].item(), abs=1e-4)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"repetition_penalty": 1.4},
        {"no_repeat_ngram_size": 2},
        {"repetition_penalty": 0.7, "no_repeat_ngram_size": 3},
    ],
)
def test_temperature_0_equals_generate_token_for_token(kind, parameters, tiny_model):
    for prompt in ([1, 2, 3], [40], [9, 9, 9, 8, 9, 9]):
        ours = run(tiny_model(kind), prompt, 30, temperature=0.0, top_k=3, **parameters).output()
        assert ours == tiny_models.generate(tiny_model(kind), prompt, max_new_tokens=30, **parameters)


def test_the_shipped_model_equals_generate_at_temperature_0():
    model = loading.load("llama-tiny", "cpu")
    for text in ("Once upon a time", "She looked at the"):
        prompt, parameters = model.encode(text), {"repetition_penalty": 1.2, "no_repeat_ngram_size": 3}
        ours = run(model, prompt, 30, temperature=0.0, **parameters).output()
        assert ours == tiny_models.generate(model, prompt, max_new_tokens=30, **parameters)


def test_identity_settings_show_no_second_distribution_and_change_no_token(tiny_model):
    plain = run(tiny_model(), [5, 6], 10, seed=4)
    same = run(
        tiny_model(), [5, 6], 10, seed=4, temperature=1.0, top_k=0, top_p=1.0, typical_p=1.0, eta_cutoff=0.0
    )
    assert plain.output() == same.output()
    assert {d.view for s in same.steps for d in s.of(Distribution)} == {"target"}


def test_seeds_repeat_and_differ(tiny_model):
    texts = [tuple(run(tiny_model(), [5, 6], 10, seed=seed).output()) for seed in (1, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 3


def test_a_script_forces_the_tokens():
    model = TableModel(forgetful, 3)
    trace = run(model, [0], 3, chooser=Script([2, 0, 1]))
    assert trace.output() == [2, 0, 1]
    assert not [s for step in trace.steps for s in step.of(Score)]  # nothing was drawn


@pytest.mark.parametrize("also", [{}, {"eta_cutoff": 0.01}, {"top_h": 0.9}], ids=str)
def test_when_nothing_may_come_any_more_a_sentence_says_so(also):
    trace = run(TableModel(forgetful, 3), [0], 9, no_repeat_ngram_size=1, **also)
    assert len(trace.output()) == 2  # the two letters that had not occurred
    assert trace.ended.startswith("The processors left no token to choose from; loosen no_repeat_ngram_size")


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("temperature", -1, "a number from 0 to 100"),
        ("top_p", 1.5, "a number from 0 to 1"),
        ("top_k", "x", "a whole number"),
        ("typical_p", 0, "a number from 0.001 to 1"),
        ("temperature", float("nan"), "a number from 0 to 100"),
    ],
)
def test_unusable_values_are_refused_with_one_sentence(name, value, allowed):
    with pytest.raises(ValueError, match=f"{name} must be {allowed}"):
        run(TableModel(forgetful, 3), [0], **{name: value})
