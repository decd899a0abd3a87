"""Fast forms of drafters' layers: the same numbers in plain tensor operations, as in `fast_llama`.

In networks of half a million parameters, module calls take more time than arithmetic. Used on CPU, without
gradients, for the entries of one text; training and measuring use the modules themselves.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from decoders.engine.attention_kernels import attend
from decoders.engine.fast_product import Matrix

LARGEST = 16_000_000  # parameters; above, arithmetic outweighs calls, and copies cost memory
Past = tuple[torch.Tensor, ...]  # as in layers.py
Turned = tuple[torch.Tensor, torch.Tensor]  # cosines and sines [N, 1, D]


class Fast:
    """Caches the fast form `make(owner)` of a module: built on first use, and again when one of its weights
    changes.
    """

    def __init__(self, make: Callable[[Any], Any], weights: Callable[[Any], Iterable] = nn.Module.parameters):
        self.make, self.weights = make, weights
        self.form, self.seen, self.watched, self.small = None, None, [], True

    def of(self, owner: Any, x: torch.Tensor) -> Any:
        """The fast form for inputs like x; None where the module itself must run."""
        if not torch.is_inference_mode_enabled() or x.device.type != "cpu":
            return None
        if self.seen is None:
            all_of_them = list(self.weights(owner))
            self.watched = [w for w in all_of_them if not w.is_inference()]
            self.small = sum(w.numel() for w in all_of_them) <= LARGEST
        now = (x.dtype, sum(w._version for w in self.watched))
        if now != self.seen:
            self.form, self.seen = self.make(owner) if self.small else None, now
        return self.form


def with_past(
    new: Past,
    positions: torch.Tensor,
    mask: torch.Tensor | None,
    past: Past | None,
    window: int | None,
) -> tuple[Past, torch.Tensor | None]:
    """(new keys and values after those of `past`, the mask [N, P + N]). With a window, the positions of the
    keys are kept beside them, since those of drafted entries do not count up, and the mask is narrowed.
    """
    if window is not None:
        new = (*new, positions[None, None, :, None])
    if past is not None:
        new = tuple(torch.cat(both, 2) for both in zip(past, new, strict=True))
    if window is None:
        return new, mask
    near = new[2][0, 0, :, 0] > positions[:, None] - window
    if mask is None and len(positions) > 1:  # causal, without a past
        mask = torch.ones_like(near).tril()
    return new, near if mask is None else near & mask


class FastAttention:
    """The fast form of an `Attention` of layers.py."""

    def __init__(self, attention: nn.Module):
        layers = (attention.q, attention.k, attention.v)
        self.qkv, self.out = concatenated_layers(*layers), concatenated_layers(attention.out)
        biases = [layer.bias for layer in layers]
        self.bias = None if biases[0] is None else torch.cat(biases).detach()
        self.heads, self.both = attention.heads, attention.heads + attention.kv_heads
        self.size, self.grouped = attention.size, attention.heads != attention.kv_heads
        self.norms = None
        if not isinstance(attention.q_norm, nn.Identity):
            self.norms = attention.q_norm, attention.k_norm
        self.angles, self.places, self.window = attention.angles, 0, attention.window
        self.dtype = attention.q.weight.dtype

    def mix(
        self, x: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, past: Past | None
    ) -> tuple[torch.Tensor, Past]:
        """As `Attention.forward`, for one text: x [N, d]."""
        read, both = self.qkv.times(x), self.both
        if self.bias is not None:
            read = read + self.bias
        read = read.view(len(x), -1, self.size)  # [N, Hq + 2 Hkv, D]
        if self.norms is not None:
            normed = (norm(part) for norm, part in zip(self.norms, self.parts(read), strict=False))
            read = torch.cat([*normed, read[:, both:]], 1)
        cos, sin = self.turns(positions, len(x) + (0 if past is None else past[0].shape[2]))
        turning = read[:, :both]
        rolled = turning.roll(self.size // 2, -1)
        turning.mul_(cos).addcmul_(rolled, sin)
        q, k, v = (part.transpose(0, 1)[None] for part in self.parts(read))
        (k, v, *places), mask = with_past((k, v), positions, mask, past, self.window)
        mixed = attend(
            q, k, v, attn_mask=mask, is_causal=mask is None and len(x) > 1, enable_gqa=self.grouped
        )
        return self.out.times(mixed[0].transpose(0, 1).reshape(len(x), -1)), (k, v, *places)

    def parts(self, read: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Splits concatenated projections into queries, keys and values [N, H, D]."""
        return read[:, : self.heads], read[:, self.heads : self.both], read[:, self.both :]

    def turns(self, positions: torch.Tensor, count: int) -> Turned:
        """Cosines and sines at positions below `count`, from a table; the first half of the sines is
        negative, since rotation rolls by half the size.
        """
        if self.places < count:
            self.places = max(256, 2 * count)
            cos, sin = self.angles(torch.arange(self.places))
            half = self.size // 2
            sin = torch.cat([-sin[:, :half], sin[:, half:]], -1)
            self.cos, self.sin = (part.to(self.dtype)[:, None] for part in (cos, sin))
        return self.cos[positions], self.sin[positions]


class FastFeed:
    """The fast form of a `FeedForward` of layers.py, with a preceding RMS norm multiplied in."""

    def __init__(self, feed: nn.Module, norm: nn.RMSNorm | None = None):
        self.gate_up = concatenated_layers(feed.gate, feed.up, norm=norm)
        self.down = concatenated_layers(feed.down)
        self.floor = None if norm is None else torch.tensor((norm.eps * len(norm.weight)) ** 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [N, d] -> [N, d]."""
        if self.floor is not None:
            x = x / torch.hypot(torch.linalg.vector_norm(x, dim=-1, keepdim=True), self.floor)
        gate, up = self.gate_up.times(x).chunk(2, dim=-1)
        return self.down.times(F.silu(gate) * up)


class FastBlock:
    """The fast form of attention, residual, norm, feed-forward layer, residual."""

    def __init__(self, owner: nn.Module):
        """owner: a module with `attention`, `norm` and `feed`."""
        self.attention, self.feed = FastAttention(owner.attention), FastFeed(owner.feed, owner.norm)

    def forward(
        self,
        read: torch.Tensor,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None,
        past: Past | None,
    ) -> tuple[torch.Tensor, Past]:
        """As `Attention.forward`, for the stream x [1, N, d] and the attention's input `read` [1, N, r]."""
        mixed, past = self.attention.mix(read[0], positions, mask, past)
        x = x[0] + mixed
        return (x + self.feed.forward(x))[None], past


def concatenated_layers(*layers: nn.Linear, norm: nn.RMSNorm | None = None) -> Matrix:
    """The weights of layers with the same input, concatenated; norm: a preceding norm, multiplied in."""
    return Matrix(
        *(layer.weight.detach() for layer in layers), norm=None if norm is None else norm.weight.detach()
    )
