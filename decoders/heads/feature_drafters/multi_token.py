"""A multi-token-prediction layer from a target's own checkpoint (DeepSeek-V3, 2024; GLM, MiMo, Qwen): one
more layer of the target's kind, which reads its last state and the token after it.

    x = W [norm(E(token i + 1)); norm(state i)], then a decoder layer and a norm, and the target's head

Relies only on the call signature of transformers' layers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers.cache_utils import Cache

from decoders.heads.feature_drafters.feature_drafter import FeatureDrafter
from decoders.heads.parts.layers import Past
from decoders.heads.parts.taps import Target


@dataclass(frozen=True)
class MultiTokenForm:
    """How such layers differ: whether the state comes before the token, whether outputs that are read again
    pass the last norm first, and whether the token of the first entry is left out, as in vLLM.
    """

    state_first: bool = False
    norm_output: bool = False
    first_token_out: bool = False


class Appending(Cache):
    """One layer's keys and values, to which every forward appends; for sparse attention (DSA) the keys
    [B, 1, P, D] of its indexer too.
    """

    def __init__(self, before: Past | None):
        super().__init__(layers=[])
        self.before, self.past = before or (), ()

    def append(self, *new: torch.Tensor) -> Past:
        """Appends the next parts, [B, H, N, D] each; returns them with what was there before."""
        first = len(self.past)
        before = self.before[first : first + len(new)]
        parts = tuple(torch.cat(both, 2) for both in zip(before, new, strict=True)) if before else new
        self.past += parts
        return parts

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, ...]:
        """Appends new keys and values and returns all."""
        return self.append(key_states, value_states)

    def update_indexer(self, key_states: torch.Tensor, layer_idx: int) -> torch.Tensor:
        """Appends new keys [B, N, D] of an indexer and returns all; called after `update`."""
        return self.append(key_states[:, None])[0][:, 0]


class MultiToken(FeatureDrafter):
    """`block`: a decoder layer of transformers; norm: builds a norm of the target's kind; rotary: the
    target's rotary positions; own_head: whether it has its own vocabulary matrix.
    """

    kind = "mtp"

    def __init__(
        self,
        target: Target,
        block: nn.Module,
        norm: Callable[[], nn.Module],
        rotary: nn.Module,
        form: MultiTokenForm,
        own_head: bool = False,
    ):
        super().__init__(target)
        width = target.width
        self.block, self.form, self.rotary = block, form, [rotary]  # in a list, so that it is no submodule
        self.token_norm, self.state_norm, self.last_norm = norm(), norm(), norm()
        self.join = nn.Linear(2 * width, width, bias=False)
        self.head = nn.Linear(width, len(target.head), bias=False) if own_head else None

    def joined(self, tokens: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Token and state concatenated [..., 2d]; the layer norms each."""
        return torch.cat([self.read(tokens).to(features.dtype), features], -1)

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        token, state = x.to(self.join.weight.dtype).chunk(2, -1)
        if self.form.first_token_out:
            token = token * (positions > 0)[:, None]
        both = [self.token_norm(token), self.state_norm(state)]
        x = self.join(torch.cat(both[::-1] if self.form.state_first else both, -1))
        if mask is None:
            before = 0 if past is None else past[0].shape[2]
            mask = torch.ones(len(positions), before + len(positions), dtype=torch.bool, device=x.device)
            mask = mask.tril(before)
        seen = torch.zeros(mask.shape, dtype=x.dtype, device=x.device).masked_fill(
            ~mask, torch.finfo(x.dtype).min
        )
        cache, places = Appending(past), positions[None]
        several = hasattr(self.rotary[0], "mrope_section")  # places of text, height and width: in text, equal
        out = self.block(
            x,
            attention_mask=seen[None, None].expand(len(x), 1, -1, -1),
            position_ids=places,
            past_key_values=cache,
            position_embeddings=self.rotary[0](x, places.expand(3, 1, -1) if several else places),
        )
        out = out[0] if isinstance(out, tuple) else out
        return self.last_norm(out) if self.form.norm_output else out, cache.past

    def words(self, states: torch.Tensor) -> torch.Tensor:
        normed = states if self.form.norm_output else self.last_norm(states)
        return self.target.logits(normed) if self.head is None else self.head(normed)
