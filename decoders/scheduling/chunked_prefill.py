"""Chunked prefills: prompts in pieces, alongside requests that decode (SARATHI, Agrawal et al. 2023, section
4).

A plain function of running and waiting requests.
"""

from decoders.scheduling.requests import Plan, Request


def chunked_prefill(running: list[Request], waiting: list[Request], budget: float, rows: int) -> Plan:
    """One token for each request that decodes. The rest of `budget` tokens, which may be math.inf, goes to
    prompts: first to those begun, then to those that wait, in their order and up to `rows` requests in all.
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
