"""FlowCut (2025), ported from the tokens of an image to those of a prompt.

The reader is the prompt's last token. In the original it is the image's class token or, inside the language
model, the last token of the instruction. While the prompt is read, tokens that get little attention from the
reader are dropped, layer by layer: the layers above no longer see them.
"""

import math

import torch

from decoders.memory.attention import logits_of
from decoders.memory.policy import HIDDEN, Policy, Reading


def reader_attention(q: torch.Tensor, k: torch.Tensor, left: torch.Tensor, scaling: float) -> torch.Tensor:
    """a [T]: the mean over heads of the attention of one query [H, 1, D] to keys [Hkv, T, D] that are
    left.
    """
    logits = logits_of(q, k, scaling).masked_fill(~left, -torch.inf)
    return logits.softmax(-1).mean((0, 1))


def scores_of(attention: torch.Tensor, v: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
    """(a + b) * the size of the values [T]: b compares values [Hkv, T, D] with the reader's, the last."""
    similar = (v[:, -1:] @ v.mT)[:, 0] / math.sqrt(v.shape[-1])  # [Hkv, T]
    b = similar.masked_fill(~left, -torch.inf).softmax(-1).mean(0)
    return (attention + b) * v.mean(0).abs().sum(-1)


def dropped(count: int, target: int, remaining: int, focus: float) -> int:
    """How many of `count` tokens leave here, with `remaining` layers before the last cut. focus: the entropy
    of the reader's attention over ln N.
    """
    if count <= target:
        return 0
    if remaining == 0:
        return count - target
    return min(count - target, round((count - target) / math.sqrt(remaining) * (1 - focus**2)))


class FlowCut(Policy):
    """`memory_keep` sets the number of tokens that are left after the last cut. Tokens with a meaning of
    their own (end of text, chat marks), the first ones and the reader never leave.
    """

    alike = False

    def __init__(self, shape, parameters) -> None:
        super().__init__(shape, parameters)
        last = max(1, round(parameters["memory_until"] * shape.layers)) - 1
        self.cuts = range(last % 2, last + 1, 2)  # every second layer, down from the last
        self.left = self.score = None
        self.kept: list[torch.Tensor] = []  # [T] per layer: which prompt tokens its cache keeps

    def attend(self, layer, reading: Reading, q, k, v, mask) -> torch.Tensor:
        seen = super().attend(layer, reading, q, k, v, mask)
        if reading.prompt is not None:
            self._look(layer, reading, q)
        return seen

    def _look(self, layer: int, reading: Reading, q: torch.Tensor) -> None:
        """One layer while the prompt is read."""
        count = len(reading.prompt)
        if layer == 0:
            self.left = torch.ones(count, dtype=torch.bool, device=q.device)
            self.kept = [self.left.clone() for _ in range(self.shape.layers)]
        if layer > self.cuts[-1]:
            return
        k, v = reading.slots.pool[layer][:, :, reading.prompt]  # [Hkv, T, D] each
        attention = reader_attention(q[0, :, count - 1 : count], k, self.left, self.shape.scaling)
        score = scores_of(attention, v, self.left)
        self.score = score if layer == 0 else 0.5 * self.score + 0.5 * score
        if layer not in self.cuts:
            return
        there = int(self.left.sum())
        entropy = float(torch.special.entr(attention[self.left]).sum())
        focus = entropy / math.log(there) if there > 1 else 1.0
        target = max(1, math.ceil(self.parameters["memory_keep"] * count))
        number = dropped(there, target, self.cuts[-1] - layer, focus)
        self._drop(layer, reading, number)

    def _drop(self, layer: int, reading: Reading, number: int) -> None:
        """The lowest scores of what may leave, seen by no layer above."""
        may = self.left & ~reading.protected
        may[: self.parameters["memory_sink"]] = may[-1] = False
        number = min(number, int(may.sum()))
        if not number:
            return
        lowest = self.score.masked_fill(~may, torch.inf).topk(number, largest=False).indices
        self.left[lowest] = False
        for above in range(layer + 1, self.shape.layers):
            self.kept[above] = self.left.clone()
            reading.slots.bias[above][:, reading.prompt[lowest]] = HIDDEN
        reading.biased = True

    def kept_bytes(self, count: int) -> float:
        left = sum(int(one.sum()) for one in self.kept)
        prompt = len(self.kept[0]) if self.kept else 0
        return (left + (count - prompt) * self.shape.layers) * self.shape.layer_bytes

    def states(self, count: int) -> list[list[str]]:
        sink = self.parameters["memory_sink"]
        rows = []
        for kept in self.kept or [torch.ones(0)] * self.shape.layers:
            states = [
                ("sink" if i < sink else "full") if one else "evicted" for i, one in enumerate(kept.tolist())
            ]
            rows.append(states + ["full"] * (count - len(states)))
        return rows


make = FlowCut
