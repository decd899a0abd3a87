"""Results of forwards over a token tree that are kept for later calls. Knows tensors and slots, no trees."""

from dataclasses import dataclass

import torch


@dataclass
class Batch:
    """The results of one forward, one row per node."""

    logits: torch.Tensor  # [N, V] of the nodes that were asked for
    hidden: torch.Tensor | None  # [N, d] last-layer states, if asked for
    queries: torch.Tensor | None  # [L, H, N, D] of all computed nodes, for the layers whose attention ran
    stream: torch.Tensor | None = None  # [N, d] residual stream of all computed nodes, before the last norm
    streams: torch.Tensor | None = None  # [L + 1, N, d] the same after 0 to L layers, if asked for
    lanes: int = 1  # whose rows ran in this forward
    # the requester's seconds that computed rows of other lanes; negative where others computed its rows
    for_others: float = 0.0


@dataclass
class Early:
    """The state from which the remaining layers continue, at a node that only the first layers have read."""

    exit: int
    stream: torch.Tensor  # [d] after `exit` layers
    queries: torch.Tensor | None  # [exit, H, D]


@dataclass
class Trunk:
    """The slots of a prompt that lanes share."""

    slots: list[int]
    users: int = 0
    evaluated: bool = False
    under_way: bool = False  # whether a lane is waiting for the forward that computes it
    last: tuple[Batch, int, int] | None = (
        None  # the kept row of its last token, which every lane asks for first
    )
