"""The tree scan: the dossier's numbers, every path unrolled, replay, a chain as recurrence."""

import pytest
import torch

from explorer.experiments.models.state_space import StateSpace, ancestors, recent, step, tree_scan

TREE = [-1, 0, 0, 1, 1, 2, 4, -1, 7]


def paths(parents: list[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for node, parent in enumerate(parents):
        found.append([*(found[parent] if parent >= 0 else []), node])
    return found


def test_the_scalar_example():
    """exp(A dt) = .5 everywhere, h_0 = 1; inputs 1, then 2 and -1 below it: states 1.5, 2.75, -.25."""
    dt = torch.ones(1, 3, dtype=torch.float64)
    x = torch.tensor([[[1.0], [2.0], [-1.0]]], dtype=torch.float64)
    a, ones = torch.tensor([0.5], dtype=torch.float64).log(), torch.ones(3, 1, dtype=torch.float64)
    y = tree_scan(x, dt, a, ones, ones, ancestors([-1, 0, 0]), torch.ones(1, 1, 1, dtype=torch.float64))
    assert y.flatten().tolist() == pytest.approx([1.5, 2.75, -0.25])


def drawn(nodes: int, heads: int = 2, size: int = 3, state: int = 4):
    torch.manual_seed(0)
    double = dict(dtype=torch.float64)
    x, dt = torch.randn(heads, nodes, size, **double), torch.rand(heads, nodes, **double)
    b, c = torch.randn(nodes, state, **double), torch.randn(nodes, state, **double)
    return x, dt, -torch.rand(heads, **double), b, c, torch.randn(heads, size, state, **double)


@pytest.mark.parametrize("parents", [TREE, list(range(-1, 8))], ids=["tree", "chain"])
def test_all_nodes_at_once_are_every_path_one_by_one(parents):
    x, dt, a, b, c, h = drawn(len(parents))
    y = tree_scan(x, dt, a, b, c, ancestors(parents), h)
    for path in paths(parents):
        state = h
        for node in path:
            state = step(state, x[:, node], dt[:, node], a, b[node])
        torch.testing.assert_close(y[:, path[-1]], state @ c[path[-1]], rtol=0, atol=1e-10)


@pytest.fixture(scope="module")
def layer():
    torch.manual_seed(1)
    return StateSpace(8, heads=2, state=3).double()


def read(layer, u, parents, memory=None):
    return layer(u, memory or layer.empty(len(u)), ancestors(parents), recent(parents))


def test_the_layer_on_a_tree_is_the_layer_on_each_path(layer):
    """The short convolution follows the ancestors too, into the text in front of the tree."""
    torch.manual_seed(2)
    text, nodes = torch.randn(1, 5, 8, dtype=torch.float64), torch.randn(1, len(TREE), 8, dtype=torch.float64)
    _, left = read(layer, text, list(range(-1, 4)))
    memory = layer.after(layer.empty(), left, list(range(5)))
    said, _ = read(layer, nodes, TREE, memory)
    for path in paths(TREE):
        whole = torch.cat([text, nodes[:, path]], 1)
        alone, _ = read(layer, whole, list(range(-1, whole.shape[1] - 1)))
        torch.testing.assert_close(said[:, path[-1]], alone[:, -1], rtol=0, atol=1e-10)


def test_after_replay_the_state_is_that_of_reading_one_by_one(layer):
    torch.manual_seed(3)
    nodes = torch.randn(1, len(TREE), 8, dtype=torch.float64)
    _, left = read(layer, nodes, TREE)
    path = paths(TREE)[6]
    replayed = layer.after(layer.empty(), left, path)
    one = layer.empty()
    for node in path:
        _, own = read(layer, nodes[:, [node]], [-1], one)
        one = layer.after(one, own, [0])
    torch.testing.assert_close(replayed.h, one.h, rtol=0, atol=1e-10)
    torch.testing.assert_close(replayed.tail, one.tail)
    assert replayed.size == one.size == layer.empty().size


def test_a_node_sees_its_own_path_alone(layer):
    torch.manual_seed(4)
    nodes = torch.randn(1, len(TREE), 8, dtype=torch.float64)
    before, _ = read(layer, nodes, TREE)
    for changed in range(len(TREE)):
        other = nodes.clone()
        other[:, changed] += 1
        moved = (read(layer, other, TREE)[0] - before)[0].abs().amax(-1) > 1e-9
        assert moved.tolist() == [changed in path for path in paths(TREE)]
