"""LeanK (2025): learns how much each channel of each KV head's keys matters, independent of the text.

The cache that uses the mask is decoders/memory/leank.py.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn import functional as F
from transformers.cache_utils import Cache, DynamicCache

from decoders.engine.attention_weights import NAME, reading_with
from decoders.engine.kv_cache import key_heads, query_width
from decoders.heads.parts.taps import Taps, Target
from decoders.memory.leank import kept_channels


class KeyMask(nn.Module):
    """alpha [L, Hkv, D], initialised to 1, and the mask of kept channels derived from it. `settings`: the
    arguments that a file stores to build it again: how many first and newest tokens keep whole keys (`sink`,
    `recent`), rho (`prune`), `align`.
    """

    kind = "leank"
    reads: tuple[int, ...] = ()

    def __init__(self, target: Target, sink: int = 4, recent: int = 32, prune: float = 0.5, align: int = 4):
        super().__init__()
        self.target = target
        self.settings = {"sink": sink, "recent": recent, "prune": prune, "align": align}
        config = target.model.config.get_text_config()
        kv_heads = key_heads(config)
        width = query_width(config)
        self.scaling = target.model.base_model.layers[0].self_attn.scaling
        self.alphas = nn.Parameter(torch.ones(config.num_hidden_layers, kv_heads, width))
        self.register_buffer("kept", torch.ones(self.alphas.shape, dtype=torch.bool))

    def choose(self) -> torch.Tensor:
        """The mask [L, Hkv, D] for the current alphas, which a file stores."""
        self.kept = kept_channels(self.alphas.detach(), self.settings["prune"], self.settings["align"])
        return self.kept

    def straight_through(self) -> torch.Tensor:
        """Stage 2: alpha where a channel is kept, else 0, with a straight-through gradient to all alphas."""
        return self.alphas + (self.alphas * self.choose() - self.alphas).detach()

    def hidden(
        self, tokens: torch.Tensor, factors: torch.Tensor, past: Cache | None = None, drop: bool = False
    ) -> torch.Tensor:
        """The target's states [B, T, d] after its last norm for tokens [B, T] after the cache `past`, with
        keys of middle tokens multiplied by factors [L, Hkv, D]. drop: whether heads whose factors are all 0
        do not see middle tokens at all, as in decoding.
        """
        sink, recent = self.settings["sink"], self.settings["recent"]

        def attend(layer: int, q, k, v, mask) -> torch.Tensor:
            whole, seen = reach(q.shape[2], k.shape[2], sink, recent, q.device)
            own = factors[layer]
            empty = ~own.any(-1) if drop else torch.zeros(len(own), dtype=torch.bool, device=own.device)
            return thinned(q, k, v, own, whole, seen, empty, self.scaling)

        with interface(self.target.model), reading_with(attend):
            return self.target.model.base_model(input_ids=tokens, past_key_values=past).last_hidden_state

    def loss(self, tokens: torch.Tensor, answer: int, factors: torch.Tensor) -> torch.Tensor:
        """Mean squared distance of the last `answer` tokens' states, after the last norm, from those of the
        unpruned target. tokens [B, T]; those before the answer are prefilled as usual, without gradient.
        """
        with torch.no_grad():
            past = DynamicCache()
            plain = self.target.model.base_model(input_ids=tokens, past_key_values=past, use_cache=True)
            past.crop(-answer)
        pruned = self.hidden(tokens[:, -answer:], factors, past)
        return F.mse_loss(pruned, plain.last_hidden_state[:, -answer:])

    @torch.no_grad()
    def along(self, taps: Taps) -> torch.Tensor:
        """The overlap [B, T] of the target's distributions with and without the mask: the sum over tokens of
        the smaller probability.
        """
        q = self.target.logits(self.hidden(taps.tokens, self.kept.to(self.alphas.dtype), drop=True))
        return torch.minimum(taps.p, q.float().softmax(-1)).sum(-1).clamp(max=1.0)


def reach(
    rows: int, columns: int, sink: int, recent: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """For the last `rows` of `columns` tokens, two masks [N, K]: which keys each reads whole (those of the
    first tokens, of the `recent` before it, and its own), and which it sees.
    """
    at = torch.arange(columns - rows, columns, device=device)[:, None]
    place = torch.arange(columns, device=device)
    return (place < sink) | (at - place <= recent), place <= at


def thinned(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    factors: torch.Tensor,
    whole: torch.Tensor,
    seen: torch.Tensor,
    empty: torch.Tensor,
    scaling: float,
) -> torch.Tensor:
    """Attention outputs [B, H, N, D] of q [B, H, N, D], k and v [B, Hkv, K, D], with keys that are not
    `whole` [N, K] multiplied by factors [Hkv, D]. empty [Hkv]: heads that see only whole keys.
    """
    group = q.shape[1] // k.shape[1]
    k, v = (part.repeat_interleave(group, 1) for part in (k, v))
    scaled_q = q * factors.repeat_interleave(group, 0)[:, None]  # q (alpha k) = (alpha q) k
    logits = torch.where(whole, q @ k.mT, scaled_q @ k.mT) * scaling
    hidden = ~seen | (empty.repeat_interleave(group)[:, None, None] & ~whole)  # [H, N, K]
    return logits.masked_fill(hidden, -torch.inf).softmax(-1) @ v


@contextmanager
def interface(model: torch.nn.Module) -> Iterator[None]:
    """While this is open, the model's attention goes through decoders/engine/attention_weights.py."""
    before = model.config._attn_implementation
    model.set_attn_implementation(NAME)
    try:
        yield
    finally:
        model.set_attn_implementation(before)
