"""Kangaroo with tiny adapters made here: exact, guesses are the adapter's own, nothing is computed twice."""

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.engine.engine import Engine
from decoders.engine.sequence_engine import SequenceEngine
from decoders.heads import Kangaroo, Target
from decoders.testing import distance
from decoders.trace.events import Commit, Forward, Note
from tests.helpers.deep_models import PROMPT, deep, drafts, run, take_double
from tests.helpers.losslessness import law_of_rounds

EXIT, LAYERS = 2, 6


def with_adapter(seed: int | None = 1, **how):
    """A target with an adapter of random weights, or (None) one that has learned nothing yet."""
    model = deep(layers=LAYERS, **how)
    torch.manual_seed(seed or 0)
    module = Kangaroo(Target.of(model.model), EXIT).double()
    with torch.no_grad():
        for parameter in module.parameters() if seed is not None else ():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    model.__dict__["heads"] = {"kangaroo": module.eval().requires_grad_(False)}
    return model


@pytest.fixture(scope="module")
def model():
    return with_adapter()


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("eta", [0.0, 0.1, 2.0])
def test_the_text_is_greedys(kind, eta):
    model = with_adapter(kind=kind)
    found = run("kangaroo", model, {"eta": eta, "num_assistant_tokens": 3, "adapter": "shipped"})
    assert found.output() == run("greedy", model).output() and found.badge == "lossless: equal to greedy"
    assert model.engine.cache.used == 0


def test_how_many_are_drafted(model):
    """eta = 0: always as many as allowed; above 1: always one."""
    for eta, wanted in ((0.0, 4), (2.0, 1)):
        found = run("kangaroo", model, {"eta": eta, "num_assistant_tokens": 4}, tokens=24)
        counts = [len(drafts(step)) for step in found.steps[1:]]
        left = [
            24 - sum(len(s.of(Commit)[0].nodes) for s in found.steps[:i]) for i in range(1, len(counts) + 1)
        ]
        assert counts == [min(wanted, rest - 1) for rest in left]


def test_layers_run_once_for_each_token(model):
    """s guesses: E layers of s + 1 tokens, one by one, then L - E layers of all of them, once."""
    found = run("kangaroo", model, {"eta": 0.0, "num_assistant_tokens": 3})
    whole = [step for step in found.steps[2:] if len(drafts(step)) == 3]
    assert len(whole) > 3
    for step in whole:
        *early, deep_ones = step.of(Forward)
        assert [(f.tokens, f.scope) for f in early] == [(1, "layers 1-2 of 6")] * 4
        assert (deep_ones.tokens, deep_ones.scope, deep_ones.kind) == (4, "layers 3-6 of 6", "verify")
        assert sum(LAYERS * f.share * f.tokens for f in step.of(Forward)) == pytest.approx(LAYERS * 4)
    first = found.steps[1].of(Forward)[0]
    assert (first.tokens, first.scope) == (len(PROMPT), "layers 1-2 of 6")


def test_guesses_are_the_adapters_own_at_their_places(model):
    """As along the whole text at once, by the forward that the adapter is trained with."""
    found = run("kangaroo", model, {"eta": 0.0, "num_assistant_tokens": 3}, tokens=24)
    nodes = found.nodes()
    for step in found.steps[1:]:
        for guess in drafts(step):
            text, node = [], guess.parent
            while node >= len(PROMPT):
                node, token = nodes[node]
                text.append(token)
            read = torch.tensor([[*PROMPT, *text[::-1]]])
            said = model.heads["kangaroo"].all_logits(take_double(model.model, read, (EXIT,)))[0, -1]
            assert guess.token == int(said.argmax())
            assert guess.logprob == pytest.approx(float(said.log_softmax(-1).max()), abs=1e-4)


@pytest.mark.parametrize("verifier", ["token by token", "block", "traversal"])
def test_the_law_is_the_targets(verifier):
    model, shape = with_adapter(vocabulary=3), {"temperature": 1.0}
    given = {"num_assistant_tokens": 2, "eta": 0.4, "verifier": verifier, **shape}
    law = law_of_rounds(Exhaustive(), "kangaroo", {"target": model}, given, length=3)
    plain = law_of_rounds(Exhaustive(), "sample", {"target": model}, shape, length=3)
    assert distance(law, plain) < 1e-9


def test_training_helps(model):
    """A few steps on the target's own text: more guesses pass there than with the plain exit."""
    text = torch.tensor([[*PROMPT, *run("greedy", model, tokens=40).output()]])
    learner = with_adapter(seed=None)
    module = learner.heads["kangaroo"].requires_grad_(True)
    taps, optimizer = take_double(model.model, text, (EXIT,)), torch.optim.AdamW(module.parameters(), 1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        module.loss(taps).backward()
        optimizer.step()
    module.requires_grad_(False)
    trained, plain = (
        run("kangaroo", learner, {"eta": 0.0, "adapter": a}, tokens=40) for a in ("shipped", "none")
    )
    assert trained.output() == plain.output() and trained.costs.accepted > plain.costs.accepted


def test_without_an_adapter_it_says_so_or_refuses():
    model = deep(layers=4)
    found = run("kangaroo", model)
    assert found.steps[0].of(Note)[0].text.startswith("No adapter comes with the project for 'deep-llama'")
    assert found.output() == run("greedy", model).output()
    with pytest.raises(
        ValueError, match="No Kangaroo adapter comes with the project for 'deep-llama'; choose"
    ):
        run("kangaroo", model, {"adapter": "shipped"})


def test_a_model_without_a_tree_mask_drafts_the_same():
    found = []
    for engine in (Engine, SequenceEngine):
        model = with_adapter()
        model.__dict__["engine"] = engine(model.model)
        found.append(run("kangaroo", model, {"eta": 0.0}, tokens=12))
    assert found[0].output() == found[1].output() and found[0].costs.accepted == found[1].costs.accepted
