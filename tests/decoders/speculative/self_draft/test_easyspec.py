"""EasySpec: groups of layers by two implementations and by hand, exact at any group, keys set right again."""

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.engine.engine import Engine
from decoders.engine.layers import Layers
from decoders.engine.sequence_engine import SequenceEngine
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.testing import distance
from decoders.trace.events import Forward, Note
from tests.helpers.deep_models import PROMPT, deep
from tests.helpers.losslessness import law_of_rounds

LAYERS = 8


@pytest.fixture(scope="module")
def model():
    return deep(layers=LAYERS)


def run(strategy, model, parameters=None, tokens=20, prompt=PROMPT):
    models = {"target": model, "draft": model} if strategy != "greedy" else {"target": model}
    return Lane(strategy, prompt, models, parameters, limits=Limits(tokens)).run()


def test_the_first_and_the_last_layer_stand_alone():
    assert Layers.grouped(3, 8).early == {2, 3, 5, 6} and Layers.grouped(2, 6).early == {2, 4}
    assert not Layers.grouped(1, 8).early and not Layers.grouped(4, 3).early
    assert Layers.grouped(4, 8).exit is None and Layers.grouped(4, 8).share == 1.0
    assert str(Layers.grouped(4, 8)) == "8 layers in groups of 4"
    assert str(Layers.grouped(1, 8)) == "layers 1-8 of 8" and Layers.grouped(1, 8).exit == 8


def by_hand(model, token: int, group: int) -> torch.Tensor:
    """Logits [V] after one token after the prompt, which layers have read one after the other."""
    base, text = model.base_model, torch.tensor([[*PROMPT, token]])
    h = base.embed_tokens(text)
    turns = base.rotary_emb(h, torch.arange(h.shape[1])[None])
    mask = torch.full((h.shape[1],) * 2, float("-inf"), dtype=h.dtype).triu(1)[None, None]
    entered = h
    for i, layer in enumerate(base.layers):
        if not (0 < i < LAYERS - 1 and (i - 1) % group):
            entered = h
        seen = torch.cat([h[:, :-1], entered[:, -1:]], dim=1)  # the prompt is exact
        mixed, _ = layer.self_attn(layer.input_layernorm(seen), turns, mask)
        h = h + mixed
        h = h + layer.mlp(layer.post_attention_layernorm(h))
    return model.lm_head(base.norm(h))[0, -1]


@pytest.mark.parametrize("group", [1, 2, 3, 6])
def test_a_group_reads_what_entered_its_first_layer(model, group):
    want, found = by_hand(model.model, 7, group), []
    fast = Engine(model.model)
    hooked = Engine(model.model)
    hooked.fast_llama = None
    for engine in (fast, hooked, SequenceEngine(model.model)):
        tree = Tree(PROMPT)
        scorer = engine.attach(tree)
        scorer.score([len(PROMPT) - 1])
        nodes = [tree.add(len(PROMPT) - 1, 7)]
        nodes.append(tree.add(nodes[0], 8))
        rows = [scorer.score_part([n], Layers.grouped(group, LAYERS))[0] for n in nodes]
        assert torch.allclose(rows[0], want, atol=1e-4)
        found.append(rows[1])
        assert torch.allclose(rows[1], found[0], atol=1e-4)
    plain = model.model(torch.tensor([[*PROMPT, 7]])).logits[0, -1]
    assert torch.allclose(want, plain, atol=1e-4) == (group == 1)


def test_after_calibration_the_keys_are_exact(model):
    """Fuzzy keys of drafted tokens, then the same nodes read whole: as if nothing had been drafted."""
    keys = []
    for drafted in (True, False):
        engine, tree = Engine(model.model), Tree(PROMPT)
        scorer = engine.attach(tree)
        scorer.score([len(PROMPT) - 1])
        nodes = [tree.add(len(PROMPT) - 1, 7)]
        nodes += [tree.add(nodes[0], 8)]
        if drafted:
            for node in nodes:
                scorer.score_part([node], Layers.grouped(3, LAYERS))
            fuzzy = engine.cache.pool[:, 0][:, :, [scorer.slots[n] for n in nodes]].clone()
        scorer.score([tree.add(nodes[1], 9)])
        assert scorer.work.tokens == 3
        keys.append(engine.cache.pool[:, 0][:, :, [scorer.slots[n] for n in nodes]])
    assert torch.allclose(*keys, atol=1e-12) and not torch.allclose(fuzzy, keys[0], atol=1e-3)


def test_without_groups_it_is_the_plain_draft(model):
    draft = deep(layers=4, seed=5)
    models = {"target": model, "draft": draft}
    own = {"drafter": "the draft model", "group": 1}
    for temperature in (0.0, 1.0):
        found, plain = (
            Lane(
                name,
                PROMPT,
                models,
                {**given, "temperature": temperature, "num_assistant_tokens": 3},
                limits=Limits(20),
            ).run()
            for name, given in (("easyspec", own), ("speculative", {}))
        )
        assert found.output() == plain.output() and found.costs.totals()["accepted"] == plain.costs.accepted


@pytest.mark.parametrize("group", [2, 4])
@pytest.mark.parametrize("calibrate", [False, True])
def test_the_text_is_greedys_and_the_law_the_targets(model, group, calibrate):
    given = {"group": group, "calibrate": calibrate}
    found = run("easyspec", model, given)
    assert found.output() == run("greedy", model).output()
    small, shape = deep(vocabulary=3, layers=4), {"temperature": 1.0}
    models = {"target": small, "draft": small}
    law = law_of_rounds(
        Exhaustive(), "easyspec", models, {**given, **shape, "num_assistant_tokens": 1}, length=3, rounds=2
    )
    plain = law_of_rounds(Exhaustive(), "sample", {"target": small}, shape, length=3)
    assert distance(law, plain) < 1e-9
    assert small.engine.cache.used == model.engine.cache.used == 0


def test_larger_groups_are_right_less_often_and_calibration_helps(model):
    def accepted(**given) -> float:
        texts = ([40, 41, 42], [7, 9], PROMPT)
        totals = [run("easyspec", model, given, 21, text).costs.totals() for text in texts]
        return sum(t["accepted"] for t in totals) / sum(t["proposed"] for t in totals)

    one, three, six = (accepted(group=group) for group in (1, 3, 6))
    assert one == 1.0 > three >= six and three >= accepted(group=3, calibrate=False)


def test_it_says_what_runs_in_groups(model):
    found = run("easyspec", model, {"group": 3})
    said = found.steps[0].of(Note)[0].text
    assert (
        "has 8 attentions one after the other; in groups of 3, on as many devices, it would have 4." in said
    )
    drafts = [f for f in found.steps[2].of(Forward) if f.model == "draft"]
    assert [f.scope for f in drafts] == [None, *["8 layers in groups of 3"] * 3]
    shallow = deep(layers=2)
    assert "of which none can be grouped" in run("easyspec", shallow).steps[0].of(Note)[0].text
