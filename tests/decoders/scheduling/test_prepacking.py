"""Prepacking: the worked bins, and logits and states that are those of each prompt alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoders.scheduling.prepacking import cells, grid, packed, padded, prefill

LENGTHS = [7, 4, 3, 2, 1]
PROMPTS = [[(5 * i + j) % 30 + 1 for j in range(n)] for i, n in enumerate(LENGTHS)]


def test_the_worked_bins():
    rows = packed(LENGTHS)
    assert [[LENGTHS[i] for i in row] for row in rows] == [[7], [4, 3], [2, 1]]
    assert cells(rows, LENGTHS) == 21 and cells(padded(LENGTHS), LENGTHS) == 35 and sum(LENGTHS) == 17
    assert grid(PROMPTS, rows).tokens.shape == (3, 7) and grid(PROMPTS, padded(LENGTHS)).tokens.numel() == 35


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12))
def test_every_prompt_once_and_no_bin_too_long(lengths):
    rows = packed(lengths)
    assert sorted(i for row in rows for i in row) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in row) <= max(lengths) for row in rows)
    assert cells(rows, lengths) <= cells(padded(lengths), lengths)


def test_equal_lengths_are_left_as_they_are():
    assert packed([4, 4, 4]) == padded([4, 4, 4])


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_packed_equals_padded_equals_alone(kind, tiny_model):
    model = tiny_model(kind, 0, torch.float64).model
    one, packed_states = prefill(model, PROMPTS, packed(LENGTHS))
    other, padded_states = prefill(model, PROMPTS, padded(LENGTHS))
    assert torch.allclose(one, other, atol=1e-9)
    for i, prompt in enumerate(PROMPTS):
        with torch.inference_mode():
            plain = model(torch.tensor([prompt]), use_cache=True)
        assert torch.allclose(one[i], plain.logits[0, -1], atol=1e-9)
        for layer, (keys, values) in zip(plain.past_key_values.layers, packed_states[i], strict=True):
            assert torch.allclose(keys, layer.keys[0], atol=1e-9)
            assert torch.allclose(values, layer.values[0], atol=1e-9)
        assert len(padded_states[i]) == len(packed_states[i])


def test_a_prompt_never_changes_another(tiny_model):
    model, changed = tiny_model("llama").model, [list(prompt) for prompt in PROMPTS]
    changed[1] = [9, 9, 9, 9]
    before, after = (prefill(model, some, packed(LENGTHS))[0] for some in (PROMPTS, changed))
    assert torch.equal(before[[0, 2, 3, 4]], after[[0, 2, 3, 4]]) and not torch.equal(before[1], after[1])
