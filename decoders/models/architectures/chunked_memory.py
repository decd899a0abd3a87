"""Three attentions in each layer, summed: over the whole text, over the current chunk, and over a short queue
of summaries of past chunks (Recurrent Memory-Augmented Transformers with Chunked Attention, 2025).

A reconstruction: the three paths, the gate and the queue are the paper's; the summaries are ours.
"""

import torch
from torch import nn

from decoders.models.architectures.causal import Architecture, ArchitectureConfig
from decoders.models.architectures.layers import (
    Attention,
    FeedForward,
    State,
    attend,
    merge_heads,
    split_heads,
)

PAPERS = ("recurrent-memory-augmented-transformers-with-chunked-attention",)


class MemoryAttention(nn.Module):
    """Every token of a chunk attends to the summaries of earlier chunks."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """x [B, T, d] and slots [B, M, d], oldest first, M >= 0 -> [B, T, d]."""
        if not slots.shape[1]:
            return torch.zeros_like(x)
        q, k, v = (split_heads(m(y), self.heads) for m, y in ((self.q, x), (self.k, slots), (self.v, slots)))
        seen = torch.ones(x.shape[1], slots.shape[1], dtype=torch.bool, device=x.device)
        return self.o(merge_heads(attend(q, k, v, seen)))


class ChunkedBlock(nn.Module):
    """o = W [whole ; chunk ; memory], as a sum of three output projections; then the feed-forward network."""

    def __init__(self, config: "ChunkedConfig"):
        super().__init__()
        width, heads, kv = config.hidden_size, config.num_attention_heads, config.num_key_value_heads
        self.chunk, self.slots = config.chunk, config.slots
        self.whole = Attention(width, heads, kv) if config.whole_path else None
        self.local, self.memory = Attention(width, heads, kv), MemoryAttention(width, heads)
        self.gate = nn.Linear(2 * width, width)
        self.net = FeedForward(width, config.intermediate_size)
        self.norm, self.net_norm = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)

    def forward(self, x: torch.Tensor, past: State, start: int) -> tuple[torch.Tensor, State]:
        """x [B, T, d] from place `start` on. State: the caches of the whole text and of the chunk, the sum of
        the chunk's outputs so far, and the slots [B, M, d].
        """
        width = x.shape[-1]
        empty = (None, None, x.new_zeros(x.shape[0], width), x.new_zeros(x.shape[0], 0, width))
        whole, local, total, slots = past or empty
        seen, looked = self.norm(x), 0.0
        if self.whole is not None:
            looked, whole = self.whole(seen, whole, start)
        outputs, at = [], 0
        while at < x.shape[1]:
            many = min(self.chunk - (start + at) % self.chunk, x.shape[1] - at)
            part = slice(at, at + many)
            near, local = self.local(seen[:, part], local, start + at)
            far = self.memory(seen[:, part], slots)
            y = x[:, part] + near + far + (looked[:, part] if self.whole is not None else 0.0)
            outputs.append(y + self.net(self.net_norm(y)))
            total, at = total + outputs[-1].detach().sum(1), at + many
            if (start + at) % self.chunk == 0:  # the chunk is full
                slots, local, total = self.pushed(slots, total / self.chunk), None, torch.zeros_like(total)
        return torch.cat(outputs, 1), (whole, local, total, slots)

    def pushed(self, slots: torch.Tensor, summary: torch.Tensor) -> torch.Tensor:
        """Pushes a slot onto the queue, g * last + (1 - g) * summary with g = sigmoid(W_g [last ; summary]);
        a full queue drops its oldest one. No gradient flows into earlier chunks.
        """
        last = slots[:, -1].detach() if slots.shape[1] else torch.zeros_like(summary)
        gate = self.gate(torch.cat([last, summary], -1)).sigmoid()
        new = gate * last + (1 - gate) * summary
        return torch.cat([slots, new[:, None]], 1)[:, -self.slots :]


class ChunkedConfig(ArchitectureConfig):
    """chunk: tokens per chunk; slots: summaries in the queue; whole_path: False for constant memory."""

    model_type = "tiny_chunked_memory"
    chunk: int = 32
    slots: int = 8
    whole_path: bool = True


class ChunkedMemory(Architecture):
    """A stack of `ChunkedBlock`s."""

    config_class = ChunkedConfig

    def build(self, config: ChunkedConfig) -> None:
        self.layers = nn.ModuleList(ChunkedBlock(config) for _ in range(config.num_hidden_layers))

    def read(
        self, ids: torch.Tensor, state: State = None, last_only: bool = False
    ) -> tuple[torch.Tensor, State]:
        """As `Architecture.read`."""
        start, past = state or (0, [None] * len(self.layers))
        x, kept = self.embed(ids), []
        for block, before in zip(self.layers, past, strict=True):
            x, after = block(x, before, start)
            kept.append(after)
        return x[:, -1:] if last_only else x, (start + ids.shape[1], kept)


MODEL = ChunkedMemory
