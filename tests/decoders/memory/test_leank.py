"""LeanK's masks, blocks and sizes."""

import pytest
import torch

from decoders.memory.engine import MemoryEngine
from decoders.memory.leank import LeanK, kept_channels
from decoders.memory.policy import HIDDEN, Slots

OWN = {
    "memory_sink": 2,
    "memory_recent": 4,
    "memory_block": 3,
    "memory_prune": 0.5,
    "memory_align": 2,
    "memory_mask": "random",
}


@pytest.fixture(scope="module")
def shape(tiny_model):
    return MemoryEngine(tiny_model().engine, {"memory": "leank", **OWN}).shape


def slots_of(shape, count=20):
    pool = torch.randn(shape.layers, 2, shape.kv_heads, count, shape.width)
    return Slots(pool, torch.zeros(pool.shape[0], pool.shape[2], count), torch.arange(count))


def test_the_worked_rounding():
    """Threshold 0.4, counts 3 and 1, rounded to 4 and 2: two of eight channels go, not four."""
    alphas = torch.tensor([[[0.9, 0.8, 0.7, 0.1], [0.6, 0.2, 0.05, 0.0]]])
    kept = kept_channels(alphas, 0.5, 2)
    assert kept.sum(-1).tolist() == [[4, 2]] and kept[0, 1].tolist() == [True, True, False, False]
    assert int((~kept).sum()) == 2


def test_middle_keys_lose_their_channels_in_blocks_and_nothing_else_changes(shape):
    policy, slots = LeanK(shape, OWN), slots_of(shape)
    before = slots.pool.clone()
    for count, middle in ((6, 0), (8, 0), (9, 3), (11, 3), (12, 6), (20, 12)):
        policy.settle(slots, torch.arange(count))
        assert policy.states(count)[0] == ["sink"] * 2 + ["pruned_channels"] * middle + ["full"] * (
            count - 2 - middle
        )
        end = 2 + middle
        assert torch.equal(slots.pool[:, 0, :, 2:end], before[:, 0, :, 2:end] * policy.mask[:, :, None])
        assert torch.equal(slots.pool[:, 1], before[:, 1])
        assert torch.equal(slots.pool[:, 0, :, end:], before[:, 0, :, end:])
    assert torch.equal(slots.pool[:, 0, :, :2], before[:, 0, :, :2])


def test_sizes_are_those_of_the_formula(shape):
    """Per head: 2 (sink + recent) d + middle (kept + d); a head without channels drops its middle."""
    policy, slots = LeanK(shape, OWN), slots_of(shape)
    policy.mask[0, 0] = False
    policy.settle(slots, torch.arange(9))
    width, kept = shape.width, policy.mask.sum(-1).flatten().tolist()
    each = [2 * 6 * width + 3 * (n + width if n else 0) for n in kept]
    assert kept[0] == 0 and policy.kept_bytes(9) == 2 * sum(each)
    assert (slots.bias[0, 0, 2:5] < HIDDEN).all() and not slots.bias[0, 1].any()
