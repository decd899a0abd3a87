"""Verifiers that judge several draws or whole paths: worked numbers, and the reductions to plain rules."""

import itertools
import math

import pytest
import torch

from decoders.chooser import Exhaustive, Script
from decoders.engine.tree import Tree
from decoders.speculative.interfaces import Draft, VerifierInput
from decoders.speculative.verifiers import block_verification, kseq, traversal_verification
from decoders.speculative.verifiers.recursive_rejection import RECURSIVE_REJECTION
from decoders.trace.reasons import Code
from tests.helpers.losslessness import first_token, position

P, Q = (0.3, 0.4, 0.3), (0.6, 0.3, 0.1)


def tensor(law) -> torch.Tensor:
    return torch.tensor(law, dtype=torch.float64)


def inputs(paths: list[str], p, q, chooser) -> VerifierInput:
    """A drafted tree of tokens a, b, c below a one-token prompt, with the same laws everywhere."""
    tree, draft, node_of = Tree([0]), Draft(0), {"": 0}
    for path in paths:
        parent = node_of[path[:-1]]
        node_of[path] = node = tree.add(parent, "abc".index(path[-1]))
        draft.nodes.append(node)
        draft.children.setdefault(parent, []).append(node)
        draft.q[parent] = tensor(q)
    return VerifierInput(draft, tree.tokens, {n: tensor(p) for n in (0, *draft.nodes)}, chooser, 0)


@pytest.mark.parametrize(
    ("count", "rho", "passes"), [(1, 1.0, 0.7), (2, 1.4, 0.84), (3, 1.75, 0.875), (4, 2.03926, 0.903926)]
)
def test_kseq_divides_by_the_smallest_number_that_leaves_the_law(count, rho, passes):
    found, beta = kseq.division(tensor(P), tensor(Q), count)
    assert found == pytest.approx(rho, abs=1e-5)
    assert 1 - (1 - beta) ** count == pytest.approx(passes, abs=1e-6)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_kseq_of_independent_draws_has_the_target_s_law(count):
    def run(chooser):
        drawn = [chooser.categorical(tensor(Q), ("draft", i)).value for i in range(count)]
        return first_token(position(P, drawn, Q, chooser, kseq.verify))

    law = Exhaustive().distribution(run)
    assert all(law[token] == pytest.approx(P[token], abs=1e-12) for token in range(3))


def accepted(verify, p, q, length: int) -> float:
    """The expected number of accepted tokens of a chain drawn from q."""

    def run(chooser):
        drawn = [chooser.categorical(tensor(q), ("draft", i)).value for i in range(length)]
        path = "".join("abc"[token] for token in drawn)
        chain = [path[: i + 1] for i in range(length)]
        return len(verify(inputs(chain, p, q, chooser)).path)

    return sum(count * chance for count, chance in Exhaustive().distribution(run).items())


@pytest.mark.parametrize(
    ("p", "q", "by_token", "by_block"),
    [
        (
            (1 / 3, 2 / 3, 0),
            (2 / 3, 1 / 3, 0),
            (2 / 3, 10 / 9, 38 / 27, 130 / 81),
            (2 / 3, 11 / 9, 5 / 3, 166 / 81),
        ),
        (P, Q, (0.7, 1.19, 1.533), (0.7, 1.25, 1.704)),
    ],
)
def test_block_verification_accepts_more_than_token_rejection(p, q, by_token, by_block):
    for length, (token, whole) in enumerate(zip(by_token, by_block, strict=True), 1):
        assert accepted(RECURSIVE_REJECTION.verify, p, q, length) == pytest.approx(token, abs=1e-12)
        assert accepted(block_verification.verify, p, q, length) == pytest.approx(whole, abs=1e-12)
        assert accepted(traversal_verification.verify, p, q, length) == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize(
    ("path", "chances"), [("aa", (1, 0, 0.25)), ("ab", (1, None, 1)), ("ba", (1, 1, 0.5)), ("bb", (1, 1, 1))]
)
def test_block_s_chances_for_each_draft_of_two(path, chances):
    asked = inputs([path[:1], path], (1 / 3, 2 / 3, 0), (2 / 3, 1 / 3, 0), Script([]))
    weight = 1.0
    for i, node in enumerate(asked.draft.nodes, 1):
        parent, token = asked.draft.root if i == 1 else asked.draft.nodes[0], asked.tokens[node]
        weight = min(weight * float(asked.p[parent][token] / asked.draft.q[parent][token]), 1.0)
        if chances[i] is not None:
            assert block_verification.passing(asked, node, weight) == pytest.approx(chances[i], abs=1e-12)


@pytest.mark.parametrize(
    ("verify", "chances"),
    [
        (block_verification.verify, [0.0, 0.25]),
        (traversal_verification.verify, [0.25, 0.0]),
        (kseq.verify, [0.5]),
        (RECURSIVE_REJECTION.verify, [None]),
    ],
)
def test_a_test_tells_the_chance_with_which_it_passes_where_that_is_not_p_over_q(verify, chances):
    """The draft aa of the worked example, all of it rejected: block verification begins at the root,
    traversal at the leaf.
    """
    verification = verify(inputs(["a", "aa"], (1 / 3, 2 / 3, 0), (2 / 3, 1 / 3, 0), Script([0, 0, 1])))
    assert [test.threshold for test in verification.tests] == pytest.approx(chances)


def test_a_longer_beginning_is_kept_although_a_shorter_one_failed():
    verification = block_verification.verify(inputs(["a", "ab"], P, Q, Script([0, 1, 2])))
    assert (
        [t.accepted for t in verification.tests] == [True, True]
        and len(verification.path) == 2
        and verification.token == 2
    )
    (first,), (second,) = (test.reasons for test in verification.tests)
    assert [first.numbers[name] for name in ("length", "kept", "passed")] == [1, 2, False]
    assert [second.numbers[name] for name in ("length", "kept", "passed")] == [2, 2, True]


def test_traversal_s_chances_on_the_dossier_s_tree():
    """The path ab passes with 2/3; b fails: a 1/11, the path ac 7/11; c fails too: a can no longer pass."""
    asked = inputs(["a", "c", "ab", "ac", "ca"], P, Q, Script([]))
    standing = traversal_verification.Standing(asked)
    a, c, ab, ac, ca = asked.draft.nodes
    assert standing.leaf() == ab and standing.probability[ab] == pytest.approx(2 / 3)
    standing.remove(ab)
    assert standing.probability[a] == pytest.approx(1 / 11) and standing.probability[ac] == pytest.approx(
        7 / 11
    )
    assert standing.left[a].tolist() == pytest.approx([0, 0, 1])
    assert standing.drafted[a].tolist() == pytest.approx([6 / 7, 0, 1 / 7])
    standing.remove(ac)
    assert standing.probability[a] == 0.0 and standing.leaf() == a
    standing.remove(a)
    assert standing.leaf() == ca


def expected_of_trees(verify) -> float:
    """Accepted tokens over all trees of two children, each with two and one below it, drawn without putting
    back.
    """
    total = 0.0
    for first, second in itertools.permutations(range(3), 2):
        chance = Q[first] * Q[second] / (1 - Q[first])
        for x, y in itertools.permutations(range(3), 2):
            for z in range(3):
                below = chance * Q[x] * Q[y] / (1 - Q[x]) * Q[z]
                name = "abc"
                paths = [
                    name[first],
                    name[second],
                    name[first] + name[x],
                    name[first] + name[y],
                    name[second] + name[z],
                ]
                law = Exhaustive().distribution(
                    lambda c, paths=paths: len(verify(inputs(paths, P, Q, c)).path)
                )
                total += below * sum(n * mass for n, mass in law.items())
    return total


def test_traversal_accepts_more_of_a_tree_than_going_down_does():
    assert expected_of_trees(traversal_verification.verify) == pytest.approx(1.67, abs=5e-3)
    assert expected_of_trees(RECURSIVE_REJECTION.verify) == pytest.approx(1.61, abs=5e-3)


def test_on_a_star_traversal_accepts_as_often_as_recursive_rejection():
    for children in itertools.permutations("abc", 2):
        chances = [
            1
            - Exhaustive()
            .distribution(lambda c, v=v, k=children: len(v(inputs(list(k), P, Q, c)).path))
            .get(0, 0.0)
            for v in (traversal_verification.verify, RECURSIVE_REJECTION.verify)
        ]
        assert math.isclose(*chances, abs_tol=1e-12)


def test_kseq_says_how_near_it_comes_to_the_best_plan():
    """Two draws: .84 of at most .89; one draw is as good as any plan, and nothing is said."""
    two, _ = position(P, [1, 2], Q, Script([0, 0, 0]), kseq.verify)
    assert two.note.code == Code.TRANSPORT_BOUND
    assert two.note.numbers == {"draws": 2, "taken": pytest.approx(0.84), "bound": pytest.approx(0.89)}
    assert position(P, [1], Q, Script([0, 0]), kseq.verify)[0].note is None


@pytest.mark.parametrize("seed", range(20))
def test_kseq_accepts_more_with_every_draw_and_never_more_than_the_best_plan_could(seed):
    """One draw: 1 - TV. The best plan accepts at most the sum of min(p, 1 - (1 - q)^k), since a token can be
    kept only where it was drawn.
    """
    draw = torch.Generator().manual_seed(seed)
    p, q = (torch.randn(5, generator=draw, dtype=torch.float64).softmax(0) for _ in range(2))
    passes = []
    for count in range(1, 7):
        _, beta = kseq.division(p, q, count)
        passes.append(1 - (1 - beta) ** count)
        assert passes[-1] <= float(torch.minimum(p, 1 - (1 - q) ** count).sum()) + 1e-12
    assert passes[0] == pytest.approx(float(torch.minimum(p, q).sum()), abs=1e-12)
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(passes))
