"""Syntax trees as three short sequences, and back: the tree algebra of AST-Probe (Hernández López et al.
2022).

A tree is made binary; then the gap between two neighbouring leaves has the height and the label of their
lowest common ancestor, and each leaf may have a label of its own.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

EMPTY, CHAIN, ROOT = "<empty>", "|", "root"
Tree = "Node | str"  # a leaf is its text


@dataclass(frozen=True)
class Node:
    """A non-terminal with at least one child."""

    label: str
    children: tuple["Node | str", ...]


@dataclass(frozen=True)
class Leaf:
    """A leaf of a binary tree: its text, and the labels that stood above it alone."""

    text: str
    unary: str = EMPTY


@dataclass(frozen=True)
class Split:
    """An inner node of a binary tree."""

    label: str
    left: "Split | Leaf"
    right: "Split | Leaf"


@dataclass(frozen=True)
class Sequences:
    """What a probe learns of a tree with n leaves: heights d and labels c of the n - 1 gaps, unary labels
    u.
    """

    heights: list[int]
    labels: list[str]
    unary: list[str]
    leaves: list[str]


def binary(tree: "Node | str") -> Split | Leaf:
    """A tree whose nodes have two children. A node with one child is joined with it, labels in a chain; what
    follows the first of more than two children hangs below an `<empty>` node.
    """
    if isinstance(tree, str):
        return Leaf(tree)
    first, *rest = tree.children
    if not rest:
        if isinstance(first, str):
            return Leaf(first, tree.label)
        return binary(Node(f"{tree.label}{CHAIN}{first.label}", first.children))
    right = rest[0] if len(rest) == 1 else Node(EMPTY, tuple(rest))
    return Split(tree.label, binary(first), binary(right))


def unbinarized(tree: Split | Leaf, root: str = ROOT) -> "Node | str":
    """Undoes `binary`, for any binary tree: chains are split, `<empty>` nodes give way to their children. One
    at the top is called `root`.
    """
    if isinstance(tree, Leaf):
        return chained(tree.unary, (tree.text,)) if tree.unary != EMPTY else tree.text
    return chained(root if tree.label == EMPTY else tree.label, below(tree))


def below(tree: Split) -> tuple["Node | str", ...]:
    """The children of a binary node, those of `<empty>` nodes in the place of these."""
    children: list[Node | str] = []
    for part in (tree.left, tree.right):
        spliced = isinstance(part, Split) and part.label == EMPTY
        children += below(part) if spliced else [unbinarized(part)]
    return tuple(children)


def chained(label: str, children: tuple["Node | str", ...]) -> Node:
    """A node for each label of a chain, the last one with these children."""
    *above, last = label.split(CHAIN)
    made = Node(last, children)
    for name in reversed(above):
        made = Node(name, (made,))
    return made


def sequences(tree: "Node | str") -> Sequences:
    """The heights, labels and unary labels of a tree."""
    read_off = Sequences([], [], [], [])
    append_in_order(binary(tree), read_off)
    return read_off


def append_in_order(tree: Split | Leaf, into: Sequences) -> int:
    """Appends a binary tree in order: what is left, the node, what is right. Its height; a leaf has 0."""
    if isinstance(tree, Leaf):
        into.unary.append(tree.unary)
        into.leaves.append(tree.text)
        return 0
    left = append_in_order(tree.left, into)
    gap = len(into.heights)
    into.heights.append(0)
    into.labels.append(tree.label)
    height = 1 + max(left, append_in_order(tree.right, into))
    into.heights[gap] = height
    return height


def tree_of(
    heights: Sequence[float],
    labels: Sequence[str],
    unary: Sequence[str],
    leaves: Sequence[str],
    root: str = ROOT,
) -> "Node | str":
    """The tree that sequences of n >= 1 leaves describe, measured or predicted: it splits at the highest
    gap, at the first on ties, and so on within both parts.
    """

    def grown(start: int, stop: int) -> Split | Leaf:
        if stop - start == 1:
            return Leaf(leaves[start], unary[start])
        gap = max(range(start, stop - 1), key=lambda at: (heights[at], -at))
        return Split(labels[gap], grown(start, gap + 1), grown(gap + 1, stop))

    return unbinarized(grown(0, len(leaves)), root)


Item = tuple[str, int, int]  # label, first leaf, the leaf after the last


def items(tree: "Node | str", start: int = 0) -> list[Item]:
    """(label, span of leaves) of every non-terminal, from the top down."""
    if isinstance(tree, str):
        return []
    inner, at = [], start
    for child in tree.children:
        inner += items(child, at)
        at += width(child)
    return [(tree.label, start, at), *inner]


def width(tree: "Node | str") -> int:
    """How many leaves a tree has."""
    return 1 if isinstance(tree, str) else sum(map(width, tree.children))


def scores(predicted: "Node | str", true: "Node | str") -> tuple[float, float, float]:
    """Precision, recall and F1 over items, each counted as often as it occurs (the published code counts a
    predicted item as often as it is predicted).
    """
    ours, theirs = Counter(items(predicted)), Counter(items(true))
    common = (ours & theirs).total()
    if not common:
        perfect = not ours and not theirs
        return (float(perfect),) * 3
    precision, recall = common / ours.total(), common / theirs.total()
    return precision, recall, 2 * precision * recall / (precision + recall)


def wrong(predicted: "Node | str", true: "Node | str") -> list[bool]:
    """Of each item of `predicted`, in the order of `items`: whether `true` does not have it."""
    left, result = Counter(items(true)), []
    for item in items(predicted):
        result.append(left[item] < 1)
        left[item] -= 1
    return result
