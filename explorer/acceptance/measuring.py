"""Runs the prompts: the target's own text of each, every drafter's rounds on it, and every drafter's guess at
each of its places. Knows models and lanes, no strategy by name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from decoders import registry
from decoders.lane import Lane, Limits
from decoders.trace.trace import Trace
from explorer.acceptance.along_text import guesses_along, target_along
from explorer.acceptance.drafters import Drafter
from explorer.acceptance.prompts import Prompt
from explorer.experiments import progress
from explorer.runs.lane_factory import CALLBACKS
from visualizers.analysis.acceptance_report import Measured, Text, acceptance_report
from visualizers.scene.marks import visible


@dataclass(frozen=True)
class Settings:
    """How every prompt is decoded. Above temperature 0 every drafter's lane draws a text of its own; places
    are compared on a text that the target drew.
    """

    max_new_tokens: int = 64
    num_assistant_tokens: int = 4
    temperature: float = 0.0
    seed: int = 0


def report(
    target: Any,
    drafters: Sequence[Drafter],
    prompts: Sequence[Prompt],
    settings: Settings,
) -> dict:
    """`acceptance_report` of these drafters; its loops go through `progress.each`.

    Raises ValueError with one sentence if a prompt or a drafter cannot be used.
    """
    texts, written, numbered = [], [], list(enumerate(prompts, 1))
    for number, prompt in progress.each(numbered, until=1 / (1 + len(drafters))):
        trace = decoded(
            "sample" if settings.temperature else "greedy", {"target": target}, prompt, settings, number
        )
        ids = [*trace.prompt, *trace.output()]
        wrote = target_along(target, ids, len(trace.prompt), settings.temperature)
        tokens = [visible(target.bytes_of(token)) for token in trace.output()]
        texts.append(Text(prompt.text, prompt.category, tokens, wrote.entropy, wrote.best))
        written.append((ids, len(trace.prompt)))
    made = []
    for one in progress.each(drafters):
        traces, guesses = [], []
        for (number, prompt), (ids, start) in progress.each(zip(numbered, written, strict=True)):
            traces.append(decoded(one.strategy, one.models, prompt, settings, number))
            if one.guesser is not None:  # the target is read again: distributions of all texts take room
                wrote = target_along(target, ids, start, settings.temperature)
                guesses.append(guesses_along(one.guesser, target, ids, start, wrote, settings.temperature))
        made.append(Measured(one.name, traces, guesses if one.guesser is not None else None))
    return acceptance_report(target.name, settings.temperature, texts, made)


def decoded(strategy: str, models: dict, prompt: Prompt, settings: Settings, number: int) -> Trace:
    """The trace of one prompt. Raises ValueError with one sentence that names the prompt by its number."""
    declared = {p.name for p in registry.get(strategy).parameters}
    wanted = {
        "temperature": settings.temperature,
        "num_assistant_tokens": settings.num_assistant_tokens,
    }
    parameters = {name: value for name, value in wanted.items() if name in declared}
    limits = Limits(max_new_tokens=settings.max_new_tokens)
    try:
        ids = models["target"].encode(prompt.text)
        return Lane(strategy, ids, models, parameters, settings.seed, limits, callbacks=CALLBACKS).run()
    except ValueError as error:
        raise ValueError(f"Prompt {number}: {error}") from error
