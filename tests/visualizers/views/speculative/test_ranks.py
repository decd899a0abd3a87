"""The table of guesses: ranks by depth, the tree in it, what stands on other branches, the target's own."""

from decoders.trace.events import Distribution, Propose, Verdict
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.speculative.ranks import Ranks

WORDS = ["Once", " upon", " a", " time", " there", " was"]


def offer(node: int, *tokens: int) -> Distribution:
    """What the draft guessed after a node, the most likely first."""
    return Distribution(
        node, "draft", [[token, -0.5 * at - 0.1] for at, token in enumerate(tokens)], 0.0, 1.0
    )


def drafted(*nodes: tuple[int, int, int]) -> list:
    """Nodes (node, parent, token)."""
    return [Propose(*node, -0.5, "draft", 0, "fixed") for node in nodes]


def judged(accepted: set[int], rejected: set[int], *others: int) -> list:
    verdicts = dict.fromkeys(accepted, "accepted") | dict.fromkeys(rejected, "rejected")
    return [Verdict(n, verdicts.get(n, "never reached")) for n in sorted({*verdicts, *others})]


def table(marks: dict) -> dict[tuple[int, int], str]:
    """(depth, rank from 0) -> state of a cell on show."""
    cells = {k: m for k, m in marks.items() if k.startswith("c") and not m.get("gone")}
    return {tuple(map(int, k.split(".")[1:])): m["state"] for k, m in cells.items()}


def edges(marks: dict) -> list[tuple]:
    shown = [m for m in of_kind(marks, "edge") if not m.get("gone")]
    return sorted((round(m["x0"] - 0.35), m["y0"], m["y1"], m["state"]) for m in shown)


# Below the root, node 1: 2 and 3 are ranks 1 and 3; below 2: 4; below 3: 5.
TREE = drafted((2, 1, 1), (3, 1, 3), (4, 2, 4), (5, 3, 4))


def test_one_distribution_per_depth_holds_the_whole_tree():
    events = [*TREE, offer(1, 1, 2, 3), offer(2, 4, 5), offer(3, 4, 5), *judged({3, 5}, {2}, 4)]
    marks, ops = fold(Ranks, [events], [0, 1], WORDS)
    states = {(1, 0): "rejected", (1, 1): "prompt", (1, 2): "accepted", (2, 0): "accepted", (2, 1): "prompt"}
    assert table(marks) == states
    assert edges(marks) == [
        (1, 0.5, 0.5, "pruned"),
        (1, 0.5, 2.5, "accepted"),
        (2, 0.5, 0.5, "pruned"),
        (2, 2.5, 0.5, "accepted"),
    ]
    assert not [key for key in marks if key.startswith("o")]
    assert marks["c1.2.0"]["hover"][1] == "2 nodes of the tree: accepted, unreached"
    assert ops[0][-1]["say"] == "Round 1: 2 accepted."


def test_nodes_with_other_guesses_are_counted():
    events = [*TREE, offer(1, 1, 2, 3), offer(2, 4, 5), offer(3, 5, 4), *judged({2, 4}, set(), 3, 5)]
    marks, _ = fold(Ranks, [events], [0, 1], WORDS)
    assert table(marks)[(2, 0)] == "accepted" and marks["o1.2"]["text"] == "+1" and "o1.1" not in marks
    assert edges(marks) == [
        (1, 0.5, 0.5, "accepted"),
        (1, 0.5, 2.5, "pruned"),
        (2, 0.5, 0.5, "accepted"),
    ]


def test_the_targets_own_token_stands_at_its_rank():
    own = [Propose(6, 2, 5, -0.1, "target"), Verdict(6, "resampled")]
    events = [*TREE, offer(1, 1, 2, 3), offer(2, 4, 5), offer(3, 4, 5), *judged({2}, {4}, 3, 5), *own]
    marks, ops = fold(Ranks, [events], [0, 1], WORDS)
    assert table(marks)[(2, 1)] == "resampled" and marks["c1.2.1"]["glyph"] == "◆"
    assert ops[0][-1]["say"] == "Round 1: 1 accepted; the target's own ␣was was rank 2 of depth 2."
    own = [Propose(6, 2, 0, -0.1, "target"), Verdict(6, "resampled")]
    _, ops = fold(Ranks, [[*events[:-2], *own]], [0, 1], WORDS)
    assert ops[0][-1]["say"].endswith("the target's own Once is not among the 8 most likely of depth 2.")


def test_a_round_replaces_the_one_before_and_plain_steps_have_none():
    first = [*TREE, offer(1, 1, 2, 3), offer(2, 4, 5), offer(3, 4, 5), *judged({3, 5}, {2}, 4)]
    bonus = [Propose(6, 5, 2, -0.1, "target"), Verdict(6, "bonus")]
    second = [*drafted((7, 6, 1)), offer(6, 1), Verdict(7, "rejected"), Propose(8, 6, 2, -0.1, "target")]
    marks, ops = fold(Ranks, [[*first, *bonus], [*second, Verdict(8, "resampled")], []], [0, 1], WORDS)
    assert table(marks) == {(1, 0): "rejected"} and ops[2] == []
    assert ops[0][-1]["say"] == "Round 1: 2 accepted; the target added ␣a."
