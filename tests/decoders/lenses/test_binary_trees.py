"""Trees as sequences and back: the worked numbers of AST-Probe, identity on any tree, scores as multisets."""

import ast
import random

import pytest

from decoders.lenses import python_trees
from decoders.lenses.binary_trees import (
    EMPTY,
    Node,
    items,
    scores,
    sequences,
    tree_of,
    unbinarized,
    wrong,
)
from decoders.lenses.binary_trees import binary as to_binary
from explorer.tasks.random_functions import functions

ASSIGNMENT = Node(
    "module",
    (
        Node(
            "expression_statement",
            (Node("assignment", ("x", "=", Node("binary_operator", ("a", "+", "b")))),),
        ),
    ),
)
BREAK = Node("module", (Node("if", ("if", "c", ":", Node("block", (Node("break_statement", ("break",)),)))),))


def again(tree):
    found = sequences(tree)
    return tree_of(found.heights, found.labels, found.unary, found.leaves)


def test_the_papers_assignment():
    found = sequences(ASSIGNMENT)
    assert found.heights == [4, 3, 2, 1] and found.leaves == ["x", "=", "a", "+", "b"]
    fused = "module|expression_statement|assignment"
    assert found.labels == [fused, EMPTY, "binary_operator", EMPTY]
    assert found.unary == [EMPTY] * 5 and again(ASSIGNMENT) == ASSIGNMENT


def test_a_block_of_one_statement_is_a_unary_label():
    found = sequences(BREAK)
    assert found.heights == [3, 2, 1] and found.unary == [EMPTY, EMPTY, EMPTY, "block|break_statement"]
    assert again(BREAK) == BREAK


def random_tree(rng, depth):
    children = [
        random_tree(rng, depth - 1) if depth and rng.random() < 0.5 else rng.choice("xyz")
        for _ in range(rng.randint(1, 4))
    ]
    return Node(rng.choice("ABC"), tuple(children))


def test_encode_then_decode_is_the_identity():
    rng = random.Random(0)
    for _ in range(300):
        tree = random_tree(rng, 5)
        assert again(tree) == tree and unbinarized(to_binary(tree)) == tree


def test_any_sequences_make_a_tree():
    """Ties split at the first gap; an empty node at the top gets a name, elsewhere it gives way."""
    assert tree_of([1, 1], [EMPTY, "B"], [EMPTY] * 3, list("xyz"), root="top") == Node(
        "top", ("x", Node("B", ("y", "z")))
    )
    assert tree_of([1, 2], [EMPTY, "B"], ["U", EMPTY, EMPTY], list("xyz")) == Node(
        "B", (Node("U", ("x",)), "y", "z")
    )
    assert tree_of([], [], [EMPTY], ["x"]) == "x"


def test_scores_count_an_item_as_often_as_it_occurs():
    true = Node("A", (Node("B", ("x", "y")), "z"))
    doubled = Node("A", (Node("B", (Node("B", ("x", "y")),)), "z"))
    assert items(true) == [("A", 0, 3), ("B", 0, 2)]
    assert scores(true, true) == (1.0, 1.0, 1.0)
    assert scores(doubled, true) == (2 / 3, 1.0, pytest.approx(0.8))  # the published overlap says 1
    assert wrong(doubled, true) == [False, False, True]
    assert scores("x", true) == (0.0, 0.0, 0.0)


def span_in_leaves(node, spans, places):
    begin, end = places.span(node)
    inside = [at for at, (a, b) in enumerate(spans) if begin <= a and b <= end]
    return inside[0], inside[-1] + 1


@pytest.mark.parametrize(
    "code",
    [
        *functions(12, 5),
        "# read\ndef g(a: int, *b):\n    '''says\n    more'''\n    s = f'{a} ü' 'é' + b[0]\n    return -s",
        "@d\nclass A(B):\n    x = {'a': 1, **b}\n    while x:\n        x.y(z=1)[1:]\n    else:\n        pass",
        "if a: x\nelif b: y; z\nelse:\n    try:\n        t()\n    except E as e:\n        raise\n",
    ],
)
def test_python_trees_have_the_nodes_of_ast_in_their_places(code):
    """Every positioned node that is no leaf, comments and docstrings left out; independent of how it is
    grown.
    """
    parsed = python_trees.parse(code)
    words = [code[a:b] for a, b in parsed.spans]
    assert sequences(parsed.tree).leaves == words and again(parsed.tree) == parsed.tree
    assert not any(word.startswith(("#", "'''")) for word in words)
    places, module = python_trees.Places(code), ast.parse(code)
    dropped = python_trees.docs(module)
    expected = [
        (type(node).__name__, *span_in_leaves(node, parsed.spans, places))
        for node in ast.walk(module)
        if (isinstance(node, ast.Module) or hasattr(node, "lineno"))
        and not python_trees.one_leaf(node)
        and node not in dropped
        and not (isinstance(node, ast.FormattedValue))
        and not any(
            inside(node, text, places) for text in ast.walk(module) if isinstance(text, ast.JoinedStr)
        )
    ]
    assert sorted(expected) == sorted(item for item in items(parsed.tree) if item[0] != "block")


def inside(node, text, places):
    return node is not text and python_trees.inside(places.span(node), places.span(text))


def test_a_beginning_has_leaves_and_no_tree():
    parsed = python_trees.parse("def f(xs):\n    return [x for")
    assert parsed.tree is None and len(parsed.spans) == 10
    with pytest.raises(ValueError, match="no Python code"):
        python_trees.parse("# nothing\n")
