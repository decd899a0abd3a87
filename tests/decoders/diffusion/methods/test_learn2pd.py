"""Learn2PD: its limits, filters by hand, end-of-text prediction, and the oracle."""

import pytest
import torch

from decoders.diffusion.canvas import Guess
from decoders.diffusion.methods.learn2pd import LEVEL, end_of_text
from decoders.heads import Filter
from decoders.heads.scorers.filter import UNASKED
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.trace.events import Cell, Forward, Note
from explorer.tasks import HELD_OUT_SEED, problems

PROMPTS = ([40, 41, 42], [7], [200, 3, 3])


def run(target, parameters=None, name="learn2pd", tokens=12, prompt=PROMPTS[0]):
    return Lane(name, list(prompt), {"target": target}, parameters, 0, Limits(tokens)).run()


def filtering(target, module):
    """The same model with a filter."""
    target = type(target)(target.name, target.model, target.tokenizer, tokens_of=target.tokens_of)
    target.heads["filter"] = module
    return target


def sharp(tau: float, block: int = 32) -> Filter:
    """A filter whose logits are BIG * (c - tau): no position looks at another."""
    module, big = Filter(None, block).double().requires_grad_(False), 1e9
    module.inner.weight.copy_(big * torch.eye(block))
    module.inner.bias.fill_(-big * tau)  # what is below becomes 0
    module.output.weight.copy_(torch.eye(block))
    module.output.bias.fill_(-1e-3)
    return module


@pytest.fixture(scope="module")
def masked(tiny_model):
    return tiny_model("masked")


@pytest.mark.parametrize("block", [4, 12])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_at_theta_1_it_is_one_token_per_forward(masked, prompt, block):
    learned = filtering(masked, sharp(0.01))
    found = run(learned, {"theta": 1.0, "eotp": False, "block_length": block}, prompt=prompt)
    plain = run(masked, {"block_length": block}, "masked_diffusion", prompt=prompt)
    assert found.output() == plain.output() and len(found.steps) == len(plain.steps)


@pytest.mark.parametrize("tau", [0.05, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_sharp_filter_is_a_threshold(masked, prompt, tau):
    found = run(filtering(masked, sharp(tau)), {"theta": 0.5, "eotp": False}, prompt=prompt)
    plain = run(masked, {"policy": "threshold", "tau": tau}, "masked_diffusion", prompt=prompt)
    assert found.output() == plain.output() and len(found.steps) == len(plain.steps)


def test_a_filter_reads_every_position_of_the_block_and_nothing_else():
    """By hand: the second position passes where the first is sure; zeros fill short blocks."""
    module = Filter(None, 3).requires_grad_(False)
    for layer in (module.inner, module.output):
        layer.weight.zero_(), layer.bias.zero_()
    module.inner.weight[0, 0] = module.output.weight[1, 0] = 2.0
    module.inner.weight[0, 2] = -100.0
    assert module(torch.tensor([0.9, 0.1])).tolist() == pytest.approx([0.0, 3.6])
    assert module(torch.tensor([0.9, 0.1, 0.5])).tolist() == [0.0, 0.0, 0.0]
    asked = torch.tensor([[UNASKED, 1]])
    want = torch.nn.functional.softplus(torch.tensor(-3.6))
    assert module.loss(torch.tensor([[0.9, 0.1]]), asked) == pytest.approx(float(want))


def guess(tokens, confidence):
    count = len(tokens)
    rows = torch.zeros(count, 3)
    return Guess(list(range(5, 5 + count)), tokens, torch.tensor(confidence), rows, rows[:, 0], rows)


def test_where_the_canvas_is_cut():
    """The first accepted end of text; else the most likely of all, if it is likely enough; else nowhere."""
    eos = frozenset({0})
    found = guess([7, 0, 0, 0], [0.9, 0.3, 0.8, 0.4])
    assert end_of_text(found, [1, 2], eos, 0.0) == 6
    assert end_of_text(found, [0], eos, 0.0) == 7
    assert end_of_text(found, [0], eos, 0.8) == 7 and end_of_text(found, [0], eos, 0.81) is None
    assert end_of_text(found, [3], eos, 0.99) == 8
    assert end_of_text(guess([7, 8], [0.9, 0.9]), [0, 1], eos, 0.0) is None


@pytest.fixture(scope="module")
def shipped():
    return load("llama-tiny")


def asked(shipped, *names, each=4):
    return [shipped.encode(p.prompt) for name in names for p in problems(name, each, HELD_OUT_SEED)]


def forwards(trace) -> int:
    return sum(f.kind != "lens" for step in trace.steps for f in step.of(Forward))


def test_a_cut_canvas_makes_forwards_shorter_and_never_grows_again(shipped):
    prompt = asked(shipped, "upper", each=1)[0]
    found = run(shipped, {"theta": 1.0}, tokens=48, prompt=prompt)
    whole = run(shipped, {"theta": 1.0, "eotp": False}, tokens=48, prompt=prompt)
    sizes = [f.tokens for step in found.steps for f in step.of(Forward)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == len(prompt) + 48 > sizes[-1]
    cut = {}  # position -> the iteration in which it was cut off
    for cell in (c for step in found.steps for c in step.of(Cell)):
        if cell.state == "trimmed":
            cut.setdefault(cell.position, cell.iteration)
        else:
            assert cell.position not in cut or cell.iteration <= cut[cell.position]
    first = next(s for s in found.steps if any(c.state == "trimmed" for c in s.of(Cell)))
    fills = [
        {c.position: c.token for c in run_.steps[first.index].of(Cell) if c.state == "forced"}
        for run_ in (found, whole)
    ]
    assert fills[0] == fills[1]  # the step that cuts fills what it would have filled anyway
    assert found.text() == whole.text() and forwards(found) < forwards(whole)


def test_the_oracle_writes_the_text_of_one_token_per_forward_in_fewer(shipped):
    """Tokens that are filled early may change what is predicted later, so this is measured, not proved."""
    equal = total = 0
    for prompt in asked(shipped, "upper", "copy", "json", each=1):
        found = run(shipped, {"filter": "oracle", "eotp": False}, tokens=16, prompt=prompt)
        plain = run(shipped, {}, "masked_diffusion", tokens=16, prompt=prompt)
        assert forwards(found) <= forwards(plain)
        assert found.costs.lens_forwards >= forwards(plain)
        equal, total = equal + (found.output() == plain.output()), total + 1
    assert equal >= total - 1


def test_a_lower_theta_takes_fewer_forwards(shipped):
    counts = []
    for theta in (1.0, 0.96, 0.5, 0.0):
        runs = [
            run(shipped, {"theta": theta, "eotp": False}, tokens=32, prompt=p)
            for p in asked(shipped, "copy", "json", each=1)
        ]
        counts.append(sum(map(forwards, runs)))
    assert counts == sorted(counts, reverse=True) and counts[1] < 0.7 * counts[0]
    assert counts[-1] == 2  # everything at once


def test_the_filter_s_numbers_are_recorded_and_decide(shipped):
    found = run(shipped, {"theta": 0.9}, tokens=32, prompt=asked(shipped, "json", each=1)[0])
    for step in found.steps:
        sure = {c.position: c.confidence for c in step.of(Cell) if c.level == LEVEL}
        filled = {c.position: c.state for c in step.of(Cell) if c.state in ("filtered", "forced")}
        assert filled and filled.keys() <= sure.keys() and list(filled.values()).count("forced") <= 1
        for position, value in sure.items():
            assert (value > 0.9) == (filled.get(position) == "filtered")


def test_without_a_trained_filter_probabilities_are_compared(masked):
    found = run(masked)
    assert found.steps[0].of(Note)[0].text.startswith("No filter was trained for 'tiny-masked'")
    assert found.output() == run(masked, {"filter": "confidence"}).output()
