"""Flow-Attention: linear attention as a flow network, in which keys compete for the outflow and queries for
the inflow; the causal form keeps sums of constant size (Flowformer, Wu et al. 2022, section 3.2).
"""

import torch
from torch import nn

from decoders.models.architectures.causal import Architecture, ArchitectureConfig
from decoders.models.architectures.layers import Block, Stack, State, merge_heads, split_heads, visible, wide

PAPERS = ("flowformer",)
EPS = 1e-6


class FlowAttention(nn.Module):
    """State per head: sums of k, q, k o, q i and exp(source), and the matrix M: d_h^2 + 4 d_h + 1 numbers.
    Sums over queries run up to t and not over later ones: the paper's approximation for causality.
    """

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor, past: State, start: int) -> tuple[torch.Tensor, State]:
        q, k, v = (wide(split_heads(m(x), self.heads)) for m in (self.q, self.k, self.v))
        y, kept = flow(q.sigmoid(), k.sigmoid(), v, past, start)
        return self.o(merge_heads(y).to(x.dtype)), kept


def flow(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, past: State, start: int
) -> tuple[torch.Tensor, State]:
    """(outputs [B, H, T, D] for non-negative q and k and values v, all tokens at once; the sums after
    them).
    """
    t = torch.arange(start + 1, start + q.shape[2] + 1, device=q.device, dtype=q.dtype)  # counted from 1
    sums = past or {}

    def summed(name: str, x: torch.Tensor) -> torch.Tensor:
        total = x.cumsum(2) + sums.get(name, 0.0)
        kept[name] = total[:, :, -1:]
        return total

    def against(x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        return ((x + EPS) * (total + EPS)).sum(-1)

    kept: dict[str, torch.Tensor] = {}
    inflow = t / against(q, summed("k", k))  # i_t [B, H, T]
    outflow = t / against(k, summed("q", q))  # o_t
    sink = ((q + EPS) * summed("k o", k * outflow[..., None])).sum(-1) / t
    source = (((k + EPS) * summed("q i", q * inflow[..., None])).sum(-1) / t).clamp(-1, 1)
    weight = source.exp()
    competing = t * weight / summed("exp", weight[..., None])[..., 0]
    offered = competing[..., None] * v
    seen = visible(q.shape[2], q.shape[2], None, q.device)
    read = (q @ k.transpose(-1, -2)).masked_fill(~seen, 0.0) @ offered
    kept["M"] = k.transpose(-1, -2) @ offered
    if past:
        read, kept["M"] = read + q @ past["M"], kept["M"] + past["M"]
    return (sink.sigmoid() * inflow / t)[..., None] * read, kept


class FlowformerConfig(ArchitectureConfig):
    """Positions are learned, since rotary ones would make q and k negative."""

    model_type = "tiny_flowformer"


class Flowformer(Architecture):
    """A transformer with Flow-Attention in place of attention."""

    config_class = FlowformerConfig

    def build(self, config: FlowformerConfig) -> None:
        width, inner = config.hidden_size, config.intermediate_size
        self.places = nn.Embedding(config.max_position_embeddings, width)
        self.layers = Stack(
            [
                Block(width, inner, FlowAttention(width, config.num_attention_heads))
                for _ in range(config.num_hidden_layers)
            ]
        )

    def read(
        self, ids: torch.Tensor, state: State = None, last_only: bool = False
    ) -> tuple[torch.Tensor, State]:
        """As `Architecture.read`."""
        start, sums = state or (0, None)
        end = start + ids.shape[1]
        x = self.embed(ids) + self.places.weight[start:end]
        x, sums = self.layers(x, sums, start)
        return x[:, -1:] if last_only else x, (end, sums)


MODEL = Flowformer
