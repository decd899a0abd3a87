"""Models with recurrent layers have a state for every branch: each node gets the logits of its own path,
whatever was read together, released or dropped.
"""

from functools import cache

import pytest
import torch
import transformers

from decoders.engine import engine as engine_module
from decoders.engine.fitting_engine import engine_of
from decoders.engine.recurrent_engine import RecurrentEngine, runs_of, side_by_side
from decoders.engine.sequence_engine import SequenceEngine
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.limits import MEMORY_VARIABLE
from decoders.models.loaded_model import LoadedModel
from decoders.refusal import Refusal
from decoders.trace.events import Forward
from tests.decoders.engine.test_engine import PROMPT, assert_close, grow
from tests.decoders.models import test_families
from tests.helpers import tiny_models

KINDS = ["qwen3_next", "mamba", "falcon_h1", "lfm2"]  # delta nets, one token a time, both in a layer, conv
ORDERS = ([4], [5, 6, 7], [14, 9, 12], [10, 8, 13], [2])


@cache
def tiny(kind: str, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(test_families.FAMILIES[kind]())
    return model.eval().requires_grad_(False)


@cache
def engine(kind: str) -> RecurrentEngine:
    return engine_of(tiny(kind))


def alone(kind: str, tree: Tree, node: int) -> torch.Tensor:
    return tiny(kind)(torch.tensor([tree.text(node)]), use_cache=False).logits[0, -1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_scores_as_its_texts_do(kind):
    assert engine(kind).continues == (kind != "mamba")
    tree = grow()
    scorer = engine(kind).attach(tree)
    for nodes in ORDERS:  # ancestors come along; order is free; one lies inside the prompt
        for node, row in zip(nodes, scorer.score(nodes), strict=True):
            assert_close(row, alone(kind, tree, node))
    scorer.close()
    assert not engine(kind).cache.states  # dropped with their slots


@pytest.mark.parametrize("kind", KINDS)
def test_states_beyond_the_budget_are_dropped_and_made_again(kind, monkeypatch):
    monkeypatch.setattr(engine(kind).cache, "budget", 0)
    tree = grow()
    scorer = engine(kind).attach(tree)
    for nodes in ORDERS:
        for node, row in zip(nodes, scorer.score(nodes), strict=True):
            assert_close(row, alone(kind, tree, node))
        held = engine(kind).cache
        assert set(held.states) == {slot for stretch in held.stretches for slot in stretch.kept}
    scorer.close()


def test_a_text_is_read_once_and_a_prompt_is_shared():
    first, second = (engine("qwen3_next").attach(Tree(PROMPT)) for _ in range(2))
    tree, node = first.tree, len(PROMPT) - 1
    for token in (7, 8, 9):
        first.score([node])
        assert first.work.tokens == (len(PROMPT) if node < len(PROMPT) else 1)
        node = tree.add(node, token)
    second.score([len(PROMPT) - 1])
    assert (second.work.tokens, second.work.shared) == (0, len(PROMPT))
    left, right = (second.tree.add(len(PROMPT) - 1, token) for token in (1, 2))
    second.score([left, right])
    assert second.work.tokens == 2
    first.close(), second.close()


def test_a_forward_that_fails_leaves_no_state_behind(monkeypatch):
    tree, model = Tree(PROMPT), tiny("qwen3_next")
    scorer = engine("qwen3_next").attach(tree)
    scorer.score([4])
    node = tree.add(4, 7)
    last = model.model.layers[-1]
    monkeypatch.setattr(last, "forward", lambda *args, **options: [][0])
    with pytest.raises(IndexError):
        scorer.score([node])
    monkeypatch.undo()
    assert "forward" not in vars(model.model.layers[0].linear_attn)
    child = tree.add(node, 8)
    assert_close(scorer.score([child])[0], alone("qwen3_next", tree, child))
    scorer.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_prompt_is_read_in_pieces_if_layers_continue(kind, monkeypatch):
    monkeypatch.setitem(engine_module.PIECE, "cpu", 8)
    tree, breaks = Tree([(7 * place) % 251 for place in range(30)]), []
    scorer = engine(kind).attach(tree)
    scorer.between = lambda *read: breaks.append(read)
    assert_close(scorer.score([29])[0], alone(kind, tree, 29))
    assert len(breaks) == (3 if engine(kind).continues else 0)
    scorer.close()


def test_a_run_needs_one_state_and_levels_are_read_together():
    parents = [-1, 0, 1, 2, 2, 3, 4, 5]  # two limbs below node 2: 3, 5, 7 and 4, 6
    order = list(range(8))
    runs = runs_of(order, parents, ends={2, 7}, continues=True)
    assert sorted(runs) == [[0, 1, 2], [3, 5, 7], [4, 6]]
    assert side_by_side(runs, parents) == [[[0, 1, 2]], [[4, 6]], [[3, 5, 7]]]
    runs = runs_of(order, parents, ends={2, 7}, continues=False)  # but from the beginning of a text
    assert side_by_side(runs, parents) == [[[0, 1, 2]], [[3], [4]], [[5], [6]], [[7]]]


STRATEGIES = [
    "beam",
    "speculative",
    "eqspec",
    "prompt_lookup",
    "jacobi",
    "sample",
    "contrastive_search",
    "best_first",
]


@pytest.mark.parametrize("kind", ["qwen3_next", "mamba", "gpt_neo", "rwkv"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies_write_what_they_write_on_whole_texts(kind, strategy):
    texts = []
    for make in (engine_of, SequenceEngine):
        models = {}
        for role, seed in (("target", 0), ("draft", 1)):
            models[role] = LoadedModel(role, tiny(kind, seed), tiny_models.tokenizer())
            models[role].__dict__["engine"] = make(models[role].model)
        texts.append(Lane(strategy, PROMPT, models, seed=3, limits=Limits(14)).run().output())
    assert texts[0] and texts[0] == texts[1]


def test_hybrids_show_the_attention_of_their_layers_that_attend():
    tree = Tree(PROMPT)
    scorer = engine("qwen3_next").attach(tree)
    scorer.score([4])
    seen, path, weights = scorer.attention([4])
    assert (seen, path, weights.shape) == ([4], [0, 1, 2, 3, 4], (1, 5))
    eager = transformers.AutoModelForCausalLM.from_config(
        tiny("qwen3_next").config, attn_implementation="eager"
    ).eval()
    eager.load_state_dict(tiny("qwen3_next").state_dict())
    given = eager(torch.tensor([PROMPT]), output_attentions=True).attentions
    theirs = next(layer for layer in given if layer is not None)[0, :, -1].mean(0)
    assert_close(weights[0], theirs)
    scorer.close()


@pytest.mark.parametrize("kind", ["gpt_neo", "bloom", "rwkv"])
def test_branches_continue_from_copies_of_a_models_own_cache(kind, monkeypatch):
    for memory in ("1", "0.000000001"):  # with all copies, and with the newest two
        monkeypatch.setenv(MEMORY_VARIABLE, memory)
        tree = grow()
        scorer = engine_of(tiny(kind)).attach(tree)
        for nodes in ORDERS:
            for node, row in zip(nodes, scorer.score(nodes), strict=True):
                assert_close(row, alone(kind, tree, node))
        assert (len(scorer.states) == 2) == (memory != "1")
        last = scorer.score([14], hidden=True)[0]
        assert_close(last, alone(kind, tree, 14))
        assert scorer.hidden(14).shape == (32,)
        scorer.close()


def test_a_draft_with_a_copied_cache_reads_each_token_once():
    models = {
        role: LoadedModel(role, tiny("gpt_neo"), tiny_models.tokenizer()) for role in ("target", "draft")
    }
    trace = Lane("speculative", PROMPT, models, {"num_assistant_tokens": 3}, limits=Limits(14)).run()
    forwards = [one for step in trace.steps for one in step.of(Forward) if one.model == "draft"]
    assert max(one.tokens for one in forwards[1:]) <= 2 < len(forwards)


def test_a_copied_cache_reads_each_token_once():
    scorer = engine_of(tiny("gpt_neo")).attach(Tree(PROMPT))
    node = len(PROMPT) - 1
    for token in (7, 8, 9):
        scorer.score([node])
        assert scorer.work.tokens == (len(PROMPT) if node < len(PROMPT) else 1)
        node = scorer.tree.add(node, token)


def test_a_mistake_in_padding_needs_something_that_is_padded():
    models = {role: LoadedModel(role, tiny("mamba"), tiny_models.tokenizer()) for role in ("target", "draft")}
    with pytest.raises(Refusal, match="'target' keeps something else; choose mistake none"):
        Lane("eqspec", PROMPT, models, {"mistake": "positions by column"})
