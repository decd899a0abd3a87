"""What the recipes share."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "assets" / "recipes"))

from common import deepened, llama  # noqa: E402


def test_a_deepened_model_computes_the_same_and_its_new_layers_can_learn():
    """The added layers start silent; a step of training changes that, so they are not dead weight."""
    small = llama(hidden_size=32, layers=3, heads=2, intermediate_size=48)
    deep = deepened(small, 5)
    tokens = torch.randint(0, 4096, (2, 9))
    assert deep.config.num_hidden_layers == 5
    torch.testing.assert_close(deep(tokens).logits, small(tokens).logits)
    deep(tokens, labels=tokens).loss.backward()
    silent = [layer for layer in deep.model.layers if not layer.mlp.down_proj.weight.any()]
    assert len(silent) == 2
    assert all(layer.mlp.down_proj.weight.grad.any() for layer in silent)
