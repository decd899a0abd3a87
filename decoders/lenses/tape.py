"""One forward of a causal language model that keeps what its layers did, for lenses and probes.

Hooks on transformers' own modules record only in their own thread: the same model may decode in another one.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from decoders.engine.attention_weights import Tap, here
from decoders.heads.parts.taps import factor_of
from decoders.refusal import Refusal
from decoders.trace.events import Forward

LAYERS = ("layers", "h")
LAST_NORMS = ("norm", "ln_f", "final_layer_norm")
ATTENTIONS = ("self_attn", "attn", "attention", "self_attention")
OUTPUTS = ("o_proj", "c_proj", "out_proj", "dense", "wo")  # of an attention: its W_O
MLPS = ("mlp", "feed_forward", "block_sparse_moe", "fc2")  # whose output is the block's
CLOSE = {torch.float32: 1e-4, torch.float64: 1e-9}  # relative; other number types are coarser
COARSE = 3e-2


@dataclass(frozen=True, eq=False)
class LayerTape:
    """What one layer did with T positions, as vectors of the residual stream of width d."""

    pre: torch.Tensor  # [T, d] x_pre, the stream that entered
    attended: torch.Tensor  # [T, d] what the attention added, output bias included
    mlp: torch.Tensor  # [T, d] what the MLP added
    post: torch.Tensor  # [T, d] x_post, the stream that left
    pattern: torch.Tensor  # [H, T, T] attention weights: row i looks at column j
    values: torch.Tensor  # [H, T, D] value vectors, a grouped one once for each query head
    out: torch.Tensor  # [H, D, d] W_O, head by head
    bias: torch.Tensor | None  # [d] b_O, if there is one
    scale: torch.Tensor | None  # [T, d] what a norm after the attention multiplies its output by
    parallel: bool  # whether attention and MLP read the same stream

    @property
    def mid(self) -> torch.Tensor:
        """[T, d] x_mid, the stream after the attention; no state of its own in a parallel block."""
        return self.pre + self.attended

    @cached_property
    def written(self) -> torch.Tensor:
        """[H, T, d] what a head would add of each position if it looked there alone: v W_O."""
        return torch.einsum("hjk,hkd->hjd", self.values, self.out)

    def head_parts(self, at: int) -> torch.Tensor:
        """z[h, j] = a[h, at, j] v[h, j] W_O[h], the summands of `attended` at `at`: [H, at + 1, d]."""
        parts = self.pattern[:, at, : at + 1, None] * self.written[:, : at + 1]
        return parts if self.scale is None else parts * self.scale[at]

    def bias_part(self, at: int) -> torch.Tensor | None:
        """The summand [d] of `attended` that comes from no position; None without an output bias."""
        return self.bias if self.bias is None or self.scale is None else self.bias * self.scale[at]


@dataclass(frozen=True, eq=False)
class Tape:
    """What one forward over T tokens left behind."""

    tokens: list[int]
    streams: torch.Tensor  # [L + 1, T, d] the residual stream after 0 to L layers, without the last norm
    logits: torch.Tensor  # [T, V] the model's own
    read: Callable[[torch.Tensor], torch.Tensor]  # streams [..., d] -> logits [..., V], by last norm and head
    layers: list[LayerTape] = field(default_factory=list)  # only if they were asked for
    forward: Forward | None = None  # what it cost

    @property
    def depth(self) -> int:
        """L, the number of layers."""
        return self.streams.shape[0] - 1


class Parts:
    """The modules of one model that a tape listens to. Raises Refusal with one sentence if it has others."""

    def __init__(self, model: torch.nn.Module):
        base = model.base_model
        base = getattr(base, "decoder", base)
        self.layers = next((getattr(base, name) for name in LAYERS if hasattr(base, name)), None)
        self.norm = first(base, LAST_NORMS)
        self.head = model.get_output_embeddings()
        if self.layers is None or self.norm is None or self.head is None:
            raise Refusal(f"A lens cannot read {type(model).__name__} layer by layer; choose another model.")
        self.attention = [first(layer, ATTENTIONS) for layer in self.layers]
        self.out = [None if a is None else first(a, OUTPUTS) for a in self.attention]
        self.mlp = [first(layer, MLPS) for layer in self.layers]

    def reader(self, model: torch.nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
        """What makes logits of a stream, as the model does after its last layer."""
        config = model.config.get_text_config()
        cap, times = getattr(config, "final_logit_softcapping", None), getattr(config, "logit_scale", None)
        over = getattr(config, "logits_scaling", None)

        @torch.no_grad()
        def read(streams: torch.Tensor) -> torch.Tensor:
            logits = self.head(self.norm(streams))
            logits = logits * times if times else logits
            logits = logits / over if over else logits
            return cap * torch.tanh(logits / cap) if cap else logits

        return read


def first(module: torch.nn.Module, names: tuple[str, ...]) -> torch.nn.Module | None:
    """The first part of a module that has one of these names."""
    return next((part for name in names if (part := getattr(module, name, None)) is not None), None)


@torch.no_grad()
def record(model: torch.nn.Module, tokens: list[int], layers: bool = False) -> Tape:
    """One forward over T tokens from their start. layers: whether what each layer did is kept, too, which
    takes H T^2 numbers per layer. Raises Refusal with one sentence if the model's layers cannot be read.
    """
    parts, began = Parts(model), time.perf_counter()
    with listening(parts, layers) as heard:
        if layers and not Tap(model).listens:
            raise Refusal(f"{type(model).__name__} does not show its attention; choose another model.")
        output = model(input_ids=torch.tensor([tokens], device=model.device), use_cache=False)
    streams, logits = (
        torch.stack([stream.view(len(tokens), -1) for stream in heard.streams]),
        output.logits[0],
    )
    read = parts.reader(model)
    if not close(read(streams[-1]), logits):
        name = type(model).__name__
        raise Refusal(
            f"{name} does more than a norm and a matrix after its last layer; choose another model."
        )
    taken = [layer_tape(parts, heard, n, streams) for n in range(len(parts.layers))] if layers else []
    cost = Forward("target", "lens", len(tokens), 1, 0.0, time.perf_counter() - began)
    return Tape(list(tokens), streams, logits, read, taken, cost)


@dataclass(eq=False)
class Heard:
    """What the hooks of one forward kept; of modules by their id."""

    streams: list[torch.Tensor] = field(default_factory=list)  # [1, T, d] into the first layer, out of each
    read: dict[int, torch.Tensor] = field(default_factory=dict)  # module -> what it read
    gave: dict[int, torch.Tensor] = field(default_factory=dict)  # module -> what it answered
    attention: dict[int, tuple] = field(default_factory=dict)  # module -> queries, keys, values, mask, scale


@contextmanager
def listening(parts: Parts, layers: bool) -> Iterator[Heard]:
    """While this is open, forwards of this thread are heard."""
    heard, mine = Heard(), threading.get_ident()

    def enters(module, inputs, named) -> None:
        if threading.get_ident() == mine:
            heard.streams.append(inputs[0] if inputs else named["hidden_states"])

    def leaves(module, inputs, output) -> None:
        if threading.get_ident() == mine:
            heard.streams.append(output[0] if isinstance(output, tuple) else output)

    def works(module, inputs, named, output) -> None:
        read = inputs[0] if inputs else named.get("hidden_states")
        if threading.get_ident() == mine and torch.is_tensor(read):
            heard.read[id(module)] = read
            heard.gave[id(module)] = output[0] if isinstance(output, tuple) else output

    def attends(module, *seen: Any) -> None:
        heard.attention[id(module)] = seen

    hooks = [parts.layers[0].register_forward_pre_hook(enters, with_kwargs=True)]
    hooks += [layer.register_forward_hook(leaves) for layer in parts.layers]
    if layers:
        inner = [child for layer in parts.layers for child in layer.children()]
        hooks += [child.register_forward_hook(works, with_kwargs=True) for child in inner]
        here.listener = attends
    try:
        yield heard
    finally:
        here.listener = None
        for hook in hooks:
            hook.remove()


def layer_tape(parts: Parts, heard: Heard, at: int, streams: torch.Tensor) -> LayerTape:
    """What layer `at` did. Raises Refusal with one sentence if its blocks do not add up to its output."""
    layer, attention, out, mlp = parts.layers[at], parts.attention[at], parts.out[at], parts.mlp[at]
    name, (pre, post) = type(layer).__name__, (streams[at], streams[at + 1])
    cannot = Refusal(
        f"The layers of {name} cannot be taken apart into attention and MLP; choose another model."
    )
    if any(part is None or id(part) not in heard.gave for part in (attention, mlp)) or out is None:
        raise cannot
    if id(attention) not in heard.attention:
        raise Refusal(f"{name} does not show its attention; choose another model.")
    attended, norm = added(layer, heard, attention, pre.shape)
    answered, _ = added(layer, heard, mlp, pre.shape)
    if not close(pre + attended + answered, post):
        raise cannot
    mid = pre + attended
    reads_mid = any(
        heard.read[id(child)].numel() == mid.numel() and close(heard.read[id(child)].view(mid.shape), mid)
        for child in layer.children()
        if id(child) in heard.read
    )
    pattern, values = pattern_of(*heard.attention[id(attention)])
    heads, _, width = values.shape
    matrix, bias = linear(out, heads * width, pre)
    scale = None if norm is None else scale_of(norm, heard.gave[id(attention)].view(pre.shape))
    made = LayerTape(
        pre=pre,
        attended=attended,
        mlp=answered,
        post=post,
        pattern=pattern,
        values=values,
        out=matrix.view(heads, width, -1),
        bias=bias,
        scale=scale,
        parallel=not reads_mid,
    )
    last, rest = made.head_parts(pre.shape[0] - 1).sum((0, 1)), made.bias_part(pre.shape[0] - 1)
    if not close(last if rest is None else last + rest, attended[-1]):
        raise Refusal(f"The heads of {name} do not add up to its attention; choose another model.")
    return made


def added(
    layer: torch.nn.Module, heard: Heard, block: torch.nn.Module, shape: torch.Size
) -> tuple[torch.Tensor, torch.nn.Module | None]:
    """What a block adds to the stream [T, d], and the norm after it, if the layer has one there."""
    gave = heard.gave[id(block)]
    behind = [child for child in layer.children() if heard.read.get(id(child)) is gave and child is not block]
    norm = behind[0] if behind and not close(heard.gave[id(behind[0])], gave) else None  # else: dropout
    return (gave if norm is None else heard.gave[id(norm)]).view(shape), norm


def pattern_of(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention weights [H, T, T] and values [H, T, D] of queries [1, H, T, D] on keys [1, Hkv, T, D]."""
    groups = queries.shape[1] // keys.shape[1]
    keys, values = (x[0].repeat_interleave(groups, 0) for x in (keys, values))
    logits = queries[0] @ keys.mT * scale
    if mask is None:
        mask = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()[None, None]
    mask = mask[0, :, :, : keys.shape[1]]
    logits = logits.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else logits + mask
    return logits.softmax(-1), values


def linear(
    module: torch.nn.Module, width: int, like: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The matrix [width, d] and the bias [d] of a linear module, however it stores them: they are read off
    its outputs, so quantised layers and layers with adapters work, too.
    """
    zero = module(like.new_zeros(1, width))
    matrix = module(torch.eye(width, dtype=like.dtype, device=like.device)) - zero
    return matrix, zero[0] if zero.any() else None


def scale_of(norm: torch.nn.Module, read: torch.Tensor) -> torch.Tensor:
    """The factor by which an RMS norm multiplies each number of the rows [T, d] that it read."""
    eps = getattr(norm, "eps", None) or getattr(norm, "variance_epsilon", 1e-6)
    return factor_of(norm, eps) * torch.rsqrt(read.pow(2).mean(-1, keepdim=True) + eps)


def close(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Whether they are equal up to rounding."""
    limit = CLOSE.get(theirs.dtype, COARSE)
    return bool((ours - theirs).abs().max() <= limit * (1 + theirs.abs().max()))
