"""Runs the prompts: the target's own text for each, every drafter's rounds, and every drafter's guess at each
position of the target's text.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from decoders import registry
from decoders.lane import Lane, Limits
from decoders.refusal import Refusal
from decoders.trace.endings import without_numbers
from decoders.trace.token_text import visible
from decoders.trace.trace import Trace
from explorer.acceptance.along_text import guesses_along, target_along
from explorer.acceptance.drafters import Drafter, chain_of
from explorer.acceptance.prompts import Prompt
from explorer.experiments import progress
from explorer.runs.callbacks import CALLBACKS
from visualizers.analysis.acceptance_report import Measured, Text, acceptance_report

Done = TypeVar("Done")  # how much is done, as the caller counts it


@dataclass(frozen=True)
class Settings:
    """How every prompt is decoded. `num_assistant_tokens`: every drafter drafts chains of so many tokens;
    None: each drafts in its own way. Above temperature 0 every drafter samples a text of its own, and
    drafters are compared position by position on a text that the target sampled.
    """

    max_new_tokens: int = 64
    num_assistant_tokens: int | None = None
    temperature: float = 0.0
    seed: int = 0


def report(
    target: Any,
    drafters: Sequence[Drafter],
    prompts: Sequence[Prompt],
    settings: Settings,
) -> dict:
    """The `acceptance_report` of these drafters; its loops go through `progress.each`.

    Raises Refusal with one sentence if a prompt or a drafter cannot be used.
    """
    pieces, done = in_pieces(target, drafters, prompts, settings), 0
    for number in progress.each(range(1, parts_of(drafters, prompts) + 1)):
        while done < number:
            done = next(pieces)
    return next(pieces)


def parts_of(drafters: Sequence[Drafter], prompts: Sequence[Prompt]) -> int:
    """How many texts are decoded: for every prompt, one by the target alone and one per drafter."""
    return len(prompts) * (1 + len(drafters))


def in_pieces(
    target: Any,
    drafters: Sequence[Drafter],
    prompts: Sequence[Prompt],
    settings: Settings,
    made: list[Measured] | None = None,
) -> Iterator[int | dict]:
    """`report` in pieces: after every step of a lane yields the number of texts decoded so far, and finally
    the report. `made`: a list that gets what the report is about.
    """
    shapes = [shape_of(one.strategy, settings) for one in drafters]  # refuses before anything is decoded
    texts, written, done = [], [], 0
    plain = "sample" if settings.temperature else "greedy"
    for number, prompt in enumerate(prompts, 1):
        trace = yield from decoded(plain, {"target": target}, prompt, settings, {}, number, done)
        ids = [*trace.prompt, *trace.output()]
        wrote = target_along(target, ids, len(trace.prompt), settings.temperature)
        tokens = [visible(target.bytes_of(token)) for token in trace.output()]
        texts.append(Text(prompt.text, prompt.category, tokens, wrote.entropy, wrote.best))
        written.append((ids, len(trace.prompt)))
        done += 1
        yield done
    made = [] if made is None else made
    for one, shape in zip(drafters, shapes, strict=True):
        traces, guesses = [], []
        for (number, prompt), (ids, start) in zip(enumerate(prompts, 1), written, strict=True):
            trace = yield from decoded(one.strategy, one.models, prompt, settings, shape, number, done)
            traces.append(trace)
            if one.guesser is not None:
                # The target runs again: the distributions of all texts together would take too much memory.
                own = one.models["target"]  # with the rows that its drafter has
                wrote = target_along(own, ids, start, settings.temperature)
                guesses.append(guesses_along(one.guesser, own, ids, start, wrote, settings.temperature))
            done += 1
            yield done
        made.append(Measured(one.name, traces, guesses if one.guesser is not None else None))
    yield acceptance_report(target.name, settings.temperature, texts, made)


def shape_of(strategy: str, settings: Settings) -> dict[str, Any]:
    """The parameters that make a strategy draft what the settings ask for. Raises Refusal with one
    sentence if it cannot.
    """
    count = settings.num_assistant_tokens
    return {} if count is None else chain_of(strategy, count)


def decoded(
    strategy: str, models: dict, prompt: Prompt, settings: Settings, shape: dict, number: int, done: int
) -> Generator[int, None, Trace]:
    """Decodes one prompt and returns its trace; yields `done` after every step. `shape`: see `shape_of`.
    Raises Refusal with one sentence that names the prompt by its number.
    """
    try:
        ids = models["target"].encode(prompt.text)
        return (yield from lane_in_pieces(strategy, models, ids, settings, shape, done))
    except Refusal as error:
        raise Refusal(f"Prompt {number}: {error}") from error


def lane_in_pieces(
    strategy: str, models: dict, ids: list[int], settings: Settings, shape: dict, done: Done
) -> Generator[Done, None, Trace]:
    """Decodes a text of tokens to its end and returns its trace; yields `done` after every step. Raises
    Refusal with one sentence.
    """
    declared = {p.name for p in registry.get(strategy).parameters}
    parameters = shape | ({"temperature": settings.temperature} if "temperature" in declared else {})
    limits = Limits(max_new_tokens=settings.max_new_tokens)
    lane = Lane(strategy, ids, models, parameters, settings.seed, limits, callbacks=CALLBACKS)
    try:
        while lane.trace.ended is None:
            lane.advance()
            yield done
    finally:
        lane.close()
    if without_numbers(lane.trace.ended):
        raise Refusal(lane.trace.ended)
    return lane.trace
