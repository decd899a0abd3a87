"""Verifiers alone, on one worked position: acceptance, law, and the ways to get it wrong.

p = (0.3, 0.4, 0.3) and q = (0.6, 0.3, 0.1). The right verifiers reproduce exact rational constants; each
common mistake gives exactly its own wrong law, and both the exact test and the statistical one notice.
"""

from collections import Counter

import pytest
import torch

from decoders.chooser import Exhaustive, Random, Script
from decoders.logits.distributions import residual, without
from decoders.speculative.interfaces import (
    FIXED,
    SAMPLED,
    WITH_REPLACEMENT,
    WITHOUT_REPLACEMENT,
    Draft,
    Drafter,
    Verification,
    VerifierInput,
    badge,
)
from decoders.speculative.verifiers.greedy_match import GREEDY_MATCH
from decoders.speculative.verifiers.node_sampling import NODE_SAMPLING
from decoders.speculative.verifiers.recursive_rejection import RECURSIVE_REJECTION
from decoders.speculative.verifiers.with_replacement import WITH_REPLACEMENT_REJECTION
from decoders.testing import distance
from decoders.trace.events import acceptance
from decoders.trace.reasons import Code, Reason
from tests.helpers.losslessness import first_token, position, statistics

P, Q = (0.3, 0.4, 0.3), (0.6, 0.3, 0.1)
RIGHT = {(i,): chance for i, chance in enumerate(P)}
RUNS = 2_000  # enough to fail every one of MISTAKES


def draws(q, count: int, chooser, replacement: bool) -> list[int]:
    """`count` candidates drawn from q, one after the other."""
    left, found = torch.tensor(q, dtype=torch.float64), []
    for slot in range(count):
        token = chooser.categorical(left, ("draft", 1, 0, slot)).value
        found.append(token)
        if not replacement:
            left = left.clone()
            left[token] = 0.0
    return found


def law_of(run) -> dict:
    return Exhaustive().distribution(lambda chooser: (run(chooser),))


# ---- right verifiers -----------------------------------------------------------------------------

TABLE = [
    ("node sampling, i.i.d.", NODE_SAMPLING, True, [0.33, 0.513, 0.6249]),
    ("recursive rejection, i.i.d.", WITH_REPLACEMENT_REJECTION, True, [0.7, 0.82, 0.848]),
    ("node sampling, without replacement", NODE_SAMPLING, False, [0.33, 0.33 + 0.34833333333333333, 1.0]),
    ("recursive rejection, without replacement", RECURSIVE_REJECTION, False, [0.7, 0.875, 1.0]),
]


@pytest.mark.parametrize("name,verifier,replacement,wanted", TABLE, ids=[row[0] for row in TABLE])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_acceptance_and_law_of_the_right_verifiers(name, verifier, replacement, wanted, k):
    taken = {}

    def run(chooser):
        candidates = draws(Q, k, chooser, replacement)
        found, tree = position(P, candidates, Q, chooser, verifier.verify)
        token = first_token((found, tree))
        return token, token in candidates

    law = law_of(run)
    for ((token, _),), chance in law.items():
        taken[(token,)] = taken.get((token,), 0.0) + chance
    assert distance(taken, RIGHT) < 1e-12
    assert sum(c for ((_, inside),), c in law.items() if inside) == pytest.approx(wanted[k - 1], abs=1e-12)


def test_residual_bookkeeping_of_the_worked_example():
    p, q = torch.tensor(P, dtype=torch.float64), torch.tensor(Q, dtype=torch.float64)
    assert residual(p, q).tolist() == pytest.approx([0, 1 / 3, 2 / 3], abs=1e-15)
    found, _ = position(P, [0, 1, 2], Q, Script([False, False, True]), RECURSIVE_REJECTION.verify)
    assert [t.p for t in found.tests] == pytest.approx([0.3, 1 / 3, 1.0])
    assert [t.q for t in found.tests] == pytest.approx([0.6, 3 / 4, 1.0])
    assert acceptance(found.tests[1].p, found.tests[1].q) == pytest.approx(4 / 9)
    assert [t.accepted for t in found.tests] == [False, False, True] and len(found.path) == 1


@pytest.mark.parametrize(
    "p,q,wanted", [(0.0, 0.0, 0.0), (0.0, 0.5, 0.0), (0.5, 0.0, 1.0), (0.2, 0.4, 0.5), (0.4, 0.2, 1.0)]
)
def test_acceptance_never_divides_by_zero(p, q, wanted):
    assert acceptance(p, q) == wanted


def test_a_residual_without_mass_falls_back_to_the_target_with_a_note():
    found, _ = position(P, [0], P, Script([False, 1]), RECURSIVE_REJECTION.verify)
    assert found.token == 1 and found.p == pytest.approx(0.4)
    assert found.note == Reason(Code.MODELS_AGREE)


@pytest.mark.parametrize(
    "verifier", [RECURSIVE_REJECTION, WITH_REPLACEMENT_REJECTION, NODE_SAMPLING, GREEDY_MATCH]
)
@pytest.mark.parametrize("drafted", [0, 1, 2])
def test_with_one_hot_laws_every_exact_verifier_is_greedy(verifier, drafted):
    q = [float(i == drafted) for i in range(3)]
    law = law_of(
        lambda chooser: first_token(position((0.0, 1.0, 0.0), [drafted], q, chooser, verifier.verify))
    )
    assert law == {(1,): 1.0}


def test_a_walk_stops_at_an_end_of_text_leaf_and_adds_nothing():
    draft = Draft(0, nodes=[1], children={0: [1]}, q={0: torch.tensor([0.0, 0.0, 1.0])})
    p = {0: torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)}  # node 1 ends the text, so it has no p
    for verifier in (RECURSIVE_REJECTION, NODE_SAMPLING, GREEDY_MATCH):
        found = verifier.verify(VerifierInput(draft, [0, 2], p, Random(0), 0))
        assert found.path == [1] and found.token is None


# ---- mistakes ------------------------------------------------------------------------------------


def own(law: torch.Tensor, chooser) -> int:
    return chooser.categorical(law, ("sample", 1)).value


def both_tested_against_p(chooser):
    """Two i.i.d. candidates, each tested against p and q; the residual only at the end."""
    p, q = torch.tensor(P, dtype=torch.float64), torch.tensor(Q, dtype=torch.float64)
    for slot, x in enumerate(draws(Q, 2, chooser, replacement=True)):
        if chooser.bernoulli(acceptance(p[x].item(), q[x].item()), ("accept", 1, slot)).value:
            return x
    return own(residual(p, q), chooser)


def q_not_struck_out(chooser):
    """Candidates without replacement, verified as if they had been drawn with it."""
    candidates = draws(Q, 2, chooser, replacement=False)
    return first_token(position(P, candidates, Q, chooser, WITH_REPLACEMENT_REJECTION.verify))


def q_struck_out_for_independent_candidates(chooser):
    """I.i.d. candidates, verified as if they had been drawn without replacement."""
    candidates = draws(Q, 2, chooser, replacement=True)
    return first_token(position(P, candidates, Q, chooser, RECURSIVE_REJECTION.verify))


def q_struck_out_and_ties_accepted(chooser):
    """The same with the test u D(x) <= R(x): a duplicate, struck out of both, always passes."""
    p, q = torch.tensor(P, dtype=torch.float64), torch.tensor(Q, dtype=torch.float64)
    for slot, x in enumerate(draws(Q, 2, chooser, replacement=True)):
        passes = 1.0 if q[x] == 0 else min(1.0, p[x].item() / q[x].item())
        if chooser.bernoulli(passes, ("accept", 1, slot)).value:
            return x
        p, q = residual(p, q), without(q, x)
    return own(p, chooser)


def greedy_draft_with_softmax_q(chooser):
    """The draft's most likely token, verified as if it had been drawn from q."""
    return first_token(position(P, [0], Q, chooser, RECURSIVE_REJECTION.verify))


def top_two_with_softmax_q(chooser):
    """The draft's two most likely tokens, verified as if they had been drawn from q."""
    return first_token(position(P, [0, 1], Q, chooser, WITH_REPLACEMENT_REJECTION.verify))


def best_branch_first(chooser):
    """The candidate with the largest p is picked from all three, and then tested with p/q."""
    best = max(draws(Q, 3, chooser, replacement=False), key=lambda x: P[x])
    return first_token(position(P, [best], Q, chooser, RECURSIVE_REJECTION.verify))


MISTAKES = [
    (both_tested_against_p, (0.39, 0.42, 0.19)),
    (q_not_struck_out, (0.3, 0.525, 0.175)),
    (q_struck_out_for_independent_candidates, (0.3, 0.34, 0.36)),
    (q_struck_out_and_ties_accepted, (0.48, 0.34, 0.18)),
    (greedy_draft_with_softmax_q, (0.5, 1 / 6, 1 / 3)),
    (top_two_with_softmax_q, (0.5, 0.5, 0.0)),
    (best_branch_first, (0.0, 1.0, 0.0)),
]


@pytest.mark.parametrize("mistake,wrong", MISTAKES, ids=[m.__name__ for m, _ in MISTAKES])
def test_a_broken_verifier_fails_the_exact_test_with_its_own_law(mistake, wrong):
    law = law_of(mistake)
    assert distance(law, {(i,): chance for i, chance in enumerate(wrong)}) < 1e-12
    assert not distance(law, RIGHT) < 1e-12


@pytest.mark.parametrize("mistake,wrong", MISTAKES, ids=[m.__name__ for m, _ in MISTAKES])
def test_a_broken_verifier_fails_the_statistical_test(mistake, wrong):
    p_value, far, bound = statistics(Counter((mistake(Random(seed)),) for seed in range(RUNS)), RIGHT)
    assert p_value < 0.001 and far > bound


@pytest.mark.parametrize("name,verifier,replacement,_", TABLE, ids=[row[0] for row in TABLE])
def test_the_right_verifiers_pass_the_statistical_test(name, verifier, replacement, _):
    def run(chooser):
        candidates = draws(Q, 2, chooser, replacement)
        return first_token(position(P, candidates, Q, chooser, verifier.verify))

    # of three outcomes alone, the distance passes its bound in one of eight honest runs; chi-square does not
    p_value, _, _ = statistics(Counter((run(Random(seed)),) for seed in range(RUNS)), RIGHT)
    assert p_value > 0.001


# ---- the non-anticipation rule -------------------------------------------------------------------


def dropping(p, q, least: float):
    """A drafter that looks at its drawn token and drops it if its probability is below `least`."""

    def run(chooser):
        drawn = draws(q, 1, chooser, replacement=True)
        kept = [x for x in drawn if q[x] >= least]
        return first_token(position(p, kept, q, chooser, RECURSIVE_REJECTION.verify))

    return run


def test_dropping_a_token_after_a_look_at_it_bends_the_law_and_the_badge_says_so():
    assert distance(law_of(dropping(P, Q, 0.2)), {(0,): 0.33, (1,): 0.44, (2,): 0.23}) < 1e-12
    assert distance(law_of(dropping((0.9, 0.1), (0.9, 0.1), 0.5)), {(0,): 0.99, (1,): 0.01}) < 1e-12
    looks = Drafter(lambda lane: Draft(0), SAMPLED, sees_token=True)
    assert badge(looks, RECURSIVE_REJECTION, 1.0) == "relaxed"
    assert badge(looks, NODE_SAMPLING, 1.0) == "exact in distribution"


@pytest.mark.parametrize(
    "fill,verifier,temperature,wanted",
    [
        (SAMPLED, RECURSIVE_REJECTION, 1.0, "exact in distribution"),
        (WITHOUT_REPLACEMENT, RECURSIVE_REJECTION, 1.0, "exact in distribution"),
        (WITH_REPLACEMENT, RECURSIVE_REJECTION, 1.0, "relaxed"),
        (WITHOUT_REPLACEMENT, WITH_REPLACEMENT_REJECTION, 1.0, "relaxed"),
        (WITH_REPLACEMENT, WITH_REPLACEMENT_REJECTION, 1.0, "exact in distribution"),
        (FIXED, RECURSIVE_REJECTION, 1.0, "relaxed"),
        (FIXED, NODE_SAMPLING, 1.0, "exact because drafts are deterministic"),
        (FIXED, NODE_SAMPLING, 0.0, "lossless: equal to greedy"),
        (FIXED, GREEDY_MATCH, 0.0, "lossless: equal to greedy"),
        (FIXED, GREEDY_MATCH, 1.0, "relaxed"),
    ],
)
def test_the_badge_follows_from_the_parts(fill, verifier, temperature, wanted):
    assert badge(Drafter(lambda lane: Draft(0), fill), verifier, temperature) == wanted


# ---- the walk ------------------------------------------------------------------------------------


def test_each_test_says_by_a_code_and_numbers_what_decided():
    found, _ = position(P, [0, 1], Q, Script([False, True]), RECURSIVE_REJECTION.verify)
    (first,), (second,) = (test.reasons for test in found.tests)
    assert first.code == second.code == Code.TOKEN_REJECTION
    assert first.numbers == {"p": 0.3, "q": 0.6, "u": None, "accepted": False, "slot": 0}
    assert (second.numbers["slot"], second.numbers["accepted"]) == (1, True)
    found, _ = position(P, [0], Q, Script([2]), NODE_SAMPLING.verify)
    assert found.tests[0].reasons == (Reason(Code.DREW_ANOTHER, {"p": 0.3}),)
    assert found.reason == Reason(Code.TARGET_NOT_DRAFTED, {"p": pytest.approx(0.3)})
    found, _ = position((0.0, 1.0, 0.0), [0], None, Script([]), GREEDY_MATCH.verify)
    assert found.tests[0].reasons == (Reason(Code.OTHER_PREFERRED, {"preferred": 1}),)
    assert found.reason == Reason(Code.ARGMAX_NOT_DRAFTED) and found.u is None


def test_one_draw_of_node_sampling_tests_all_children_and_rejection_stops_at_the_first_that_passes():
    found, _ = position(P, [0, 1, 2], Q, Script([1]), NODE_SAMPLING.verify)
    assert [test.accepted for test in found.tests] == [False, True, False] and found.path == [2]
    found, _ = position(P, [0, 1, 2], Q, Script([False, True]), RECURSIVE_REJECTION.verify)
    assert [test.accepted for test in found.tests] == [False, True] and found.path == [2]


def test_a_walk_is_plain_data():
    assert Verification() == Verification(
        tests=[], path=[], token=None, p=None, u=None, reason=None, note=None
    )
