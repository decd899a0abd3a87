"""Hydra, the MLP speculator, ReDrafter, Clover, Clover-2, Amphista and blockwise heads: drafting as it was
measured along texts, and what their papers say of their form.
"""

import math

import pytest
import torch
from torch.nn import functional as F

from decoders.heads import (
    Amphista,
    Blockwise,
    Clover,
    Clover2,
    Hydra,
    Medusa,
    MlpSpeculator,
    ReDrafter,
    Taps,
    Target,
    take_taps,
)
from decoders.heads.recurrent.mlp_speculator import state_weight, token_weight
from tests.decoders.heads.test_heads import CopyPairs, pairs, some_tokens
from tests.helpers import tiny_models
from tests.helpers.random_heads import DRAFTERS, random_head

RECURRENT = ["hydra", "hydra_plus", "mlp_speculator", "redrafter", "clover", "clover2"]
ROUNDS = ((0, 3), (3, 4), (4, 7))  # tokens that the target reads before each round; the root is the next one
WRONG = 7  # a token that the text does not go on with


@pytest.fixture(scope="module")
def small():
    """A tiny target of random weights."""
    return tiny_models.make("llama", seed=3).model


def begun(module, memory, taps, first: int, last: int):
    """The logits of a round in which the target has newly read tokens first to last - 1."""
    states = {layer: taps.states[layer][0, first:last] for layer in module.reads}
    return module.begin(memory, taps.hidden[0, first:last], taps.tokens[0, first + 1 : last + 1], states)


@pytest.mark.parametrize("kind", RECURRENT)
def test_states_say_what_was_measured_along_the_text(small, kind):
    """Rounds of drafting, each with a wrong sibling beside the right node."""
    module = random_head(kind, small)
    taps = take_taps(small, some_tokens(1), module.reads)
    depth = min(4, module.depth or 4)
    expected, memory = module.along(taps, depth), module.memory()
    for first, last in ROUNDS:
        torch.testing.assert_close(begun(module, memory, taps, first, last), expected[0][0, last - 1])
        parent = drafted = 0
        for k in range(2, depth + 1):
            pair = torch.tensor([WRONG, taps.tokens[0, last + k - 1]])
            said = module.expand(memory, [parent, parent], pair)
            assert not torch.allclose(said[0], said[1])
            drafted += 2
            parent = drafted
            torch.testing.assert_close(said[1], expected[k - 1][0, last - 1])


@pytest.mark.parametrize("kind", ["amphista", "blockwise"])
def test_heads_of_all_depths_say_what_was_measured_along_the_text(small, kind):
    module = random_head(kind, small)
    taps = take_taps(small, some_tokens(1))
    expected, memory = module.along(taps, 4), module.memory()
    for first, last in ROUNDS:
        said = begun(module, memory, taps, first, last)
        for k in range(1, 5):
            torch.testing.assert_close(said[k - 1], expected[k - 1][0, last - 1])


@pytest.mark.parametrize("kind", ["hydra", "hydra_plus", "clover", "amphista", "redrafter", "blockwise"])
def test_before_training_they_say_the_next_token_once_more(small, kind):
    """Layers, blocks and cells begin by changing nothing."""
    torch.manual_seed(1)
    module = DRAFTERS[kind](Target.of(small)).eval()
    taps = take_taps(small, some_tokens(2))
    for k, guess in enumerate(module.along(taps, 3), start=1):
        torch.testing.assert_close(guess, taps.logits[:, : 11 - k])


def unrolled_loss(module, taps, steps: int, at_depth) -> torch.Tensor:
    """The mean over places of the sum over depths of what `at_depth(state, row, place, k)` says."""
    summaries, total = module.summaries(taps), 0.0
    count = taps.tokens.shape[1] - 1 - steps
    for row in range(len(taps.tokens)):
        for n in range(count):
            state = module.start(summaries[row, n])
            for k in range(1, steps + 1):
                state = module.after(state, taps.tokens[row, n + k], k)
                total = total + at_depth(state, row, n, k)
    return total / (count * len(taps.tokens))


@pytest.mark.parametrize(
    ("kind", "decay", "steps"), [("hydra", 0.8, 4), ("redrafter", 1.0, 5), ("clover", 1.0, 3)]
)
def test_losses_by_hand(small, kind, decay, steps):
    """Cross-entropy under the target's own distributions, with loops over the places."""
    module = random_head(kind, small)
    taps = take_taps(small, some_tokens(2))

    def cross(state, row, n, k):
        return -(decay ** (k - 1)) * (taps.p[row, n + k] * module.words(state, k).log_softmax(-1)).sum()

    torch.testing.assert_close(module.loss(taps), unrolled_loss(module, taps, steps, cross))


def test_clover2s_loss_by_hand(small):
    """0.7^i times (10 smooth L1 to the state + cross-entropy) at five depths."""
    module = random_head("clover2", small)
    taps = take_taps(small, some_tokens(2), module.reads)

    def both(state, row, n, k):
        apart = F.smooth_l1_loss(module.output_state(state, k), taps.hidden[row, n + k])
        cross = -(taps.p[row, n + k] * module.words(state, k).log_softmax(-1)).sum()
        return 0.7 ** (k - 1) * (10 * apart + cross)

    torch.testing.assert_close(module.loss(taps), unrolled_loss(module, taps, 5, both))


def test_hydras_heads_read_one_token_more_each(small):
    """Widths 2d, 3d, 4d, 5d; without the columns of the embeddings they are path-independent, as Medusa's."""
    module, tokens = random_head("hydra", small), some_tokens(1)
    d = module.target.width
    assert [block.narrow.in_features for block in module.first] == [2 * d, 3 * d, 4 * d, 5 * d]
    with torch.no_grad():
        for block in module.first:
            block.narrow.weight[:, d:] = 0
    taps, memory = take_taps(small, tokens), module.memory()
    begun(module, memory, taps, 0, 4)
    said = module.expand(memory, [0, 0], torch.tensor([5, 6]))
    assert torch.equal(said[0], said[1])
    changed = Taps((tokens + 1) % 250, taps.hidden, {}, taps.logits)  # other tokens after the same states
    for one, two in zip(module.along(taps, 4), module.along(changed, 4), strict=True):
        torch.testing.assert_close(one, two)


def test_hydra_plus_reads_all_states_through_one_layer(small):
    """Prefix attention: an older state matters; it has four blocks per head."""
    module = random_head("hydra_plus", small)
    taps = take_taps(small, some_tokens(1))
    assert [1 + len(blocks) for blocks in module.blocks] == [4] * 4
    hidden = taps.hidden.clone()
    hidden[0, 0] += 1.0
    changed = Taps(taps.tokens, hidden, {}, taps.logits)
    assert not torch.allclose(module.along(taps, 1)[0][0, 5], module.along(changed, 1)[0][0, 5])
    plain = random_head("hydra", small)
    torch.testing.assert_close(plain.along(taps, 1)[0][0, 5], plain.along(changed, 1)[0][0, 5])


def test_the_speculators_constants():
    """n = 3: sw .8909; with w = 128 ew 3.634, ratio 4.079; with w = 4096 ew 20.55; n = 4: sw .9170."""
    assert state_weight(3) == pytest.approx(0.8909, abs=1e-4)
    assert state_weight(4) == pytest.approx(0.9170, abs=1e-4)
    assert token_weight(3, 128) == pytest.approx(3.634, abs=1e-3)
    assert token_weight(3, 128) / state_weight(3) == pytest.approx(4.079, abs=1e-3)
    assert token_weight(3, 4096) == pytest.approx(20.55, abs=1e-2)


@pytest.mark.parametrize("own_tables", [True, False])
def test_the_speculators_parts_are_weighed_in_the_beginning(own_tables):
    """With d = w and the scaled input, the mean squares of state and token stand as sw^2 : 1 - sw^2."""
    torch.manual_seed(0)
    width, words = 256, 500
    target = Target(
        torch.randn(words, width), torch.randn(words, width), torch.ones(width), 1e-6, 2, 4, 64, 10000.0
    )
    ratios = []
    for _ in range(20):
        module = MlpSpeculator(target, depth=3, own_tables=own_tables)
        start = module.start(torch.randn(64, width))
        assert start.square().mean() == pytest.approx(0.5, abs=1e-3)
        state = module.proj[0](start)
        token = module.scale * module.token(torch.randint(words, (64,)), 1)
        ratios.append(float(state.square().mean() / token.square().mean()))
    sw = state_weight(3)
    assert sum(ratios) / len(ratios) == pytest.approx(sw**2 / (1 - sw**2), rel=0.05)


def test_a_speculator_of_one_stage_is_the_same_tied_or_not(small):
    torch.manual_seed(0)
    tied = MlpSpeculator(Target.of(small), depth=1, own_tables=True).eval()
    free = MlpSpeculator(Target.of(small), depth=1, own_tables=True, tied=False).eval()
    free.load_state_dict(tied.state_dict())
    taps = take_taps(small, some_tokens(1))
    assert torch.equal(tied.along(taps, 3)[0], free.along(taps, 3)[0])
    deep = MlpSpeculator(Target.of(small), depth=4, own_tables=True)
    assert [len(part) for part in (deep.proj, deep.emb, deep.ln, deep.head)] == [2, 1, 1, 1]
    free = MlpSpeculator(Target.of(small), depth=4, own_tables=True, tied=False)
    assert [len(part) for part in (free.proj, free.emb, free.ln, free.head)] == [4, 4, 4, 4]


def test_the_recurrence_of_redrafter(small):
    """s_1 = SiLU(W E(root) + b), s_2 = SiLU(W E(c_1) + b + U s_1), the head beside the newest state."""
    module = random_head("redrafter", small)
    taps, memory = take_taps(small, some_tokens(1)), module.memory()
    begun(module, memory, taps, 0, 4)
    module.expand(memory, [0], torch.tensor([9]))

    def row(token):
        e = module.target.embed[token]
        return e / (e.square().mean() + module.target.eps).sqrt()

    one = F.silu(module.read(row(taps.tokens[0, 4])))
    two = F.silu(module.read(row(9)) + module.recur(one))
    torch.testing.assert_close(memory.states[1], torch.cat([taps.hidden[0, 3], two]))


def test_clover_without_values_does_not_see_the_path(small):
    """W_V = 0: all branches and roots have the same guesses."""
    module, tokens = random_head("clover", small), some_tokens(1)
    torch.nn.init.zeros_(module.cell.v.weight)
    taps, memory = take_taps(small, tokens), module.memory()
    begun(module, memory, taps, 0, 4)
    said = module.expand(memory, [0, 0], torch.tensor([5, 6]))
    assert torch.equal(said[0], said[1])
    other = Taps((tokens + 1) % 250, taps.hidden, {}, taps.logits)
    for one, two in zip(module.along(taps, 3), module.along(other, 3), strict=True):
        torch.testing.assert_close(one, two)


def test_clovers_cell_weighs_each_heads_value_by_a_cosine(small):
    module = random_head("clover", small)
    cell, torch_random = module.cell, torch.Generator().manual_seed(0)
    state, token = torch.randn(2, 32, generator=torch_random)
    q, k, v = cell.q(cell.norm(state)), cell.k(token), cell.v(token)
    for head in range(4):
        part = slice(8 * head, 8 * head + 8)
        cosine = (q[part] @ k[part]) / (q[part].norm() * k[part].norm())
        torch.testing.assert_close(cell(state, token)[part], cosine * v[part])
        torch.testing.assert_close(cell.gates(state, token)[head], cosine)


def test_clover2_reads_the_states_before_the_last_norm(small):
    """Its features are what the target's last norm turns into its states; and depth 1 does not see what was
    drafted.
    """
    module = random_head("clover2", small)
    taps = take_taps(small, some_tokens(1), module.reads)
    stream = taps.states[module.target.layers]
    again = F.rms_norm(stream, (32,), module.target.last_norm, module.target.eps)
    torch.testing.assert_close(again, taps.hidden)
    memory = module.memory()
    first = begun(module, memory, taps, 0, 4)
    module.expand(memory, [0, 0], torch.tensor([5, 6]))
    torch.testing.assert_close(module.words(memory.states[0], 1), first)
    module.unit.fill_(2.0)
    torch.testing.assert_close(module.features(taps.hidden, taps.states), stream / 2)


def test_amphista_without_its_layers_is_medusa(small):
    """Works when: with stages and encoder bypassed, and no vectors of places, it says what Medusa says."""
    torch.manual_seed(1)
    medusa = random_head("medusa", small)
    module = Amphista(Target.of(small), depth=4, rank=0).eval()
    for k, block in enumerate(module.blocks):
        block.linear.load_state_dict(medusa.blocks[k].state_dict())
    for change in medusa.widen:
        torch.nn.init.zeros_(change)
    taps = take_taps(small, some_tokens(2))
    for one, two in zip(module.along(taps, 4), medusa.along(taps, 4), strict=True):
        torch.testing.assert_close(one, two)
    assert isinstance(medusa, Medusa)


def test_amphistas_heads_see_each_other_in_both_directions(small):
    """Masked, they see earlier ones alone; without vectors of places their order means nothing to the
    encoder; a single head works.
    """
    among = random_head("amphista", small).among
    x = torch.randn(4, 32, generator=torch.Generator().manual_seed(0))
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(among(x)[order], among(x[order]))
    changed = x.clone()
    changed[3] += 1.0
    assert not torch.allclose(among(x)[0], among(changed)[0])
    among.causal = True
    torch.testing.assert_close(among(x)[:3], among(changed)[:3])
    assert among.weights(x).triu(1).abs().max() == 0
    single = Amphista(Target.of(small), depth=1).eval()
    assert single.along(take_taps(small, some_tokens(1)), 3)[0].shape == (1, 10, 259)


def test_blockwise_learns_one_head_of_each_batch(small):
    """In training the loss is that of one head, drawn by the batch; otherwise the mean over all."""
    module = random_head("blockwise", small)
    taps = take_taps(small, some_tokens(2))
    states = module.states(taps.hidden)
    each = [
        -(taps.p[:, k:] * module.target.logits(states[:, :-k, k - 1]).log_softmax(-1)).sum(-1).mean()
        for k in range(1, 5)
    ]
    torch.testing.assert_close(module.loss(taps), sum(each) / 4)
    drawn = set()
    for seed in range(12):
        rows = torch.randint(0, 250, (2, 12), generator=torch.Generator().manual_seed(seed))
        here, value = take_taps(small, rows), module.train().loss(take_taps(small, rows))
        states = module.states(here.hidden)
        losses = [
            -(here.p[:, k:] * module.target.logits(states[:, :-k, k - 1]).log_softmax(-1)).sum(-1).mean()
            for k in range(1, 5)
        ]
        drawn |= {k for k, loss in enumerate(losses) if math.isclose(loss, value, rel_tol=1e-5)}
    assert drawn == {0, 1, 2, 3}


class Streams(CopyPairs):
    """The copy-pair language with the states before the norm, three times as large."""

    def taps(self, tokens: torch.Tensor) -> Taps:
        taps = super().taps(tokens)
        return Taps(taps.tokens, taps.hidden, {self.target.layers: 3 * taps.hidden}, taps.logits)


def learned(module, language, random, steps: int = 60):
    """The module, trained on the copy-pair language."""
    learn = torch.optim.AdamW(module.parameters(), lr=1e-2)
    for _ in range(steps):
        module.train().loss(language.taps(pairs(8, 16, random))).backward()
        learn.step()
        learn.zero_grad()
    return module.eval()


def copied(module, language, random) -> float:
    """How often the copy of the root is guessed at depth 1 after a pair."""
    tokens = pairs(400, 16, random)
    guess = module.along(language.taps(tokens), 1)[0][:, 1::2]
    return (guess.argmax(-1) == tokens[:, 3::2]).float().mean().item()


@pytest.mark.parametrize("kind", [*RECURRENT, "amphista"])
def test_who_sees_the_root_knows_its_copy(kind):
    """The copy-pair language: 1.0."""
    language, random = Streams(), torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    module = learned(DRAFTERS[kind](language.target), language, random)
    assert copied(module, language, random) == 1.0


def test_who_does_not_see_the_root_guesses_the_likelier_letter():
    language, random = Streams(), torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    module = learned(Blockwise(language.target), language, random)
    assert copied(module, language, random) == pytest.approx(0.6, abs=0.03)


def test_clover2_knows_the_root_without_its_second_cell_and_learns_without_the_distance():
    language, random = Streams(), torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    module = Clover2(language.target, state_weight=0.0)
    torch.nn.init.zeros_(module.cell_b.v.weight)
    module.cell_b.requires_grad_(False)
    assert copied(learned(module, language, random), language, random) == 1.0


def test_the_depths_that_end():
    """Hydra, Clover, Amphista and blockwise have as many heads as depths; ReDrafter and Clover-2 one for
    all.
    """
    target = CopyPairs().target
    ends = {kind: DRAFTERS[kind](target).depth for kind in (*RECURRENT, "amphista", "blockwise")}
    assert ends.pop("redrafter") is None and ends.pop("clover2") is None
    assert ends.pop("clover") == 3 and set(ends.values()) == {4}
    assert (Hydra, Clover, ReDrafter) == tuple(DRAFTERS[kind] for kind in ("hydra", "clover", "redrafter"))
