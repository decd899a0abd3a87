"""One transformer with three behaviours that differ only in the attention mask (UniXcoder, Guo et al. 2022):
encoder, decoder, and encoder-decoder over a source and a target.
"""

from collections.abc import Sequence
from typing import Any

import torch

from decoders.refusal import Refusal

MODES = ("encoder", "decoder", "encoder-decoder")


def mode_mask(mode: str, length: int, source: int) -> torch.Tensor:
    """Which of `length` places (columns) each place (row) sees [T, T]. encoder: all; decoder: itself and
    what is before it; encoder-decoder: the first `source` places see each other, the others see those and
    what is before them. Refusal for another mode.
    """
    if mode not in MODES:
        raise Refusal(f"There is no mode {mode!r}; choose one of: {', '.join(MODES)}.")
    sees = torch.ones(length, length, dtype=torch.bool)
    if mode == "encoder":
        return sees
    sees = sees.tril()
    if mode == "encoder-decoder":
        sees[:source, :source] = True
    return sees


def masks_of(mode: str, length: int, sources: Sequence[int]) -> torch.Tensor:
    """The masks [B, 1, T, T] of texts with sources of several lengths."""
    return torch.stack([mode_mask(mode, length, source) for source in sources])[:, None]


def forward_in_mode(
    model: torch.nn.Module, rows: torch.Tensor, mode: str, sources: Sequence[int], **asked: Any
) -> Any:
    """One forward over rows [B, T] under a mode. Where the mask hides something it is the number that
    transformers itself adds, so that decoder mode is the model's own causal forward.
    """
    sees = masks_of(mode, rows.shape[1], sources).to(rows.device)
    hidden = torch.finfo(model.dtype).min
    mask = torch.zeros(sees.shape, dtype=model.dtype, device=rows.device).masked_fill_(~sees, hidden)
    return model(input_ids=rows, attention_mask=mask, use_cache=False, **asked)


def shortened(tokens: list[int], mode: str, limit: int) -> list[int]:
    """At most `limit` tokens: in decoder mode the last ones, else the first."""
    return tokens[-limit:] if mode == "decoder" else tokens[:limit]
