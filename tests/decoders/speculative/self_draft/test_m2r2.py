"""M2R2 with tiny adapters made here: the fast stream by hand, exact text, guesses of its own."""

import pytest
import torch
from torch.nn import functional as F

from decoders.chooser import Exhaustive
from decoders.engine.engine import Engine
from decoders.engine.sequence_engine import SequenceEngine
from decoders.heads import M2R2, Target
from decoders.heads.parts.module import cross_entropy
from decoders.testing import distance
from decoders.trace.events import Forward, Note
from tests.helpers.deep_models import PROMPT, deep, drafts, run, take_double
from tests.helpers.losslessness import law_of_rounds

EXIT, LAYERS = 2, 6
TEXT = torch.tensor([[*PROMPT, 43, 44, 40, 45]])


def with_adapters(seed: int | None = 1, **how):
    """A target with adapters of random weights, or (None) ones that have learned nothing yet."""
    model = deep(layers=LAYERS, **how)
    torch.manual_seed(seed or 0)
    module = M2R2(Target.of(model.model), EXIT, rank=4, alignment=0.1).double()
    with torch.no_grad():
        for parameter in module.parameters() if seed is not None else ():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.heads["m2r2"] = module.eval().requires_grad_(False)
    return model


@pytest.fixture(scope="module")
def model():
    return with_adapters()


def test_untrained_adapters_leave_the_usual_stream():
    """The dossier's first check: a = h, so that the guess is the plain exit's."""
    model = with_adapters(seed=None)
    slow, fast = (model.heads["m2r2"].along_text(TEXT, fast=fast) for fast in (False, True))
    for usual, beside in zip(slow, fast, strict=True):
        torch.testing.assert_close(usual, beside, rtol=0, atol=0)
    states = model.model(TEXT, output_hidden_states=True).hidden_states
    for layer in range(EXIT + 1):
        torch.testing.assert_close(slow[layer], states[layer])


def test_the_fast_stream_by_hand(model):
    """a <- a + F(a; keys and values of h) + B(a), place by place: F is the layer on a text whose last place
    alone is a's, with the keys and values there put back to h's.
    """
    module, place = model.heads["m2r2"], 6
    slow, fast = (module.along_text(TEXT, fast=fast) for fast in (False, True))
    layer = model.model.model.layers[0]
    turns = model.model.model.rotary_emb(slow[0], torch.arange(TEXT.shape[1])[None])
    for at in range(EXIT):
        layer, a = model.model.model.layers[at], fast[at][:, place]
        mixed = mixed_by_hand(layer, slow[at], a, place, turns)
        after = a + mixed
        after = after + layer.mlp(layer.post_attention_layernorm(after))
        after = after + module.outer[at](F.silu(module.inner[at](a)))
        torch.testing.assert_close(fast[at + 1][:, place], after)


def mixed_by_hand(layer, h, a, place, turns):
    """What the attention of a layer says of state a [1, d] at a place if keys and values are those of h."""
    heads = layer.self_attn
    normed, size = layer.input_layernorm(h), heads.head_dim
    q = heads.q_proj(layer.input_layernorm(a)).view(-1, size)  # [H, D]
    k, v = (part(normed)[0].unflatten(-1, (-1, size)) for part in (heads.k_proj, heads.v_proj))  # [T, Hkv, D]
    cos, sin = (part[0] for part in turns)

    def turned(x):
        return torch.cat([-x[..., size // 2 :], x[..., : size // 2]], -1)

    q = q * cos[place] + turned(q) * sin[place]
    k = k * cos[:, None] + turned(k) * sin[:, None]
    group = len(q) // k.shape[1]
    out = []
    for head in range(len(q)):
        keys, values = k[: place + 1, head // group], v[: place + 1, head // group]
        out.append((keys @ q[head] * size**-0.5).softmax(0) @ values)
    return heads.o_proj(torch.cat(out)[None])


def test_at_rate_one_nothing_is_apart(model):
    """The dossier's fourth check: aligned to h_i itself, silent adapters are where they should be."""
    module = with_adapters(seed=None).heads["m2r2"]
    module.reads = tuple(range(1, EXIT))
    taps = take_double(module.target.model, TEXT, module.reads)
    assert float(module.distance(module.along_text(TEXT), taps)) == pytest.approx(0.0, abs=1e-12)
    trained = model.heads["m2r2"]
    assert (
        float(trained.distance(trained.along_text(TEXT), take_double(model.model, TEXT, trained.reads)))
        > 0.01
    )


def test_the_loss_is_cross_entropy_and_distance(model):
    module = model.heads["m2r2"]
    assert module.reads == (3,)  # R = 3: after one layer where h is after three
    taps = take_double(model.model, TEXT, module.reads)
    found = module.along_text(TEXT)
    apart = ((found[1] - taps.states[3]).norm(dim=-1) / taps.states[3].norm(dim=-1)).square().mean()
    said = cross_entropy(taps.p, module.target.exit_logits(found[2]))
    torch.testing.assert_close(module.loss(taps), said + 0.1 * apart)


@pytest.mark.parametrize(
    ("kind", "eta"), [("llama", 0.0), ("llama", 0.1), ("llama", 2.0), ("qwen2", 0.1), ("mistral", 0.0)]
)
def test_the_text_is_greedys(kind, eta):
    model = with_adapters(kind=kind)
    found = run("m2r2", model, {"eta": eta, "num_assistant_tokens": 3, "adapters": "shipped"})
    assert found.output() == run("greedy", model).output() and found.badge == "lossless: equal to greedy"
    assert model.engine.cache.used == 0


def test_layers_run_once_for_each_token_and_stream(model):
    """s guesses: E layers of s + 1 tokens as usual, of s on the fast stream, then L - E layers once."""
    found = run("m2r2", model, {"eta": 0.0, "num_assistant_tokens": 3})
    whole = [step for step in found.steps[1:] if len(drafts(step)) == 3]
    assert len(whole) > 3
    for step in whole:
        *early, deep_ones = step.of(Forward)
        usual, fast = "layers 1-2 of 6", "fast stream through layers 1-2 of 6"
        assert [(f.tokens, f.scope) for f in early] == [(1, usual), (1, fast)] * 3 + [(1, usual)]
        assert (deep_ones.tokens, deep_ones.scope, deep_ones.kind) == (4, "layers 3-6 of 6", "verify")


def test_guesses_are_the_adapters_own_at_their_places(model):
    """As along the whole text at once, by the forward that the adapters are trained with."""
    found = run("m2r2", model, {"eta": 0.0, "num_assistant_tokens": 3}, tokens=24)
    nodes = found.nodes()
    for step in found.steps[1:]:
        for guess in drafts(step):
            text, node = [], guess.parent
            while node >= len(PROMPT):
                node, token = nodes[node]
                text.append(token)
            read = torch.tensor([[*PROMPT, *text[::-1]]])
            said = model.heads["m2r2"].target.exit_logits(model.heads["m2r2"].along_text(read)[-1])[0, -1]
            assert guess.token == int(said.argmax())
            assert guess.logprob == pytest.approx(float(said.log_softmax(-1).max()), abs=1e-4)


@pytest.mark.parametrize("verifier", ["token by token", "block", "traversal"])
def test_the_law_is_the_targets(verifier):
    model, shape = with_adapters(vocabulary=3), {"temperature": 1.0}
    given = {"num_assistant_tokens": 2, "eta": 0.4, "verifier": verifier, **shape}
    law = law_of_rounds(Exhaustive(), "m2r2", {"target": model}, given, length=3)
    plain = law_of_rounds(Exhaustive(), "sample", {"target": model}, shape, length=3)
    assert distance(law, plain) < 1e-9


def test_training_helps():
    """The dossier's second check on one text: a_E then says more often than h_E what the last layer says."""
    model = with_adapters(seed=None)
    text = torch.tensor([[*PROMPT, *run("greedy", model, tokens=40).output()]])
    module = model.heads["m2r2"].requires_grad_(True)
    taps, optimizer = (
        take_double(model.model, text, module.reads),
        torch.optim.AdamW(module.parameters(), 1e-2),
    )
    for _ in range(60):
        optimizer.zero_grad()
        module.loss(taps).backward()
        optimizer.step()
    module.requires_grad_(False)
    trained, plain = (
        run("m2r2", model, {"eta": 0.0, "adapters": given}, tokens=40) for given in ("shipped", "none")
    )
    assert trained.output() == plain.output() and trained.costs.accepted > plain.costs.accepted


def test_without_adapters_it_says_so_or_refuses():
    model = deep(layers=4)
    found = run("m2r2", model)
    assert found.steps[0].of(Note)[0].text.startswith("No adapters come with the project for 'deep-llama'")
    assert found.output() == run("greedy", model).output()
    with pytest.raises(ValueError, match="No M2R2 adapters come with the project for 'deep-llama'; choose"):
        run("m2r2", model, {"adapters": "shipped"})


def test_a_model_without_a_tree_mask_drafts_the_same():
    found = []
    for engine in (Engine, SequenceEngine):
        model = with_adapters()
        model.__dict__["engine"] = engine(model.model)
        found.append(run("m2r2", model, {"eta": 0.0}, tokens=12))
    assert found[0].output() == found[1].output() and found[0].costs.accepted == found[1].costs.accepted
