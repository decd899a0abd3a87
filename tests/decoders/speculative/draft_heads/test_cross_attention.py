"""Drafters that read the target by cross-attention: masks and tables of the dossier, the target's law."""

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.heads import Dream, Glide, MixtureOfAttentions, Target, take_taps
from decoders.heads.cross_attention.cross_attention import CrossAttentionDrafter, keys_and_values
from decoders.heads.cross_attention.dream import row_entropies
from decoders.heads.cross_attention.glide import block_mask
from decoders.heads.cross_attention.mixture_of_attentions import memory_mask, staircase
from decoders.speculative.draft_heads.dream import finder
from decoders.speculative.draft_heads.trees import TREES
from decoders.speculative.drafters.confidence_siblings import tokens_of
from decoders.testing import distance
from decoders.trace.scores import Measure
from tests.helpers.deep_models import TEXT, deep, drafts, run, take_double
from tests.helpers.losslessness import law_of_rounds

NAMES = ("glide", "mixture_of_attentions", "dream")


def seen(mask: torch.Tensor, row: int) -> list[int]:
    return mask[row].nonzero()[:, 0].tolist()


def test_the_block_mask_of_the_dossier():
    mask = block_mask(6, size=2)
    assert [seen(mask, row) for row in range(6)] == [[0], [0, 1], [0, 1], [0, 1], [0, 1, 2, 3], [0, 1, 2, 3]]


def test_the_memories_of_the_dossier():
    """Period 8: token 12 reads m_0 to m_8, and by a staircase tokens 9 to 12; token 16 reads m_0 to m_16."""
    memories, stairs = memory_mask(20, 8), staircase(20, 8)
    assert seen(memories, 12) == list(range(9)) and seen(memories, 16) == list(range(17))
    assert seen(stairs, 12) == [9, 10, 11, 12] and seen(stairs, 16) == [16]


def test_the_table_of_siblings():
    """q = .95, .55, .25 give 2 + 6 + 8 = 16 nodes; bins are closed on the left; a sure draft has one
    sibling.
    """
    assert [tokens_of(q) for q in (0.95, 0.55, 0.25)] == [2, 6, 8]
    assert [tokens_of(q) for q in (0.3, 0.6, 0.8, 1.0, 0.0)] == [6, 4, 2, 2, 8]


def test_the_entropies_of_the_dossier():
    """The third layer's row is the most certain. Of two heads the mean of entropies counts, not that of
    rows.
    """
    rows = torch.tensor([[0.7, 0.1, 0.1, 0.1], [0.25] * 4, [0.97, 0.01, 0.01, 0.01]])[:, None, None]
    assert row_entropies(rows)[:, 0].tolist() == pytest.approx([0.940, 1.386, 0.168], abs=5e-4)
    apart = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])  # two heads, each certain of another token
    assert float(row_entropies(apart)) == pytest.approx(0.0)


@pytest.mark.parametrize("layer", range(4))
def test_keys_and_values_are_those_of_the_targets_cache(model, layer):
    taps = take_double(model.model, TEXT, (layer,))
    cache = take_taps(model.model, TEXT).past[layer]
    for ours, theirs in zip(keys_and_values(model.model, layer, taps.states[layer], 0), cache, strict=True):
        torch.testing.assert_close(ours.transpose(1, 2), theirs)


@pytest.mark.parametrize("name", NAMES)
def test_drafting_gives_what_was_measured_and_changes_nothing_remembered(model, name):
    """Rounds of drafting with wrong siblings, against `along`; what is remembered of verified tokens
    stays.
    """
    module: CrossAttentionDrafter = model.heads[name]
    taps = take_double(model.model, TEXT[:1], module.reads)
    expected, memory, read, tokens = module.along(taps, 3), module.memory(), 0, TEXT[0]
    for n in (2, 3, 5, 8):
        states = {layer: state[0, read : n + 1] for layer, state in taps.states.items()}
        said = module.begin(memory, taps.hidden[0, read : n + 1], tokens[read + 1 : n + 2], states)
        read = n + 1
        torch.testing.assert_close(said, expected[0][0, n])
        before, node = [part.clone() for part in memory.remembered], 0
        for k in (2, 3):
            said = module.expand(memory, [node, node], torch.stack([tokens[0], tokens[n + k]]))
            node = len(memory.paths) - 1
            torch.testing.assert_close(said[1], expected[k - 1][0, n])
        for old, new in zip(before, memory.remembered, strict=True):
            assert torch.equal(old, new) and new.shape[1] == n + 1


@pytest.mark.parametrize("name", NAMES)
def test_random_drafters_leave_greedys_text(model, name):
    found_trace = run(name, model)
    assert found_trace.output() == run("greedy", model).output()
    assert found_trace.badge == "lossless: equal to greedy" and model.engine.cache.used == 0


@pytest.fixture(scope="module")
def plain(three):
    """The law of drawing three tokens one by one."""
    return law_of_rounds(Exhaustive(), "sample", {"target": three}, {"temperature": 1.0}, length=3)


@pytest.mark.parametrize(
    ("name", "asked"),
    [("glide", {"cape": True}), ("glide", {"cape": False})]
    + [
        (NAMES[1 + i % 2], {"tree": tree, "nodes": 3, "depth": 2, "width": 2}) for i, tree in enumerate(TREES)
    ],
)
def test_the_law_is_the_targets(three, plain, name, asked):
    shape = {"temperature": 1.0}
    asked = {"num_assistant_tokens": 2} | asked if name == "glide" else asked
    law = law_of_rounds(Exhaustive(), name, {"target": three}, asked | shape, length=3)
    assert distance(law, plain) < 1e-9


def test_without_its_cross_attention_glide_is_a_small_language_model(model):
    """Output projection zero: what the target left makes no difference."""
    module = Glide(Target.of(model.model)).double()
    taps = take_double(model.model, TEXT, module.reads)
    other = type(taps)(taps.tokens, taps.hidden, {3: torch.randn_like(taps.states[3])}, taps.logits)
    assert not torch.allclose(module.along(taps, 2)[1], module.along(other, 2)[1])
    with torch.no_grad():
        module.cross.out.weight.zero_()
    torch.testing.assert_close(module.along(taps, 2)[1], module.along(other, 2)[1])


def test_a_fresher_cache_changes_only_what_came_later(model):
    """A draft with the target's newest keys and values differs at depths that had not seen them, and depth 1
    of the next root is the same in both.
    """
    module = model.heads["glide"]
    taps = take_double(model.model, TEXT, module.reads)
    stale, fresh = module.along(taps, 3), module.along(taps, 1)[0]
    # row n, depth 3 reads token n + 3 and the cache up to n; row n + 2, depth 1 the cache up to n + 2
    assert not torch.allclose(stale[2][:, 2:], fresh[:, 4:])
    torch.testing.assert_close(stale[0], fresh)


def test_one_layer_needs_no_attention_over_layers(model):
    """With one layer its only weight is 1, so that the memory is a projection of that layer's keys and
    values.
    """
    module = MixtureOfAttentions(Target.of(deep(layers=1).model)).double()
    memory, weights = module.layer_attention(torch.randn(2, 5, 1, 32, dtype=torch.float64))
    assert memory.shape == (2, 5, 32) and torch.equal(weights, torch.ones_like(weights))
    module = MixtureOfAttentions(Target.of(model.model)).double()
    _, weights = module.layer_attention(torch.randn(2, 5, 4, 32, dtype=torch.float64))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5, 4, dtype=torch.float64))


def test_a_closed_gate_hides_the_targets_states(model):
    """DREAM starts with its gate at 0: its guesses do not depend on what the target says; nor with it
    closed.
    """
    fresh, target = Dream(Target.of(model.model)).double(), model
    taps = take_double(model.model, TEXT, fresh.reads)
    other = type(taps)(taps.tokens, torch.randn_like(taps.hidden), taps.states, taps.logits)
    torch.testing.assert_close(fresh.along(taps, 2), fresh.along(other, 2))
    for is_open in (True, False):
        module = finder(is_open)(target)
        same = torch.allclose(module.along(taps, 2)[0], module.along(other, 2)[0])
        assert same is not is_open
    assert target.heads["dream"].is_open


def test_the_layer_that_teaches_is_the_most_certain_one(model):
    """Against attention weights of transformers' own eager forward."""
    module = Dream(Target.of(model.model)).double()
    assert module.reads == (0, 1)  # 40 % of four layers is one
    module.reads = (0, 1, 2, 3)
    taps = take_double(model.model, TEXT, module.reads)
    model.model.set_attn_implementation("eager")
    rows = model.model(TEXT, output_attentions=True).attentions
    model.model.set_attn_implementation("sdpa")
    entropies = torch.stack([row_entropies(rows[layer]) for layer in range(3)])
    assert torch.equal(module.teachers(taps), entropies.argmin(0) + 1)


def test_each_place_has_the_siblings_that_its_confidence_asks_for(model):
    found_trace = run("glide", model, {"num_assistant_tokens": 3})
    assert found_trace.costs.accepted >= 0
    for step in found_trace.steps[1:]:
        sure = [e for e in step.of(Measure) if e.name == "confidence"]
        guesses = drafts(step)
        places = [
            sum(g.parent == parent for g in guesses) for parent in dict.fromkeys(g.parent for g in guesses)
        ]
        assert places == [tokens_of(e.total) for e in sure] and len(sure) <= 3


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_finite_and_move_every_weight(model, name):
    module = type(model.heads[name])(Target.of(model.model)).double()
    for parameter in module.parameters():
        parameter.requires_grad_(True)
    if name == "dream":
        torch.nn.init.constant_(module.gate, 0.5)
    taps = take_double(model.model, TEXT, module.reads)
    module.loss(taps).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())
    assert all(p.grad.abs().sum() > 0 for n, p in module.named_parameters())
