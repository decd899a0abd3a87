"""What files that people save are called."""


def filename(prompt: str, lane: int | None, ending: str) -> str:
    """`once-upon-a-time.lane-2.trace.json.gz`: letters, digits and dashes of the prompt's beginning."""
    return f"{dashed(prompt[:40]) or 'run'}{'' if lane is None else f'.lane-{lane + 1}'}.{ending}"


def dashed(text: str) -> str:
    """Small letters and digits of a text, with dashes between its words."""
    return "-".join("".join(c.lower() if c.isalnum() else " " for c in text).split())
