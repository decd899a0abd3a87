"""Self-speculation through an early exit: exact at every exit, and nothing computed twice."""

from functools import cache

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.lane import Lane
from decoders.models import catalog
from decoders.models.table_model import TableModel
from decoders.testing import distance
from decoders.trace.events import Commit, Forward, Propose, Verdict
from tests.helpers.deep_models import PROMPT, deep, greedys, run
from tests.helpers.losslessness import law_of_rounds


@pytest.fixture(scope="module")
def models():
    return {kind: deep(kind) for kind in ("llama", "qwen2", "mistral")}


@pytest.mark.parametrize(
    ("kind", "exit"),
    [
        *(("llama", exit) for exit in (1, 2, 3, 5, 6)),
        ("qwen2", 1),
        ("qwen2", 5),
        ("mistral", 2),
        ("mistral", 6),
    ],
)
def test_the_text_is_greedys_at_every_exit(kind, exit, models):
    found = run("layerskip", models[kind], {"exit_layer": exit})
    assert found.output() == greedys(kind)
    assert models[kind].engine.cache.used == 0


def test_an_exit_after_the_last_layer_is_always_right(models):
    found = run("layerskip", models["llama"], {"exit_layer": 6, "num_assistant_tokens": 3}, tokens=21)
    assert found.costs.totals()["accepted"] == found.costs.totals()["proposed"] == 15


def test_nothing_is_computed_twice(models):
    """With s drafts a round costs E x (s + 1) layers of one token, then L - E layers of s + 1 tokens."""
    found = run("layerskip", models["llama"], {"exit_layer": 2, "num_assistant_tokens": 4})
    for step in found.steps[1:]:
        drafts = len([p for p in step.of(Propose) if p.source == "draft"])
        *early, check = step.of(Forward)
        assert [(f.kind, f.tokens, f.scope) for f in early] == [("draft", 1, "layers 1-2 of 6")] * (
            drafts + 1 if drafts else 0
        )
        assert (check.kind, check.tokens) == ("verify" if drafts else "decode", drafts + 1)
        assert check.scope == ("layers 3-6 of 6" if drafts else None)
        tokens = sum(f.share * f.tokens for f in step.of(Forward))
        assert tokens == pytest.approx(drafts + 1)  # of the whole model
    totals = found.costs.totals()
    assert totals["target_forwards"] == pytest.approx(
        sum(f.share for step in found.steps for f in step.of(Forward))
    )
    assert totals["draft_forwards"] == 0


SHAPES = {"plain": {"temperature": 1.0}, "cut": {"temperature": 0.7, "top_p": 0.8}}


@cache
def plain_law(shape: str):
    """A model of few tokens, and the law of sampling three of them."""
    model = deep(vocabulary=3 if shape == "plain" else 4, layers=4)  # a cut leaves fewer outcomes to walk
    return model, law_of_rounds(Exhaustive(), "sample", {"target": model}, SHAPES[shape], length=3)


@pytest.mark.parametrize(
    ("exit", "shape", "verifier"),
    [
        (1, "plain", "token by token"),
        (3, "cut", "token by token"),
        (3, "plain", "block"),
        (1, "cut", "block"),
        (1, "plain", "traversal"),
        (3, "cut", "traversal"),
    ],
)
def test_the_law_is_the_targets(exit, shape, verifier):
    """Every outcome of every draw of three tokens."""
    model, plain = plain_law(shape)
    asked = {"exit_layer": exit, "num_assistant_tokens": 2, "verifier": verifier, **SHAPES[shape]}
    law = law_of_rounds(Exhaustive(), "layerskip", {"target": model}, asked, length=3)
    assert sum(plain.values()) == pytest.approx(1.0, abs=1e-12) and len(plain) > 8
    assert distance(law, plain) < 1e-9


def test_drafts_are_those_of_the_plain_exit(models):
    """The first layers, the last norm and the head, by transformers' own forward."""
    model = models["llama"]
    found = run("layerskip", model, {"exit_layer": 3, "num_assistant_tokens": 1}, tokens=8)
    text = [*PROMPT, *found.output()]
    states = model.model(torch.tensor([text]), output_hidden_states=True).hidden_states[3][0]
    exits = model.model.lm_head(model.model.model.norm(states)).argmax(-1).tolist()
    at = {
        n: len(PROMPT) + i
        for i, n in enumerate(n for s in found.steps for c in s.of(Commit) for n in c.nodes)
    }
    drafted = [p for s in found.steps for p in s.of(Propose) if p.source == "draft"]
    assert drafted and all(p.token == exits[at[p.parent]] for p in drafted)
    judged = {v.node: v.status for s in found.steps for v in s.of(Verdict)}
    assert {judged[p.node] for p in drafted} <= {"accepted", "rejected"}


def test_what_cannot_be_is_refused_with_a_sentence(models, tiny_model):
    with pytest.raises(ValueError, match="has 6 layers, so exit_layer must be at most 6, not 7"):
        run("layerskip", models["llama"], {"exit_layer": 7})
    with pytest.raises(ValueError, match="a part of the layers of the target, which OPTForCausalLM does not"):
        run("layerskip", tiny_model("opt"))
    with pytest.raises(ValueError, match="a part of the layers of the target, which a table does not give"):
        Lane("layerskip", [0], {"target": TableModel(lambda tokens: [0.5, 0.5], 2)})


def test_the_exit_is_one_that_the_model_was_trained_with(models, monkeypatch):
    monkeypatch.setattr(catalog, "exits", lambda name: [2, 4])
    found = run("layerskip", models["llama"])
    assert {f.scope for s in found.steps[1:-1] for f in s.of(Forward)} == {
        "layers 1-2 of 6",
        "layers 3-6 of 6",
    }


def test_facts_say_which_exits_there_are(tmp_path, monkeypatch):
    for name, facts in {"a": '{"exits": [6, 3]}', "b": "{}"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}", "utf-8")
        (tmp_path / name / "facts.json").write_text(facts, "utf-8")
    monkeypatch.setattr(catalog, "SHIPPED", tmp_path)
    assert [catalog.exits(name) for name in ("a", "b", "owner/model")] == [[3, 6], [], []]
