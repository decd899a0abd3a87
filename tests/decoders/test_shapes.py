"""What a draft looks like: grown trees on a worked example, copies that share a node, pruned paths."""

import pytest

from decoders.chooser import Script
from decoders.lane import Lane, Limits
from decoders.speculative.draft_model import DRAFT_MODEL
from decoders.speculative.grown_shapes import best_paths, best_slots, expand_and_rerank
from decoders.speculative.parts import drafted
from decoders.speculative.shapes import widths
from decoders.tables import TableModel
from decoders.trace import Verdict


def table(tokens: tuple[int, ...]) -> list[float]:
    """The example of DySpec and OPT-Tree: .6 .3 .1 at the root, .8 .1 .1 after a, .5 .4 .1 after b."""
    drafted = tokens[1:]
    return [[0.8, 0.1, 0.1], [0.5, 0.4, 0.1], [0.4, 0.3, 0.3]][drafted[-1]] if drafted else [0.6, 0.3, 0.1]


def grown(shape, temperature: float, chooser=None):
    """(paths of the draft in order, the lane, the draft)."""
    model = TableModel(table, 3)
    lane = Lane(
        "speculation", [0], {"target": model, "draft": model}, {"temperature": temperature or 1.0},
        limits=Limits(16), chooser=chooser,
    )  # fmt: skip
    draft = drafted(DRAFT_MODEL, shape).propose(lane)
    name = {n: "".join("abc"[t] for t in lane.tree.text(n)[1:]) for n in draft.nodes}
    return [name[n] for n in draft.nodes], lane, draft


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_best_slot_is_filled_next(temperature):
    """Draws forced to the likeliest token that is left: DySpec's first six nodes."""
    paths, _, _ = grown(best_slots(6, temperature), temperature, Script([0, 0, 0, 1, 0, 0]))
    assert paths == ["a", "aa", "aaa", "b", "aaaa", "aaaaa"]


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, {"a"}), (4, {"a", "aa", "aaa", "aaaa"}), (5, {"a", "aa", "aaa", "aaaa", "b"}),
     (8, {"a", "aa", "aaa", "aaaa", "b", "aaaaa", "aaaaaa", "ba"})],
)  # fmt: skip
def test_the_best_paths_are_those_of_the_largest_value(count, expected):
    paths, _, _ = grown(
        best_paths(count, 6, 0.0), 0.0
    )  # seven levels deep aaaaaaa, .157, would come before ba, .15
    assert set(paths) == expected
    assert all(path[:-1] in expected or len(path) == 1 for path in paths)


@pytest.mark.parametrize(("delta", "expected"), [(0.4, {"a", "aa", "b"}), (0.3, {"a", "aa", "aaa"})])
def test_a_level_that_adds_too_little_is_the_last_one(delta, expected):
    """The sums of the three largest values are 1, 1.38 and 1.464."""
    assert set(grown(best_paths(3, 12, delta), 0.0)[0]) == expected


def test_what_is_ranked_out_is_pruned_and_told():
    paths, lane, draft = grown(expand_and_rerank(2, 3, 4), 0.0)
    assert paths == ["a", "b", "aa", "aaa"] and len(draft.nodes) == 4
    pruned = [e for e in lane._events if isinstance(e, Verdict)]
    assert len(pruned) == 2 + 4 + 4 - 4 and {e.status for e in pruned} == {"pruned"}
    assert set(draft.children[draft.root]) == set(draft.nodes[:2])


def test_one_child_a_level_is_a_greedy_chain():
    assert grown(expand_and_rerank(1, 4, 4), 0.0)[0] == ["a", "aa", "aaa", "aaaa"]


def test_equal_draws_share_a_node_and_are_counted():
    """Three chains of two tokens: a a b, then two draws below a and one below b."""
    shape = widths([3, 1], 1.0, replacement=True)
    paths, lane, draft = grown(shape, 1.0, Script([0, 0, 1, 2, 2, 0]))
    assert paths == ["a", "b", "ac", "ba"]
    a, b, ac, ba = draft.nodes
    assert draft.draws == {draft.root: [a, a, b], a: [ac, ac], b: [ba]}
