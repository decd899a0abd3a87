"""What forwards over a token tree leave behind for later ones. Knows tensors and slots, no trees."""

from dataclasses import dataclass

import torch


@dataclass
class Batch:
    """What one forward left behind for its nodes, row by row."""

    logits: torch.Tensor  # [N, V] of the nodes that were asked for
    hidden: torch.Tensor | None  # [N, d] last-layer states, if asked for
    queries: torch.Tensor | None  # [L, H, N, D] of all evaluated nodes, for the layers whose attention ran
    stream: torch.Tensor | None = None  # [N, d] of all evaluated nodes after the last layer, without a norm
    streams: torch.Tensor | None = None  # [L + 1, N, d] the same after 0 to L layers, if asked for
    lanes: int = 1  # whose rows ran in this forward
    # seconds of whoever asked in which the rows of others were computed; negative where others computed these
    for_others: float = 0.0


@dataclass
class Early:
    """Where the whole model continues, at a node that only the first layers have read."""

    exit: int
    stream: torch.Tensor  # [d] after `exit` layers
    queries: torch.Tensor | None  # [exit, H, D]


@dataclass
class Trunk:
    """The slots of a prompt that lanes share."""

    slots: list[int]
    users: int = 0
    evaluated: bool = False
    under_way: bool = False  # whether a lane waits for the forward that evaluates it
    last: tuple[Batch, int, int] | None = (
        None  # the kept row of its last token, which every lane asks for first
    )
