"""The hybrid model: trees are their paths, and going on along one of them is reading it."""

import pytest
import torch

from explorer.experiments.models.hybrid import Hybrid

TREE = [-1, 0, 0, 1, 1, 2, 4, -1, 7]
TEXT = [3, 1, 4, 1, 5]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Hybrid(11, width=16, layers=4, attends=2, heads=2, state=3).double().requires_grad_(False)


def path_to(node: int) -> list[int]:
    return [] if node < 0 else [*path_to(TREE[node]), node]


def test_a_tree_is_read_as_its_paths(model):
    tokens = torch.tensor([[2, 7, 1, 8, 2, 8, 1, 8, 2]])
    known, _ = model.read_text(TEXT)
    said = model.read(tokens, TREE, known).logits[0]
    for node in range(len(TREE)):
        whole = torch.tensor([[*TEXT, *tokens[0, path_to(node)].tolist()]])
        torch.testing.assert_close(said[node], model(whole)[0, -1], rtol=0, atol=1e-10)


def test_going_on_along_a_path_is_reading_it(model):
    tokens = torch.tensor([[2, 7, 1, 8, 2, 8, 1, 8, 2]])
    known, _ = model.read_text(TEXT)
    path = path_to(6)
    moved = model.after(known, model.read(tokens, TREE, known), path)
    again, last = model.read_text([*TEXT, *tokens[0, path].tolist()])
    assert moved.length == again.length and moved.size == again.size == known.size
    for one, other in zip(moved.layers, again.layers, strict=True):
        pairs = (
            zip(one, other, strict=True)
            if isinstance(one, tuple)
            else [(one.h, other.h), (one.tail, other.tail)]
        )
        for a, b in pairs:
            torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
    following = torch.tensor([[9]])
    torch.testing.assert_close(
        model.read(following, [-1], moved).logits, model.read(following, [-1], again).logits
    )
    assert torch.isfinite(last).all()


def test_texts_of_a_batch_are_read_alone(model):
    one, other = torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5, 6]])
    both = model(torch.cat([one, other]))
    torch.testing.assert_close(both, torch.cat([model(one), model(other)]))
