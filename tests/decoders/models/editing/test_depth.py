"""Models without some blocks: the copy computes what the model does while they are left out, and drafts."""

import pytest
import torch

from decoders.engine.layers import Layers
from decoders.lane import Lane, Limits
from decoders.models.edited_names import Blocks
from decoders.models.editing.depth import left_out, without_blocks
from decoders.models.loaded_model import LoadedModel
from tests.helpers import tiny_models

IDS = torch.tensor([[40, 41, 42, 43, 44]])


def blocks(attention: set[int], mlp: set[int]) -> Blocks:
    return Blocks(frozenset(attention), frozenset(mlp))


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2", "gpt_neox", "opt", "phi3"])
def test_a_copy_without_blocks_is_the_model_that_leaves_them_out(kind, tiny_model):
    try:
        with left_out(tiny_model(kind).model, blocks({0}, {1})):
            pass
    except ValueError as refused:
        assert "blocks of another form" in str(refused)
        return
    model = tiny_model(kind).model
    whole = model(IDS).logits
    for chosen in (blocks({0}, {0}), blocks({1}, set()), blocks({0}, {1})):
        with left_out(model, chosen):
            expected = model(IDS).logits
        assert not torch.allclose(expected, whole)
        found = without_blocks(model, chosen)
        torch.testing.assert_close(found(IDS).logits, expected)
        assert found.config.num_hidden_layers == 2 - len(chosen.attention & chosen.mlp)
    assert torch.equal(model(IDS).logits, whole)


def test_no_blocks_less_is_the_model(tiny_model):
    model = tiny_model().model
    assert torch.equal(without_blocks(model, blocks(set(), set()))(IDS).logits, model(IDS).logits)
    with pytest.raises(ValueError, match="no layer 3 to drop; the model has 2"):
        without_blocks(model, blocks({2}, set()))


def test_it_says_what_the_engine_says_of_these_layers(tiny_model):
    """The engine that runs layers in part, for self-drafts, is another implementation."""
    target = tiny_model()
    chosen = blocks({0}, {1})
    lane = Lane("greedy", IDS[0].tolist(), {"target": target}, {}, limits=Limits(1))
    tip = lane.tip
    lane.score([tip])
    node = lane.tree.add(tip, 45)
    part = lane.score([node], "draft", layers=Layers.without(chosen.attention, chosen.mlp, 2))
    lane.close()
    assert part.shape == (1, target.engine.vocabulary)
    prompt = lane.tree.text(tip)
    kept = target.model(torch.tensor([prompt]), use_cache=True).past_key_values
    with left_out(target.model, chosen):  # as there: the new token is read on the whole model's keys
        expected = target.model(torch.tensor([[45]]), past_key_values=kept).logits[0, -1:]
    torch.testing.assert_close(part, expected, atol=1e-4, rtol=1e-4)


def test_an_edited_model_drafts_for_its_origin():
    target = tiny_models.make()
    thin = LoadedModel("thin", without_blocks(target.model, blocks({1}, {1})), target.tokenizer)
    prompt = target.encode("the cat sat")
    models = {"target": target, "draft": thin}
    lane = Lane("speculative", prompt, models, {"temperature": 0.0}, limits=Limits(12)).run()
    assert lane.output() == tiny_models.generate(target, prompt, max_new_tokens=12)
