"""Draft heads: alignment by hand, drafting as it was trained, and files that fit one target only."""

import itertools
import json
import shutil

import pytest
import torch
from torch.nn import functional as F

from decoders.heads import DraftModule, Entries, Taps, Target, take_taps
from decoders.heads.parts.layers import Attention
from decoders.heads.path_independent.fragments import labels
from decoders.models import head_files
from decoders.models.catalog import shipped
from decoders.models.loading import load
from decoders.models.model_heads import load_heads
from tests.helpers import tiny_models
from tests.helpers.random_heads import DRAFTERS, MARK, random_head

DEPTH = 3


@pytest.fixture(scope="module")
def small():
    """A tiny target of random weights."""
    return tiny_models.make("llama", seed=3).model


def some_tokens(count: int, length: int = 12) -> torch.Tensor:
    return torch.randint(0, 250, (count, length), generator=torch.Generator().manual_seed(5))


def test_the_taps_are_the_targets_own_states(small):
    """The head on `hidden` gives the logits; so do the states before the last layer, through that layer and
    the exit's norm: they are those between layers.
    """
    tokens = some_tokens(2)
    taps, target = take_taps(small, tokens, (0, 1)), Target.of(small)
    torch.testing.assert_close(target.logits(taps.hidden), small(tokens).logits)
    torch.testing.assert_close(taps.states[0], target.read(tokens))
    mask = torch.full((12, 12), float("-inf")).triu(1)[None, None]
    turns = small.model.rotary_emb(taps.states[1], torch.arange(12)[None])
    last = small.model.layers[1](taps.states[1], attention_mask=mask, position_embeddings=turns)
    torch.testing.assert_close(target.exit_logits(last), small(tokens).logits)


@pytest.mark.parametrize("kind", DRAFTERS)
def test_a_guess_reads_nothing_it_may_not(small, kind):
    """Item k - 1, row n: states up to token n, and tokens up to n + k if the module reads the path."""
    module, tokens = random_head(kind, small), some_tokens(1)
    before = module.along(take_taps(small, tokens, module.reads), DEPTH)
    assert [len(guess[0]) for guess in before] == [10, 9, 8]
    for changed in range(12):
        other = tokens.clone()
        other[0, changed] += 1
        after = module.along(take_taps(small, other, module.reads), DEPTH)
        for k, (one, two) in enumerate(zip(before, after, strict=True), start=1):
            reach = module.reach(k)  # how far beyond row n it may look, and does
            moved = (one - two)[0].abs().amax(-1) > 1e-6
            first = max(0, changed - reach)
            assert not moved[:first].any(), (k, changed)
            assert first >= len(moved) or moved[first], (k, changed)


def teacher_of(kind: str, model) -> DraftModule:
    """A module that can say exactly what the target says, built by hand."""
    if kind == "kangaroo":  # the exit after all layers but the last, whose last layer adds nothing
        for matrix in (model.model.layers[-1].self_attn.o_proj, model.model.layers[-1].mlp.down_proj):
            torch.nn.init.zeros_(matrix.weight)
    return DRAFTERS[kind](Target.of(model), **({"exit": 1} if kind == "kangaroo" else {}))


def test_kangaroo_starts_as_the_plain_exit():
    """If the layers above the exit add nothing, it is right everywhere before any training: an oracle."""
    model = tiny_models.make("llama", seed=4).model
    module = teacher_of("kangaroo", model)
    taps = take_taps(model, some_tokens(2), module.reads)
    for k, guess in enumerate(module.along(taps, DEPTH), start=1):
        torch.testing.assert_close(guess, taps.logits[:, k:-1])
    torch.testing.assert_close(module.loss(taps), -(taps.p * taps.p.log()).sum(-1).mean())


def test_medusa_starts_by_saying_the_next_token_once_more(small):
    module = DRAFTERS["medusa"](Target.of(small), depth=DEPTH)
    taps = take_taps(small, some_tokens(2))
    for k, guess in enumerate(module.along(taps, DEPTH), start=1):
        torch.testing.assert_close(guess, taps.logits[:, : 11 - k])
    torch.testing.assert_close(module.block(taps.hidden[0, 4]), taps.logits[0, 4].expand(DEPTH, -1))


def test_losses_by_hand(small):
    """Medusa's and EAGLE's losses, written out with loops over the places."""
    taps = take_taps(small, some_tokens(2))
    medusa, eagle = random_head("medusa", small), random_head("eagle", small)

    def cross(place: int, logits: torch.Tensor) -> torch.Tensor:
        return -(taps.p[:, place] * logits.log_softmax(-1)).sum(-1).mean()

    expected = sum(
        0.8**k * sum(cross(n + k, medusa.head(k, taps.hidden[:, n])) for n in range(12 - k)) / (12 - k)
        for k in range(1, 5)
    )
    torch.testing.assert_close(medusa.loss(taps), expected)
    said, _ = eagle.layer(eagle.joined(taps.tokens[:, 1:], taps.hidden[:, :-1]), torch.arange(11))
    feature = F.smooth_l1_loss(said, taps.hidden[:, 1:])
    token = sum(cross(n + 1, F.linear(said[:, n], eagle.target.head)) for n in range(11)) / 11
    torch.testing.assert_close(eagle.loss(taps), feature + 0.1 * token)


@pytest.mark.parametrize("kind", ["eagle", "kangaroo"])
def test_drafting_gives_what_was_measured_along_the_text(small, kind):
    """Rounds of drafting with entries of its own, some drafts wrong and thrown away, against `along`."""
    module, tokens = random_head(kind, small), some_tokens(1)
    taps = take_taps(small, tokens, module.reads)
    expected = module.along(taps, DEPTH)
    entries, read = Entries(), 0

    def inputs(first: int, last: int) -> tuple[torch.Tensor, ...]:
        """What a node brings for the tokens first to last of the text, both included."""
        if kind == "eagle":
            return (tokens[0, first : last + 1],)
        return (taps.states[1][0, first : last + 1],)

    for n in (2, 3, 5, 8):  # the target has read tokens 0..n; the root is token n + 1
        if kind == "eagle":
            said = module.begin(entries, taps.hidden[0, read : n + 1], tokens[0, read + 1 : n + 2])
            read = n + 1
        else:
            said = module.begin(entries, *inputs(read, n + 1))
            read = n + 2
        assert entries.known == read
        torch.testing.assert_close(said, expected[0][0, n])
        wrong = inputs(0, 0)  # a sibling that the text does not go on with
        node = 0
        for k in range(2, DEPTH + 1):
            if n >= len(expected[k - 1][0]):
                break
            right = inputs(n + k, n + k)
            both = [torch.cat(pair) for pair in zip(wrong, right, strict=True)]
            said = module.expand(entries, [node, node], *both)
            node = len(entries.paths) - 1
            torch.testing.assert_close(said[1], expected[k - 1][0, n])
    assert entries.past[0].shape[2] == entries.known + len(entries.paths) - 1


def pairs(count: int, length: int, random: torch.Generator) -> torch.Tensor:
    """Rows of the copy-pair language: a with .6 or b with .4, each written twice."""
    drawn = (torch.rand(count, length // 2, generator=random) < 0.4).long()
    return drawn.repeat_interleave(2, 1)


class CopyPairs:
    """The taps of a target that speaks the copy-pair language exactly, with states made by hand.

    Its state says which letter comes next: (1, 0) or (0, 1) inside a pair, (log .6, log .4) / 20 after one;
    the head is 20 times the identity.
    """

    def __init__(self):
        self.target = Target(
            embed=torch.eye(2).repeat(1, 4),
            head=20 * torch.eye(8)[:2],
            last_norm=torch.ones(8),
            eps=1e-5,
            layers=2,
            heads=2,
            intermediate=16,
            theta=10000.0,
        )

    def taps(self, tokens: torch.Tensor) -> Taps:
        hidden = torch.zeros(*tokens.shape, 8)
        hidden[:, 0::2, :2] = F.one_hot(tokens[:, 0::2], 2).float()
        hidden[:, 1::2, :2] = torch.tensor([0.6, 0.4]).log() / 20
        return Taps(tokens, hidden, {}, F.linear(hidden, self.target.head))


def test_the_copy_pair_language_tells_medusa_from_eagle():
    """At the end of a pair the root is chance, and the token after it a copy: who sees the root knows it, who
    does not can say a with .6 at best. A sampled root meets p = 1: accepted is the probability of the copy.
    """
    language, random = CopyPairs(), torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    modules = [DRAFTERS["medusa"](language.target, depth=1), DRAFTERS["eagle"](language.target)]
    for module in modules:
        learn = torch.optim.AdamW(module.parameters(), lr=1e-2)
        for _ in range(150):
            module.loss(language.taps(pairs(16, 16, random))).backward()
            learn.step()
            learn.zero_grad()
    tokens = pairs(400, 16, random)
    taps = language.taps(tokens)
    copied = {}
    for module in modules:
        guess = module.eval().along(taps, 1)[0][:, 1::2]  # rows at the end of a pair: the root opens the next
        copied[module.kind] = (guess.argmax(-1) == tokens[:, 3::2]).float().mean().item()
        said = guess.softmax(-1).mean((0, 1))
        assert module.kind == "eagle" or said.tolist() == pytest.approx([0.6, 0.4], abs=0.03)
    assert copied["medusa"] == pytest.approx(0.6, abs=0.03)
    assert copied["eagle"] == 1.0


@pytest.fixture
def saved(tmp_path):
    """(a target that was loaded from its folder, its heads, the folder they are saved in)."""
    target = load(tiny_models.save(tmp_path / "target", seed=3))
    heads = {kind: random_head(kind, target.model) for kind in DRAFTERS}
    folder = tmp_path / "heads"
    head_files.save(folder, heads, "target", tmp_path / "target", target.tokenizer, torch.float32)
    return target, heads, folder


def test_heads_come_back_as_they_were_saved(saved):
    target, heads, folder = saved
    again = load_heads(str(folder), target)
    taps = take_taps(target.model, some_tokens(2), (0, 1, 2))
    assert again.keys() == heads.keys()
    for name, module in again.items():
        assert module.settings == heads[name].settings and not module.training
        for one, two in zip(module.along(taps, DEPTH), heads[name].along(taps, DEPTH), strict=True):
            assert torch.equal(one, two)


def test_eight_bits_per_number_are_within_half_a_step_of_the_weights(saved):
    target, heads, folder = saved
    whole = (folder / "model.safetensors").stat().st_size
    head_files.save(folder, heads, "target", folder.parent / "target", target.tokenizer, eight_bits=True)
    assert (folder / "model.safetensors").stat().st_size < whole / 2  # of float32
    for name, module in load_heads(str(folder), target).items():
        for key, value in module.state_dict().items():
            trained = heads[name].state_dict()[key].bfloat16().float()
            step = trained.abs().amax(-1, keepdim=True) / 127 if value.ndim == 2 else torch.zeros(1)
            assert ((value - trained).abs() <= 0.501 * step).all()


def test_heads_take_the_dtype_of_their_target(saved):
    """In bfloat16 they say nearly the same."""
    target, heads, folder = saved
    rough = load_heads(str(folder), load(target.name, dtype="bfloat16"))
    tokens = some_tokens(1)
    for name, module in rough.items():
        taps = take_taps(target.model, tokens, (0, 1, 2))
        exact = heads[name].along(taps, 1)[0].softmax(-1)
        states = {layer: state.bfloat16() for layer, state in taps.states.items()}
        past = tuple((keys.bfloat16(), values.bfloat16()) for keys, values in taps.past)
        half = Taps(tokens, taps.hidden.bfloat16(), states, taps.logits.bfloat16(), past)
        said = module.along(half, 1)[0]
        assert said.dtype == torch.bfloat16
        assert (said.float().softmax(-1) - exact).abs().sum(-1).mean() < 0.2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_sees_distances_only(dtype):
    """The same rows 400 places on give the same, in half precision too."""
    torch.manual_seed(0)
    attention, x, places = Attention(32, 2, 10000.0), 4 * torch.randn(1, 8, 32), torch.arange(8)
    attention, x = attention.to(dtype), x.to(dtype)
    near, far = (attention(x, places + shift)[0].float() for shift in (0, 400))
    assert (near - far).abs().max() < (1e-4 if dtype == torch.float32 else 0.1) * near.abs().max()


def test_heads_fit_one_target_only(saved, tmp_path):
    _, _, folder = saved
    other = load(tiny_models.save(tmp_path / "other", seed=4))
    with pytest.raises(ValueError, match="trained on other weights of 'target'"):
        load_heads(str(folder), other)


def change(folder, **values):
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | values), "utf-8")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: change(f, tokenizer_sha256="0"), "another tokenizer"),
        (lambda f: change(f, target_weights_sha256="0"), "other weights"),
        (lambda f: change(f, version=2), "no draft heads of format decoding-explorer-heads 1"),
        (lambda f: (f / "config.json").write_text("{", "utf-8"), "no draft heads of format"),
        (lambda f: (f / "config.json").write_text("[]", "utf-8"), "no draft heads of format"),
        (lambda f: change(f, modules=[]), "no draft heads of format"),
        (lambda f: change(f, modules={"medusa": "medusa"}), "cannot be read"),
        (lambda f: (f / "config.json").unlink(), "lack config.json"),
        (lambda f: (f / "model.safetensors").unlink(), "lack model.safetensors"),
        (lambda f: (f / "model.safetensors").write_bytes(b"no"), "cannot be read"),
        (lambda f: change(f, modules={"x": {"kind": "medusa", "settings": {}}}), "cannot be read"),
        (lambda f: change(f, modules={"x": {"kind": "oracle", "settings": {}}}), "'oracle'"),
        (lambda f: change(f, modules={"medusa": {"kind": "medusa", "settings": {"depth": 2}}}), "cannot be"),
        (shutil.rmtree, "There are no draft heads"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(saved, spoil, words):
    target, _, folder = saved
    spoil(folder)
    with pytest.raises(ValueError, match=words) as refused:
        load_heads(str(folder), target)
    assert "\n" not in str(refused.value) and str(refused.value).endswith((".", ")."))


def test_heads_are_no_models_and_other_kinds_of_targets_are_refused():
    assert not set(shipped()) & set(head_files.shipped_heads())
    with pytest.raises(ValueError, match="built like Llama"):
        Target.of(tiny_models.make("gpt2").model)


def test_labels_of_fragments_end_with_the_last_mark_that_the_heads_reach():
    """The dossier's example, a F b c F d e F with three heads; and written out with loops on random texts."""
    a, b, c, d, e, mark = range(6)
    kept = labels(torch.tensor([[a, mark, b, c, mark, d, e, mark]]), mark, 3)[0].int().tolist()
    assert kept[0] == [1, 1, 1, 1] and kept[1] == [1, 1, 1, 0] and kept[6] == [1, 0, 0, 0]
    text = torch.randint(0, 4, (5, 30), generator=torch.Generator().manual_seed(2))
    found = labels(text, 3, 4)
    for row, place in itertools.product(range(5), range(30)):
        column = text[row, place + 1 : place + 6].tolist()
        last = max((at for at, token in enumerate(column) if token == 3), default=0)
        assert found[row, place].int().tolist() == [int(at <= last) for at in range(5)]


def test_heads_on_fragments_learn_from_labelled_places_alone(small):
    """Their loss with loops over the places; without a mark there is nothing to learn."""
    heads = random_head("fragments", small)
    tokens = some_tokens(2)
    tokens[0, 5] = tokens[1, 3] = tokens[1, 9] = MARK
    taps, kept = take_taps(small, tokens), labels(tokens, MARK, 4)
    expected = 0.0
    for k in range(1, 5):
        losses = [
            -(taps.p[row, n + k] * heads.head(k, taps.hidden[row, n]).log_softmax(-1)).sum()
            for row in range(2)
            for n in range(12 - k)
            if kept[row, n, k]
        ]
        expected += 0.8**k * sum(losses) / max(1, len(losses))
    torch.testing.assert_close(heads.loss(taps), torch.as_tensor(expected))
    assert heads.loss(take_taps(small, some_tokens(1) % 200)) == 0.0
