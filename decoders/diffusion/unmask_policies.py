"""Which masks become tokens in a forward: the rules of masked-diffusion decoding, as functions of scores.

Each gets scores [n], one per masked position, higher is surer, and gives indices into them, surest first;
never none. Ties go to the lower position, so a text follows from the scores.
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
    equal shares, the first ones one more (LLaDA).
    """
    steps = -(-masks // tokens_per_forward)
    return [masks // steps + (step < masks % steps) for step in range(steps)]


def quotas_in_time(masks: int, tokens_per_forward: int) -> list[int]:
    """The same by times that fall evenly from 1 to 0.001, each step filling the share of what is left by
    which the time falls, rounded down, the last one all (Dream, Ye et al. 2025). Steps that would fill
    nothing are left out.
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
    """The largest set of the surest whose entropies [n] sum, without the largest of them, to at most gamma
    nats: a bound on what filling them together costs (EB-Sampler, Ben-Hamu et al. 2025).
    """
    order = surest_first(scores)
    sorted_ = entropies[order].double()
    bound = sorted_.cumsum(0) - sorted_.cummax(0).values
    fitting = int((bound <= gamma + 1e-12).long().cumprod(0).sum())
    return order[: max(1, fitting)]


def near_anchors(
    scores: torch.Tensor, positions: list[int], tau: float, tau_low: float, radius: int
) -> tuple[list[int], list[int]]:
    """(anchors, others) of LocalLeap (2025): anchors have a probability of at least tau; others at least
    tau_low and stand within `radius` positions of an anchor. With neither, the surest is among the others.
    """
    order = surest_first(scores)
    anchors = [i for i in order if scores[i] >= tau]
    reach = {p for i in anchors for p in range(positions[i] - radius, positions[i] + radius + 1)}
    others = [i for i in order if i not in anchors and positions[i] in reach and scores[i] >= tau_low]
    return anchors, others if anchors or others else order[:1]
