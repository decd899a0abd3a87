"""Layers that are not built like Llama's on the tree engine: latents, keys and values of two widths,
indexers, heads that differ from layer to layer, and chunks. They give the numbers of whole texts.
"""

import copy
from functools import cache

import pytest
import torch

from decoders.engine.capabilities import Capability
from decoders.engine.engine import Engine
from decoders.engine.kv_cache import slot_bytes
from decoders.engine.tree import Tree
from decoders.engine.tree_attention import Horizon, horizons_of
from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from tests.decoders.engine.test_engine import LIMBS, assert_close, check, grow
from tests.decoders.engine.test_joint_forwards import Counted, together
from tests.helpers import tiny_models
from tests.models import toy

LATENT = ["deepseek_v3", "minicpm3", "longcat_flash"]
INDEXED = ["deepseek_v32", "dots3_note_text"]  # the second has windows, too, and a config for each layer
WIDE = ["gemma4_text", "gemma3n_text", "mimo_v2_flash"]  # heads differ between layers, or keys are shared
CHUNKED = ["llama4_text"]
LAYERS = [*LATENT, *INDEXED, *WIDE, *CHUNKED]
PROMPT = [11, 22, 33, 44, 55, 66, 77, 88, 99, 110]  # longer than a window or a chunk
BRANCHES = [(parent + 5, token) for parent, token in LIMBS]
PARTS = [[9], [10, 11], [19, 14, 17], [15, 13, 18], [3]]  # nodes that are scored together


@cache
def model_of(architecture: str) -> LoadedModel:
    model = toy.model_of(toy.config_of(architecture))
    return LoadedModel(architecture, model, tiny_models.tokenizer())


@pytest.mark.parametrize("architecture", LAYERS)
def test_a_tree_has_the_numbers_of_its_texts(architecture):
    model, tree = model_of(architecture), grow(BRANCHES, PROMPT)
    scorer = Engine(model.model).attach(tree)
    for nodes in PARTS:
        for node, row in zip(nodes, scorer.score(nodes), strict=True):
            check(model, tree, node, row)
    scorer.release([11, 15, 19])
    late = tree.add(14, 3)  # takes the slot of another branch
    check(model, tree, late, scorer.score([late])[0])


@pytest.mark.parametrize("architecture", LAYERS)
def test_lanes_share_a_forward(architecture):
    model = model_of(architecture)
    engine = Counted(model.model)
    trees = [grow(BRANCHES, PROMPT), grow(BRANCHES, PROMPT[::-1]), grow()]
    scorers = [engine.attach(tree) for tree in trees]
    for scorer, tree in zip(scorers, trees, strict=True):
        scorer.score([tree.trunk - 1])
    before, wanted = len(engine.counts), [[19, 14], [18], [14]]
    rows = together(scorers, wanted)
    assert len(engine.counts) == before + 1
    for tree, nodes, logits in zip(trees, wanted, rows, strict=True):
        for node, row in zip(nodes, logits, strict=True):
            check(model, tree, node, row)


@pytest.mark.parametrize("architecture", ["deepseek_v3", "deepseek_v32", "gemma4_text", "llama4_text"])
def test_the_pool_grows_and_takes_what_was_estimated(architecture):
    model, tree = model_of(architecture), Tree(PROMPT)
    engine = Engine(model.model)
    scorer = engine.attach(tree)
    early = tree.add(9, 3)
    scorer.score([early])
    many = [tree.add(9, i % 256) for i in range(engine.cache.slots)]
    rows, late = scorer.score(many), tree.add(early, 9)
    check(model, tree, many[-1], rows[-1])
    check(model, tree, late, scorer.score([late])[0])
    assert engine.cache.nbytes == engine.cache.slots * slot_bytes(model.model.config, 4)


@pytest.mark.parametrize("architecture", LATENT)
def test_latents_lie_side_by_side(architecture):
    """As much as a token's latents take is kept of it, nothing in between."""
    config = model_of(architecture).model.config
    width = config.kv_lora_rank + config.qk_rope_head_dim
    assert slot_bytes(config, 4) == 4 * config.num_hidden_layers * width


@pytest.mark.parametrize("architecture", [*LATENT, *INDEXED, *WIDE])
def test_attention_that_cannot_be_read_is_not_given(architecture):
    engine = Engine(model_of(architecture).model)
    assert not engine.gives(Capability.ATTENTION)
    scorer = engine.attach(Tree(PROMPT))
    scorer.score([9])
    assert scorer.attention([9]) is None


@pytest.mark.parametrize("architecture", ["mistral", "gemma3_text", "llama4_text"])
def test_attention_is_what_the_layers_saw(architecture):
    """Not what lies before a window or a chunk."""
    model, tree = model_of(architecture), grow(BRANCHES, PROMPT)
    scorer, eager = Engine(model.model).attach(tree), copy.deepcopy(model.model)
    eager.set_attn_implementation("eager")
    scorer.score([9, 14, 19])
    for chain in ([9, 14], [19]):
        _, path, weights = scorer.attention(chain)
        for node, row in zip(chain, weights, strict=True):
            layers = eager(torch.tensor([tree.text(node)]), output_attentions=True).attentions
            want = torch.stack(layers)[:, 0, :, -1].mean((0, 1))
            assert_close(row[: len(want)], want)
            assert len(row) == len(path) and not row[len(want) :].any()


@pytest.mark.parametrize("architecture", [*LATENT, *WIDE])
def test_a_memory_is_refused_in_a_sentence(architecture):
    lane = {"memory": "gear"}
    with pytest.raises(
        ValueError, match="A memory needs keys and values of one shape in every layer, unlike"
    ):
        Lane("greedy", PROMPT, {"target": model_of(architecture)}, lane)


@pytest.mark.parametrize("architecture", [*LATENT, *CHUNKED])
def test_a_sparse_view_is_left_out_where_keys_are_not_at_hand(architecture):
    target, draft = model_of(architecture), tiny_models.make("llama")
    blocks = {f"{name}_blocks": 1 for name in ("sink", "retrieved", "window")}
    settings, limits = {"temperature": 0.0, "block_size": 2} | blocks, Limits(8)
    plain = Lane("greedy", PROMPT, {"target": target}, limits=limits).run().output()
    trace = Lane("specpv", PROMPT, {"target": target, "draft": draft}, settings, limits=limits).run()
    assert trace.output() == plain


def test_chunks_begin_anew_and_windows_move():
    rows, columns = torch.tensor([3, 4, 9]), torch.arange(10)
    seen = ~Horizon(4, chunks=True).hides(rows, columns)
    assert [row.nonzero().flatten().tolist()[0] for row in seen] == [0, 4, 8]
    seen = ~Horizon(4).hides(rows, columns)
    assert [row.nonzero().flatten().tolist()[0] for row in seen] == [0, 1, 6]


def test_a_layer_that_needs_more_than_a_mask_is_named():
    with pytest.raises(ValueError, match="of the kind .*compressed"):
        horizons_of(toy.config_of("deepseek_v4"))


def test_layers_with_a_state_alone_have_no_horizon():
    assert horizons_of(toy.config_of("lfm3")) == {"full_attention": None, "sliding_attention": Horizon(8)}
