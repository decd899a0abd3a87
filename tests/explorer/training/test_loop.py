"""What the recipes share."""

from types import SimpleNamespace

import pytest
import torch

from explorer.corpus import IGNORED, ROW, mixed_rows
from explorer.training import loop, stages
from explorer.training.loop import deepened, exits_loss, held_out_loss, llama
from explorer.training.recipes import llama_tiny_moe
from explorer.training.stages import stage


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


def test_a_mixture_whose_experts_have_all_neurons_is_the_target(monkeypatch):
    """Its two experts then weigh one together; with fewer layers it is the target's early exit."""
    target = llama(hidden_size=32, layers=3, heads=2, intermediate_size=48)
    shape = dict(intermediate_size=48, num_local_experts=4, num_experts_per_tok=2)
    for name, value in dict(SHAPE=shape, LAYERS=2, SCALE=1.0).items():
        monkeypatch.setattr(llama_tiny_moe, name, value)
    tokens = torch.randint(0, 4096, (2, 9))
    states = target(tokens, output_hidden_states=True).hidden_states[2]
    mixture = llama_tiny_moe.upcycled(target)
    torch.testing.assert_close(mixture(tokens).logits, target.lm_head(target.model.norm(states)))
    monkeypatch.setattr(llama_tiny_moe, "SHAPE", shape | dict(intermediate_size=15))
    parts = llama_tiny_moe.upcycled(target).model.layers[1].mlp.experts
    assert parts.gate_up_proj.shape == (4, 30, 32)
    assert torch.equal(parts.down_proj[3][:, 12:], target.model.layers[1].mlp.down_proj.weight[:, :3])


def test_training_that_is_cut_off_goes_on_to_the_same_weights(texts, tmp_path, monkeypatch):
    """Tasks and early exits at toy scale; the first try ends in the middle of its third batch."""
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    args = SimpleNamespace(million_tokens=None, work=tmp_path / "work")

    def trained(name: str, model):
        return stage(model, texts, args, name, 0.006, 4, 0.5, exits_loss(model, (1, 2), weight=0.3))

    fresh, once, again = (llama(hidden_size=16, layers=3, heads=2, intermediate_size=32) for _ in range(3))
    curve = trained("once", once)
    assert curve[-1][0] == pytest.approx(0.006144)
    assert held_out_loss(once, texts.held) < held_out_loss(fresh, texts.held)
    with monkeypatch.context() as broken:
        batches = iter([mixed_rows(texts.stories, texts.tokenizer, seen, 4, 0.5) for seen in (0, 1024)])
        broken.setattr(stages, "mixed_rows", lambda *a: next(batches))
        with pytest.raises(StopIteration):
            trained("again", again)
    again = llama(hidden_size=16, layers=3, heads=2, intermediate_size=32)
    trained("again", again)
    for name, weight in again.state_dict().items():
        assert torch.equal(weight, once.state_dict()[name]), name


def test_only_answers_count_and_every_token_of_a_story(texts):
    """The labels of a mixed batch: stories whole, problems from the end of their prompts."""
    rows, labels = mixed_rows(texts.stories, texts.tokenizer, seen=2048, batch=8, tasks=0.25)
    assert rows.shape == labels.shape == (8, ROW)
    assert torch.equal(rows[:6], labels[:6])
    counted = labels[6:] != IGNORED
    assert 0.2 < counted.float().mean() < 0.9
    assert torch.equal(rows[6:][counted], labels[6:][counted])
    again = mixed_rows(texts.stories, texts.tokenizer, seen=2048, batch=8, tasks=0.25)
    assert torch.equal(again[0], rows)
