"""What the experiments ask: prompts of several kinds, decoded by a strategy."""

import gzip
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from time import perf_counter
from typing import Any

import torch

from decoders.lane import Lane, Limits
from decoders.registry import strategies
from decoders.trace.trace import Trace
from explorer.experiments import Models
from explorer.off_loop import encoded
from explorer.runs.callbacks import CALLBACKS
from explorer.tasks import HELD_OUT_SEED, Problem, problems
from explorer.timing import PROMPTS

# Kind of text -> the task that its prompts come from; stories have prompts of their own.
KINDS = {
    "stories": None,
    "translation": "translate",
    "questions on facts": "facts",
    "word problems": "word_problem",
    "records": "json",
    "copying": "copy",
}


def prompts(kind: str, count: int) -> list[str]:
    """Up to `count` prompts of one of `KINDS`."""
    task = KINDS[kind]
    return list(PROMPTS[:count]) if task is None else [p.prompt for p in problems(task, count, HELD_OUT_SEED)]


def cases(kind: str, count: int, tokens: int, seeds: int = 1) -> list[tuple[str, int, int]]:
    """Prompt, number of tokens and seed for `decoded`: up to `count` prompts of a kind, with several seeds
    each.
    """
    return list(product(prompts(kind, count), [tokens], range(seeds)))


def problems_of(tasks: Iterable[str], count: int) -> list[tuple[Problem]]:
    """`count` problems of each task, which no model has read, as cases of a sweep."""
    return [(problem,) for task in tasks for problem in problems(task, count, HELD_OUT_SEED)]


def without_sampling(strategy: str) -> dict:
    """The parameters with which a strategy samples nothing."""
    declared = {p.name for p in strategies()[strategy].parameters}
    return {"temperature": 0.0} if "temperature" in declared else {}


def lossless() -> list[str]:
    """The strategies that promise greedy's text at temperature 0 and need only a target and a draft."""
    return [
        name
        for name, strategy in strategies().items()
        if set(strategy.needs) <= {"target", "draft"}
        and strategy.badge(strategy.check(without_sampling(name))) == "lossless: equal to greedy"
    ]


def decoded(
    models: Models, strategy: str, prompt: str, tokens: int, seed: int = 0, **parameters: Any
) -> Trace:
    """The trace of one lane, up to `tokens` new tokens."""
    ids = models["target"].encode(prompt)
    return Lane(strategy, ids, models, parameters, seed, Limits(tokens), callbacks=CALLBACKS).run()


@dataclass(frozen=True)
class Timed:
    """The answer to a question, the right one, and the seconds that the answer took."""

    answer: Any
    right: Any
    seconds: float


def timed(models: Models, question: Any, right: Any, ask: Callable[[Any], Any]) -> Timed:
    """One way to answer a question, for sweeps whose settings are such ways."""
    start = perf_counter()
    return Timed(ask(question), right, perf_counter() - start)


def text_of(models: Models, tokens: Sequence[int]) -> str:
    """The text of some of the target's tokens, without end-of-text tokens."""
    target = models["target"]
    plain = b"".join(target.bytes_of(token) for token in tokens if token not in target.eos)
    return plain.decode("utf-8", "replace")


def packed(trace: Trace) -> str:
    """A trace file as the page opens it: compressed, in base64."""
    return b64encode(gzip.compress(encoded(trace.to_json(), finite=True).encode(), mtime=0)).decode()


def own_logprob(models: Models, prompt: list[int], text: Sequence[int]) -> float:
    """The target's log-probability of a text in nats, at temperature 1."""
    model = models["target"].model
    with torch.inference_mode():
        logits = model(torch.tensor([[*prompt, *text]], device=model.device)).logits[0, len(prompt) - 1 : -1]
    return float(logits.float().log_softmax(-1)[range(len(text)), list(text)].sum())
