"""Shared by the proofs of losslessness: random tables, exact distributions, the statistical test, handmade
drafts.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence

import torch

from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models.table_model import exact_distribution
from decoders.speculative.interfaces import Draft, Verification, VerifierInput
from decoders.testing import shape_of

Law = dict[tuple[int, ...], float]


def law_of_rounds(
    chooser, strategy: str, models: dict, parameters: dict, length: int, rounds: int | None = None
) -> Law:
    """The exact distribution of `length` tokens written by `strategy`, found by walking every outcome of its
    chooser. With `rounds`, only this many rounds are run and the rest is filled in with the target's own
    distribution.
    """

    def run(chooser) -> tuple[int, ...]:
        lane = Lane(strategy, [0], models, parameters, limits=Limits(length), chooser=chooser)
        lane.records_offers = False
        while lane.trace.ended is None and (rounds is None or len(lane.trace.steps) < rounds):
            lane.advance()
        said = tuple(lane.trace.output())
        lane.close()
        return said

    target, shape = models["target"], shape_of(parameters)
    law: Law = {}
    for said, mass in chooser.distribution(run).items():
        missing = length - len(said)
        finished = missing == 0 or said[-1] in target.eos
        rest = {(): 1.0} if finished else exact_distribution(target, (0, *said), missing, shape)
        for tail, chance in rest.items():
            law[said + tail] = law.get(said + tail, 0.0) + mass * chance
    return law


def position(
    p: Sequence[float], candidates: Sequence[int], q: Sequence[float] | None, chooser, verify: Callable
) -> tuple[Verification, Tree]:
    """Runs a verifier at one position: `candidates` are the children of a one-token prompt; nothing follows
    them.
    """
    tree = Tree([0])
    draft = Draft(0)
    for token in candidates:
        node = tree.add(0, token)
        draft.nodes.append(node)
        draft.children.setdefault(0, []).append(node)
    if q is not None:
        draft.q[0] = torch.tensor(q, dtype=torch.float64)
    return verify(
        VerifierInput(draft, tree.tokens, {0: torch.tensor(p, dtype=torch.float64)}, chooser, 0)
    ), tree


def first_token(walk_and_tree: tuple[Verification, Tree]) -> int:
    """The token that a verification of one position commits first."""
    verification, tree = walk_and_tree
    return tree.tokens[verification.path[0]] if verification.path else verification.token


def statistics(counts: Counter, law: Law) -> tuple[float, float, float]:
    """(p-value of chi-square with bins of expectation below 5 merged, total variation distance, its bound).

    The bound is 1.5 times the distance that chance alone produces on average.
    """
    total = sum(counts.values())
    bins, small_seen, small_expected = [], 0.0, 0.0
    for outcome in law.keys() | counts.keys():
        expected = total * law.get(outcome, 0.0)
        if expected >= 5:
            bins.append((counts[outcome], expected))
        else:
            small_seen, small_expected = small_seen + counts[outcome], small_expected + expected
    impossible = any(law.get(outcome, 0.0) == 0.0 for outcome in counts)
    if small_expected >= 5:
        bins.append((small_seen, small_expected))
    elif bins:  # too little to be a bin of its own
        seen, expected = bins.pop()
        bins.append((seen + small_seen, expected + small_expected))
    chi = sum((seen - expected) ** 2 / expected for seen, expected in bins)
    half = torch.tensor((len(bins) - 1) / 2, dtype=torch.float64)
    tail = (
        1.0
        if len(bins) < 2
        else float(torch.special.gammaincc(half, torch.tensor(chi / 2, dtype=torch.float64)))
    )
    far = sum(abs(counts[o] / total - law.get(o, 0.0)) for o in law.keys() | counts.keys()) / 2
    bound = 1.5 * sum(math.sqrt(x * (1 - x) / (2 * math.pi * total)) for x in law.values())
    return (0.0 if impossible else tail), far, bound
