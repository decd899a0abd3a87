"""Parts of a model's layers: numbers are those of a forward of its own in which blocks add nothing, and the
whole model finds its own keys and values again.
"""

import pytest
import torch

from decoders.engine.capabilities import Capability
from decoders.engine.engine import Engine
from decoders.engine.layers import Layers
from decoders.engine.partial_forward import Blocks
from decoders.engine.sequence_engine import SequenceEngine
from decoders.engine.tree import Tree
from decoders.lane import Lane
from tests.helpers import tiny_models

PROMPT = [11, 22, 33, 44, 55]
LIKE_LLAMA = ["llama", "qwen2", "qwen3", "gpt2", "phi3", "mixtral", "gemma3"]
PARTS = {
    "first layer": Layers.first(1, 2),
    "second layer": Layers.after(1, 2),
    "no first MLP": Layers.without((), (0,), 2),
    "no second attention": Layers.without((1,), (), 2),
    "nothing": Layers.first(0, 2),
}


def chain(tokens=(7, 8, 9, 200)) -> tuple[Tree, list[int]]:
    """A prompt with a chain below it."""
    tree, nodes = Tree(PROMPT), []
    for token in tokens:
        nodes.append(tree.add(nodes[-1] if nodes else len(PROMPT) - 1, token))
    return tree, nodes


def by_hand(model, part: Layers, tokens: list[int]) -> torch.Tensor:
    """Logits [T, V] of a forward of its own over prompt and tokens; after the prompt only `part` runs."""
    with Blocks(model.model).running(part, starts=[len(PROMPT)]):
        return model.model(torch.tensor([[*PROMPT, *tokens]]), use_cache=False).logits[0]


def assert_close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    assert (ours - theirs).abs().max() <= 1e-5 * (1 + theirs.abs().max())


@pytest.mark.parametrize("kind", LIKE_LLAMA)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_reads_the_whole_models_prompt_and_its_own_draft(kind, part, tiny_model):
    model, (tree, nodes) = tiny_model(kind), chain()
    engine = Engine(model.model)
    scorer = engine.attach(tree)
    scorer.score([4])
    want = by_hand(model, PARTS[part], [7, 8, 9, 200])[len(PROMPT) :]
    rows = [scorer.score_part([n], PARTS[part])[0] for n in nodes[:2]]
    assert_close(torch.stack(rows), want[:2])
    assert_close(scorer.score_part(nodes[2:], PARTS[part]), want[2:])
    scorer.close()
    assert engine.cache.used == 0


@pytest.mark.parametrize("kind", LIKE_LLAMA)
@pytest.mark.parametrize("part", PARTS)
def test_after_a_draft_the_whole_model_says_what_it_would_have_said(kind, part, tiny_model):
    model, (tree, nodes) = tiny_model(kind), chain()
    whole = model.model(torch.tensor([[*PROMPT, 7, 8, 9, 200]]), use_cache=False).logits[0, len(PROMPT) :]
    scorer = Engine(model.model).attach(tree)
    scorer.score([4])
    for node in nodes[:3]:
        scorer.score_part([node], PARTS[part])
    assert_close(scorer.score(nodes[:3]), whole[:3])
    exact = PARTS[part].exit is not None
    assert scorer.work.share == (1 - PARTS[part].share if exact else 1.0)
    assert_close(scorer.score(nodes[3:]), whole[3:])
    assert scorer.work.share == 1.0 and not scorer.early


def test_a_text_read_in_parts_has_the_attention_of_the_whole(tiny_model):
    for kind in ("llama", "qwen2"):
        found = []
        for part in (None, Layers.first(1, 2)):
            tree, nodes = chain()
            scorer = Engine(tiny_model(kind).model).attach(tree)
            scorer.score([4])
            for node in nodes if part else []:
                scorer.score_part([node], part)
            scorer.score(nodes)
            found.append(scorer.attention(nodes)[2])
        assert_close(*found)


def test_an_ancestor_that_only_a_part_has_read_is_read_again(tiny_model):
    model, (tree, nodes) = tiny_model("llama"), chain()
    scorer = Engine(model.model).attach(tree)
    scorer.score([4])
    scorer.score_part(nodes[:2], PARTS["second layer"])
    want = model.model(torch.tensor([[*PROMPT, 7, 8, 9]]), use_cache=False).logits[0, -1]
    assert_close(scorer.score([nodes[2]])[0], want)
    assert scorer.work.tokens == 3


def test_a_part_does_not_write_over_what_the_whole_model_has_read(tiny_model):
    tree, nodes = chain()
    scorer = Engine(tiny_model("llama").model).attach(tree)
    for early in ([4], nodes[:1]):
        with pytest.raises(ValueError, match="can only read what follows"):
            scorer.score_part(early, PARTS["first layer"])
    scorer.score(nodes[:2])
    with pytest.raises(ValueError, match="can only read what follows"):
        scorer.score_part(nodes[1:], PARTS["first layer"])


@pytest.mark.parametrize("part", PARTS)
def test_models_without_a_tree_mask_give_the_same_numbers(part, tiny_model):
    model = tiny_model("llama")
    found = []
    for engine in (Engine(model.model), SequenceEngine(model.model)):
        tree, nodes = chain()
        scorer = engine.attach(tree)
        scorer.score([4])
        scorer.score(nodes[:1])
        found.append([scorer.score_part(nodes[1:], PARTS[part]), scorer.score(nodes[1:])])
        assert 0 < scorer.work.share <= 1
    for ours, theirs in zip(*found, strict=True):
        assert_close(ours, theirs)


def test_models_whose_layers_cannot_be_run_in_part_are_refused_with_a_sentence(tiny_model):
    for kind in LIKE_LLAMA:
        assert Engine(tiny_model(kind).model).gives(Capability.LAYERS)
        assert SequenceEngine(tiny_model(kind).model).gives(Capability.LAYERS)
    opt = tiny_model("opt")
    assert not Engine(opt.model).gives(Capability.LAYERS)
    with pytest.raises(ValueError, match="OPTForCausalLM does not give; .* a model built like Llama,"):
        Lane("layerskip", PROMPT, {"target": opt})


def test_a_part_says_what_it_is():
    assert str(Layers.first(3, 12)) == "layers 1-3 of 12" and Layers.first(3, 12).share == 0.25
    assert str(Layers.only([0, 2, 4, 7], 8)) == "layers 1, 3, 5, 8 of 8"
    mixed = Layers.without((1, 2), (2,), 4)
    assert str(mixed) == "attention 1, 4 and MLP 1-2, 4 of 4 layers" and mixed.share == 5 / 8
    assert (Layers.first(3, 12).exit, Layers.after(3, 12).exit, mixed.exit) == (3, None, None)


def test_modules_are_as_before_when_a_part_has_run(tiny_model):
    model = tiny_models.make("qwen2")
    before = model.model(torch.tensor([PROMPT])).logits
    blocks = Blocks(model.model)
    with pytest.raises(RuntimeError), blocks.running(Layers.first(1, 2)):
        raise RuntimeError
    assert torch.equal(model.model(torch.tensor([PROMPT])).logits, before)
    assert all("forward" not in m.__dict__ for m in blocks.attention + blocks.mlp)
