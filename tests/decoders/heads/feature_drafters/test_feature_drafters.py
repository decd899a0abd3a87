"""EAGLE-3, Chimera, Falcon and Gumiho: drafting as it was measured along texts, and what their papers say of
their form.
"""

import pytest
import torch
from torch.nn import functional as F

from decoders.heads import Eagle, Eagle3, Entries, Falcon, Gumiho, Target, take_taps
from decoders.heads.feature_drafters.chimera import Chimera, grams, padded
from decoders.heads.feature_drafters.eagle3 import OUTSIDE, tapped
from decoders.heads.feature_drafters.falcon import relaxed, shown
from tests.decoders.heads.test_heads import some_tokens
from tests.helpers import tiny_models
from tests.helpers.random_heads import random_head

ROUNDS = ((0, 3), (3, 4), (4, 7))  # tokens that the target reads before each round; the root is the next one
WRONG = 7  # a token that the text does not go on with


@pytest.fixture(scope="module")
def small():
    """A tiny target of random weights."""
    return tiny_models.make("llama", seed=3).model


@pytest.mark.parametrize("kind", ["eagle", "eagle3", "chimera", "falcon", "gumiho"])
def test_entries_say_what_was_measured_along_the_text(small, kind):
    """Rounds of drafting, each with a wrong sibling beside the right node; what was drafted never survives a
    round, and of the known tokens, the root included, all but one have an entry.
    """
    module, tokens = random_head(kind, small), some_tokens(1)
    taps = take_taps(small, tokens, module.reads)
    expected, memory = module.along(taps, 4), module.memory()
    for first, last in ROUNDS:
        states = {layer: taps.states[layer][0, first:last] for layer in module.reads}
        said = module.begin(memory, taps.hidden[0, first:last], tokens[0, first + 1 : last + 1], states)
        assert memory.known == last and memory.past[0].shape[2] == last + (kind == "chimera")
        torch.testing.assert_close(said, expected[0][0, last - 1])
        parent = drafted = 0
        for k in range(2, 5):
            pair = torch.tensor([WRONG, tokens[0, last + k - 1]])
            said = module.expand(memory, [parent, parent], pair)
            drafted += 2
            parent = drafted
            torch.testing.assert_close(said[1], expected[k - 1][0, last - 1])


@pytest.mark.parametrize(("block", "memory"), [(1, 0), (2, 0), (2, 8), (3, 8)])
def test_falcon_says_what_was_measured_along_the_text(small, block, memory):
    """The newest block is read again when fewer tokens were committed than it has; a text that is shorter
    than a block repeats its first entry.
    """
    torch.manual_seed(1)
    module = Falcon(Target.of(small), block, memory).eval().requires_grad_(False)
    tokens = some_tokens(1)
    taps, memory = take_taps(small, tokens), module.memory()
    expected = module.along(taps, 2 * block)
    for first, last in ((0, 1), (1, 3), (3, 4), (4, 6)):
        said, node = module.begin(memory, taps.hidden[0, first:last], tokens[0, first + 1 : last + 1]), 0
        assert memory.known == last and memory.ran == last - first
        for k in range(1, min(2 * block, 11 - last) + 1):
            torch.testing.assert_close(said, expected[k - 1][0, last - 1])
            both = torch.tensor([WRONG, tokens[0, last + k]])
            said, node = module.expand(memory, [node, node], both)[1], 2 * k
            assert memory.ran == (2 if k % block == 0 else 0)  # one pass for each k depths


def test_falcon_with_blocks_of_one_and_without_memory_is_eagle(small):
    """Works when: its mask becomes causal, and it says what EAGLE says with the same weights."""
    eagle = random_head("eagle", small)
    falcon = Falcon(Target.of(small), block=1, memory=0, intermediate=eagle.target.intermediate)
    falcon.load_state_dict(
        {
            name.replace("attention.", "layer.attention.")
            .replace("norm.", "layer.norm.")
            .replace("feed.", "layer.feed."): value
            for name, value in eagle.state_dict().items()
        }
    )
    taps = take_taps(small, some_tokens(2))
    for one, two in zip(falcon.eval().along(taps, 3), eagle.along(taps, 3), strict=True):
        torch.testing.assert_close(one, two)
    assert torch.equal(relaxed(5, 1), torch.ones(5, 5).tril().bool())


def test_the_relaxed_mask_and_the_share_of_answers_shown():
    """The dossier's constants: rows {1,2},{1,2},{1..4},{1..4}; 10 places, 5 wrong, half of training: 1."""
    assert relaxed(4, 2).int().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    assert shown(5, 0.5) == 1 and shown(5, 0.0) == 2 and shown(5, 1.0) == 0


def test_glancing_shows_entries_their_own_answers(small):
    """Where a state was exchanged, it and its token are those k places on, at the beginning of a block."""
    module, tokens = random_head("falcon", small), some_tokens(2)
    taps = take_taps(small, tokens)
    seen, states = module.glanced(taps, tokens[:, 1:10], taps.hidden[:, :9])
    moved = (states != taps.hidden[:, :9]).any(-1)
    assert 0 < moved.sum() < moved.numel() / 2 and not moved[:, 1::2].any()
    for row, place in moved.nonzero().tolist():
        assert torch.equal(states[row, place], taps.hidden[row, place + 2])
        assert seen[row, place] == tokens[row, place + 3]


def test_eagle3_unrolls_as_it_drafts(small):
    """Works when: logits of step s equal real drafting along the same tokens, and query (step s, place i) has
    s + i + 1 keys: the example of place 3 at step 2 has six, at rotary places 0 to 5.
    """
    module, tokens, seen = random_head("eagle3", small), some_tokens(1), []
    taps = take_taps(small, tokens, module.reads)
    forward = module.attention.forward

    def listening(x, positions, mask, past):
        kept = past[0].shape[2] if past is not None else 0
        seen.append((positions, mask, kept))
        return forward(x, positions, mask, past)

    module.attention.forward = listening
    module.unrolled(taps, 3)
    places = [positions for positions, _, _ in seen]
    _, mask, _ = seen[2]
    columns = torch.cat([p[: len(m)] for p, m in zip(places, mask[3].split([10, 9, 8]), strict=True)])
    assert columns[mask[3]].tolist() == [0, 1, 2, 3, 4, 5]


def test_the_drafts_vocabulary_comes_back_and_forth(small):
    """The dossier's example: of eight tokens 0, 2, 5, 7 are kept, d2t (0, 1, 3, 4); the label is theirs."""
    torch.manual_seed(0)
    module = Eagle3(Target.of(small), words_kept=4)
    module.keep(torch.tensor([0, 2, 5, 7]))
    assert module.d2t.tolist() == [0, 1, 3, 4] and module.kept.tolist() == [0, 2, 5, 7]
    said = torch.randn(3, 32)
    logits = module.words(said)
    assert logits.shape[-1] == 259 and (logits[:, [1, 3, 4, 6]] == OUTSIDE).all()
    torch.testing.assert_close(logits[:, module.kept], module.head(module.last_norm(said)))
    p = torch.tensor([0.1, 0.2, 0.3, 0, 0.1, 0.2, 0.05, 0.05])
    label = p.log()[module.kept].softmax(-1)
    assert label.tolist() == pytest.approx([0.1538, 0.4615, 0.3077, 0.0769], abs=1e-3)


def test_eagle3_learns_only_where_the_best_token_is_kept(small):
    """Its loss with loops over the places; the taps are those of the paper."""
    assert tapped(12) == (2, 6, 9) and tapped(32) == (2, 16, 29)
    torch.manual_seed(2)
    module = Eagle3(Target.of(small), words_kept=100, steps=2).eval()
    taps = take_taps(small, some_tokens(2), module.reads)
    expected = 0.0
    for k, said in enumerate(module.unrolled(taps, 2), start=1):
        losses = []
        for row in range(2):
            for n in range(11 - k):
                wanted = taps.logits[row, n + k]
                if int(wanted.argmax()) in module.kept.tolist():
                    own = module.head(module.last_norm(said[row, n])).log_softmax(-1)
                    losses.append(-(wanted[module.kept].softmax(-1) * own).sum())
        expected += 0.8 ** (k - 1) * sum(losses) / len(losses)
    torch.testing.assert_close(module.loss(taps), expected)


def test_a_trigram_is_padded_by_repetition():
    """The text of a drafter begins with its first possible root, token 1."""
    assert grams(torch.tensor([[3, 4, 5, 6, 7]]))[0, 1:].tolist() == [
        [4, 4, 4],
        [4, 5, 5],
        [4, 5, 6],
        [5, 6, 7],
    ]
    assert [padded([4]), padded([4, 5]), padded([4, 5, 6])] == [[4, 4, 4], [4, 5, 5], [4, 5, 6]]


def test_chimera_without_the_targets_states_is_a_trigram_model(small):
    """Works when: with the target's keys and the other trigrams masked, g depends on three tokens only;
    without g the logits are Medusa's.
    """
    torch.manual_seed(1)
    module = Chimera(Target.of(small), depth=2).eval().requires_grad_(False)
    tokens = some_tokens(2)
    tokens[1, 4:7] = tokens[0, 4:7]
    alone = torch.eye(12, dtype=torch.bool)
    x = module.trigrams(grams(tokens))
    out, _ = module.layer(x, torch.arange(12), alone)
    torch.testing.assert_close(out[0, 6], out[1, 6])
    assert not torch.allclose(out[0, 7], out[1, 7])
    with torch.no_grad():
        for scale, inner in zip(module.scales, module.inner, strict=True):
            scale[32:] = 0
            inner.weight[:, 32:] = 0
    taps = take_taps(small, tokens)
    changed = tokens.clone()
    changed[:, 6] = WRONG  # a root: whoever reads the last state alone does not see it
    for one, two in zip(module.along(taps, 2), module.along(take_taps(small, changed), 2), strict=True):
        torch.testing.assert_close(one[:, :6], two[:, :6])
    torch.testing.assert_close(module.along(taps, 1)[0], taps.logits[:, :-2])  # as it begins: the next token


def test_gumihos_pairs_carry_their_own_first_token(small):
    """The input of a pair is the entry of its own depth-1 token beside that of its depth-2 token."""
    module, tokens = random_head("gumiho", small), some_tokens(1)
    taps, memory = take_taps(small, tokens), module.memory()
    module.begin(memory, taps.hidden[0, :4], tokens[0, 1:5])
    module.expand(memory, [0, 0], torch.tensor([11, 12]))
    read = []
    module.parallel_features = lambda pairs: read.append(pairs) or [pairs[..., :32]]
    module.expand(memory, [2, 1], torch.tensor([5, 5]))
    first, second = read[0].chunk(2, -1)
    for row, (c1, node) in enumerate(((12, 2), (11, 1))):
        torch.testing.assert_close(first[row], module.joined(torch.tensor(c1), memory.outputs[0]))
        torch.testing.assert_close(second[row], module.joined(torch.tensor(5), memory.outputs[node]))


def test_gumihos_loss_by_hand(small):
    """Serial part and parallel networks with loops over the places."""
    module, taps = random_head("gumiho", small), take_taps(small, some_tokens(1))
    serial, _ = module.layer(module.joined(taps.tokens[:, 1:], taps.hidden[:, :-1]), torch.arange(11))
    expected = 0.0
    for depth in range(1, 6):
        features, words = [], []
        for n in range(12 - depth):
            said = serial[0, n]
            if depth > 2:
                pair = module.pair(taps.tokens[0, n + 2 : n + 4], serial[0, n : n + 2])
                said = module.parallel_features(pair)[depth - 3]
            features.append(F.smooth_l1_loss(said, taps.hidden[0, n + depth]))
            words.append(-(taps.p[0, n + depth] * module.target.logits(said).log_softmax(-1)).sum())
        if depth != 2:  # that depth has no network of its own
            expected += torch.stack(features).mean() + 0.1 * torch.stack(words).mean()
    torch.testing.assert_close(module.loss(taps), expected)


def test_eagle_without_tokens_does_not_see_the_root(small):
    """Works when: with the columns of the token at zero it says the same whatever the root is."""
    module, tokens = random_head("eagle", small), some_tokens(1)
    with torch.no_grad():
        module.join.weight[:, :32] = 0
    taps = take_taps(small, tokens)
    said = [module.begin(Entries(), taps.hidden[0, :4], torch.tensor([1, 2, 3, root])) for root in (5, 6)]
    assert torch.equal(*said)
    assert isinstance(module, Eagle) and isinstance(random_head("gumiho", small), Gumiho)
