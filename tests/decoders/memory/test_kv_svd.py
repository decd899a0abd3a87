"""KV heads by singular values: exact where the rank is low, better than means, folded or not."""

import pytest
import torch

from decoders.memory import calibration
from decoders.memory.engine import MemoryEngine
from decoders.memory.kv_svd import KvSvd, apart, basis, folded_values, grouped, pooling
from decoders.memory.policy import Reading, Slots


def edited(shape, keys, values, **parameters):
    """What a cache gives back for keys and values [L, Hkv, T, D]."""
    policy = KvSvd(shape, {"memory_heads": 1, "memory_route": "post", **parameters})
    pool = torch.stack([keys, values], dim=1)
    everything, rows = slice(0, keys.shape[2]), torch.arange(keys.shape[2])
    reading = Reading(Slots(pool, torch.zeros(1), rows), rows, everything, everything, None)
    changed = [policy.edit(layer, reading, pool[layer]) for layer in range(shape.layers)]
    return policy, pool, changed


@pytest.fixture(scope="module")
def shape(tiny_model):
    return MemoryEngine(
        tiny_model().engine, {"memory": "kv-svd", "memory_heads": 2, "memory_route": "post"}
    ).shape


def test_groups_are_heads_side_by_side():
    x = torch.randn(6, 5, 4)
    together = grouped(x, 2)
    assert together.shape == (2, 5, 12) and torch.equal(
        together[1, 3], torch.cat([x[3, 3], x[4, 3], x[5, 3]])
    )
    assert torch.equal(apart(together, 6), x)


@pytest.mark.parametrize("route", ["post", "pre"])
def test_keys_of_low_rank_come_back_exactly(shape, monkeypatch, route):
    """Two heads that share one subspace of the width of a head, before the rotation or after it."""
    generator = torch.Generator().manual_seed(0)
    size = (shape.layers, 1, 30, shape.width)
    one = torch.randn(size, generator=generator).double()
    mixed = torch.cat([one, one @ torch.randn(shape.width, shape.width, generator=generator).double()], dim=1)
    keys = shape.rotary.turn(mixed, torch.arange(30)) if route == "pre" else mixed
    monkeypatch.setattr(calibration, "measured", lambda model: (keys[:, :, None], mixed[:, :, None]))
    policy, pool, changed = edited(shape, keys, mixed, memory_route=route)
    assert all(changed)
    torch.testing.assert_close(pool, torch.stack([keys, mixed], dim=1), atol=1e-5, rtol=1e-5)
    assert policy.kept_bytes(7) == 7 * shape.slot_bytes / 2


def test_all_heads_change_nothing(shape):
    keys = torch.randn(shape.layers, shape.kv_heads, 9, shape.width)
    policy, pool, changed = edited(shape, keys, keys, memory_heads=shape.kv_heads)
    assert not any(changed) and torch.equal(pool[:, 0], keys) and policy.states(2) == [["full"] * 2]


def test_a_mean_of_heads_loses_more_on_every_layer(shape):
    keys, values = calibration.measured(shape.model)
    for each in (keys, values):
        x = grouped(each.flatten(2, 3).double(), 1)  # [L, 1, T, 2 D]
        found, energy = basis(x, shape.width)
        ours = (x - x @ found @ found.mT).norm(dim=(-2, -1))
        mean = pooling(2, shape.width)
        assert (ours < (x - x @ mean @ mean.T).norm(dim=(-2, -1))).all()
        assert (energy.diff(dim=-1) >= -1e-12).all() and torch.allclose(
            energy[..., -1], torch.ones(()).double()
        )


def test_folded_and_unfolded_values_agree():
    """Four query heads, four value heads in two groups: the grouped model's output is that of projected
    values.
    """
    generator = torch.Generator().manual_seed(0)
    heads, width, d, count = 4, 3, 7, 5
    draw = lambda *size: torch.randn(*size, generator=generator, dtype=torch.float64)
    w_v, w_o, x, attention = (
        draw(heads * width, d),
        draw(d, heads * width),
        draw(count, d),
        draw(heads, count, count),
    )
    psi, _ = basis(grouped((x @ w_v.T).view(count, heads, width).transpose(0, 1), 2), width)
    values = (x @ w_v.T).view(count, heads, width).transpose(0, 1)
    projected = apart(grouped(values, 2) @ psi @ psi.mT, heads)
    expected = (attention @ projected).transpose(0, 1).flatten(1) @ w_o.T
    share, out = folded_values(w_v, w_o, psi, heads)
    shared = (x @ share.T).view(count, 2, width).transpose(0, 1).repeat_interleave(2, 0)
    torch.testing.assert_close((attention @ shared).transpose(0, 1).flatten(1) @ out.T, expected)


def test_heads_that_do_not_divide_are_refused(tiny_model):
    with pytest.raises(ValueError, match="must be one of 1, 2"):
        MemoryEngine(tiny_model().engine, {"memory": "kv-svd", "memory_heads": 3, "memory_route": "post"})
