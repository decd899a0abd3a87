"""A drafter's guess at every position of a text that the target wrote, each conditioned on the true tokens
before it, so that two drafters can be compared position by position.
"""

from dataclasses import dataclass
from typing import Any

import torch

from decoders.heads import DraftModule, take_taps
from decoders.trace.token_text import visible
from visualizers.analysis.acceptance_report import Guesses


@dataclass(frozen=True)
class TargetAlong:
    """The target's predictions for the N new tokens of its text: entropy in bits, highest probability, and
    the distributions p [N, V].
    """

    entropy: list[float]
    best: list[float]
    p: torch.Tensor


@torch.inference_mode()
def target_along(target: Any, ids: list[int], start: int, temperature: float) -> TargetAlong:
    """The target's predictions along a text, from token `start` on. Temperature 0 counts as 1."""
    logits = next_logits(target, ids)[start - 1 : -1].double() / (temperature or 1.0)
    logp = logits.log_softmax(-1)
    p = logp.exp()
    entropy = -(p * logp.nan_to_num(neginf=0.0)).sum(-1) / torch.log(torch.tensor(2.0))
    return TargetAlong(entropy.tolist(), p.max(-1).values.tolist(), p)


@torch.inference_mode()
def guesses_along(
    guesser: Any, target: Any, ids: list[int], start: int, wrote: TargetAlong, temperature: float
) -> Guesses:
    """The predictions of a draft model or a head for each token of the target's text from `start` on;
    `wrote`: the target's own predictions there.
    """
    if isinstance(guesser, DraftModule):
        taps = take_taps(target.model, torch.tensor([ids], device=target.model.device), guesser.reads)
        rows = guesser.along(taps, 1)[0][0]  # [T - 2, V]: row n guesses token n + 2
        missing = max(0, 2 - start)
        logits = rows[start + missing - 2 :]
    else:
        logits, missing = next_logits(guesser, ids)[start - 1 : -1], 0
    logits = logits.double().cpu() / (temperature or 1.0)
    q, text = logits.softmax(-1), torch.tensor(ids[start + missing :])
    of_text = q.gather(1, text[:, None])[:, 0]
    none: list = [None] * missing
    guess = logits.argmax(-1)
    return Guesses(
        none + [visible(target.bytes_of(token)) for token in guess.tolist()],
        none + q.max(-1).values.tolist(),
        none + (guess == text).tolist(),
        none + (1 + (q > of_text[:, None]).sum(-1)).tolist(),
        none + of_text.tolist(),
        none + torch.minimum(wrote.p.cpu()[missing:], q).sum(-1).tolist(),
        [True] * missing + (logits.gather(1, text[:, None])[:, 0] > -torch.inf).tolist(),
        not isinstance(guesser, DraftModule) or guesser.sees.path,
    )


def next_logits(model: Any, ids: list[int]) -> torch.Tensor:
    """Logits [T, V] of the next token after each token of a text."""
    return model.model(input_ids=torch.tensor([ids], device=model.model.device)).logits[0]
