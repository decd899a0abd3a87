"""Masks as modes: who sees whom, and that decoder mode is the model's own causal forward."""

import pytest
import torch

from decoders.lenses.mask_modes import MODES, forward_in_mode, mode_mask, shortened

SOURCE, TEXT = 4, [7, 40, 41, 9, 5, 12, 40]


def states(model, mode, tokens):
    """The states [L + 1, T, d] of a text."""
    found = forward_in_mode(model.model, torch.tensor([tokens]), mode, [SOURCE], output_hidden_states=True)
    return torch.stack(found.hidden_states)[:, 0]


def moved(model, mode, place):
    """By how much the states of each place differ where another token stands at `place` [T]."""
    changed = [*TEXT[:place], TEXT[place] + 1, *TEXT[place + 1 :]]
    return (states(model, mode, TEXT) - states(model, mode, changed)).abs().amax((0, 2))


def test_the_masks_of_two_and_two():
    shown = {mode: mode_mask(mode, 4, 2).int().tolist() for mode in MODES}
    assert shown["encoder"] == [[1] * 4] * 4
    assert shown["decoder"] == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert shown["encoder-decoder"] == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    with pytest.raises(ValueError, match="no mode 'sideways'; choose one of: encoder, decoder"):
        mode_mask("sideways", 4, 2)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt2"])
def test_decoder_mode_is_the_causal_forward_bit_for_bit(kind, tiny_model):
    """With the attention that transformers builds a mask for; the fused kernel rounds otherwise."""
    model = tiny_model(kind).model
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        rows = torch.tensor([TEXT, TEXT[::-1]])
        assert torch.equal(
            forward_in_mode(model, rows, "decoder", [2, 3]).logits, model(input_ids=rows).logits
        )
    finally:
        model.set_attn_implementation(before)
    fused = forward_in_mode(model, rows, "decoder", [2, 3]).logits - model(input_ids=rows).logits
    assert float(fused.abs().max()) < 1e-5


def test_the_last_target_token_never_changes_source_states(tiny_model):
    for mode in ("decoder", "encoder-decoder"):
        assert (moved(tiny_model(), mode, len(TEXT) - 1)[:-1] == 0).all()
    assert (moved(tiny_model(), "encoder", len(TEXT) - 1)[:SOURCE] > 0).all()  # it has no target


def test_a_source_token_changes_earlier_ones_only_where_both_directions_are_seen(tiny_model):
    earlier = {mode: moved(tiny_model(), mode, SOURCE - 1)[: SOURCE - 1] for mode in MODES}
    assert (earlier["decoder"] == 0).all()
    assert (earlier["encoder"] > 0).all() and (earlier["encoder-decoder"] > 0).all()


def test_without_a_source_two_modes_are_one(tiny_model):
    rows = torch.tensor([TEXT])
    found = [
        forward_in_mode(tiny_model().model, rows, mode, [source]).logits
        for mode, source in (("decoder", 3), ("encoder-decoder", 0), ("encoder-decoder", 1))
    ]
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


def test_a_decoder_keeps_the_last_tokens():
    assert shortened([1, 2, 3], "decoder", 2) == [2, 3] and shortened([1, 2, 3], "encoder", 2) == [1, 2]
