"""LM-Infinite's mask and distances, against the formula written out query by query."""

import pytest
import torch

from decoders import memory_options as options
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.memory.engine import MemoryEngine
from decoders.memory.lm_infinite import LmInfinite, sees
from decoders.memory.policy import Reading, Shape, Slots
from decoders.memory.rotary import Rotary
from tests.helpers import tiny_models

HEADS, KV, WIDTH, COUNT = 4, 2, 8, 12


def settings(local, first, cap="L - 1"):
    return {"memory": "lm-infinite", "memory_local": local, "memory_global": first, "memory_cap": cap}


def test_the_worked_mask():
    """L = 4, G = 2."""
    near, far = sees(torch.arange(10), torch.arange(10)[None], 4, 2)
    seen = {
        row: (near[0, row].nonzero()[:, 0].tolist(), far[0, row].nonzero()[:, 0].tolist())
        for row in range(10)
    }
    assert seen[3] == ([0, 1, 2, 3], []) and seen[4] == ([1, 2, 3, 4], [0])
    assert seen[5] == ([2, 3, 4, 5], [0, 1]) and seen[9] == ([6, 7, 8, 9], [0, 1])
    for row, (local, distant) in seen.items():
        assert len(local) + len(distant) == min(row + 1, 4 + min(2, max(0, row - 4 + 1)))


@pytest.mark.parametrize("cap", ["L - 1", "L"])
@pytest.mark.parametrize("first", [0, 3])
def test_outputs_are_those_of_the_formula(cap, first):
    local, rotary = 4, Rotary(10000.0 ** (-torch.arange(WIDTH // 2) / (WIDTH // 2)))
    generator = torch.Generator().manual_seed(0)
    draw = lambda heads: torch.randn(heads, COUNT, WIDTH, dtype=torch.float64, generator=generator)
    q, k, v, positions = draw(HEADS), draw(KV), draw(KV), torch.arange(COUNT)
    shape = Shape(1, HEADS, KV, WIDTH, WIDTH**-0.5, rotary, torch.device("cpu"))
    slots = Slots(torch.zeros(1), torch.zeros(1, KV, COUNT), positions)
    reading = Reading(slots, positions, slice(0, COUNT), slice(0, COUNT), None)
    mask = torch.zeros(1, 1, COUNT, COUNT, dtype=torch.float64)
    mask.masked_fill_(torch.ones(COUNT, COUNT).triu(1).bool(), torch.finfo(torch.float64).min)
    policy = LmInfinite(shape, settings(local, first, cap))
    found = policy.attend(
        0, reading, rotary.turn(q, positions)[None], rotary.turn(k, positions)[None], v[None], mask
    )
    distance_of_first = local - (cap == "L - 1")
    for head in range(HEADS):
        for i in range(COUNT):
            shown = [(j, i - j) for j in range(max(0, i - local + 1), i + 1)]
            shown += [(j, distance_of_first) for j in range(first) if i - j >= local]
            keys = [k[head // 2, j] for j, _ in shown]
            turned = [rotary.turn(q[head, i][None], torch.tensor([d]))[0] for _, d in shown]
            logits = torch.stack([a @ b for a, b in zip(turned, keys, strict=True)]) * WIDTH**-0.5
            expected = logits.softmax(0) @ torch.stack([v[head // 2, j] for j, _ in shown])
            torch.testing.assert_close(found[0, head, i], expected)


def test_siblings_are_equally_far_from_every_ancestor(tiny_model):
    """Distance runs along the path: both branches of a tree score as the texts that they are."""
    tree, parameters = Tree([3, 1, 4, 1, 5, 9, 2, 6]), settings(4, 2)
    engine = MemoryEngine(tiny_model().engine, parameters)
    left, right = tree.add(7, 8), tree.add(7, 9)
    deeper = tree.add(left, 10), tree.add(right, 10)
    together = engine.attach(tree).score([left, right, *deeper])
    for row, node in zip(together, (left, right, *deeper), strict=True):
        alone = engine.attach(Tree(tree.text(node))).score([tree.depths[node]])[0]
        torch.testing.assert_close(row, alone, atol=1e-5, rtol=1e-5)


def test_bytes_are_constant_from_l_and_g_on(tiny_model):
    shape = MemoryEngine(tiny_model().engine, settings(4, 2)).shape
    policy = LmInfinite(shape, settings(4, 2))
    assert [policy.kept_bytes(n) / shape.slot_bytes for n in (3, 6, 7, 90)] == [3, 6, 6, 6]
    assert policy.states(8)[0] == ["sink", "sink", "evicted", "evicted", *["full"] * 4]
    assert policy.states(3)[0] == ["sink", "sink", "full"]


def test_a_text_may_be_longer_than_the_context(tiny_model):
    """The plain lane is refused; with the memory it writes on, as if its window moved along."""
    models, prompt = {"target": tiny_model()}, [i % 50 + 1 for i in range(tiny_models.CONTEXT + 4)]
    with pytest.raises(ValueError, match="reads at most"):
        Lane("greedy", prompt, models, {})
    trace = Lane("greedy", prompt, models, settings(16, 4), limits=Limits(3)).run()
    assert trace.output() and "reads at most" not in trace.ended


def test_drafts_under_the_memory_are_lossless(tiny_model):
    """What a token sees depends on its path alone, so speculation writes what greedy writes, both with it."""
    models = {"target": tiny_model(), "draft": tiny_model(seed=1)}
    own = settings(5, 2) | {"memory_drift": False}
    greedy = Lane("greedy", list(range(1, 12)), models, own, limits=Limits(16)).run()
    drafted = Lane(
        "speculative", list(range(1, 12)), models, own | {"temperature": 0}, limits=Limits(16)
    ).run()
    assert drafted.output() == greedy.output()


def test_its_parameters_are_declared():
    assert set(settings(1, 1)) < {p.name for p in options.parameters_of("lm-infinite")}
