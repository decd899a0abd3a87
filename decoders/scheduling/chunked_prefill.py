"""Chunked prefills: prompts in pieces, alongside requests that decode (SARATHI, Agrawal et al. 2023, section
4).

A plain function of running and waiting requests.
"""

from decoders.scheduling.requests import Plan, Request


def chunked_prefill(running: list[Request], waiting: list[Request], budget: float, rows: int) -> Plan:
    """One token for each request that decodes; what they leave of `budget` tokens goes to prompts: first
    those begun, then, up to `rows` requests in all, those that wait, in their order. It
    may be math.inf.
    """
    plan: Plan = [(one, 1) for one in running if not one.prompt_left]
    left = max(0, budget - len(plan))  # the decodes alone may exceed it
    admitted = waiting[: max(0, rows - len(running))]
    for one in [one for one in running if one.prompt_left] + admitted:
        chunk = min(one.prompt_left, left)
        if chunk <= 0:
            break
        plan.append((one, chunk))
        left -= chunk
    return plan


def full_ratio(budget: int, rows: int) -> float:
    """The ratio of prompt tokens to decodes with which every iteration can be full: c / (B - 1), where one of
    B rows has a chunk of c tokens and the others decode (section 4.2).
    """
    return (budget - (rows - 1)) / (rows - 1)
