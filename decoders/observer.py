"""The interface of what looks on while a lane decodes, and records what it sees."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # only for annotations: the page is made before torch is imported
    import torch


class Observer:
    """Looks on at one lane; it chooses no token. Each method does nothing unless it is overridden."""

    def predicted(self, lane: Any, nodes: list[int], logprobs: "torch.Tensor") -> None:
        """The target's distributions after `nodes`, as log-probabilities [N, V], have been recorded."""

    def committed(self, lane: Any, nodes: list[int]) -> None:
        """`nodes`, a path that ends at the lane's new tip, are output. The rows of their parents are kept
        until all observers have seen them.
        """

    def close(self) -> None:
        """The lane has ended: gives back what it holds. May be called twice."""
