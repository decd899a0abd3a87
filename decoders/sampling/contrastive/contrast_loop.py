"""The decoding loop that all contrastive methods share.

The row of each view and their combination are recorded as Distribution events with view "target" (the model
after the prompt), "unwanted" (`level` says which one) and "combined".
"""

from collections.abc import Callable, Iterator, Sequence

import torch

from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.sampling.contrastive.contrast_algebra import Contrast
from decoders.sampling.next_token import next_token
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

UNDECIDED = (
    "Here the views agree on every token that is left, so the contrast decides nothing: greedy decoding "
    "takes the smallest token id."
)
MIX = Part("contrast", "contrast of views", "One weighted sum of the log-probabilities of several views.")
PLAUSIBLE = Part(
    "contrast", "plausibility mask", "Tokens far below the model's top probability are left out."
)


Second = Callable[[], tuple[str, torch.Tensor]]  # () -> (name of the second view, its row [1, V])


def badge(parameters: dict) -> str:
    """The badge of strategies that sample from a combined row, greedily at temperature 0."""
    return "deterministic" if parameters["temperature"] == 0.0 else "contrasted"


def subtracts_target(parameters: dict) -> dict[str, set[Capability]]:
    """The `reads` of strategies that subtract a row of the target. They need the full distribution: a token
    missing from that row would win by an infinite margin.
    """
    return {"target": {Capability.FULL_DISTRIBUTION}}


def token_by_token(lane: Lane, contrast: Contrast, second: Second) -> Iterator[None]:
    """Decodes to the end with the lane's target against a second view, which is skipped at weight 0."""
    while lane.more:
        wanted = lane.score([lane.tip])  # [1, V]
        others = [second()] if contrast.weights[1] else []
        if take(lane, contrast, wanted, others) is None:
            return
        yield


def take(
    lane: Lane,
    contrast: Contrast,
    wanted: torch.Tensor,
    others: list[tuple[str, torch.Tensor]],
    added: Sequence[tuple[str, torch.Tensor]] = (),
) -> int | None:
    """Records all rows [1, V] after the lane's tip, combines them, commits a token and returns its node; None
    if the lane has ended. Without `others` the token comes from the wanted row alone. `added`: rows of the
    draft that are wanted too; their weights come last.
    """
    tip = lane.tip
    target = lane.distribution([tip], wanted)[0]
    if not others:
        return next_token(lane, wanted, target, target)
    for title, row in others:
        lane.distribution([tip], row, "unwanted", title)
    for title, row in added:
        lane.distribution([tip], row, "draft", title)
    allowed = lane.constrained(wanted, [tip])  # before the plausibility mask, else no token might be left
    combined = contrast.combine([allowed, *(row for _, row in (*others, *added))])
    offered = lane.distribution([tip], combined, "combined")[0]
    if undecided(combined):
        lane.note(UNDECIDED)
    node = next_token(lane, combined, offered, target)
    if node is not None:
        token = lane.tree.tokens[node]
        parts = {title: float(log_softmax(row)[0, token]) for title, row in (*others, *added)}
        lane.record_measure(
            node, ScoreName.CONTRAST, float(combined[0, token]), wanted=float(target[token]), **parts
        )
    return node


def undecided(combined: torch.Tensor) -> bool:
    """Whether several tokens are left and all have the same score."""
    left = combined[combined.isfinite()]
    return len(left) > 1 and bool((left == left[0]).all())
