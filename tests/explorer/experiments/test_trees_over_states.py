"""Trees checked by states: the text is the plain one whatever is drafted, beams are the most likely paths."""

import pytest
import torch

from explorer.experiments import trees_over_states as trees
from explorer.experiments.models.hybrid import Hybrid


@pytest.fixture(scope="module")
def pair():
    torch.manual_seed(0)
    target = Hybrid(23, width=16, layers=4, attends=2, heads=2, state=3)
    draft = Hybrid(23, width=8, layers=2, attends=-1, heads=2, state=3)
    return target.double().requires_grad_(False), draft.double().requires_grad_(False)


def test_the_text_is_the_plain_one(pair, monkeypatch):
    """With a draft that is another model, and with the target as its own draft: then nothing is in vain."""
    monkeypatch.setattr(trees, "TOKENS", 21)
    target, draft = pair
    for begun in ([1, 2, 3], [4, 5, 6, 7, 8]):
        plain = trees.write(target, draft, begun, 0, 0)
        assert plain.forwards == plain.nodes == 20
        for width, depth in ((1, 4), (3, 4), (2, 1)):
            assert trees.write(target, draft, begun, width, depth).tokens == plain.tokens
        own = trees.write(target, target, begun, 1, 4)
        assert own.tokens == plain.tokens and own.forwards == 4


def test_beams_are_the_likeliest_of_the_level(pair):
    """By hand: all continuations of the level before, each read as a text of its own."""
    _, draft = pair
    known, _ = draft.read_text([1, 2])
    tokens, parents = trees.beams(draft, known, 3, 2, 2)
    assert parents[:3] == [-1, 0, 0] and len(tokens) == 5

    def law(text):
        return draft(torch.tensor([text]))[0, -1].log_softmax(-1)

    first = law([1, 2, 3]).topk(2)
    assert tokens[1:3] == first.indices.tolist()
    second = torch.stack([s + law([1, 2, 3, t]) for t, s in zip(tokens[1:3], first.values, strict=True)])
    best = [divmod(at, 23) for at in second.flatten().topk(2).indices.tolist()]
    assert [(parents[n] - 1, tokens[n]) for n in (3, 4)] == best


def test_the_path_that_is_accepted():
    tokens, parents = [9, 1, 2, 3, 4], [-1, 0, 0, 2, 2]
    assert trees.accepted(tokens, parents, [2, 0, 4, 0, 7]) == [0, 2, 4]
    assert trees.accepted(tokens, parents, [5, 0, 4, 0, 7]) == [0]


def test_branches_side_by_side_are_read_as_one(pair):
    target, _ = pair
    known, _ = target.read_text([1, 2, 3])
    rows = torch.tensor([[4, 5], [6, 7]])
    both = target.read(rows, [-1, 0], trees.branches(known, 2)).logits
    for row, said in zip(rows, both, strict=True):
        torch.testing.assert_close(said, target.read(row[None], [-1, 0], known).logits[0])
