"""How speed is measured: two things alternately in one run, on the same prompts, as a row of a table."""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from decoders.refusal import Refusal

PROMPTS = (  # beginnings as long as those on which the model cards measure acceptance
    "Once upon a time, there was a little girl named Lily. She loved to play in the garden with her dog.",
    "In a quiet forest, a young fox named Finn was looking for food. He saw a small rabbit near a tree.",
    "One day, Tom and his sister went to the beach with their mom. They wanted to build a big sand castle.",
    "There was once an old owl who lived in a tall tree. Every night, the animals came to hear her stories.",
    "Tim had a red ball. He liked to throw it very high, but one day the ball went over the fence.",
    "A brave mouse lived in a small house by the river. His best friend was a turtle who was never late.",
)
NEW_TOKENS = 64
ROUNDS = 3


def figure(name: str, value: float, unit: str, goal: float | None, at_least: bool, **details: Any) -> dict:
    """One measured figure with its goal; None: there is none."""
    met = None if goal is None else value >= goal if at_least else value <= goal
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "goal": "none" if goal is None else f"{'≥' if at_least else '≤'} {goal:g} {unit}",
        "met": met,
        **details,
    }


def plain_models(options: argparse.Namespace, models: dict) -> dict:
    """Target and draft once more, as transformers runs them, on the device and in the dtype of `models`."""
    from decoders.models.address import InVllm, Server
    from decoders.models.loading import load
    from decoders.models.names import Edited, resolve

    target, plain = models["target"].model, {}
    device, dtype = target.device.type, str(target.dtype).removeprefix("torch.")
    for role, name in (("target", options.model), ("draft", options.draft)):
        source = resolve(name)
        if isinstance(source, Edited):
            raise Refusal(f"{name!r} is edited, which plain transformers cannot load; name its base.")
        if isinstance(source, Server | InVllm):
            raise Refusal(f"{name!r} is on a server, and plain transformers loads it here; name a folder.")
        plain[role] = load(name, device, dtype).model
    return plain


def ours(models: dict, strategy: str, **parameters: Any) -> Callable[[list[int]], int]:
    """Decodes a prompt with one of our strategies; returns how many tokens it wrote."""
    from decoders.lane import Lane, Limits

    def decode(prompt: list[int]) -> int:
        return len(Lane(strategy, prompt, models, parameters, limits=Limits(NEW_TOKENS)).run().output())

    return decode


def generator(model, **arguments: Any) -> Callable[[list[int]], int]:
    """The same with transformers' `generate`, without sampling."""
    import torch

    def decode(prompt: list[int]) -> int:
        ids = torch.tensor([prompt], device=model.device)
        mask = torch.ones_like(ids)
        out = model.generate(
            ids, attention_mask=mask, max_new_tokens=NEW_TOKENS, do_sample=False, **arguments
        )
        return out.shape[1] - len(prompt)

    return decode


def in_turn(
    calls: Sequence[Callable[[], object]],
    times: int = ROUNDS,
    of: Callable[[list[float]], float] = statistics.median,
) -> list[float]:
    """Seconds that each of `calls` takes: medians over `times` rounds in which they take turns; `of`: what is
    taken of a call's rounds in place of the median.
    """
    spent: list[list[float]] = [[] for _ in calls]
    for _ in range(times):
        for call, took in zip(calls, spent, strict=True):
            began = time.perf_counter()
            call()
            took.append(time.perf_counter() - began)
    return [of(took) for took in spent]


def alternate(
    mine: Callable[[list[int]], int], other: Callable[[list[int]], int], prompts: list[list[int]]
) -> tuple[float, float, float]:
    """Median tokens/s of both, and the median of the ratios of neighbouring measurements; one warm-up run
    each.
    """
    mine(prompts[0]), other(prompts[0])
    speeds: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        for prompt in prompts:
            pair = []
            for decode in (mine, other):
                began = time.perf_counter()
                tokens = decode(prompt)
                pair.append(tokens / (time.perf_counter() - began))
            speeds.append((pair[0], pair[1]))
    return (
        statistics.median(a for a, _ in speeds),
        statistics.median(b for _, b in speeds),
        statistics.median(a / b for a, b in speeds),
    )


def computing_ratio(
    mine: Callable[[list[int]], int], other: Callable[[list[int]], int], prompts: list[list[int]]
) -> float:
    """Tokens/s of `mine` over those of `other` by the process's own time, where a machine does other things.
    Both decode each prompt once, in turn, after a first one that warms up.
    """
    tokens, seconds = [0, 0], [0.0, 0.0]
    mine(prompts[0]), other(prompts[0])
    for prompt in prompts:
        for at, decode in enumerate((mine, other)):
            began = time.process_time()
            tokens[at] += decode(prompt)
            seconds[at] += time.process_time() - began
    return tokens[0] / seconds[0] / (tokens[1] / seconds[1])
