"""What lenses by depth, such as the logit lens, show of the distribution at each level."""

from collections.abc import Iterable
from itertools import chain

import torch

from decoders.lenses.frame import LensFrame, level_names
from decoders.lenses.tape import Tape
from decoders.logits.distributions import log_softmax, summarise
from decoders.speculative.divergences import forward_kl, jsd, reverse_kl, tvd
from decoders.trace.events import Distribution, Event
from decoders.trace.scores import Measure, Rank, ScoreName


def depth_frame(name: str, title: str, tape: Tape, rows: Iterable[torch.Tensor], first: int) -> LensFrame:
    """The frame of a lens that reads logits [N, V] off each level below the last, of the positions from
    `first` on; the last row is the model's own.
    """
    levels, final = level_names(tape.depth), tape.logits[first:]  # [N, V]
    events, depths = depth_events(name, levels, chain(rows, [final]), final, tape.tokens[first + 1 :], first)
    caption = decision_depth_sentence(depths, tape.depth)
    return LensFrame(name, title, tape.tokens, levels, events, [tape.forward], caption)


def depth_events(
    view: str,
    levels: list[str],
    rows: Iterable[torch.Tensor],
    final: torch.Tensor,
    following: list[int],
    first: int = 0,
) -> tuple[list[Event], list[int]]:
    """What the rows [N, V] of each level show of positions `first` to `first` + N - 1, and the decision depth
    of each [N]. following: the token that was chosen after each position, as far as there is one.
    """
    events, winners = [], []
    for level, logits in zip(levels, rows, strict=True):
        winners.append(logits.argmax(-1))
        logprobs = log_softmax(logits)
        far = zip(*(f(final, logits).tolist() for f in (forward_kl, reverse_kl, jsd, tvd)), strict=True)
        for at, ((top, rest, entropy), own) in enumerate(zip(summarise(logprobs), far, strict=True), first):
            events.append(Distribution(at, view, top, rest, entropy, level))
            kl, reverse, js, tv = own
            parts = {"reverse KL": reverse, "Jensen-Shannon": js, "total variation": tv}
            events.append(Measure(at, ScoreName.KL_TO_FINAL, kl, parts, level))
        ranks = chosen_ranks(logprobs[: len(following)], following)
        events += [
            Rank(at, ScoreName.CHOSEN, p, rank=rank, level=level) for at, (p, rank) in enumerate(ranks, first)
        ]
    depths = decision_depths(torch.stack(winners))
    events += [
        Measure(at, ScoreName.DECISION_DEPTH, float(d), level=levels[d]) for at, d in enumerate(depths, first)
    ]
    return events, depths


def decision_depths(winners: torch.Tensor) -> list[int]:
    """Of the most likely tokens [L + 1, N] from the bottom up: for each position the smallest number of
    layers from which on it is that of the last row, [N].
    """
    agrees = winners == winners[-1]
    return (len(winners) - agrees.flip(0).long().cumprod(0).sum(0)).tolist()


def chosen_ranks(logprobs: torch.Tensor, tokens: list[int]) -> list[tuple[float, int]]:
    """For each row of logprobs [N, V] the log-probability of its token and its rank (most likely: 1)."""
    if not tokens:
        return []
    own = logprobs.gather(1, torch.tensor(tokens, device=logprobs.device)[:, None])  # [N, 1]
    ranks = (logprobs > own).sum(-1) + 1
    return list(zip(own[:, 0].tolist(), ranks.tolist(), strict=True))


def decision_depth_sentence(depths: list[int], layers: int) -> str:
    """The main thing about decision depths, in one sentence."""
    early = sum(d <= layers // 2 for d in depths)
    mean = sum(depths) / len(depths)
    return (
        f"The most likely next token is settled after {mean:.1f} of {layers} layers on average; at {early} "
        f"of {len(depths)} positions the first half of the layers already has it."
    )
