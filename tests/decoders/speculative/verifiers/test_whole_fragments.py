"""The integrity check by hand: what is cut after the last mark, and what stays whole."""

import pytest
import torch

from decoders.chooser import Random
from decoders.engine.tree import Tree
from decoders.speculative.interfaces import Draft, VerifierInput
from decoders.speculative.verifiers.greedy_match import GREEDY_MATCH
from decoders.speculative.verifiers.whole_fragments import whole_fragments
from decoders.trace.reasons import Code, Reason

MARK, END = 9, 8


def walked(root: int, drafted: list[int], wanted: list[int]):
    """What the check makes of a chain of drafted tokens if the target wants these, one after each node."""
    tree = Tree([root])
    nodes = [0]
    draft = Draft(0)
    for token in drafted:
        node = tree.add(nodes[-1], token)
        draft.children[nodes[-1]] = [node]
        draft.nodes.append(node)
        nodes.append(node)
    rows = torch.nn.functional.one_hot(torch.tensor(wanted), 10).double()
    p = {n: row for n, row in zip(nodes, rows, strict=True) if tree.tokens[n] != END}
    return whole_fragments(GREEDY_MATCH, MARK, greedy=True).verify(
        VerifierInput(draft, tree.tokens, p, Random(0), 0)
    )


@pytest.mark.parametrize(
    ("root", "drafted", "wanted", "kept", "cut", "own"),
    [
        (1, [2, MARK, 3], [2, MARK, 3, 4], [1, 2], [3], 3),  # cut after the mark; 3 is written again
        (1, [2, MARK, 3], [2, MARK, 4, 4], [1, 2], [], 4),  # rejected there anyway
        (1, [2, 3, 4], [2, 3, 4, 5], [1, 2, 3], [], 5),  # no mark: all stays
        (MARK, [2, 3, 4], [2, 3, 5, 5], [], [1, 2], 2),  # the round's first token is the mark
        (MARK, [2, MARK, 4], [2, MARK, 4, 5], [1, 2], [3], 4),
        (1, [MARK, 2, END], [MARK, 2, END, 5], [1, 2, 3], [], None),  # the text ends: nothing is incomplete
    ],
)
def test_what_stands_behind_the_last_mark_is_cut(root, drafted, wanted, kept, cut, own):
    found = walked(root, drafted, wanted)
    assert (found.path, found.cut, found.token) == (kept, cut, own)
    for test in found.tests:
        assert (Reason(Code.CUT) in test.reasons) == (test.node in cut)
