"""Reads queries while a model runs, so that attention weights cost no second forward.

Registers an attention function with transformers that calls the usual SDPA and keeps the queries it saw.
Knows layers and heads, neither tokens nor trees.
"""

import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from decoders.engine.kv_cache import Attend

NAME = "sdpa_with_queries"
# `here.attend`: reads in place of the usual SDPA while it is set, see decoders/memory/engine.py.
# `here.seen`: (queries [1, H, N, D], scaling) of a layer each, while an engine's forward runs. One list a
# thread: a model may be tried out while another one decodes. `here.listener`: called with all that a layer's
# attention reads, while a lens looks (decoders/lenses/tape.py).
here = threading.local()


def _attend(module, query, key, value, attention_mask, scaling=None, **kwargs):
    seen, listener = getattr(here, "seen", None), getattr(here, "listener", None)
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    if seen is not None:
        seen.append((query, scale))
    if listener is not None:
        listener(module, query, key, value, attention_mask, scale)
    if (attend := getattr(here, "attend", None)) is not None:
        return attend(module.layer_idx, query, key, value, attention_mask).transpose(1, 2).contiguous(), None
    return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, sdpa_mask)


@contextmanager
def reading_with(attend: Attend) -> Iterator[None]:
    """While this is open, models of this thread read their keys and values by `attend`."""
    here.attend = attend
    try:
        yield
    finally:
        here.attend = None


class Tap:
    """The queries of one model's last forward. Models whose attention does not go through transformers'
    interface give none.
    """

    def __init__(self, model: torch.nn.Module):
        self.scaling = 1.0
        self.takes_logits_to_keep = "logits_to_keep" in inspect.signature(model.forward).parameters
        if getattr(model.config, "_attn_implementation", None) == "sdpa":
            model.set_attn_implementation(NAME)
        self.listens = getattr(model.config, "_attn_implementation", None) == NAME

    def leave(self, model: torch.nn.Module) -> None:
        """Gives the model its own attention back: nothing is kept from now on."""
        if self.listens:
            model.set_attn_implementation("sdpa")
        self.listens = False

    def open(self, model: torch.nn.Module) -> None:
        """Starts keeping queries; another engine of this model may have given it its own attention back."""
        if self.listens and model.config._attn_implementation != NAME:
            model.set_attn_implementation(NAME)
        here.seen = []

    def collect(self, layers: int) -> torch.Tensor | None:
        """Stops keeping them: queries [L, H, N, D] since `open`, or None if they are not those of this many
        layers or differ in shape.
        """
        seen, here.seen = getattr(here, "seen", None) or [], None
        if not seen or len(seen) != layers or len({q.shape for q, _ in seen}) != 1:
            return None
        self.scaling = seen[0][1]
        return torch.cat([q for q, _ in seen])

    def weights(self, queries: torch.Tensor, keys: torch.Tensor, reach: list[int]) -> torch.Tensor:
        """Mean attention [R, K] over layers and heads of queries [L, H, R, D] on keys [L, Hkv, K, D].

        Row r sees the first reach[r] keys.
        """
        layers, heads, rows, width = queries.shape
        grouped = (queries.float() * self.scaling).reshape(layers, keys.shape[1], -1, width)
        logits = (grouped @ keys.float().mT).view(layers, heads, rows, -1)
        if min(reach) < keys.shape[2]:
            ends = torch.tensor(reach, device=keys.device)[:, None]
            unseen = torch.arange(keys.shape[2], device=keys.device) >= ends
            logits.masked_fill_(unseen, float("-inf"))
        return logits.softmax(-1).mean((0, 1))
