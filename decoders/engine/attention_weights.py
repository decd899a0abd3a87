"""Captures queries while a model runs, so that attention weights need no second forward.

Registers an attention function with transformers that calls the usual SDPA and keeps its queries.
"""

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from decoders.engine.kv_cache import Attend

NAME = "sdpa_with_queries"


class Here(threading.local):
    """What happens at each layer's attention, per thread, since one model may be tested while another one
    decodes. attend: replaces the usual SDPA, see decoders/memory/engine.py; seen: (queries [1, H, N, D],
    scaling) of each layer, while an engine's forward runs; listener: called with all inputs while a lens
    records, see lenses/tape.py.
    """

    attend: Attend | None = None
    seen: list[tuple[torch.Tensor, float]] | None = None
    listener: Callable[..., None] | None = None


here = Here()


def _attend(
    module, query, key, value, attention_mask, scaling=None, **kwargs: Any
) -> tuple[torch.Tensor, torch.Tensor | None]:
    seen, listener = here.seen, here.listener
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    if seen is not None:
        seen.append((query, scale))
    if listener is not None:
        listener(module, query, key, value, attention_mask, scale)
    if (attend := here.attend) is not None:
        return attend(module.layer_idx, query, key, value, attention_mask).transpose(1, 2).contiguous(), None
    return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, sdpa_mask)


@contextmanager
def reading_with(attend: Attend) -> Iterator[None]:
    """While this is open, models of this thread compute attention by `attend`."""
    here.attend = attend
    try:
        yield
    finally:
        here.attend = None


class Tap:
    """Captures the queries of one model's last forward. Models whose attention does not go through
    transformers' attention interface give none.
    """

    def __init__(self, model: torch.nn.Module):
        self.scaling = 1.0
        self.takes_logits_to_keep = "logits_to_keep" in inspect.signature(model.forward).parameters
        if getattr(model.config, "_attn_implementation", None) == "sdpa":
            model.set_attn_implementation(NAME)
        self.listens = getattr(model.config, "_attn_implementation", None) == NAME

    def leave(self, model: torch.nn.Module) -> None:
        """Restores the model's own attention; no queries are kept from now on."""
        if self.listens:
            model.set_attn_implementation("sdpa")
        self.listens = False

    def open(self, model: torch.nn.Module) -> None:
        """Starts keeping queries. Registers again, since another engine of this model may have called
        `leave`.
        """
        if self.listens and model.config._attn_implementation != NAME:
            model.set_attn_implementation(NAME)
        here.seen = []

    def collect(self, layers: int) -> torch.Tensor | None:
        """Stops keeping queries and returns those since `open`, [L, H, N, D]; None if they do not come from
        exactly `layers` layers of one shape.
        """
        seen, here.seen = here.seen or [], None
        if not seen or len(seen) != layers or len({q.shape for q, _ in seen}) != 1:
            return None
        self.scaling = seen[0][1]
        return torch.cat([q for q, _ in seen])

    def weights(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        depths: list[int],
        hidden: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Attention weights [R, K] of queries [L, H, R, D] on keys [L, Hkv, K, D], averaged over layers and
        heads. Row r sees the keys up to depths[r], but for those that `hidden` [L, R, K] marks.
        """
        layers, heads, rows, width = queries.shape
        grouped = (queries.float() * self.scaling).reshape(layers, keys.shape[1], -1, width)
        logits = (grouped @ keys.float().mT).view(layers, heads, rows, -1)
        if min(depths) + 1 < keys.shape[2]:
            last = torch.tensor(depths, device=keys.device)[:, None]
            unseen = torch.arange(keys.shape[2], device=keys.device) > last
            logits.masked_fill_(unseen, float("-inf"))
        if hidden is not None:
            logits.masked_fill_(hidden[:, None], float("-inf"))
        return logits.softmax(-1).mean((0, 1))
