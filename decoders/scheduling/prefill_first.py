"""The two schedules that chunked prefills are compared with: batches of requests, and prompts before decodes.

Plain functions of running and waiting requests (SARATHI, Agrawal et al. 2023, section 3).
"""

from decoders.scheduling.requests import Plan, Request


def request_level(running: list[Request], waiting: list[Request], rows: int) -> Plan:
    """Up to `rows` requests read their whole prompts together; nobody joins until all of them are done."""
    return [(one, 1) for one in running] or whole_prompts(waiting[:rows])


def prefill_first(running: list[Request], waiting: list[Request], rows: int) -> Plan:
    """Every request that can be admitted reads its whole prompt at once, while decoding requests wait."""
    return whole_prompts(waiting[: max(0, rows - len(running))]) or [(one, 1) for one in running]


def whole_prompts(requests: list[Request]) -> Plan:
    """Each reads its prompt to the end."""
    return [(one, one.prompt_left) for one in requests]
