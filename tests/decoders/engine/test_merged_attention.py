"""Attention in parts: the worked numbers, against plain attention, against the engine's ancestor mask."""

import random
from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as plain

from decoders.engine.merged_attention import (
    attend,
    merge_lse,
    prefix_part,
    rows_read,
    segments,
    shared_prefix_attention,
    tree_attention,
)
from decoders.engine.tree import Tree
from decoders.engine.tree_attention import TreeMask


def close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


def one_head(logits, values):
    """Keys that give these logits to the query 1, and the values."""
    keys, values = torch.tensor(logits), torch.tensor(values)
    return attend(torch.ones(1, 1, 1, 1), keys.view(1, 1, -1, 1), values.view(1, 1, -1, 1))


def test_the_worked_numbers():
    """Prefix logits 0 and ln 3 with values 1 and 2; a suffix with logit ln 2 and value 5."""
    ln2, ln3, ln4 = torch.tensor([2.0, 3.0, 4.0]).log().tolist()
    prefix, suffix = one_head([0.0, ln3], [1.0, 2.0]), one_head([ln2], [5.0])
    assert (prefix[0].item(), prefix[1].item()) == pytest.approx((1.75, ln4))
    both = merge_lse([prefix, suffix])
    assert both[0].item() == pytest.approx(2.83333, abs=1e-5)
    assert both[0].item() == pytest.approx(one_head([0.0, ln3, ln2], [1.0, 2.0, 5.0])[0].item())


def test_merges_can_be_merged():
    parts = [one_head([float(n), 0.5], [float(n), -1.0]) for n in range(3)]
    for left, right in zip(merge_lse([merge_lse(parts[:2]), parts[2]]), merge_lse(parts), strict=True):
        close(left, right)


def test_a_part_without_visible_keys_weighs_nothing():
    some = one_head([1.0, 2.0], [3.0, 4.0])
    nothing = attend(*[torch.ones(1, 1, 1, 1)] * 3, torch.zeros(1, 1, dtype=torch.bool))
    assert nothing[0].item() == 0 and nothing[1].item() == -torch.inf
    for merged in (merge_lse([nothing, some]), merge_lse([some, nothing])):
        assert merged[0].item() == some[0].item() and merged[1].item() == pytest.approx(some[1].item())
    out, lse = merge_lse([nothing, nothing])
    assert out.item() == 0 and lse.item() == -torch.inf
    with pytest.raises(ValueError, match="at least one"):
        merge_lse([])


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("prefixes", [1, 3])
@pytest.mark.parametrize("queries, own", [(1, 1), (1, 5), (3, 5), (5, 5), (2, 0)])
def test_a_shared_prefix_is_plain_attention(groups, prefixes, queries, own):
    """torch's attention over the prefix repeated for each row, and the row's own suffix after it."""
    torch.manual_seed(0)
    q, rows = torch.randn(6, 4, queries, 8), 6
    prefix = torch.randn(2, prefixes, groups, 7, 8).unbind(0)
    suffix = torch.randn(2, rows, groups, own, 8).unbind(0)
    k, v = (
        torch.cat([one.repeat_interleave(rows // prefixes, 0), two], 2).repeat_interleave(4 // groups, 1)
        for one, two in zip(prefix, suffix, strict=True)
    )
    mask = torch.ones(queries, 7 + own, dtype=torch.bool)
    mask = mask.tril(7 + own - queries) if own else mask
    close(shared_prefix_attention(q, prefix, suffix), plain(q, k, v, mask))


def test_rows_that_cannot_share_equally_are_told():
    with pytest.raises(ValueError, match="5 rows cannot share 2 prefixes"):
        prefix_part(torch.ones(5, 1, 1, 2), *[torch.ones(2, 1, 3, 2)] * 2)


def drawn_tree(seed):
    """A prompt, and below it three levels of branches of chance lengths."""
    chance, tree = random.Random(seed), Tree([0] * 4)
    level = [3]
    for _ in range(3):
        tips = []
        for above in level:
            for _ in range(chance.randint(1, 3)):
                node = above
                for _ in range(chance.randint(1, 3)):
                    node = tree.add(node, 0)
                tips.append(node)
        level = tips
    return tree


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_in_segments_is_the_engines_ancestor_mask(seed):
    tree = drawn_tree(seed)
    nodes = list(range(len(tree.tokens)))
    engine = SimpleNamespace(device=torch.device("cpu"), dtype=torch.float32, horizons={}, nearest=None)
    mask = TreeMask(tree, lambda node: node).look_at(nodes, engine).mask
    torch.manual_seed(seed)
    q, k, v = torch.randn(3, 2, 4, len(nodes), 8).unbind(0)
    out, read = tree_attention(q, k, v, tree.parents)
    close(out, plain(q, k, v, mask))
    assert read == len(nodes)  # each once, whatever hangs below


def test_the_segments_of_a_tree():
    assert segments([-1, 0, 1, 1, 2, 3, 3, -1]) == [[0, 1], [2, 4], [3], [5], [6], [7]]


def test_keys_that_are_read():
    """16 rows, 1000 tokens shared, 10 of their own."""
    prefix, suffix = torch.empty(1, 1, 1000, 2), torch.empty(16, 1, 10, 2)
    assert rows_read(prefix, suffix) == 1160
    assert rows_read(torch.cat([prefix.expand(16, -1, -1, -1), suffix], 2)) == 16160
