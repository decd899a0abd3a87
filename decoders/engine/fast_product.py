"""Multiplies a few rows by a weight in whichever way is fastest on this machine.

The fastest way depends on the processor: on an Intel Xeon with AVX-512, the plain product with the transposed
weight wins for any number of rows; on other processors, two rows are twice as fast with the weight on the
left, and more rows in oneDNN's own layout. So each way is timed once per process.
"""

import time
from collections.abc import Callable
from functools import cache, cached_property

import torch

PLAIN, LEFT, PACKED = "plain", "weight on the left", "oneDNN"
FEW, SOME = 3, 4  # rows: up to 3, exactly 4, and more are timed separately
MANY = 32  # rows from which arithmetic dominates and all ways take equally long
SMALL = 50_000  # numbers in a weight: below, oneDNN's preparations take longer than the product
ROWS = 8  # the count for which oneDNN lays the weights out; other counts gain as much
TRIES, GAIN = 20, 0.85  # another way is used only if it takes less than this share of the plain one's time


class Matrix:
    """A weight [out, in] and its transposed copy; a copy in oneDNN's layout only where that is faster."""

    def __init__(self, *weights: torch.Tensor, norm: torch.Tensor | None = None):
        """Concatenates `weights` along out. norm [in]: the weight of a preceding RMS norm, multiplied in."""
        joined = torch.cat(weights) if len(weights) > 1 else weights[0]
        self.weight = joined if norm is None else joined * (norm * len(norm) ** 0.5)
        self.turned = self.weight.t().contiguous()  # [in, out]
        self.tried = joined.device.type == "cpu"

    @cached_property
    def packed(self) -> torch.Tensor | None:
        """The weight as oneDNN multiplies it fastest; None for a small one."""
        return laid_out(self.weight) if self.weight.numel() >= SMALL else None

    def times(self, x: torch.Tensor) -> torch.Tensor:
        """x [N, in] times the weight: [N, out]."""
        rows = x.shape[0]
        if rows == 1 or not self.tried or torch.compiler.is_compiling():
            return x @ self.turned
        way = fastest(2 if rows <= FEW else SOME if rows == SOME else ROWS, x.dtype)
        if way == PACKED and self.packed is not None:
            return by_onednn(x, self.packed)
        return by_weight(x, self.weight) if way == LEFT and rows < MANY else x @ self.turned


def by_weight(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x [N, in] times a weight [out, in], with the weight on the left: [N, out]."""
    return (weight @ x.t()).t().contiguous()


def by_onednn(x: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
    """x [N, in] times a weight that `laid_out` made: [N, out]."""
    return torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")


def laid_out(weight: torch.Tensor) -> torch.Tensor | None:
    """A float32 weight on CPU in oneDNN's layout, by the two operations that torch's compiler uses for this;
    None where they are not available.
    """
    able = hasattr(torch.ops.mkldnn, "_linear_pointwise") and hasattr(
        torch.ops.mkldnn, "_reorder_linear_weight"
    )
    if not able or weight.device.type != "cpu" or weight.dtype != torch.float32:
        return None
    return torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)


@cache
@torch.inference_mode()
def fastest(rows: int, dtype: torch.dtype) -> str:
    """The fastest way to multiply this many rows on this CPU, timed on a weight of a small Llama's size."""
    weight, x = torch.ones(1024, 192, dtype=dtype), torch.ones(rows, 192, dtype=dtype)
    turned, packed = weight.t().contiguous(), laid_out(weight)
    ways = {PLAIN: lambda: x @ turned, LEFT: lambda: by_weight(x, weight)}
    if packed is not None:
        ways[PACKED] = lambda: by_onednn(x, packed)
    took = {way: min_seconds(product) for way, product in ways.items()}
    best = min(took, key=took.get)
    return best if took[best] < GAIN * took[PLAIN] else PLAIN


def min_seconds(call: Callable[[], object]) -> float:
    """The shortest of several runs, since other load can only make a run longer."""
    took = []
    for _ in range(TRIES):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return min(took)
