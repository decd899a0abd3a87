"""The relaxed tests of blockwise decoding, and ReDrafter's published rule: the dossier's numbers."""

import pytest
import torch

from decoders.chooser import Exhaustive, Script
from decoders.engine.tree import Tree
from decoders.speculative.interfaces import Draft, VerifierInput
from decoders.speculative.verifiers.beam_coins import BEAM_COINS
from decoders.speculative.verifiers.block_tests import block_tests, in_best, within

THE, CAT, RAN, SAT, ON, A, MAT = range(7)


def chain_inputs(tokens: list[int], rows: list[list[float]], chooser=None) -> VerifierInput:
    """A chain below a root with the target's distribution after the root and each token of it."""
    tree, draft = Tree([0]), Draft(0)
    parent, p = 0, {0: torch.tensor(rows[0], dtype=torch.float64)}
    for token, row in zip(tokens, rows[1:], strict=True):
        node = tree.add(parent, token)
        draft.nodes.append(node)
        draft.children[parent] = [node]
        p[node] = torch.tensor(row, dtype=torch.float64)
        parent = node
    return VerifierInput(draft, tree.tokens, p, chooser or Script([]), 0)


def row(best: int, second: int) -> list[float]:
    return [0.6 if token == best else 0.3 if token == second else 0.02 for token in range(7)]


def kept(verifier, tokens, rows) -> tuple[int, int]:
    """(how many tokens of the block were kept, the root among them; the target's own token)."""
    verification = verifier.verify(chain_inputs(tokens, rows))
    return 1 + len(verification.path), verification.token


def exactly(count: int, minimum: int = 1):
    return block_tests(in_best(count), minimum, 0.0, count == 1, "")


def test_the_worked_blocks():
    """Proposals "the cat ran": after "the" cat is right, after "cat" sat: 2 are kept. Then "sat on a":
    after "on" the best is "the", "a" is second: 2 by the exact test, 3 among the best two.
    """
    first = [row(CAT, SAT), row(SAT, ON), row(ON, SAT)]
    assert kept(exactly(1), [CAT, RAN], first) == (2, SAT)
    then = [row(ON, CAT), row(THE, A), row(MAT, CAT)]
    assert kept(exactly(1), [ON, A], then) == (2, THE)
    assert kept(exactly(2), [ON, A], then) == (3, MAT)


def test_the_first_tokens_of_a_block_pass_untested():
    """As many as the block has: all of it, always."""
    rows = [row(CAT, SAT)] * 4
    assert [kept(exactly(1, least), [ON, ON, ON], rows)[0] for least in (1, 2, 3, 4)] == [1, 2, 3, 4]


def test_more_are_kept_the_more_of_the_best_pass():
    """The same proposals in the same contexts: never fewer for a larger k."""
    random = torch.Generator().manual_seed(0)
    for _ in range(30):
        rows = torch.rand(4, 7, generator=random).softmax(-1).tolist()
        tokens = torch.randint(7, (3,), generator=random).tolist()
        counts = [kept(exactly(k), tokens, rows)[0] for k in range(1, 8)]
        assert counts == sorted(counts) and counts[-1] == 4


def test_the_test_of_distance_knows_numbers_alone():
    """Pixels near the most likely one pass; what is no number passes as the most likely only."""
    near = block_tests(within(2.0, float), 1, 0.0, False, "")
    rows = [row(3, 0), row(3, 0), row(6, 0), row(0, 1)]
    assert kept(near, [5, 2, 3], rows) == (3, 6)
    wordless = block_tests(within(2.0, lambda token: None), 1, 0.0, False, "")
    assert kept(wordless, [5, 2, 3], rows) == (1, 3)
    assert kept(wordless, [3, 3, 6], rows) == (4, 0)


def test_only_the_exact_test_is_lossless():
    assert exactly(1).exact_for and not exactly(2).exact_for and not exactly(1, 2).exact_for
    assert not block_tests(in_best(1), 1, 1.0, True, "").exact_for


def beams_inputs(
    chooser, beams: list[list[int]], p: list[float], q: list[float]
) -> tuple[VerifierInput, Tree]:
    """Beams below a root; p and q the same everywhere."""
    tree, draft, node_of = Tree([0]), Draft(0), {(): 0}
    for beam in beams:
        for at, token in enumerate(beam):
            above, path = node_of[tuple(beam[:at])], tuple(beam[: at + 1])
            if path not in node_of:
                node_of[path] = tree.add(above, token)
                draft.nodes.append(node_of[path])
                draft.children.setdefault(above, []).append(node_of[path])
    rows = {node: torch.tensor(p, dtype=torch.float64) for node in node_of.values()}
    draft.scores = {node: torch.tensor(q).log() for node in node_of.values()}
    return VerifierInput(draft, tree.tokens, rows, chooser, 0), tree


def first_tokens(beams, p, q) -> dict[int, float]:
    def run(chooser):
        inputs, tree = beams_inputs(chooser, beams, p, q)
        verification = BEAM_COINS.verify(inputs)
        return tree.tokens[verification.path[0]] if verification.path else verification.token

    return Exhaustive().distribution(run)


def test_the_published_rule_is_biased():
    """One guess with p .3 and q .6 is written with .5; two beams that share it: with 1 - .5^2 = .75."""
    p, q = [0.3, 0.4, 0.3], [0.6, 0.2, 0.2]
    assert first_tokens([[0]], p, q)[0] == pytest.approx(0.5, abs=1e-6)
    assert first_tokens([[0, 1], [0, 2]], p, q)[0] == pytest.approx(0.75, abs=1e-6)


def test_the_published_rule_keeps_the_longest_beginning():
    """By script: the first beam passes one token, the second two; the token after comes from p."""
    p, q = [0.3, 0.4, 0.3], [0.6, 0.2, 0.2]
    inputs, tree = beams_inputs(Script([True, False, True, True, 2]), [[0, 1], [1, 1]], p, q)
    verification = BEAM_COINS.verify(inputs)
    assert [tree.tokens[node] for node in verification.path] == [1, 1] and verification.token == 2
    last = {test.node: test.accepted for test in verification.tests}
    assert all(last[node] for node in verification.path) and sum(last.values()) == 2
