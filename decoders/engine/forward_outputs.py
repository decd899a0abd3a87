"""Results of forwards over a token tree that are kept for later calls."""

from dataclasses import dataclass

import torch


@dataclass
class Batch:
    """The results of one forward, one row per node."""

    logits: torch.Tensor  # [N, V] of the nodes that were asked for
    hidden: torch.Tensor | None  # [N, d] last-layer states, if asked for
    # [L, H, N - without_queries, D] of the computed nodes, for the layers whose attention ran
    queries: torch.Tensor | None
    stream: torch.Tensor | None = None  # [N, d] residual stream of all computed nodes, before the last norm
    streams: torch.Tensor | None = None  # [L + 1, N, d] the same after 0 to L layers, if asked for
    lanes: int = 1  # whose rows ran in this forward
    # the requester's seconds that computed rows of other lanes; negative where others computed its rows
    for_others: float = 0.0
    without_queries: int = 0  # nodes at the start whose queries are not kept, which nobody will ask for


def in_sequence(batches: list[Batch], counts: list[int], order: list[int]) -> Batch:
    """The results of forwards over `counts` nodes that ran one after another, joined as if one forward had
    run. order: of the rows of logits. Queries are kept from the first forward on that has such rows.
    """

    def joined(parts: list[torch.Tensor | None], dim: int) -> torch.Tensor | None:
        return None if any(part is None for part in parts) else torch.cat(parts, dim)

    first = next((at for at, batch in enumerate(batches) if len(batch.logits)), len(batches) - 1)
    hidden = joined([batch.hidden for batch in batches], 0)
    return Batch(
        torch.cat([batch.logits for batch in batches])[order],
        None if hidden is None else hidden[order],
        joined([batch.queries for batch in batches[first:]], 2),
        joined([batch.stream for batch in batches], 0),
        joined([batch.streams for batch in batches], 1),
        max(batch.lanes for batch in batches),
        sum(batch.for_others for batch in batches),
        sum(counts[:first]),
    )


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
