"""SpecPV: seeing all blocks is seeing everything, parts are chosen as the paper says, strict is lossless."""

import json

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.engine.sparse_kv import Budget, View, bound, larger_end, view
from decoders.engine.tree import Tree
from decoders.explain.verdicts import reason_of
from decoders.lane import Lane, Limits
from decoders.testing import distance
from decoders.trace.events import Commit, Forward, Note, Verdict
from decoders.trace.scores import Score
from decoders.trace.trace import from_json
from tests.helpers.deep_models import deep

PROMPT = [40 + i % 7 for i in range(24)]
SMALL = {
    "block_size": 2,
    "sink_blocks": 1,
    "retrieved_blocks": 2,
    "window_blocks": 1,
    "refresh": 4,
    "num_assistant_tokens": 2,
}


@pytest.fixture(scope="module")
def models():
    return {"target": deep(layers=3), "draft": deep(layers=1)}


def run(models, strategy="specpv", tokens=24, prompt=PROMPT, **parameters):
    needed = models if strategy == "specpv" else {"target": models["target"]}
    return Lane(strategy, prompt, needed, parameters, limits=Limits(tokens)).run()


def checks(trace):
    return [
        f
        for s in trace.steps
        for f in s.of(Forward)
        if f.model == "target" and f.kind not in ("draft", "lens")
    ]


def test_the_selector_is_no_bound():
    """q = (1, -1), keys (2, 0) and (0, 2): the larger end says 0, Quest's bound 2, as the best key does."""
    query, keys = torch.tensor([[1.0, -1.0]]), torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    ends = keys.amax(0, keepdim=True), keys.amin(0, keepdim=True)
    assert larger_end(query, *ends).item() == 0.0 and bound(query, *ends).item() == 2.0
    assert float((keys @ query[0]).max()) == 2.0


def test_each_head_looks_up_its_own_blocks():
    """Two heads, two query heads each; blocks of two; head 0 likes block 2, head 1 block 3."""
    keys = torch.zeros(1, 2, 11, 2)
    keys[0, 0, 4:6, 0], keys[0, 1, 7, 1] = 3.0, 5.0
    found = view(torch.ones(1, 4, 3, 2), keys, torch.arange(100, 111), Budget(2, 1, 1, 1), "larger end")
    assert found.depth == 11 and found.blocks.tolist() == [[[2], [3]]]
    ends = [100, 101, 110]
    assert [sorted(row) for row in found.slots[0].tolist()] == [
        sorted([104, 105, *ends]),
        sorted([106, 107, *ends]),
    ]
    assert view(torch.ones(1, 4, 3, 2), keys, torch.arange(11), Budget(2, 1, 4, 1), "bound") is None


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_a_view_of_everything_shows_what_the_whole_shows_and_a_smaller_one_does_not(kind):
    engine, tree = deep(kind, layers=3).engine, Tree(PROMPT)
    a = tree.add(len(PROMPT) - 1, 7)
    nodes = [a, tree.add(a, 8), tree.add(a, 9)]
    scorer = engine.attach(tree)
    scorer.score([len(PROMPT) - 1])
    slots = torch.tensor(scorer.trunk.slots)
    heads = scorer.cache.pool.shape[2]

    def seen(places):
        return View(len(PROMPT), slots[places].expand(3, heads, -1), torch.empty(3, heads, 0))

    everything = scorer.score_seeing(nodes, seen(torch.randperm(len(PROMPT))))
    less = scorer.score_seeing(nodes, seen(torch.arange(0, len(PROMPT), 2)))
    assert scorer.work.scope == "15 of 26 places"
    whole = scorer.score(nodes)
    assert torch.allclose(everything, whole, atol=1e-9) and not torch.allclose(less, whole, atol=1e-3)
    scorer.close()
    assert engine.cache.used == 0


@pytest.mark.parametrize("strict", [False, True])
def test_with_all_blocks_looked_up_it_is_greedy(models, strict):
    found = run(models, **SMALL | {"retrieved_blocks": 64, "strict": strict})
    assert found.output() == run(models, "greedy").output()
    assert all(f.scope is None for f in checks(found))


def test_a_full_round_comes_when_more_than_refresh_tokens_wait(models):
    found, waiting = run(models, **SMALL, tokens=40), 0
    scopes = []
    for step in found.steps:
        (check,) = [f for f in step.of(Forward) if f.model == "target" and f.kind != "lens"]
        scopes.append(check.scope)
        assert (check.scope is None) == (waiting > SMALL["refresh"] or not scopes[:-1])
        if check.scope is None:
            drafted = sum(f.tokens for f in step.of(Forward) if f.model == "draft")
            assert not scopes[:-1] or check.tokens == waiting + 1 + min(drafted, 2)
            waiting = 0
        else:
            waiting += len(step.of(Commit)[0].nodes)
    assert scopes.count(None) > 2 and len(scopes) - scopes.count(None) > 4


def test_it_says_how_lossy_it_is_and_sees_fewer_places(models):
    found = run(models, **SMALL, tokens=40)
    assert found.badge == "relaxed" and 0.0 <= found.costs.mean_total_variation <= 1.0
    said = [n.text for s in found.steps for n in s.of(Note)]
    assert any("of them all keys would have chosen the same token" in text for text in said)
    assert any(text.startswith("Of 24 positions the next rounds see 8, in blocks of 2") for text in said)
    measured = [e.node for s in found.steps for e in s.of(Score)]
    seen = sum(
        len(s.of(Commit)[0].nodes) for s, f in zip(found.steps, checks(found), strict=False) if f.scope
    )
    assert len(measured) == len(set(measured)) == seen  # the end of the text too
    assert checks(found)[1].scope.split()[0] < checks(found)[1].scope.split()[2]


@pytest.mark.parametrize("selector", ["larger end", "bound"])
@pytest.mark.parametrize("count", [1, 3])
def test_strict_is_greedy_token_for_token(models, selector, count):
    given = SMALL | {"strict": True, "selector": selector, "num_assistant_tokens": count}
    found = run(models, **given, tokens=40)
    assert found.output() == run(models, "greedy", 40).output()
    assert found.badge == "lossless: equal to greedy" and found.costs.mean_total_variation is None
    inner = [f for s in found.steps for f in s.of(Forward) if f.model == "target" and f.kind == "draft"]
    assert inner and all(f.scope for f in inner) and all(f.scope is None for f in checks(found))


def test_what_the_inner_loop_rejects_names_the_preferred_token_and_is_read_back(models):
    found = run(models, **SMALL | {"strict": True, "retrieved_blocks": 0})
    inner = [v for s in found.steps for v in s.of(Verdict) if v.status == "pruned" and v.why]
    assert inner
    for verdict in inner:
        assert reason_of(verdict, found.vocabulary).startswith("Rejected: the target prefers “")
    again = from_json(json.loads(json.dumps(found.to_json())))
    assert [step.events for step in again.steps] == [step.events for step in found.steps]


def test_strict_has_the_targets_law():
    """Every outcome of every draw; parts of three blocks of one, of a prompt of seven."""
    models = {"target": deep(vocabulary=2, layers=2), "draft": deep(vocabulary=2, layers=1)}
    prompt, shape = [0, 1, 1, 1, 0, 0, 1], {"temperature": 1.0}
    given = SMALL | {
        "block_size": 1,
        "retrieved_blocks": 1,
        "refresh": 0,
        "strict": True,
        **shape,
        "num_assistant_tokens": 1,
    }
    seen = []

    def law(strategy, parameters):
        def text(chooser):
            lane = Lane(strategy, prompt, models, parameters, limits=Limits(4), chooser=chooser)
            seen.append(
                any(
                    f.kind == "draft" and f.model == "target" for s in lane.run().steps for f in s.of(Forward)
                )
            )
            return tuple(lane.trace.output())

        return Exhaustive().distribution(text)

    assert distance(law("specpv", given), law("sample", shape)) < 1e-9 and any(seen)
