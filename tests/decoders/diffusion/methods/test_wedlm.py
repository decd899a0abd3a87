"""WeDLM: which masks are filled, in which order the model reads, and that its cache is exact."""

import pytest
import torch

from decoders.diffusion.causal_past import INPUT
from decoders.diffusion.methods.wedlm import adjusted, fillable
from decoders.lane import Lane, Limits
from decoders.trace.events import Cell, Forward
from tests.helpers.tiny_models import make

PROMPT = [5, 9, 17, 33, 60]


@pytest.fixture(scope="module")
def model():
    return make("wedlm", endings=0.0)  # an end of text is never sure


def run(model, tokens=16, **parameters):
    return Lane("wedlm", PROMPT, {"target": model}, parameters, limits=Limits(tokens)).run()


def cells(trace, *states, level=None):
    return [c for s in trace.steps for c in s.of(Cell) if c.level == level and c.state in states]


def whole_forward(model, tokens, order):
    """Logits by position of one causal pass over all tokens in physical order: no cache, no mask of ours."""
    ids = torch.tensor([[tokens[p] for p in order]])
    with torch.inference_mode():
        logits = model.model(ids, position_ids=torch.tensor([order])).logits[0, :, : model.engine.mask]
    return {p: logits[at] for at, p in enumerate(order)}


def without_cache(model, count, window, tau, penalty):
    """The text of one whole forward per iteration."""
    mask, tokens = model.engine.mask, list(PROMPT)
    while mask in tokens or len(tokens) < len(PROMPT) + count:
        first = tokens.index(mask) if mask in tokens else len(tokens)
        tokens += [mask] * (min(first + window, len(PROMPT) + count) - len(tokens))
        order = sorted(range(len(tokens)), key=lambda p: (tokens[p] == mask, p))
        logits = whole_forward(model, tokens, order)
        masks = [p for p in range(len(tokens)) if tokens[p] == mask]
        rows = torch.stack([logits[p] for p in masks]).log_softmax(-1)
        scores = -(rows.exp() * rows).sum(-1) + penalty * torch.tensor([p - masks[0] for p in masks])
        chosen = [i for i in range(len(masks)) if scores[i] < tau] or [int(scores.argmin())]
        for i in chosen:
            tokens[masks[i]] = int(rows[i].argmax())
    return tokens[len(PROMPT) :]


@pytest.mark.parametrize("tau", [0.0, 3.0, 3.6, 50.0])
def test_its_text_is_that_of_whole_forwards_without_a_cache(model, tau):
    trace = run(model, window=5, tau=tau, distance_penalty=0.01)
    assert trace.output() == without_cache(model, 16, 5, tau, 0.01)


def test_a_window_of_one_is_greedy_decoding_of_the_mask_head(model):
    trace, text = run(model, window=1), list(PROMPT)
    for _ in range(16):
        at = len(text)
        row = whole_forward(model, [*text, model.engine.mask], list(range(at + 1)))[at]
        text.append(int(row.argmax()))
    assert trace.output() == text[len(PROMPT) :]
    assert [len(step.of(Forward)) for step in trace.steps] == [2] + [1] * 15  # the first reads the prompt too


def test_entropies_are_adjusted_by_distance():
    entropies = torch.tensor([0.5, 0.1, 0.3])
    assert adjusted(entropies, [7, 8, 9], 0.1).tolist() == pytest.approx([0.5, 0.2, 0.5])
    assert fillable(entropies, [7, 8, 9], 0.4, 0.1) == ([1], True)
    assert adjusted(entropies, [7, 8, 9], 0.5).tolist() == pytest.approx([0.5, 0.6, 1.3])
    assert fillable(entropies, [7, 8, 9], 0.4, 0.5) == ([0], False)


def test_distance_counts_positions_from_the_leftmost_mask():
    entropies = torch.tensor([0.5, 0.1, 0.3])
    assert adjusted(entropies, [7, 9, 12], 0.1).tolist() == pytest.approx([0.5, 0.3, 0.8])


def test_a_large_penalty_fills_strictly_from_left_to_right(model):
    trace = run(model, window=6, tau=0.4, distance_penalty=1000.0)
    assert [c.position for c in cells(trace, "committed", "forced")] == list(range(5, 21))


def test_the_model_reads_known_tokens_before_masks(model):
    """By position within both groups; what is cached stands first and has no mask before it."""
    trace, out_of_order = run(model, window=5, tau=0.0, distance_penalty=0.0), 0
    for step in trace.steps:
        read = [c for c in step.of(Cell) if c.level == INPUT]
        known = [c.position for c in read if c.state != "mask"]
        masks = [c.position for c in read if c.state == "mask"]
        assert [c.position for c in read] == sorted(known) + sorted(masks)
        out_of_order += bool(known) and max(known) > min(masks)
        cached = [c.position for c in read if c.state == "cached"]
        assert cached == known[: len(cached)] and all(p < min(masks) for p in cached)
    assert out_of_order


def test_the_window_holds_w_positions_beyond_those_that_are_cached(model):
    trace = run(model, tokens=32, window=5, tau=3.3, distance_penalty=0.0)
    for step in trace.steps:
        read = [c for c in step.of(Cell) if c.level == INPUT]
        beyond = [c.position for c in read if c.state != "cached"]
        assert len(beyond) == min(5, 37 - min(beyond))


def ratio(trace):
    """Tokens cached per token read after the prompt."""
    read = sum(f.tokens for s in trace.steps for f in s.of(Forward) if f.kind != "prefill")
    return len(cells(trace, "cached", level=INPUT)) / read


def test_at_most_half_of_what_is_read_enters_the_cache(model):
    """Half if every forward fills its whole window; fewer the fewer it fills."""
    ratios = [ratio(run(model, tokens=64, window=4, tau=tau)) for tau in (0.0, 3.3, 1000.0)]
    assert ratios == sorted(ratios) and ratios[0] < 0.25
    assert ratios[-1] == pytest.approx(60 / 124)  # the last four are read as masks alone


def test_every_token_is_cached_once(model):
    trace = run(model, window=6, tau=3.3)
    cached = [c.position for c in cells(trace, "cached", level=INPUT)]
    assert cached == list(range(5, 5 + len(cached)))


def test_a_text_that_ends_within_the_window_ends_the_lane():
    trace = run(make("wedlm", endings=40.0), tokens=64, tau=1000.0, window=8)
    assert trace.output()[-1] in make("wedlm").eos and len(trace.output()) < 64
