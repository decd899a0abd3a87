"""Multi-Stage Vision Token Dropping, MustDrop (2024): its second and third stages, ported to a prompt.

The context's tokens stand for those of the image, the prompt's last tokens for the question. Prefill: a
context token is dropped if the question gives it little attention in total and none of its tokens gives it
much. Decoding: every layer keeps only the tokens that survived all cuts. The first stage, in the image
encoder, has no counterpart in a text.
"""

import torch

from decoders.memory.attention import logits_of
from decoders.memory.flowcut import FlowCut
from decoders.memory.policy import HIDDEN, Slots

WHERE = (2 / 32, 6 / 32, 10 / 32, 14 / 32)  # layers at which the original looks, as shares of its 32


def leaves(attention: torch.Tensor, total: float, single: float) -> torch.Tensor:
    """Which context tokens are dropped, by the question's attention [Nq, Nc] to them: those that get less
    than the share `total` of all attention, and less than `single` from every question token.
    """
    received = attention.sum(0)
    return (received < total * received.sum()) & (attention.amax(0) < single)


class MustDrop(FlowCut):
    """`memory_total` is the paper's global threshold times the number of context tokens."""

    def __init__(self, shape, parameters) -> None:
        parameters = {"memory_until": 1.0, **parameters}
        super().__init__(shape, parameters)
        last = shape.layers - 1
        self.cuts = sorted({min(last, round(share * shape.layers)) for share in WHERE})

    def _look(self, layer, reading, q) -> None:
        count, asking = len(reading.prompt), self.parameters["memory_question"]
        if layer == 0:
            self.left = torch.ones(count, dtype=torch.bool, device=q.device)
            self.kept = [self.left.clone() for _ in range(self.shape.layers)]
        if layer not in self.cuts or count <= asking:
            return
        k = reading.slots.pool[layer][0][:, reading.prompt]  # [Hkv, T, D]
        logits = logits_of(q[0, :, count - asking : count], k, self.shape.scaling)  # [H, Nq, T]
        later = torch.ones(asking, count, dtype=torch.bool, device=q.device).triu(count - asking + 1)
        attention = logits.masked_fill(later | ~self.left, -torch.inf).softmax(-1).mean(0)  # [Nq, T]
        context = self.left.clone()
        context[count - asking :] = False
        at = context.nonzero()[:, 0]
        if len(at) == 0:
            return
        gone = leaves(
            attention[:, at], self.parameters["memory_total"] / len(at), self.parameters["memory_single"]
        )
        self.score = torch.full((count,), torch.inf, device=q.device)
        may = at[gone]
        may = may[~reading.protected[may] & (may >= self.parameters["memory_sink"])]
        self.score[may] = 0.0
        self._drop(layer, reading, len(may))

    def settle(self, slots: Slots, places: torch.Tensor) -> None:
        """The third stage: the lower layers forget them too."""
        if self.left is None or bool(self.left.all()):
            return
        slots.bias[:, :, places[: len(self.left)][~self.left]] = HIDDEN
        self.kept = [self.left] * self.shape.layers


make = MustDrop
