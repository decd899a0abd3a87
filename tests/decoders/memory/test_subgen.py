"""SubGen: the laws of its samples, the first-come rule of its clusters, and the practical form."""

import pytest
import torch

from decoders.memory.engine import MemoryEngine
from decoders.memory.policy import HIDDEN, Slots
from decoders.memory.subgen import Stream, SubGen, k_centres

PRACTICAL = {"memory_form": "practical", "memory_budget": 8, "memory_seed": 0}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def stream(batch, delta, values=4, samples=1, width=2):
    return Stream(torch.full((batch,), delta, dtype=torch.float64), width, values, samples, generator())


def test_slots_are_drawn_by_squared_norm():
    """Values of norm 3 and 4: probabilities 0.36 and 0.64."""
    batch = 100_000
    state = stream(batch, 1.0, values=1)
    for value in ([3.0, 0.0], [0.0, 4.0]):
        state.add(torch.zeros(batch, 2).double(), torch.tensor(value).double().expand(batch, 2))
    second = float((state.norms[:, 0] == 16).double().mean())
    assert abs(second - 0.64) < 0.005


def test_numerator_and_denominator_are_unbiased():
    seeds, n, width = 1000, 64, 16
    g = generator(3)
    q, k, v = (torch.randn(n, width, generator=g, dtype=torch.float64) for _ in range(3))
    q = q[:1] / width**0.5
    state = stream(seeds, 5.0, values=32, samples=4, width=width)
    for key, value in zip(k, v, strict=True):
        state.add(key.expand(seeds, -1), value.expand(seeds, -1))
    numerator, denominator, shift = state.estimate(q.expand(seeds, 1, width))
    numerator, denominator = numerator[:, 0] * shift.exp(), (denominator * shift.exp())[:, 0]
    weights = (k @ q[0]).exp()
    error = (numerator.mean(0) - weights @ v).abs()
    assert (error < 4 * numerator.std(0) / seeds**0.5).all()
    assert 1 < int((state.counts[0] > 0).sum()) < n
    assert abs(float(denominator.mean() / weights.sum()) - 1) < 0.01


def test_every_key_its_own_cluster_makes_the_denominator_exact():
    g = generator(1)
    k, q = (
        torch.randn(9, 2, generator=g, dtype=torch.float64),
        torch.randn(1, 2, generator=g, dtype=torch.float64),
    )
    state = stream(1, 0.0)
    for key in k:
        state.add(key[None], key[None])
    _, denominator, shift = state.estimate(q[None])
    torch.testing.assert_close((denominator * shift.exp())[0, 0], (k @ q[0]).exp().sum())


def test_one_cluster_is_a_uniform_sample():
    """(n / t) times the sum over the sampled keys; each key is in a sample equally often."""
    batch, n = 20_000, 4
    state = stream(batch, 1e9, samples=2)
    for index in range(n):
        state.add(torch.full((batch, 2), float(index)).double(), torch.ones(batch, 2).double())
    assert state.counts.shape == (batch, 1) and (state.counts == n).all()
    shares = torch.bincount(state.samples[:, 0, :, 0].long().flatten()) / (2 * batch)
    torch.testing.assert_close(shares, torch.full((n,), 1 / n), atol=0.01, rtol=0)
    _, denominator, shift = state.estimate(torch.zeros(batch, 1, 2).double())
    torch.testing.assert_close(denominator * shift.exp(), torch.full((batch, 1), float(n)).double())


@pytest.mark.parametrize(("delta", "clusters"), [(1.1, 2), (1.3, 3), (2.2, 1)])
def test_clusters_open_first_come_and_are_not_monotone_in_the_radius(delta, clusters):
    state, counts = stream(1, delta), []
    for key in ([0, 0], [1.2, 0], [1.2, 1.05], [1.2, -1.05]):
        state.add(torch.tensor([key]).double(), torch.ones(1, 2).double())
        counts.append(int((state.counts > 0).sum()))
    assert counts[-1] == clusters and counts == sorted(counts)


def test_more_samples_lower_the_error():
    """s and t doubled twice: the root mean square of the output's error falls each time."""
    g, seeds, n, width = generator(5), 300, 48, 8
    k, v = (torch.randn(n, width, generator=g, dtype=torch.float64) for _ in range(2))
    q, errors = torch.randn(1, width, generator=g, dtype=torch.float64) / width**0.5, []
    exact = (k @ q[0]).softmax(0) @ v
    for values, samples in ((16, 1), (32, 2), (64, 4)):
        state = stream(seeds, 3.0, values, samples, width)
        for key, value in zip(k, v, strict=True):
            state.add(key.expand(seeds, -1), value.expand(seeds, -1))
        numerator, denominator, _ = state.estimate(q.expand(seeds, 1, width))
        errors.append(float((numerator / denominator[..., None] - exact).square().sum(-1).mean().sqrt()))
    assert errors[0] > errors[1] > errors[2]


def test_values_of_norm_zero_are_never_drawn():
    state = stream(3, 1.0)
    for _ in range(4):
        state.add(torch.zeros(3, 2).double(), torch.zeros(3, 2).double())
    numerator, denominator, _ = state.estimate(torch.zeros(3, 1, 2).double())
    assert not numerator.any() and (denominator == 4).all()


def test_greedy_k_centre():
    points = torch.tensor([[[0.0], [1.0], [10.0], [11.0], [5.0]]])
    assert k_centres(points, 3).tolist() == [[0, 3, 4]]
    assert k_centres(points, 5).tolist() == [[0, 1, 2, 3, 4]]
    assert k_centres(torch.zeros(1, 4, 2), 3).unique().numel() == 3  # equal points are chosen once each


@pytest.fixture(scope="module")
def shape(tiny_model):
    return MemoryEngine(tiny_model().engine, {"memory": "subgen", **PRACTICAL}).shape


def test_the_practical_form_keeps_its_budget_and_every_token_counts(shape):
    policy = SubGen(shape, PRACTICAL)
    pool = torch.randn(shape.layers, 2, shape.kv_heads, 40, shape.width)
    slots = Slots(pool.clone(), torch.zeros(pool.shape[0], pool.shape[2], 40), torch.arange(40))
    for count in range(5, 31):
        policy.settle(slots, torch.arange(count))
        seen = slots.bias[:, :, :count] > HIDDEN / 2
        assert (seen.sum(-1) == min(count, 8)).all()
        torch.testing.assert_close(
            (slots.bias[:, :, :count].exp() * seen).sum(-1), torch.full(seen.shape[:2], float(count))
        )
        assert seen[:, :, max(0, count - 4) :].all()  # the newest tokens, exactly
        assert torch.equal(slots.pool[:, :, :, count - 4 : count], pool[:, :, :, count - 4 : count])
    sums = ((slots.bias[:, :, :30].exp() * seen)[..., None] * slots.pool[:, 1, :, :30]).sum(2)
    torch.testing.assert_close(sums, pool[:, 1, :, :30].sum(2), atol=1e-4, rtol=1e-4)
    heads = shape.layers * shape.kv_heads
    assert policy.kept_bytes(30) == 4 * shape.slot_bytes + heads * 4 * (2 * shape.width * 2 + 4)
    assert all(row.count("full") == 4 and "clustered" in row for row in policy.states(30))
