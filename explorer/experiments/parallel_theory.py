"""What filling several masks at once costs a perfect model: the theory of ParallelBench (2025).

A forward gives every mask its own distribution; what is drawn together is drawn from the product of these.
The price, in nats, is the total correlation of the positions given the prompt and what was filled before.
Joint distributions of small list tasks, closed forms for lists of n different items, and the same numbers
computed from a joint distribution itself. Items are numbers.
"""

import math
from functools import cache
from itertools import permutations

from decoders.models.tabular_denoiser import Joint, TabularDenoiser


def copied(n: int) -> Joint:
    """One right answer: copy, and equally reverse, sort, or replace at a given place."""
    return {tuple(range(n)): 1.0}


def shuffled(n: int) -> Joint:
    """All orders of n items."""
    return dict.fromkeys(permutations(range(n)), 1.0)


def one_replaced(n: int) -> Joint:
    """One item of n, at any place, becomes the new word (1); the others stay unchanged (0)."""
    return {tuple(int(i == at) for i in range(n)): 1.0 for at in range(n)}


def oracle(joint: Joint) -> TabularDenoiser:
    """A model that knows the joint distribution."""
    return TabularDenoiser(joint, max(map(max, joint)) + 1)


def accuracy(joint: Joint, per_forward: int) -> float:
    """The probability that an oracle which samples `per_forward` tokens per forward, left to right, at
    temperature 1 ends at an answer in the support of the joint.
    """
    model, right = oracle(joint), 0.0
    for answer in joint:
        canvas, probability = [model.mask] * len(answer), 1.0
        for low in range(0, len(answer), per_forward):
            together = range(low, min(low + per_forward, len(answer)))
            rows = model.marginals(canvas)
            probability *= math.prod(float(rows[i, answer[i]]) for i in together)
            canvas[low : together.stop] = answer[low : together.stop]
        right += probability
    return right


@cache
def ways(n: int, total: int, highest: int) -> int:
    """How many lists of n digits from 0 to `highest` have this total."""
    if n == 0:
        return int(total == 0)
    return sum(ways(n - 1, total - digit, highest) for digit in range(highest + 1)) if total >= 0 else 0


def total_accuracy(n: int, total: int, highest: int, per_forward: int) -> float:
    """For n digits from 0 to `highest` with a given total: each forward samples some of them, each with its
    frequency among the lists that are still possible.
    """
    lists = ways(n, total, highest)
    if n == 0 or not lists:
        return float(lists)
    k, sums = min(per_forward, n), {0: 1.0}
    for _ in range(k):
        longer: dict[int, float] = {}
        for known, probability in sums.items():
            for digit in range(highest + 1):
                share = ways(n - 1, total - digit, highest) / lists
                longer[known + digit] = longer.get(known + digit, 0.0) + probability * share
        sums = longer
    return sum(p * total_accuracy(n - k, total - known, highest, k) for known, p in sums.items())


def shuffle_accuracy(n: int, per_forward: int) -> float:
    """n! divided by the number of items left before its forward, for each token."""
    left = [n - i // per_forward * per_forward for i in range(n)]
    return math.factorial(n) / math.prod(left)


def shuffle_correlation(n: int) -> float:
    """The total correlation of a shuffle: n ln n - ln n! nats."""
    return n * math.log(n) - math.lgamma(n + 1)


def replacement_accuracy(n: int, per_forward: int) -> float:
    """For replacing one item at a random place: with m masks left and none replaced yet, k of them are
    sampled. Either exactly one is the new word, and then none may follow, or none is, and m - k masks are
    left.
    """
    if n == 0:
        return 0.0
    k = min(per_forward, n)
    now = k / n * (1 - 1 / n) ** (k - 1)
    return now + (1 - 1 / n) ** k * replacement_accuracy(n - k, per_forward)
