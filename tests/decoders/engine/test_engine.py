"""The tree engine gives every node the logits of its own path; slots come and go, prompts are shared,
nothing is lost.
"""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoders.engine.engine import MIN_SLOTS, Engine, OutOfSlots
from decoders.engine.kv_cache import slot_bytes
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.limits import MEMORY_VARIABLE
from decoders.models.loaded_model import LoadedModel
from decoders.refusal import Refusal
from tests.helpers import tiny_models

# parents and tokens of a tree below a prompt of five: siblings, a chain, limbs of unequal depth
PROMPT = [11, 22, 33, 44, 55]
LIMBS = [(4, 7), (4, 8), (4, 9), (5, 7), (5, 1), (6, 2), (8, 3), (11, 4), (12, 5), (7, 200)]


def grow(limbs=LIMBS, prompt=PROMPT) -> Tree:
    tree = Tree(prompt)
    for parent, token in limbs:
        tree.add(parent, token)
    return tree


def alone(model: LoadedModel, tree: Tree, node: int):
    """The whole output of a forward of its own over the node's path."""
    return model.model(torch.tensor([tree.text(node)]), output_hidden_states=True, use_cache=False)


def assert_close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    assert (ours - theirs).abs().max() <= 1e-5 * (1 + theirs.abs().max())


def check(model: LoadedModel, tree: Tree, node: int, row: torch.Tensor) -> None:
    assert_close(row, alone(model, tree, node).logits[0, -1])


@pytest.mark.parametrize("kind", list(tiny_models.KINDS))
def test_tree_scores_equal_separate_forwards(kind, tiny_model):
    model = tiny_model(kind)
    tree = grow()
    scorer = Engine(model.model).attach(tree)
    for nodes in ([4], [5, 6, 7], [14, 9, 12], [10, 8, 13], [2]):  # ancestors come along; order is free
        for node, row in zip(nodes, scorer.score(nodes), strict=True):
            check(model, tree, node, row)


@pytest.mark.parametrize("layers", [["sliding_attention"] * 2, ["sliding_attention", "full_attention"]])
def test_sliding_attention_forgets_in_the_tree_what_it_forgets_in_a_text(layers, tiny_model):
    source = tiny_model("gemma3").model
    config = copy.deepcopy(source.config)
    config.sliding_window, config.layer_types = 4, layers
    model = type(source)(config).eval()
    model.load_state_dict(source.state_dict())
    tree, loaded = grow(), LoadedModel("window", model, tiny_models.tokenizer())
    scorer = Engine(model).attach(tree)
    for nodes in ([4], [5, 6], [13, 14]):
        for node, row in zip(nodes, scorer.score(nodes), strict=True):
            check(loaded, tree, node, row)
    full = alone(tiny_model("gemma3"), tree, 13).logits[0, -1]
    assert (scorer.score([13])[0] - full).abs().max() > 1e-3  # the window was not idle


limbs = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 255)), min_size=1, max_size=14)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 255), min_size=1, max_size=6), limbs, st.data())
def test_any_tree_scored_in_any_order_with_releases_between(tiny_model, prompt, limbs, data):
    model, tree = tiny_model("llama"), Tree(prompt)
    for offset, token in limbs:
        tree.add(max(len(tree.tokens) - 1 - offset, 0), token)
    engine = Engine(model.model)
    scorer = engine.attach(tree)
    for _ in range(data.draw(st.integers(1, 4))):
        nodes = data.draw(st.lists(st.integers(0, len(tree.tokens) - 1), min_size=1, max_size=6, unique=True))
        for node, row in zip(nodes, scorer.score(nodes, hidden=data.draw(st.booleans())), strict=True):
            check(model, tree, node, row)
        dead = data.draw(st.sampled_from(nodes))  # a node and all below it
        below = [n for n in range(tree.trunk, len(tree.tokens)) if dead in tree.path(n)]
        scorer.release(below)
        assert engine.cache.used == scorer.used == len(prompt) + len(scorer.slots)
        assert not set(below) & set(scorer.slots)
    scorer.close()
    assert engine.cache.used == 0


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
def test_hidden_states_are_those_of_the_last_layer(kind, tiny_model):
    model, tree = tiny_model(kind), grow()
    scorer = Engine(model.model).attach(tree)
    scorer.score([0, 3, 8, 14], hidden=True)
    for node in (0, 3, 8, 14):
        assert_close(scorer.hidden(node), alone(model, tree, node).hidden_states[-1][0, -1])


def test_what_was_scored_is_never_scored_again(tiny_model):
    tree = grow()
    scorer = Engine(tiny_model().model).attach(tree)
    scorer.score([4])
    assert scorer.work.tokens == 5
    first = scorer.score([8, 7])
    assert scorer.work.tokens == 3  # 5, 7 and 8
    again = scorer.score([7, 8])
    assert scorer.work.tokens == 0
    assert torch.equal(again, first.flip(0))
    scorer.forget([8])
    assert_close(scorer.score([8]), again[1:])
    assert (scorer.work.tokens, scorer.used) == (1, 8)  # its token ran once more on its own slot


def test_released_slots_are_used_again_and_the_numbers_stay(tiny_model):
    model, tree = tiny_model(), grow()
    engine = Engine(model.model)
    scorer = engine.attach(tree)
    scorer.score([5, 6, 7])
    freed = scorer.slots[6]
    scorer.release([6])
    assert engine.cache.used == 7
    row = scorer.score([8])[0]
    assert scorer.slots[8] == freed
    check(model, tree, 8, row)
    check(model, tree, 14, scorer.score([14])[0])
    check(model, tree, 10, scorer.score([10])[0])  # its dead parent comes back when it is asked for


def test_lanes_share_the_prompts_slots_and_its_work(tiny_model):
    model = tiny_model()
    engine = Engine(model.model)
    first, second = engine.attach(grow()), engine.attach(grow([(4, 70)]))
    row = first.score([4])
    assert (first.work.tokens, first.work.shared) == (5, 0)
    assert torch.equal(second.score([4]), row)
    assert (second.work.tokens, second.work.shared) == (0, 5)
    assert engine.cache.used == 5
    first.score([8])
    check(model, second.tree, 5, second.score([5])[0])
    assert (second.work.tokens, second.work.shared) == (1, 0)
    first.close()
    check(model, second.tree, 5, second.score([5])[0])
    assert engine.cache.used == 6
    second.close()
    second.close()
    assert engine.cache.used == 0
    assert not engine.trunks


def test_a_second_lane_says_what_was_shared_and_decodes_the_same(tiny_model):
    model = tiny_model()
    lanes = [Lane("greedy", PROMPT, {"target": model}, limits=Limits(max_new_tokens=8)) for _ in range(2)]
    for _ in range(8):
        for lane in lanes:
            lane.advance()
    one, two = (lane.trace for lane in lanes)
    assert one.output() == two.output() == tiny_models.generate(model, PROMPT, max_new_tokens=8)
    assert (one.costs.shared_tokens, two.costs.shared_tokens) == (0, 5)
    assert one.costs.target_tokens == two.costs.target_tokens  # as if each were alone
    for lane in lanes:
        lane.close()


def test_the_pool_grows_and_keeps_what_it_held(tiny_model):
    model, tree = tiny_model("gpt2"), Tree(PROMPT)
    scorer = Engine(model.model).attach(tree)
    early = tree.add(4, 3)
    scorer.score([early])
    size = scorer.cache.storage[0].shape[2]
    many = [tree.add(4, i % 256) for i in range(size + 10)]
    rows = scorer.score(many)
    assert scorer.cache.storage[0].shape[2] >= size + 16
    for i in (0, 100, len(many) - 1):
        check(model, tree, many[i], rows[i])
    late = tree.add(early, 9)
    check(model, tree, late, scorer.score([late])[0])


def test_out_of_slots_is_one_sentence_and_loses_nothing(tiny_model):
    model, tree = tiny_model(), grow()
    engine = Engine(model.model, limit=8)
    scorer = engine.attach(tree)
    before = scorer.score([5])
    with pytest.raises(OutOfSlots, match="No space is left for 6 more tokens: all 8 KV slots"):
        scorer.score([14, 8, 9, 12])
    assert engine.cache.used == 6
    assert torch.equal(scorer.score([5]), before)
    check(model, tree, 8, scorer.score([8])[0])
    with pytest.raises(OutOfSlots):
        engine.attach(Tree([1, 2]))
    assert engine.cache.used == 7


@pytest.mark.parametrize("strategy", ["greedy", "beam"])
def test_a_lane_without_space_ends_with_the_sentence_and_keeps_its_trace(strategy, tiny_model):
    source = tiny_model("gpt2")
    model = LoadedModel("small", source.model, source.tokenizer)
    model.engine = Engine(source.model, limit=9)
    lane = Lane(strategy, PROMPT, {"target": model}, limits=Limits(max_new_tokens=40))
    lane.run()
    assert lane.trace.ended.startswith("No space is left")
    whole = Lane(strategy, PROMPT, {"target": source}, limits=Limits(max_new_tokens=40)).run()
    assert len(lane.trace.steps) > 1
    assert whole.output()[: len(lane.trace.output())] == lane.trace.output()
    assert model.engine.cache.used == 0
    with pytest.raises(ValueError, match="No space is left for 10 more tokens"):
        Lane(strategy, [1] * 10, {"target": model})
    assert model.engine.cache.used == 0


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2", "gpt_neox", "opt", "phi3"])
def test_attention_equals_eager_attention(kind, tiny_model):
    model, tree = tiny_model(kind), grow()
    scorer = Engine(model.model).attach(tree)
    scorer.score([4])
    scorer.score([8, 9, 14])
    eager = copy.deepcopy(model.model)
    eager.set_attn_implementation("eager")
    for chain in ([4], [14], [4, 8]):  # alone, and several on one path
        seen, path, weights = scorer.attention(chain)
        assert (seen, path) == (chain, tree.path(chain[-1]))
        for node, row in zip(chain, weights, strict=True):
            layers = eager(torch.tensor([tree.text(node)]), output_attentions=True).attentions
            want = torch.stack(layers)[:, 0, :, -1].mean((0, 1))
            assert (row[: len(want)] - want).abs().max() < 1e-5
            assert row.sum() == pytest.approx(1.0, abs=1e-5) and not row[len(want) :].any()
    scorer.forget([8])
    assert scorer.attention([8]) is None
    assert scorer.attention([4, 8])[0] == [4]  # what was dropped is left out


def test_rows_of_settled_text_are_forgotten(tiny_model):
    """Else a long text would keep the logits of all its positions in memory."""
    model = tiny_model("gpt2")
    for strategy in ("greedy", "beam", "contrastive_search"):
        lane = Lane(strategy, PROMPT, {"target": model}, limits=Limits(max_new_tokens=60))
        while lane.trace.ended is None and len(lane.trace.steps) < 40:
            lane.advance()
        open_limbs = 8 * (40 - lane.written) if strategy == "beam" else 0
        assert len(lane.scorers["target"].kept) <= 3 + open_limbs
        lane.close()


LONG = [(7 * place) % 251 for place in range(30)]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
def test_a_long_prompt_is_read_in_pieces(kind, tiny_model, monkeypatch):
    model, tree, breaks = tiny_model(kind), Tree(LONG), []
    scorers = [Engine(model.model).attach(Tree(LONG)), Engine(model.model).attach(tree)]
    scorers[1].piece, scorers[1].between = 8, lambda *read: breaks.append(read)
    asked = [29, 5, 20]  # in other pieces than the last, too
    whole, pieces = (scorer.score(asked, hidden=True) for scorer in scorers)
    assert breaks == [(8, 30), (16, 30), (24, 30)] and scorers[1].work.tokens == 30
    assert_close(pieces, whole)
    assert_close(scorers[1].hidden_rows(asked), scorers[0].hidden_rows(asked))
    for node in asked:
        assert_close(scorers[1].attention([node])[2], scorers[0].attention([node])[2])
    if (streams := scorers[0].prompt_streams()) is not None:
        assert_close(scorers[1].prompt_streams(), streams)
    assert_close(scorers[1].score([tree.add(29, 7)])[0], alone(model, tree, 30).logits[0, -1])


def test_a_prompt_that_is_stopped_between_pieces_is_read_anew(tiny_model):
    model, tree = tiny_model("llama"), Tree(LONG)
    engine = Engine(model.model)
    scorer, other = engine.attach(tree), engine.attach(Tree(LONG))
    scorer.piece = 8

    def stop(*read: int) -> None:
        raise InterruptedError

    scorer.between = stop
    with pytest.raises(InterruptedError):
        scorer.score([29])
    scorer.close()
    assert not other.trunk.under_way
    check(model, tree, 29, other.score([29])[0])
    assert other.work.tokens == 30
    other.close()
    assert engine.cache.used == 0


def test_the_pool_follows_the_memory_or_the_option(tiny_model, monkeypatch):
    model = tiny_model("llama").model
    slot = slot_bytes(model.config, 4)
    monkeypatch.setattr("decoders.engine.kv_cache.free_bytes", lambda device: 4000 * slot)
    assert Engine(model).limit == 1000
    monkeypatch.setattr("decoders.engine.kv_cache.free_bytes", lambda device: 0)
    assert Engine(model).limit == MIN_SLOTS
    monkeypatch.setenv(MEMORY_VARIABLE, str(3000 * slot / 1e9))
    assert Engine(model).limit == 3000
    monkeypatch.setenv(MEMORY_VARIABLE, "much")
    with pytest.raises(Refusal, match="EXPLORER_KV_GB must be a number of gigabytes, such as 8, not 'much'"):
        Engine(model)
