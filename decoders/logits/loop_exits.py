"""The probability that a text leaves a loop at each of its tokens, as it is and under each processor.

Computed from the target's whole distributions along the text, read again in one pass, and by the processors
themselves: the text so far is the loop, and the loop is left where another token than its own is drawn.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from decoders.engine.pieces import in_pieces
from decoders.engine.tree import Tree
from decoders.logits.distributions import ProcessorContext, probabilities, processors
from decoders.logits.processor_order import NEUTRAL, title
from decoders.refusal import Refusal
from decoders.trace.repetition import Exits, Loop

AS_IS = "none"  # the setting without a processor


def exits(
    model: Any,
    prompt: Sequence[int],
    output: Sequence[int],
    loop: Loop,
    settings: dict[str, float],
    between: Callable[[], None] = lambda: None,
) -> list[Exits]:
    """The loop of an output as it is, and under each of the settings alone. between: called between pieces of
    the work. Raises Refusal with one sentence for a value that a processor cannot take.
    """
    text = [*prompt, *output[: loop.stop]]
    first = len(prompt) + loop.begins
    logits = logits_along(model, text, first, between)
    paths = [text[:place] for place in range(first, len(text))]
    own = torch.tensor(text[first:], device=logits.device)  # what the loop writes there
    context = ProcessorContext(logits.shape[-1], tuple(sorted(model.eos)), len(prompt), model.cut)
    made = [exits_of(AS_IS, "no processor", logits, own)]
    for name, value in settings.items():
        if value == NEUTRAL[name]:
            continue
        between()
        made.append(under(name, value, logits, paths, own, context))
    return made


def logits_along(
    model: Any, text: Sequence[int], first: int, between: Callable[[], None] = lambda: None
) -> torch.Tensor:
    """The model's logits [T, V] for the tokens of a text from place `first` on."""
    if len(text) > model.context:
        raise Refusal(f"The text has {len(text):,} tokens, and the model reads at most {model.context:,}.")
    tree = Tree(list(text))
    scorer = model.engine.attach(tree)
    try:
        return in_pieces(scorer, list(range(first - 1, len(text) - 1)), False, between)[0]
    finally:
        scorer.close()


def under(
    name: str,
    value: float,
    logits: torch.Tensor,
    paths: list[list[int]],
    own: torch.Tensor,
    context: ProcessorContext,
) -> Exits:
    """The loop under one processor. XTC throws a coin at each token: its two outcomes are weighted."""
    number = int(value) if isinstance(NEUTRAL[name], int) else float(value)
    settings = {name: number}
    said = title(name, settings)
    if name == "temperature" and number == 0.0:
        return one_hot_exits(name, said, logits, own)
    if name != "xtc_probability":
        return exits_of(name, said, processed(settings, logits, paths, context), own)
    cut, spared = (
        exits_of(name, said, processed(settings, logits, paths, replace(context, coin=always(cuts))), own)
        for cuts in (True, False)
    )
    share = float(value)
    mixed = [share * a + (1 - share) * b for a, b in zip(cut.leaving, spared.leaving, strict=True)]
    return Exits(name, said, mixed, None)  # which token is the most likely depends on the coin


def always(cuts: bool) -> Callable[..., bool]:
    """A coin that falls one way."""
    return lambda probability, tag: cuts


def processed(
    settings: dict[str, float], logits: torch.Tensor, paths: list[list[int]], context: ProcessorContext
) -> torch.Tensor:
    """Logits [T, V] after the processors that the settings switch on."""
    stack = processors(settings, logits.shape[-1], context)
    return logits if stack is None else stack(logits, paths)


def one_hot_exits(name: str, said: str, logits: torch.Tensor, own: torch.Tensor) -> Exits:
    """The loop at temperature 0: it is left where the most likely token is another."""
    leaving = (logits.argmax(-1) != own).double().tolist()
    return Exits(name, said, leaving, first_other(logits, own))


def exits_of(name: str, said: str, scores: torch.Tensor, own: torch.Tensor) -> Exits:
    """The loop under these scores [T, V]; own [T]: its tokens."""
    if not scores.isfinite().any(-1).all():
        raise Refusal(f"With {said} no token is left at some place; loosen it.")
    staying = probabilities(scores).gather(-1, own[:, None])[:, 0]
    return Exits(name, said, (1.0 - staying).clamp(min=0.0).tolist(), first_other(scores, own))


def first_other(scores: torch.Tensor, own: torch.Tensor) -> int | None:
    """The first row whose most likely token is not the loop's own."""
    others = (scores.argmax(-1) != own).nonzero()
    return int(others[0]) if len(others) else None
