"""Unified Layer Skipping: layer lists, the thin model's own text, and exact where it is checked."""

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.engine.layers import Layers
from decoders.engine.partial_forward import Blocks
from decoders.speculative.self_draft.unified_layer_skipping import kept
from decoders.testing import distance
from decoders.trace.events import Forward
from tests.helpers.deep_models import PROMPT, deep, run
from tests.helpers.losslessness import law_of_rounds

NAME = "unified_layer_skipping"


@pytest.fixture(scope="module")
def model():
    return deep(layers=8)


@pytest.mark.parametrize(
    ("total", "speedup", "wanted"),
    [
        (30, 5, [0, 6, 12, 18, 24, 29]),
        (30, 3, [*range(0, 25, 3), 29]),
        (30, 10, [0, 15, 29]),
        (12, 2, [0, 2, 4, 6, 8, 11]),
        (8, 2, [0, 2, 4, 7]),
        (8, 1, list(range(8))),
        (8, 50, [0, 7]),
        (2, 2, [0, 1]),
        (1, 2, [0]),
    ],
)
def test_layer_lists(total, speedup, wanted):
    assert kept(total, speedup) == wanted


def test_any_speed_up_keeps_the_first_and_last_layer_and_no_more_than_asked():
    for total in range(2, 40):
        for tenth in range(10, 200):
            found = kept(total, tenth / 10)
            assert found == sorted(set(found)) and found[0] == 0 and found[-1] == total - 1
            assert len(found) == max(2, int(total / (tenth / 10)))


def test_without_a_speed_up_it_is_plain_decoding(model):
    assert run(NAME, model, {"speedup": 1.0}).output() == run("greedy", model).output()


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_the_text_is_that_of_the_kept_layers_on_the_whole_models_prompt(kind):
    model = deep(kind, layers=8)
    found = run(NAME, model, {"speedup": 2.0}, tokens=12).output()
    assert found != run("greedy", model, tokens=12).output()
    with Blocks(model.model).running(Layers.only([0, 2, 4, 7], 8), starts=[len(PROMPT)]):
        logits = model.model(torch.tensor([[*PROMPT, *found[:-1]]]), use_cache=False).logits[0]
    assert logits[len(PROMPT) - 1 :].argmax(-1).tolist() == found
    assert model.engine.cache.used == 0


def test_every_token_costs_the_same(model):
    found = run(NAME, model, {"speedup": 2.0}, tokens=10)
    own = [f for s in found.steps for f in s.of(Forward) if f.kind != "lens"]
    assert [(f.tokens, f.share) for f in own] == [(5, 1.0)] + [(1, 0.5)] * 9
    totals = found.costs.totals()
    assert totals["target_forwards"] == 5.5 and totals["target_tokens"] == 9.5
    assert totals["lens_forwards"] == 9 and totals["shared_tokens"] == 0


@pytest.mark.parametrize("speedup", [1.0, 1.5, 2.0, 4.0])
def test_as_a_drafter_it_is_exact(model, speedup):
    found = run(NAME, model, {"speedup": speedup, "checked": True})
    assert found.output() == run("greedy", model).output()
    assert found.badge == "lossless: equal to greedy"


def test_as_a_drafter_it_has_the_targets_law():
    model = deep(vocabulary=3, layers=4)
    parameters = {"checked": True, "num_assistant_tokens": 2, "temperature": 1.0}
    law = law_of_rounds(Exhaustive(), NAME, {"target": model}, parameters, length=3)
    plain = law_of_rounds(Exhaustive(), "sample", {"target": model}, {"temperature": 1.0}, length=3)
    assert distance(law, plain) < 1e-9
