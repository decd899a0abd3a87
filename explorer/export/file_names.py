"""The names of saved files."""


def filename(prompt: str, lane: int | None, ending: str) -> str:
    """A name such as `once-upon-a-time.lane-2.trace.json.gz`, made from the beginning of the prompt."""
    return f"{dashed(prompt[:40]) or 'run'}{'' if lane is None else f'.lane-{lane + 1}'}.{ending}"


def dashed(text: str) -> str:
    """The words of a text in lower case, joined by dashes; only letters and digits are kept."""
    return "-".join("".join(c.lower() if c.isalnum() else " " for c in text).split())
