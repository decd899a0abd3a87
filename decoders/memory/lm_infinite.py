"""LM-Infinite (Han et al. 2023): a Λ-shaped mask and a cap on distances.

A query at position i sees the local keys j with 0 <= i - j < L at their own distance, and those of the first
G keys that are farther away at one fixed distance, all in one softmax. The keys between are evicted. Nothing
is trained. The paper's optional retrieval branch is not implemented.
"""

import torch

from decoders.memory.attention import attention_part, dense, merge_lse
from decoders.memory.policy import HIDDEN, Policy, Reading, Slots


def sees(
    rows: torch.Tensor, columns: torch.Tensor, local: int, first: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two masks [..., N, K]: which keys at depths `columns` [..., K] the queries at depths `rows` [N] see at
    their own distance, and which at the fixed distance.
    """
    distance = rows[:, None] - columns[..., None, :]
    return (distance >= 0) & (distance < local), (distance >= local) & (columns[..., None, :] < first)


class LmInfinite(Policy):
    """`memory_local` is L, `memory_global` G; with the cap "L - 1" first tokens stand no farther away than
    the local ones do.
    """

    needs_rotary = unbounded = True

    def __init__(self, shape, parameters) -> None:
        super().__init__(shape, parameters)
        self.local, self.first = parameters["memory_local"], parameters["memory_global"]
        self.cap = self.local - (parameters["memory_cap"] == "L - 1")

    def attend(self, layer, reading: Reading, q, k, v, mask) -> torch.Tensor:
        """The two sets of keys, merged by their log-sum-exp: equal to one softmax over both."""
        scaling, rows, depths = self.shape.scaling, reading.rows, reading.depths(layer)
        if int(rows.max()) < self.local:  # nothing is far away: the plain model, number for number
            return dense(q, k, v, mask, None, scaling)
        near, far = sees(rows, depths, self.local, self.first)  # [1 or Hkv, N, K]
        group = q.shape[1] // k.shape[1]
        seen = torch.zeros_like(near, dtype=q.dtype) if mask is None else mask[0]
        local = attention_part(q[0], k[0], v[0], self._bias(seen, near, group), scaling)
        turn = self.shape.rotary.turn
        still = turn(k[0], -depths)  # [Hkv, K, D] keys before their rotation
        at_cap = turn(q[0], (self.cap - rows).expand(q.shape[1], -1))  # [H, N, D]
        distant = attention_part(at_cap, still, v[0], self._bias(seen, far, group), scaling)
        return merge_lse([local, distant])[None]

    def _bias(self, seen: torch.Tensor, chosen: torch.Tensor, group: int) -> torch.Tensor:
        """The additive mask [1 or H, N, K] of one set of keys: -inf where a row does not see one."""
        bias = seen.masked_fill(~chosen | (seen < HIDDEN), -torch.inf)
        return bias if bias.shape[0] == 1 else bias.repeat_interleave(group, 0)

    def settle(self, slots: Slots, places: torch.Tensor) -> None:
        """Does nothing: exactly those keys are evicted that no later row sees."""

    def kept_bytes(self, count: int) -> float:
        """Constant from L + G places on."""
        return min(count, self.local + self.first) * self.shape.slot_bytes

    def states(self, count: int) -> list[list[str]]:
        near = max(0, count - self.local)  # the first place that the next token sees as a near one
        first = min(self.first, count)
        row = ["sink"] * first + ["evicted"] * (count - first)
        row[near:] = ["sink" if place < first else "full" for place in range(near, count)]
        return [row]


make = LmInfinite
