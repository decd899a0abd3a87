"""Trees of ranks: the worked numbers, and that what is kept is a tree."""

import itertools

import pytest
import torch

from decoders.speculative.drafters.rank_trees import expected_tokens, topology_from_rank_accuracy

WORKED = [[0.6, 0.2], [0.5, 0.2]]


@pytest.mark.parametrize(
    ("count", "paths", "tokens"),
    [
        (3, [(0,), (0, 0), (1,)], 2.1),
        (4, [(0,), (0, 0), (1,), (0, 1)], 2.22),
        (99, [(0,), (0, 0), (1,), (0, 1), (1, 0), (1, 1)], 2.36),
    ],
)
def test_the_worked_topology(count, paths, tokens):
    """Values 0: .6, 00: .3, 1: .2, 01: .12, 10: .10, 11: .04, and their sums."""
    assert topology_from_rank_accuracy(WORKED, count) == paths
    assert expected_tokens(WORKED, paths) == pytest.approx(tokens)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_paths_form_a_tree_and_no_other_set_is_worth_more(seed):
    """Against all trees of three nodes; with equal shares too, where parents come before their children."""
    draw = torch.Generator().manual_seed(seed)
    accuracy = (
        torch.randint(0, 4, (2, 3), generator=draw) / 4 if seed % 2 else torch.rand(2, 3, generator=draw)
    )
    accuracy = accuracy.tolist()
    kept = topology_from_rank_accuracy(accuracy, 3)
    assert all(path[:-1] == () or path[:-1] in kept[: kept.index(path)] for path in kept)
    every = [(a,) for a in range(3)] + list(itertools.product(range(3), range(3)))
    trees = (t for t in itertools.combinations(every, 3) if all(p[:-1] == () or p[:-1] in t for p in t))
    best = max(expected_tokens(accuracy, tree) for tree in trees)
    assert expected_tokens(accuracy, kept) == pytest.approx(best)
