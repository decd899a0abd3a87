"""What the flow model is trained on: the weights of its path, and batches of sources and canvases."""

import random

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from decoders.models.catalog import SHIPPED, TARGET
from explorer.training.recipes.llama_tiny_flow import (
    CANVAS,
    PAD,
    categorical,
    flow_loss,
    path_weights,
    rows_of,
)
from tests.helpers.tiny_models import flow_model


def test_the_weights_of_the_path():
    t = torch.linspace(0, 1, 101, dtype=torch.float64)
    source, middle, target = path_weights(t)
    torch.testing.assert_close(source + middle + target, torch.ones_like(t))
    assert [w[0].item() for w in (source, middle, target)] == [1.0, 0.0, 0.0]
    assert [w[-1].item() for w in (source, middle, target)] == [0.0, 0.0, 1.0]
    assert [w[50].item() for w in (target, middle, source)] == pytest.approx([0.25, 0.4725, 0.2775], abs=5e-5)
    assert abs(t[middle.argmax()].item() - 0.5) < 0.011


def test_a_canvas_is_the_sentence_its_end_and_ends():
    tokenizer = PreTrainedTokenizerFast.from_pretrained(SHIPPED / TARGET)
    right = ["The dog runs to the park.", "The dog " + "and the cat " * 20 + "run to the park."]
    source, canvas = rows_of(tokenizer, right, random.Random(0))
    assert len(source) == len(canvas) == 1, "what does not fit is left out"
    row = canvas[0].tolist()
    end = row.index(0)
    assert tokenizer.decode(row[:end]) == " The dog runs to the park." and set(row[end:]) == {0}
    assert len(row) == CANVAS
    asked = tokenizer.decode(source[0][source[0] != PAD])
    assert (
        asked.startswith("correct: ") and asked.endswith(" =>") and "The dog runs to the park." not in asked
    )


def test_draws_follow_the_logits_and_pass_gradients_on():
    logits = torch.tensor([[0.2, 0.5, 0.3]]).log().repeat(20_000, 1).requires_grad_()
    drawn = categorical(logits, torch.Generator().manual_seed(0))
    assert ((drawn > 0.5).sum(-1) == 1).all()
    torch.testing.assert_close(drawn.mean(0), torch.tensor([0.2, 0.5, 0.3]), atol=0.015, rtol=0)
    drawn[:, 0].sum().backward()
    assert logits.grad.abs().sum() > 0


def test_the_loss_reaches_the_middle_head_the_encoder_and_the_decoder():
    model = flow_model(vocab_size=40)
    source, final = torch.randint(2, 40, (8, 6)), torch.randint(2, 40, (8, 12))
    loss = flow_loss(model, source, final, seed=0)
    assert loss.item() == flow_loss(model, source, final, seed=0).item()
    loss.backward()
    for part in (model.middle, model.readers, model.writers, model.looks, model.time):
        assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in part.parameters())
