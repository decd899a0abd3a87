"""Which attention kernels may run when the number of keys grows with the text.

On Hopper and Blackwell GPUs, torch from version 2.11 on prefers cuDNN's attention. cuDNN builds a plan for
each number of keys that a thread has not met yet, which takes longer than a forward. A text that grows token
by token has a new number of keys at every step, so its forwards exclude cuDNN, and torch uses the kernels
that it uses on older GPUs. Captured forwards have few shapes and keep torch's choice.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.backends import cuda
from torch.nn import functional as F


@contextmanager
def any_length(device: torch.device) -> Iterator[None]:
    """Excludes cuDNN's attention on a GPU; changes nothing if the user has switched it off already."""
    preferred = device.type == "cuda" and cuda.cudnn_sdp_enabled()
    if preferred:
        cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        if preferred:
            cuda.enable_cudnn_sdp(True)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
    """torch's attention over keys and values [B, Hkv, K, D] whose number K grows, with torch's options."""
    with any_length(q.device):
        return F.scaled_dot_product_attention(q, k, v, **options)
