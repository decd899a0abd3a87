"""The index over a trace's nodes: a small tree by hand, and that of a real lane."""

from decoders.trace.events import Propose
from decoders.trace.node_index import NodeIndex

PROMPT = [7, 8, 9]


def small() -> NodeIndex:
    """Below the prompt 0 - 1 - 2: 3, and below that 4 and 5; 6 below 5."""
    index = NodeIndex(PROMPT)
    for node, parent, token in ((3, 2, 10), (4, 3, 11), (5, 3, 12), (6, 5, 10)):
        index.add(Propose(node, parent, token, "target", None))
    return index


def test_parents_tokens_and_positions():
    index = small()
    assert index.root == 2
    assert index.parent == {0: -1, 1: 0, 2: 1, 3: 2, 4: 3, 5: 3, 6: 5}
    assert index.token == {0: 7, 1: 8, 2: 9, 3: 10, 4: 11, 5: 12, 6: 10}
    assert index.position == {0: -2, 1: -1, 2: 0, 3: 1, 4: 2, 5: 2, 6: 3}


def test_ways_up_and_down():
    index = small()
    assert list(index.upwards(6)) == [6, 5, 3, 2, 1, 0]
    assert list(index.upwards(None)) == list(index.upwards(-1)) == []
    assert index.path(6) == [3, 5, 6] and index.path(2) == index.path(None) == []
    assert index.children() == {0: [1], 1: [2], 2: [3], 3: [4, 5], 5: [6]}


def test_a_lane_s_index_agrees_with_its_tree(tiny_model, prompt):
    from decoders.lane import Lane, Limits

    models = {"target": tiny_model("llama"), "draft": tiny_model("llama", 1)}
    lane = Lane("speculative_tree", prompt, models, limits=Limits(12))
    trace = lane.run()
    index, tree = trace.index(), lane.tree
    assert trace.nodes() == {n: (index.parent[n], index.token[n]) for n in index.parent}
    assert all(
        tree.parents[n] == parent and tree.tokens[n] == index.token[n] for n, parent in index.parent.items()
    )
    assert all(tree.depths[n] - tree.depths[index.root] == at for n, at in index.position.items())
    assert all(tree.path(n, above=index.root) == index.path(n) for n in index.parent if n > index.root)
