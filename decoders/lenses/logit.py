"""The logit lens (nostalgebraist 2020): middle states through the model's own last norm and head, and what
every lens by depth tells of the distributions that it read. Knows tapes, no lane.
"""

from typing import Any

import torch

from decoders.lenses.frame import LensFrame, level_names
from decoders.lenses.registry import lens
from decoders.lenses.tape import Tape, record
from decoders.logits.distributions import log_softmax, summarise
from decoders.speculative.divergences import forward_kl, jsd, reverse_kl, tvd
from decoders.strategy import Parameter
from decoders.trace.events import Distribution, Score

POSITIONS = Parameter(
    "positions", "int", 64, "How many positions are shown: the last ones of the text.", low=1, high=512
)
DEPTH, CHOSEN, FAR = "decision depth", "chosen", "KL to final"


@lens(name="logit", title="Logit lens", parameters=(POSITIONS,))
def logit(model: Any, tokens: list[int], options: dict[str, Any]) -> LensFrame:
    """What each layer would say if it were the last: its state through the model's own last norm and head.

    `q = softmax(W_U norm(h))` at each position, after each layer and after the embeddings. The last row is
    the model's own distribution. The decision depth of a position is the smallest number of layers from
    which on the likeliest token stays that of the last row.
    """
    tape = record(model.model, tokens)
    first = max(0, len(tokens) - options["positions"])
    rows = tape.read(tape.streams[:-1, first:])  # [L, N, V]
    return depth_frame("logit", "Logit lens", tape, rows, first)


def depth_frame(name: str, title: str, tape: Tape, rows: torch.Tensor, first: int) -> LensFrame:
    """The frame of a lens that reads logits [L, N, V] off the states below the last row, of the positions
    from `first` on; the last row is the model's own.
    """
    final = tape.logits[first:]  # [N, V]
    levels, events = level_names(tape.depth), []
    every = torch.cat([rows, final[None]])  # [L + 1, N, V]
    following = tape.tokens[first + 1 :]  # what was chosen behind each position but the last
    depths = decision_depths(every)
    for level, logits in zip(levels, every, strict=True):
        logprobs = log_softmax(logits)
        far = zip(*(f(final, logits).tolist() for f in (forward_kl, reverse_kl, jsd, tvd)), strict=True)
        rows_of = zip(summarise(logprobs), far, strict=True)
        for at, ((top, rest, entropy), (kl, reverse, js, tv)) in enumerate(rows_of):
            events.append(Distribution(first + at, name, top, rest, entropy, level))
            parts = {"reverse KL": reverse, "Jensen-Shannon": js, "total variation": tv}
            events.append(Score(first + at, FAR, kl, parts, level=level))
        ranks = chosen_ranks(logprobs[: len(following)], following)
        events += [Score(first + at, CHOSEN, p, rank=rank, level=level) for at, (p, rank) in enumerate(ranks)]
    events += [Score(first + at, DEPTH, float(d), level=levels[d]) for at, d in enumerate(depths)]
    return LensFrame(name, title, tape.tokens, levels, events, [tape.forward], sentence(depths, tape.depth))


def decision_depths(logits: torch.Tensor) -> list[int]:
    """Of logits [L + 1, N, V] from the bottom up: for each position the smallest number of layers from which
    on the argmax is that of the last row, [N].
    """
    agrees = logits.argmax(-1) == logits[-1].argmax(-1)  # [L + 1, N]
    return (len(logits) - agrees.flip(0).long().cumprod(0).sum(0)).tolist()


def chosen_ranks(logprobs: torch.Tensor, tokens: list[int]) -> list[tuple[float, int]]:
    """For each row of logprobs [N, V] the log-probability of its token and its rank, 1 for the likeliest."""
    if not tokens:
        return []
    own = logprobs.gather(1, torch.tensor(tokens, device=logprobs.device)[:, None])  # [N, 1]
    ranks = (logprobs > own).sum(-1) + 1
    return list(zip(own[:, 0].tolist(), ranks.tolist(), strict=True))


def sentence(depths: list[int], layers: int) -> str:
    """The main thing about decision depths, in one sentence."""
    early = sum(d <= layers // 2 for d in depths)
    mean = sum(depths) / len(depths)
    return (
        f"The likeliest next token is settled after {mean:.1f} of {layers} layers on average; at {early} of "
        f"{len(depths)} positions the first half of the layers already has it."
    )
