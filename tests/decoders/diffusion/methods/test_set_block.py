"""Set Block Decoding: how many forwards a block takes, which masks are filled, and that the cache changes
nothing.
"""

import pytest
import torch

from decoders.diffusion.causal_past import INPUT
from decoders.diffusion.methods.set_block import block_sees
from decoders.diffusion.unmask_policies import entropy_bound
from decoders.lane import Lane, Limits
from decoders.trace.events import Cell, Forward
from tests.helpers.tiny_models import make

PROMPT = [5, 9, 17, 33, 60]


@pytest.fixture(scope="module")
def model():
    return make("set_block", endings=0.0)  # an end of text is never sure


def run(model, tokens=16, **parameters):
    return Lane("set_block", PROMPT, {"target": model}, parameters, limits=Limits(tokens)).run()


def forwards(trace):
    return [f for step in trace.steps for f in step.of(Forward)]


def cells(trace, level=None):
    return [c for step in trace.steps for c in step.of(Cell) if c.level == level]


def without_cache(model, tokens, length, gamma):
    """The text of one whole forward per iteration: no cache, no lane."""
    mask, text = model.engine.mask, list(PROMPT)
    while len(text) < len(PROMPT) + tokens:
        block = [mask] * min(length, len(PROMPT) + tokens - len(text))
        while mask in block:
            blocked = torch.zeros(len(text) + len(block), len(text) + len(block))
            blocked.masked_fill_(~block_sees(len(text), len(block)), torch.finfo(torch.float32).min)
            with torch.inference_mode():
                logits = model.model(torch.tensor([text + block]), attention_mask=blocked[None, None]).logits
            open_ = [i for i, token in enumerate(block) if token == mask]
            rows = logits[0, len(text) :, :mask].log_softmax(-1)[open_]
            entropies = -(rows.exp() * rows).sum(-1)
            for i in entropy_bound(-entropies, entropies, gamma):
                block[open_[i]] = int(rows[i].argmax())
        text += block
    return text[len(PROMPT) :]


@pytest.mark.parametrize("gamma", [0.0, 2.0, 9.0])
def test_its_text_is_that_of_whole_forwards_without_a_cache(model, gamma):
    trace = run(model, block_length=5, gamma=gamma)
    assert trace.output() == without_cache(model, 16, 5, gamma)


@pytest.mark.parametrize("length", [1, 4, 8])
def test_gamma_0_takes_a_forward_per_token(model, length):
    assert len(forwards(run(model, gamma=0.0, block_length=length))) == 16


@pytest.mark.parametrize("length", [1, 4, 8])
def test_a_large_gamma_takes_a_forward_per_block(model, length):
    assert len(forwards(run(model, gamma=1000.0, block_length=length))) == 16 // length


def test_the_bound_leaves_out_the_largest_entropy():
    entropies = torch.tensor([0.05, 0.10, 0.30, 0.60])
    assert entropy_bound(-entropies, entropies, 0.2) == [0, 1, 2]


def test_a_finished_block_is_read_once_more_with_the_first_masks_of_the_next(model):
    trace = run(model, gamma=1000.0, block_length=4)
    assert [f.tokens for f in forwards(trace)] == [len(PROMPT) + 4, 8, 8, 8]
    second = [(c.position, c.state) for c in cells(trace, INPUT) if c.iteration == 2]
    assert second == [(p, "cached") for p in range(5, 9)] + [(p, "mask") for p in range(9, 13)]


def test_tokens_are_filled_by_rising_entropy(model):
    """In every forward those that are filled are surer than those that wait."""
    for step in run(model, gamma=3.0, block_length=8).steps:
        now = [c for c in step.of(Cell) if c.level is None and c.state in ("committed", "candidate")]
        filled = [c.entropy for c in now if c.state == "committed"]
        assert filled and max(filled) <= min([c.entropy for c in now if c.state == "candidate"], default=99.0)
        assert sum(filled) - max(filled) <= 3.0


def test_a_text_that_ends_within_a_block_ends_the_lane():
    trace = run(make("set_block", endings=40.0), tokens=64, gamma=1000.0, block_length=8)
    assert trace.output()[-1] in make("set_block").eos and len(trace.output()) < 64
    assert "trimmed" in {c.state for c in cells(trace)}


def test_a_causal_target_without_such_a_companion_is_refused(tiny_model):
    with pytest.raises(ValueError, match="Set Block Decoding writes with a model that fills blocks"):
        Lane("set_block", PROMPT, {"target": tiny_model("llama")}, {})
