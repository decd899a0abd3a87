"""LeanK's masks, blocks and sizes; what is learned, and what the shipped mask costs."""

import json

import pytest
import torch

from decoders import memory_options as options
from decoders import registry
from decoders.engine.attention_weights import reading_with
from decoders.engine.tree import Tree
from decoders.heads import KeyMask, Target
from decoders.heads.scorers.key_mask import interface
from decoders.lane import Lane, Limits
from decoders.memory.engine import MemoryEngine
from decoders.memory.leank import LeanK, kept_channels, largest
from decoders.memory.policy import HIDDEN, Slots
from decoders.models.catalog import SHIPPED
from decoders.suitability import problem
from decoders.trace.scores import Measure, ScoreName
from explorer.training.check import TEXTS
from explorer.training.evaluation.measure_leank import divergences
from tests.helpers import tiny_models
from tests.helpers.shipped_pair import pair

OWN = {
    "memory_sink": 2,
    "memory_recent": 4,
    "memory_block": 3,
    "memory_prune": 0.5,
    "memory_align": 2,
    "memory_mask": "random",
}


@pytest.fixture(scope="module")
def shape(tiny_model):
    return MemoryEngine(tiny_model().engine, {"memory": "leank", **OWN}).shape


def slots_of(shape, count=20):
    pool = torch.randn(shape.layers, 2, shape.kv_heads, count, shape.width)
    return Slots(pool, torch.zeros(pool.shape[0], pool.shape[2], count), torch.arange(count))


def test_the_worked_rounding():
    """Threshold 0.4, counts 3 and 1, rounded to 4 and 2: two of eight channels go, not four."""
    alphas = torch.tensor([[[0.9, 0.8, 0.7, 0.1], [0.6, 0.2, 0.05, 0.0]]])
    kept = kept_channels(alphas, 0.5, 2)
    assert kept.sum(-1).tolist() == [[4, 2]] and kept[0, 1].tolist() == [True, True, False, False]
    assert int((~kept).sum()) == 2


def test_middle_keys_lose_their_channels_in_blocks_and_nothing_else_changes(shape):
    policy, slots = LeanK(shape, OWN), slots_of(shape)
    before = slots.pool.clone()
    for count, middle in ((6, 0), (8, 0), (9, 3), (11, 3), (12, 6), (20, 12)):
        policy.settle(slots, torch.arange(count))
        assert policy.states(count)[0] == ["sink"] * 2 + ["pruned_channels"] * middle + ["full"] * (
            count - 2 - middle
        )
        end = 2 + middle
        assert torch.equal(slots.pool[:, 0, :, 2:end], before[:, 0, :, 2:end] * policy.mask[:, :, None])
        assert torch.equal(slots.pool[:, 1], before[:, 1])
        assert torch.equal(slots.pool[:, 0, :, end:], before[:, 0, :, end:])
    assert torch.equal(slots.pool[:, 0, :, :2], before[:, 0, :, :2])


def test_sizes_are_those_of_the_formula(shape):
    """Per head: 2 (sink + recent) d + middle (kept + d); a head without channels drops its middle."""
    policy, slots = LeanK(shape, OWN), slots_of(shape)
    policy.mask[0, 0] = False
    policy.settle(slots, torch.arange(9))
    width, kept = shape.width, policy.mask.sum(-1).flatten().tolist()
    each = [2 * 6 * width + 3 * (n + width if n else 0) for n in kept]
    assert kept[0] == 0 and policy.kept_bytes(9) == 2 * sum(each)
    assert (slots.bias[0, 0, 2:5] < HIDDEN).all() and not slots.bias[0, 1].any()


TEXT = [30 + (5 * i) % 43 for i in range(30)]


@pytest.fixture(scope="module")
def masked():
    """A tiny model with alphas that somebody might have learned."""
    model = tiny_models.make("llama")
    mask = KeyMask(Target.of(model.model), sink=2, recent=4, align=2).requires_grad_(False)
    model.heads["leank"] = mask
    mask.alphas.copy_(torch.rand(mask.alphas.shape, generator=torch.Generator().manual_seed(0)))
    mask.choose()
    return model


def test_thinned_keys_by_hand(masked):
    """Of all states, those of a text that one softmax a row gives, its middle keys times alpha."""
    mask, read = masked.heads["leank"], {}

    def listen(layer, q, k, v, attention):
        read[layer] = q, k, v
        weights = torch.zeros(q.shape[1], q.shape[2], k.shape[2])
        for head in range(q.shape[1]):
            group = head * k.shape[1] // q.shape[1]
            for i in range(q.shape[2]):
                factors = [1.0 if j < 2 or i - j <= 4 else mask.alphas[layer, group] for j in range(i + 1)]
                keys = torch.stack([k[0, group, j] * factor for j, factor in enumerate(factors)])
                weights[head, i, : i + 1] = (keys @ q[0, head, i] * q.shape[-1] ** -0.5).softmax(-1)
        return weights[None] @ v.repeat_interleave(q.shape[1] // v.shape[1], 1)

    tokens = torch.tensor([TEXT[:12]])
    with interface(masked.model), reading_with(listen):
        expected = masked.model.base_model(input_ids=tokens).last_hidden_state
    assert len(read) == 2
    torch.testing.assert_close(mask.hidden(tokens, mask.alphas), expected, atol=1e-5, rtol=1e-5)


def test_ones_and_short_texts_are_the_plain_model(masked):
    """All-ones alphas change no state; nor does any mask where all tokens are first or newest ones."""
    mask, base = masked.heads["leank"], masked.model.base_model
    for tokens, factors in ((TEXT, torch.ones_like(mask.alphas)), (TEXT[:6], torch.zeros_like(mask.alphas))):
        rows = torch.tensor([tokens])
        plain = base(input_ids=rows).last_hidden_state
        torch.testing.assert_close(mask.hidden(rows, factors, drop=True), plain, atol=1e-5, rtol=1e-5)
        assert mask.loss(rows, 3, factors) < 1e-9
    assert mask.loss(torch.tensor([TEXT]), 3, torch.zeros_like(mask.alphas)) > 1e-4


def test_what_is_learned_is_what_decoding_reads(masked):
    """The cache of a lane, block by block of one token, gives the logits that training saw."""
    mask, start = masked.heads["leank"], 20
    for source, factors in (
        ("learned", mask.kept.float()),
        ("learned, times alpha", mask.kept * mask.alphas),
    ):
        own = {"memory_sink": 2, "memory_recent": 4, "memory_block": 1, "memory_align": 2}
        parameters = options.check_memory({"memory": "leank", "memory_mask": source, **own})
        scorer = MemoryEngine(masked.engine, parameters, (), mask).attach(Tree(TEXT[:start]))
        node, found = start - 1, []
        scorer.score([node])
        for token in TEXT[start:]:
            node = scorer.tree.add(node, token)
            found.append(scorer.score([node])[0])
            scorer.commit(node)
        past = masked.model.base_model(input_ids=torch.tensor([TEXT[:start]]), use_cache=True).past_key_values
        states = mask.hidden(torch.tensor([TEXT[start:]]), factors, past, drop=True)[0]
        torch.testing.assert_close(torch.stack(found), mask.target.logits(states), atol=1e-4, rtol=1e-4)


def test_the_second_stage_reads_kept_channels_and_moves_all(masked):
    mask = KeyMask(masked.heads["leank"].target, sink=2, recent=4, align=2)
    mask.load_state_dict(masked.heads["leank"].state_dict())
    factors = mask.straight_through()
    assert torch.allclose(factors, mask.alphas * kept_channels(mask.alphas.detach(), 0.5, 2))
    factors.sum().backward()
    assert (mask.alphas.grad == 1).all()


def test_alphas_are_for_their_model_alone(masked, tiny_model):
    """Learned is what a lane takes unless told otherwise; a model without is refused in one sentence."""
    few = {"memory": "leank", "memory_recent": 4, "memory_block": 2}
    trace = Lane("greedy", TEXT, {"target": masked}, few, limits=Limits(4)).run()
    assert (
        max(
            e.total
            for step in trace.steps
            for e in step.of(Measure)
            if e.name == ScoreName.KL_FROM_FULL_CACHE
        )
        > 1e-4
    )
    greedy = registry.get("greedy")
    sentence = problem(greedy, greedy.check({"memory": "leank"}), {"target": tiny_model()})
    assert sentence.startswith("No mask of LeanK is trained for") and "memory_mask magnitude" in sentence
    with pytest.raises(ValueError, match="No mask of LeanK is trained for"):
        Lane("greedy", TEXT, {"target": tiny_model()}, {"memory": "leank"}, limits=Limits(4)).run()


def test_the_shipped_mask_is_better_than_others_of_its_size():
    """On held-out stories and problems when it was measured; against chance also on a text, now."""
    folder = SHIPPED / "llama-tiny-leank"
    measured = json.loads((folder / "masks.json").read_text("utf-8"))
    learned = measured.pop("learned")
    for name in ("by size", "by size, as many per head", "at random, as many per head"):
        assert all(learned[text] < measured[name][text] for text in ("stories", "problems")), name
    assert all(learned[text] < measured["none kept"][text] for text in ("stories", "problems"))
    target = pair()["target"]
    mask = target.heads["leank"]
    kept = kept_channels(mask.alphas, mask.settings["prune"], mask.settings["align"])
    assert torch.equal(mask.kept, kept) and 0.4 < float(kept.float().mean()) < 0.6
    chance = largest(torch.rand(kept.shape, generator=torch.Generator().manual_seed(0)), kept.sum(-1))
    rows = torch.tensor([target.encode(" ".join(TEXTS))])
    ours, theirs = divergences(mask, rows, [kept.float(), chance.float()])
    assert ours < theirs
