"""What drafters compute while they draft, in few operations, against the modules that were trained."""

import copy
import math

import pytest
import torch

from decoders.engine import fast_product
from decoders.heads import DraftModule
from decoders.heads.parts.layers import Attention, DecoderLayer, LayerForm
from tests.helpers import tiny_models
from tests.helpers.random_heads import DRAFTERS, random_head

CLOSE = {"atol": 1e-4, "rtol": 1e-4}
# In the target's own forward, or after its first layers: these have no `begin` on the target's states alone
APART = {"pass", "ppd", "hidden_transfer", "kangaroo", "m2r2"}


@pytest.fixture(scope="module")
def small():
    return tiny_models.make("llama", seed=3).model


def drafted(module: DraftModule, mode, seed: int = 0) -> list[torch.Tensor]:
    """The logits of two rounds, each with a small tree: two children, then one below each of them."""
    random = torch.Generator().manual_seed(seed)
    width, words = module.target.width, len(module.target.embed)
    said, memory = [], module.memory()
    for count in (5, 2):
        hidden = torch.randn(count, width, generator=random)
        tokens = torch.randint(0, words, (count + 4,), generator=random)
        streams = {layer: torch.randn(count, width, generator=random) for layer in module.reads}
        with mode():
            read = (hidden, tokens[:count], *([streams] if module.reads else []))
            said.append(module.begin(memory, *read).clone())
            if module.sees.path:
                said.append(module.expand(memory, [0, 0], tokens[count : count + 2]))
                said.append(module.expand(memory, [2, 1], tokens[count + 2 :]))
                said.append(module.expand(memory, [3], tokens[:1]) if module.depth is None else said[-1])
    return said


@pytest.mark.parametrize("kind", [kind for kind in DRAFTERS if kind not in APART])
def test_every_drafter_says_while_it_drafts_what_its_modules_say(small, kind):
    module = random_head(kind, small)
    for fast, slow in zip(drafted(module, torch.inference_mode), drafted(module, torch.no_grad), strict=True):
        torch.testing.assert_close(fast, slow, **CLOSE)


def test_weights_that_change_are_laid_out_again_and_a_copy_has_its_own(small):
    eagle = random_head("eagle", small)
    before = drafted(eagle, torch.inference_mode)
    assert eagle.fast.form is not None
    twin = copy.deepcopy(eagle)
    with torch.no_grad():
        eagle.feed.down.weight.mul_(-2.0)
    after, slow = drafted(eagle, torch.inference_mode), drafted(eagle, torch.no_grad)
    torch.testing.assert_close(after[-1], slow[-1], **CLOSE)
    assert (after[-1] - before[-1]).abs().max() > 0.01
    torch.testing.assert_close(drafted(twin, torch.inference_mode)[-1], before[-1], **CLOSE)


FORMS = {
    "grouped": LayerForm(4, 2, 8, 1e4),
    "biases and norms": LayerForm(4, 2, 8, 1e4, bias=True, qk_eps=1e-6),
    "scaled positions": LayerForm(2, 2, 8, 1e4, turns=torch.rand(4), turn_scale=1.3),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_attention_of_every_published_form(form):
    """Several entries, then one that sees all, then two that see some; far down a text, too."""
    torch.manual_seed(2)
    layer = DecoderLayer(24, 2, 40, 1e4, 1e-5, form=form).eval()
    if form.qk_eps:
        torch.nn.init.normal_(layer.attention.q_norm.weight)
    x, answers = torch.randn(1, 303, 24), []
    some = torch.ones(2, 303, dtype=torch.bool)
    some[:, 150:160] = False
    for mode in (torch.inference_mode, torch.no_grad):
        with mode():
            first, past = layer(x[:, :300], torch.arange(300))
            one, past = layer(x[:, 300:301], torch.tensor([300]), None, past)
            two, past = layer(x[:, 301:], torch.tensor([301, 301]), some, past)
            answers.append((torch.cat([first, one, two], 1), *past))
    assert layer.fast.form is not None
    for fast, slow in zip(*answers, strict=True):
        torch.testing.assert_close(fast, slow, **CLOSE)


def test_large_attention_stays_with_its_modules(monkeypatch):
    monkeypatch.setattr("decoders.heads.parts.fast_layers.LARGEST", 10)
    attention = Attention(16, 2, 1e4).eval()
    with torch.inference_mode():
        attention(torch.randn(1, 3, 16), torch.arange(3))
    assert attention.fast.seen is not None and attention.fast.form is None


@pytest.mark.parametrize("way", [fast_product.PLAIN, fast_product.LEFT, fast_product.PACKED])
@pytest.mark.parametrize("rows", [1, 2, 4, 9, 40])
def test_each_way_to_multiply_gives_the_product(monkeypatch, way, rows):
    monkeypatch.setattr(fast_product, "fastest", lambda *_: way)
    torch.manual_seed(3)
    big, small, x = torch.randn(400, 192), torch.randn(20, 192), torch.randn(rows, 192)
    norm = torch.rand(192)
    with torch.inference_mode():
        for matrix in (fast_product.Matrix(big, big[:40]), fast_product.Matrix(small)):
            torch.testing.assert_close(matrix.times(x), x @ matrix.weight.t(), **CLOSE)
        scaled = fast_product.Matrix(small, norm=norm).times(x / math.sqrt(192))
        torch.testing.assert_close(scaled, (x * norm) @ small.t(), **CLOSE)


def test_the_fastest_way_is_the_one_that_took_the_shortest_time(monkeypatch):
    """The times are given: a plain product of 1.0, one on the left of 0.5, oneDNN's of 0.9."""
    given = iter([1.0, 0.5, 0.9, 1.0, 0.95, 0.9])
    monkeypatch.setattr(fast_product, "min_seconds", lambda _: next(given))
    tried = fast_product.fastest.__wrapped__
    if fast_product.laid_out(torch.ones(1024, 192)) is None:
        pytest.skip("oneDNN's products are not at hand")
    assert tried(2, torch.float32) == fast_product.LEFT
    assert tried(2, torch.float32) == fast_product.PLAIN, "a gain too small to count"
