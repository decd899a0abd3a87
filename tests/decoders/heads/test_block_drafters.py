"""DFlash and P-EAGLE: what a guess sees, drafting as along a known text, and their losses by hand."""

import math

import pytest
import torch
from torch.nn import functional as F

from decoders.heads import DFlash, PEagle, Target, take_taps
from decoders.heads.path_independent.dflash import EVERY, GAMMA, spread
from tests.decoders.heads.test_heads import some_tokens
from tests.helpers import tiny_models
from tests.helpers.random_heads import random_head

ROUNDS = ((0, 3), (3, 4), (4, 7))  # tokens that the target reads before each round; the root is the next one


@pytest.fixture(scope="module")
def small():
    """A tiny target of random weights."""
    return tiny_models.make("llama", seed=3).model


def begun(module, memory, taps, first: int, last: int) -> torch.Tensor:
    """The guesses after the states first to last - 1."""
    states = {layer: taps.states[layer][0, first:last] for layer in module.reads}
    return module.begin(memory, taps.hidden[0, first:last], taps.tokens[0, first + 1 : last + 1], states)


@pytest.mark.parametrize("kind", ["dflash", "peagle"])
def test_a_lane_says_what_was_measured_along_the_text(small, kind):
    """Round after round; nothing of a block or a mask stays behind."""
    module, tokens = random_head(kind, small), some_tokens(1)
    taps, memory = take_taps(small, tokens, module.reads), module.memory()
    expected = module.along(taps, 4)
    for first, last in ROUNDS:
        said = begun(module, memory, taps, first, last)
        assert memory.known == last and len(said) == module.depth
        for k in range(1, 5):
            torch.testing.assert_close(said[k - 1], expected[k - 1][0, last - 1])


def test_the_layers_that_dflash_reads_are_the_authors_choice():
    """Of 34 layers their code takes the outputs of 1, 16 and 31: one more has run."""
    assert spread(12) == (2, 6, 10) and spread(34) == (2, 17, 32)
    assert all(0 < layer < 2 for layer in spread(2))


def test_masks_of_a_block_see_each_other_both_ways(small):
    """A shorter block changes even its first guess; the state of a token is a key at that token's place."""
    module = random_head("dflash", small)
    taps = take_taps(small, some_tokens(1), module.reads)
    whole = begun(module, module.memory(), taps, 0, 5)
    module.block = 4
    assert not torch.allclose(begun(module, module.memory(), taps, 0, 5)[0], whole[0], atol=1e-3)


def test_a_block_keeps_nothing_but_the_states_keys_and_values(small):
    module = random_head("dflash", small)
    taps, memory = take_taps(small, some_tokens(1), module.reads), module.memory()
    begun(module, memory, taps, 0, 5)
    assert [keys.shape[2] for keys, _ in memory.held] == [5, 5]
    k, _ = module.held(module.features(taps.hidden, taps.states)[:, :5], torch.arange(5))[1]
    torch.testing.assert_close(memory.held[1][0], k)


def test_a_mask_of_peagle_sees_those_before_it_alone(small):
    """Fewer masks leave the guesses of the others as they are."""
    module = random_head("peagle", small)
    taps = take_taps(small, some_tokens(1), module.reads)
    whole = begun(module, module.memory(), taps, 0, 5)
    module.depth = 3
    torch.testing.assert_close(begun(module, module.memory(), taps, 0, 5), whole[:3])


def test_peagle_of_one_layer_and_depth_is_eagle3(small):
    """Its first guess has seen no mask."""
    torch.manual_seed(1)
    module = PEagle(Target.of(small), layers=1, intermediate=128).eval()
    eagle3 = random_head("eagle3", small)
    module.load_state_dict(eagle3.state_dict(), strict=False)
    taps = take_taps(small, some_tokens(2), module.reads)
    torch.testing.assert_close(module.along(taps, 1)[0], eagle3.along(taps, 1)[0])


def test_dflashs_loss_by_hand(small):
    """With loops over the places where blocks begin."""
    torch.manual_seed(2)
    module = DFlash(Target.of(small), block=4, layers=1).eval()
    taps = take_taps(small, some_tokens(2, length=24), module.reads)
    said, expected = module.along(taps, 3), 0.0
    for k in range(1, 4):
        losses = [
            -(taps.logits[row, n + k].softmax(-1) * said[k - 1][row, n].log_softmax(-1)).sum()
            for row in range(2)
            for n in range(0, 24 - 1 - 3, EVERY)
        ]
        expected += math.exp(-(k - 1) / GAMMA) * sum(losses) / len(losses)
    torch.testing.assert_close(module.loss(taps), expected)


def test_peagles_loss_by_hand(small):
    """All entries count alike, under the target's distribution over the kept tokens."""
    torch.manual_seed(2)
    module = PEagle(Target.of(small), words_kept=100, depth=3).eval()
    taps = take_taps(small, some_tokens(2), module.reads)
    said, losses = module.along(taps, 3), []
    for k in range(1, 4):
        for row in range(2):
            for n in range(12 - 1 - 3):
                p = taps.logits[row, n + k][module.kept].softmax(-1)
                own = said[k - 1][row, n][module.kept].log_softmax(-1)
                losses.append(-(p * own).sum())
    torch.testing.assert_close(module.loss(taps), sum(losses) / len(losses))


def test_rollouts_of_peagle_are_dropped_from_depth_to_depth(small, monkeypatch):
    """In training a quarter of the places, then 0.7 of them, 0.49 ...; who is dropped never comes back."""
    module = random_head("peagle", small).train()
    taps, asked = take_taps(small, some_tokens(2, length=200), module.reads), []
    rollouts = module.rollouts
    monkeypatch.setattr(module, "rollouts", lambda taps, rows: asked.append(rows) or rollouts(taps, rows))
    assert module.loss(taps).isfinite()
    everywhere, *later = asked[0]
    most = (200 - 1 - module.depth) // 4
    assert everywhere.tolist() == list(range(199))
    assert [len(rows) for rows in later] == [int(most * max(0.7**k, 0.2)) for k in range(1, 6)]
    for one, two in zip(later, later[1:], strict=False):
        assert set(two.tolist()) <= set(one.tolist())


@pytest.mark.parametrize("kind", ["dflash", "peagle"])
def test_a_block_drafter_learns_a_language_of_pairs(kind, small):
    """Every letter is written twice: where the root opens a pair, the guess after it can be right always."""
    torch.manual_seed(0)
    make = {
        "dflash": lambda t: DFlash(t, block=3, layers=1),
        "peagle": lambda t: PEagle(t, depth=2, layers=1),
    }
    module = make[kind](Target.of(small))
    learn = torch.optim.AdamW(module.parameters(), lr=1e-2)
    draw = torch.Generator().manual_seed(0)

    def texts(count: int):
        tokens = torch.randint(10, 14, (count, 8), generator=draw).repeat_interleave(2, 1)
        taps = take_taps(small, tokens, module.reads)
        after = F.one_hot(tokens.roll(-1, 1), len(small.lm_head.weight)).float() * 30
        return tokens, type(taps)(tokens, taps.hidden, taps.states, after)

    for _ in range(150):
        module.loss(texts(8)[1]).backward()
        learn.step()
        learn.zero_grad()
    tokens, taps = texts(32)
    with torch.no_grad():
        guess = module.eval().along(taps, 1)[0].argmax(-1)[:, 1::2]
    assert (guess == tokens[:, 3::2]).float().mean() > 0.8  # by chance 0.25
