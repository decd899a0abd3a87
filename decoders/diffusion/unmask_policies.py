"""Which masks become tokens in a forward: the rules of masked-diffusion decoding, as functions of scores.

Each function takes scores [n], one per masked position and higher for surer ones, and returns at least one
index into them, the surest first. Ties go to the lower position, so the scores determine the text.
"""

import torch

SMALLEST_TIME = 1e-3  # at which Dream's schedule of times ends


def surest_first(scores: torch.Tensor) -> list[int]:
    """Indices of `scores` [n] in falling order, equal ones by position."""
    return scores.argsort(descending=True, stable=True).tolist()


def quota(scores: torch.Tensor, count: int) -> list[int]:
    """The `count` surest: the low-confidence remasking of LLaDA (Nie et al. 2025)."""
    return surest_first(scores)[: max(1, count)]


def quotas(masks: int, tokens_per_forward: int) -> list[int]:
    """How many of `masks` each forward fills so that all take ceil(masks / tokens_per_forward) forwards:
    equal shares, and one more in the first forwards if they do not divide evenly (LLaDA).
    """
    steps = -(-masks // tokens_per_forward)
    return [masks // steps + (step < masks % steps) for step in range(steps)]


def quotas_in_time(masks: int, tokens_per_forward: int) -> list[int]:
    """The same for times that fall evenly from 1 to 0.001: each step fills a share of the remaining masks
    equal to the relative fall of the time, rounded down, and the last step fills all (Dream, Ye et al. 2025).
    Steps that would fill nothing are left out.
    """
    steps = -(-masks // tokens_per_forward)
    times = torch.linspace(1.0, SMALLEST_TIME, steps + 1, dtype=torch.float64).tolist()
    counts, left = [], masks
    for step in range(steps):
        share = 1.0 if step == steps - 1 else 1.0 - times[step + 1] / times[step]
        counts.append(int(left * share + 1e-9))
        left -= counts[-1]
    return [count for count in counts if count]


def threshold(scores: torch.Tensor, tau: float) -> list[int]:
    """All with a probability of at least tau, else the surest one (Fast-dLLM, Wu et al. 2025)."""
    order = surest_first(scores)
    return [i for i in order if scores[i] >= tau] or order[:1]


def factor(scores: torch.Tensor, f: float) -> list[int]:
    """The largest n with (n + 1)(1 - c_m) < f for every m up to n, of probabilities c_1 >= c_2 >= ..., at
    least one (Fast-dLLM).

    The authors' loop takes one position too many when it stops at the last one.
    """
    order = surest_first(scores)
    fitting = 1
    for n in range(1, len(order) + 1):
        if (n + 1) * (1.0 - float(scores[order[n - 1]])) >= f:  # c_n is the smallest of the first n
            break
        fitting = n
    return order[:fitting]


def entropy_bound(scores: torch.Tensor, entropies: torch.Tensor, gamma: float) -> list[int]:
    """The largest set of the surest masks whose entropies [n], without the largest of them, sum to at most
    gamma nats: a bound on the cost of filling them together (EB-Sampler, Ben-Hamu et al. 2025).
    """
    order = surest_first(scores)
    sorted_ = entropies[order].double()
    bound = sorted_.cumsum(0) - sorted_.cummax(0).values
    fitting = int((bound <= gamma + 1e-12).long().cumprod(0).sum())
    return order[: max(1, fitting)]


def near_anchors(
    scores: torch.Tensor, positions: list[int], tau: float, tau_low: float, radius: int
) -> tuple[list[int], list[int]]:
    """(anchors, others) of LocalLeap (2025): anchors have a probability of at least tau; others have at least
    tau_low and stand within `radius` positions of an anchor. If there are neither, the surest is the only one
    of the others.
    """
    order = surest_first(scores)
    anchors = [i for i in order if scores[i] >= tau]
    reach = {p for i in anchors for p in range(positions[i] - radius, positions[i] + radius + 1)}
    others = [i for i in order if i not in anchors and positions[i] in reach and scores[i] >= tau_low]
    return anchors, others if anchors or others else order[:1]
