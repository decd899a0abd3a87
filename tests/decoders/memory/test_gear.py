"""GEAR: the worked numbers, the power iteration against the singular value decomposition, sizes."""

import math

import pytest
import torch

from decoders.memory.engine import MemoryEngine
from decoders.memory.gear import (
    Gear,
    bits_per_number,
    block_bytes,
    low_rank,
    outliers,
    quantised,
    without_error,
)
from decoders.memory.policy import Slots
from decoders.memory_options import memories

PLAIN = {"memory_bits": 2, "memory_group": 64, "memory_outliers": 0.0, "memory_rank": 0, "memory_buffer": 20}


def test_the_worked_example():
    """2 bits, [0, 1, 2, 9]: rounded plainly; then with one outlier on each side taken out."""
    x = torch.tensor([0.0, 1.0, 2.0, 9.0])
    plain, apart = quantised(x, 2, 0), without_error(x, 2, 0, 0.5)
    assert plain.tolist() == [0, 0, 3, 9] and float((plain - x).square().sum()) == 2.0
    torch.testing.assert_close(apart, torch.tensor([0.0, 1.0, 7 / 3, 9.0]))
    assert math.isclose(float((apart - x).square().sum()), 1 / 9, rel_tol=1e-5)
    assert outliers(x, 0.5).tolist() == [True, False, False, True]


def test_levels_groups_and_constants():
    x = torch.arange(10.0)
    for bits in (2, 3, 4):
        assert len(quantised(torch.linspace(0, 1, 999), bits, 0).unique()) == 2**bits
    assert quantised(torch.full((5,), 2.5), 2, 0).tolist() == [2.5] * 5
    assert quantised(x, 16, 4) is x
    expected = torch.cat([quantised(x[:4], 2, 0), quantised(x[4:8], 2, 0), quantised(x[8:], 2, 0)])
    assert torch.equal(quantised(x, 2, 4), expected)  # the last group is shorter


def test_low_rank_by_power_iteration():
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(64, 4, generator=generator) @ torch.randn(4, 16, generator=generator)
    assert (low_rank(exact, 4, 1, generator) - exact).norm() < 1e-5 * exact.norm()
    ratios = []
    for _ in range(10):
        error = torch.randn(64, 16, generator=generator)
        best = torch.linalg.svdvals(error)[4:].norm()
        ratios.append(float((low_rank(error, 4, 3, generator) - error).norm() / best))
    assert sum(ratios) / len(ratios) < 1.05


def compressed(pool: torch.Tensor, shape, **changes) -> torch.Tensor:
    pool = pool.clone()
    slots = Slots(pool, torch.zeros(pool.shape[0], pool.shape[2], pool.shape[3]), torch.arange(pool.shape[3]))
    Gear(shape, PLAIN | changes).settle(slots, torch.arange(pool.shape[3]))
    return pool


@pytest.fixture(scope="module")
def shape(tiny_model):
    return MemoryEngine(tiny_model().engine, {"memory": "gear", **PLAIN}).shape


def test_each_part_of_the_recipe_lowers_the_error(shape):
    generator, errors = torch.Generator().manual_seed(1), []
    for _ in range(20):
        size = (shape.layers, 2, shape.kv_heads, 120, shape.width)
        pool = torch.randn(size, generator=generator) ** 3  # heavy tails
        ways = ({}, {"memory_rank": 2}, {"memory_rank": 2, "memory_outliers": 0.1})
        errors.append([float((compressed(pool, shape, **way) - pool).norm()) for way in ways])
    plain, gear_l, gear = torch.tensor(errors).mean(0).tolist()
    assert gear < gear_l < plain


def test_sixteen_bits_change_nothing(shape):
    pool = torch.randn(shape.layers, 2, shape.kv_heads, 30, shape.width)
    assert torch.equal(compressed(pool, shape, memory_bits=16, memory_outliers=0.1, memory_rank=4), pool)


def test_sizes_are_those_of_the_formula():
    assert round(bits_per_number(2, 64, 4, 128, 1000, 0.02), 2) == 4.02  # 2.5 + 0.564 + 0.96
    p = {"memory_bits": 4, "memory_group": 32, "memory_outliers": 0.0}
    n, heads, width, rank = 64, 2, 16, 3
    total = block_bytes(n, heads, width, p, rank)
    assert math.isclose(8 * total / (2 * n * heads * width), bits_per_number(4, 32, rank, width, n, 0.0))
    p["memory_outliers"] = share = 0.25  # 16 of 64 tokens per channel, 8 of 32 channels per token
    total = block_bytes(n, heads, width, p, rank)
    assert math.isclose(8 * total / (2 * n * heads * width), bits_per_number(4, 32, rank, width, n, share))


def test_the_newest_tokens_wait_in_the_buffer(shape):
    gear = Gear(shape, PLAIN | {"memory_buffer": 4})
    pool = torch.randn(shape.layers, 2, shape.kv_heads, 20, shape.width)
    slots = Slots(pool, torch.zeros(pool.shape[0], pool.shape[2], 20), torch.arange(20))
    for count, done in ((6, 6), (9, 6), (10, 10), (19, 18)):
        gear.settle(slots, torch.arange(count))
        assert gear.states(count)[0] == ["quantised"] * done + ["full"] * (count - done)
        blocks = sum(block_bytes(n, shape.kv_heads, shape.width, gear.parameters, r) for n, r in gear.blocks)
        assert gear.kept_bytes(count) == shape.layers * blocks + (count - done) * shape.slot_bytes


def test_the_default_says_from_which_size_on_keys_have_outliers():
    (share,) = (p for p in memories()["gear"].parameters if p.name == "memory_outliers")
    keys = {n: int(outliers(torch.randn(3, n), share.default).sum()) for n in (20, 50, 51)}
    assert keys == {20: 0, 50: 0, 51: 3 * 2}
    assert f"{share.default} keeps none of the keys in a block of up to 50 tokens" in share.help
