"""The simulation that tree searches share: how it goes down, what it opens, and what goes back."""

import pytest

from decoders.search.tree_search.mcts import Edge, State, TreeSearch


class Binary(TreeSearch):
    """Texts of the letters a and b, two of them long; the share of b is what a text is worth."""

    def __init__(self):
        self.opened: list[str] = []

    def open(self, node: str) -> State:
        self.opened.append(node)
        return State(node, [] if len(node) == 2 else [Edge(node + letter, 0.5) for letter in "ab"])

    def choose(self, state: State) -> Edge:
        """What was tried least; of equals the first."""
        return min(state.edges, key=lambda edge: edge.visits)

    def evaluate(self, state: State) -> float:
        return state.node.count("b") / len(state.node)


def test_a_simulation_opens_one_state_and_goes_back_the_way_it_came():
    search = Binary()
    root = search.open("")
    ways = [search.simulate(root) for _ in range(5)]
    told = [([edge.node for edge in way], value) for way, value in ways]
    assert told == [
        (["a"], 0.0),
        (["b"], 1.0),
        (["a", "aa"], 0.0),
        (["b", "ba"], 0.5),
        (["a", "ab"], 0.5),
    ]
    assert search.opened == ["", "a", "b", "aa", "ba", "ab"]
    a, b = root.edges
    assert (a.visits, a.total, a.value) == (3, 0.5, pytest.approx(1 / 6))
    assert (b.visits, b.total, b.value) == (2, 1.5, 0.75)
    assert (root.visits, a.below.visits, b.below.visits) == (6, 3, 2)


def test_a_whole_text_is_evaluated_again_and_opened_once():
    search = Binary()
    root = search.open("b")  # one letter more, and the text is whole
    for _ in range(4):
        search.simulate(root)
    assert search.opened == ["b", "ba", "bb"]
    assert [(edge.visits, edge.value) for edge in root.edges] == [(2, 0.5), (2, 1.0)]
    assert [edge.below.visits for edge in root.edges] == [1, 1]


def test_a_root_without_edges_stays_as_it_is():
    search = Binary()
    root = search.open("bb")
    assert search.simulate(root) == ([], 1.0)
    assert root.visits == 1
