"""GEAR (Kang et al. 2024): X is about D + S + L, few bits, with outliers stored separately and a low-rank
error.

The prompt is compressed as one block, later tokens in blocks of a buffer. Keys are quantised in groups of
tokens within one channel, values in groups of channels within one token.
"""

import torch

from decoders.memory.policy import NUMBER, Policy, Slots

SCALE = 2 * NUMBER  # bytes of a group's smallest number and step
INDEX = 4  # bytes of an outlier's place
ROUNDS = 3  # of the power iteration
EXACT = 16  # bits from which on numbers are stored unchanged


def quantised(x: torch.Tensor, bits: int, group: int) -> torch.Tensor:
    """x [..., n] after asymmetric rounding to 2^bits levels between the extremes of each group of numbers;
    the last group may be shorter. A constant group stays unchanged.
    """
    if bits >= EXACT:
        return x
    group = min(group or x.shape[-1], x.shape[-1])
    whole = x.shape[-1] // group * group
    parts = [x[..., :whole].unflatten(-1, (-1, group))] + (
        [x[..., None, whole:]] if whole < x.shape[-1] else []
    )
    return torch.cat([rounded_rows(part, bits).flatten(-2) for part in parts], dim=-1)


def rounded_rows(x: torch.Tensor, bits: int) -> torch.Tensor:
    """x [..., g] with each row rounded to 2^bits levels between its extremes, ties to even."""
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    step = (high - low) / (2**bits - 1)
    codes = torch.round((x - low) / step.where(step > 0, torch.ones_like(step)))
    return low + codes * step


def outliers(x: torch.Tensor, share: float) -> torch.Tensor:
    """The positions of the largest and the smallest share / 2 of the numbers in each vector of x [..., n]."""
    count, mask = per_side(x.shape[-1], share), torch.zeros_like(x, dtype=torch.bool)
    if count:
        mask.scatter_(-1, x.topk(count).indices, True)
        mask.scatter_(-1, x.topk(count, largest=False).indices, True)
    return mask


def per_side(length: int, share: float) -> int:
    """Outliers on each side of a vector: none where the share is less than half a number."""
    return round(length * share / 2)


def low_rank(error: torch.Tensor, rank: int, rounds: int, generator: torch.Generator) -> torch.Tensor:
    """A nearly optimal approximation of error [..., n, d] at rank `rank`, by power iteration."""
    rank = min(rank, *error.shape[-2:])
    start = torch.randn(error.shape[-1], rank, generator=generator, dtype=torch.float32)
    p = start.to(error).expand(*error.shape[:-2], -1, -1)
    for left in reversed(range(rounds)):
        p = torch.linalg.qr(p).Q if left == 0 else p
        q = error @ p  # [..., n, r]
        q = torch.linalg.qr(q).Q if left == 0 else q
        p = error.mT @ q
    return q @ p.mT


def without_error(x: torch.Tensor, bits: int, group: int, share: float) -> torch.Tensor:
    """D + S of x [..., n]: outliers are unchanged, and all other numbers are in few bits. During rounding the
    vector's mean replaces its outliers.
    """
    mask = outliers(x, share)
    filled = x.where(~mask, x.mean(-1, keepdim=True))
    return x.where(mask, quantised(filled, bits, group))


def block_bytes(n: int, heads: int, width: int, p: dict, rank: int) -> float:
    """Bytes of n tokens of keys and values of one layer."""
    numbers, bits = n * heads * width, p["memory_bits"]
    if bits >= EXACT:
        return 2 * numbers * NUMBER
    rank = min(rank, n, width)
    total = 2 * numbers * bits / 8 + 2 * heads * rank * (n + width) * NUMBER
    for vectors, length in ((heads * width, n), (n, heads * width)):  # keys by channel, values by token
        groups = -(-length // (min(p["memory_group"], length) or length))
        both_sides = 2 * per_side(length, p["memory_outliers"])
        total += vectors * (groups * SCALE + both_sides * (NUMBER + INDEX))
    return total


def bits_per_number(
    bits: int, group: int, rank: int, width: int, n: int, share: float, index_bits: int = 8 * INDEX
) -> float:
    """The paper's size of one number: b + 32 / g + 16 r (1 / d + 1 / n) + s (16 + index bits)."""
    return bits + 32 / group + 16 * rank * (1 / width + 1 / n) + share * (16 + index_bits)


class Gear(Policy):
    """`memory_rank` 0 and `memory_outliers` 0 leave plain rounding; without outliers it is GEAR-L."""

    def __init__(self, shape, parameters) -> None:
        super().__init__(shape, parameters)
        self.done, self.blocks = 0, []  # places in compressed form, and (places, rank) of each block
        self.generator = torch.Generator().manual_seed(0)

    def settle(self, slots: Slots, places: torch.Tensor) -> None:
        """The prompt first, then whole buffers."""
        p, size = self.parameters, self.parameters["memory_buffer"]
        while self.done < len(places) and (self.done == 0 or len(places) - self.done >= size):
            end = self.done + size if self.done else len(places)
            rank = p["memory_rank"] if not self.done else (p["memory_rank"] + 1) // 2
            at = places[self.done : end]
            self._compress(slots.pool, at, rank)
            self.blocks.append((len(at), rank))
            self.done = end

    def _compress(self, pool: torch.Tensor, at: torch.Tensor, rank: int) -> None:
        p = self.parameters
        if p["memory_bits"] >= EXACT:
            return
        how = p["memory_bits"], p["memory_group"], p["memory_outliers"]
        exact = pool[:, :, :, at]  # [L, 2, Hkv, n, D]
        keys = without_error(exact[:, 0].mT, *how).mT
        by_token = exact[:, 1].transpose(1, 2)  # [L, n, Hkv, D]
        values = without_error(by_token.flatten(2), *how).view(by_token.shape).transpose(1, 2)
        stored = torch.stack([keys, values], dim=1)
        if rank:
            stored = stored + low_rank(exact - stored, rank, ROUNDS, self.generator)
        pool[:, :, :, at] = stored

    def kept_bytes(self, count: int) -> float:
        shape = self.shape
        each = (block_bytes(n, shape.kv_heads, shape.width, self.parameters, rank) for n, rank in self.blocks)
        return shape.layers * sum(each) + (count - self.done) * shape.slot_bytes

    def states(self, count: int) -> list[list[str]]:
        few = "full" if self.parameters["memory_bits"] >= EXACT else "quantised"
        return [[few] * self.done + ["full"] * (count - self.done)]


make = Gear
