"""BlockFFN: a mixture of experts whose tokens choose how many experts they need, two losses that make
neighbours choose the same ones, and how many experts a few tokens need together (Song et al. 2025,
"BlockFFN", section 3; metrics TLS and CLS of section 2).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean

import torch
from torch import nn
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from decoders.models.expert_routing import routers

SHARPNESS = 100.0  # of the sigmoid that approximates whether an expert is active
# ids [B, T] -> whether each token needs each expert [L, B, T, E]
Reader = Callable[[torch.Tensor], torch.Tensor]


class BlockFFN(nn.Module):
    """Experts without gates after a router with ReLU, which chooses the experts, and RMSNorm, which sets
    their weights. `scores` [..., E]: the router's scores for the tokens of the last forward.
    """

    def __init__(self, width: int, experts: int, size: int):
        super().__init__()
        self.size, self.scores = size, torch.zeros(0, experts)
        self.router = nn.Linear(width, experts, bias=False)
        self.scale = nn.Parameter(torch.ones(experts))
        self.up = nn.Linear(width, experts * size, bias=False)
        self.down = nn.Linear(experts * size, width, bias=False)

    def weights(self, scores: torch.Tensor) -> torch.Tensor:
        """The weight of each expert [..., E], 0 for inactive ones."""
        active = scores.relu()
        return self.scale * active * (active.square().mean(-1, keepdim=True) + 1e-6).rsqrt()

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Computes all experts, also those of weight 0. states [..., d] -> [..., d]."""
        self.scores = self.router(states)
        inside = F.silu(self.up(states)).unflatten(-1, (-1, self.size))
        return self.down((inside * self.weights(self.scores)[..., None]).flatten(-2))

    def skipping(self, states: torch.Tensor) -> torch.Tensor:
        """The same result, but each expert is computed only for the tokens that need it."""
        rows = states.flatten(0, -2)
        weights = self.weights(self.router(rows))
        total = torch.zeros_like(rows)
        for expert in range(weights.shape[-1]):
            here = weights[:, expert] != 0
            part = slice(expert * self.size, (expert + 1) * self.size)
            inside = F.silu(F.linear(rows[here], self.up.weight[part])) * weights[here, expert, None]
            total[here] += F.linear(inside, self.down.weight[:, part])
        return total.view_as(states)


def mixture(vocabulary: int, width: int, layers: int, experts: int, size: int) -> LlamaForCausalLM:
    """A small Llama with such experts in every layer and tied embeddings."""
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=size,
        num_hidden_layers=layers,
        num_attention_heads=4,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = LlamaForCausalLM(config)
    for layer in model.model.layers:
        layer.mlp = BlockFFN(width, experts, size)
    return model


def scores(model: LlamaForCausalLM) -> torch.Tensor:
    """The routers' scores [L, B, T, E] for the tokens of the last forward."""
    return torch.stack([layer.mlp.scores for layer in model.model.layers])


def locality_loss(scores: torch.Tensor) -> torch.Tensor:
    """How differently consecutive tokens choose experts: the cross entropy between the soft activations at
    one token and those at the next.
    """
    steep = SHARPNESS * scores
    return F.binary_cross_entropy_with_logits(steep[..., :-1, :], steep[..., 1:, :].sigmoid())


def chunk_loss(scores: torch.Tensor, chunk: int) -> torch.Tensor:
    """A soft count of the experts that a chunk of tokens needs: the mean of 1 - prod(1 - p) over experts and
    chunks, where p are a token's shares of its active experts.
    """
    active = scores.relu()
    share = active / (active.sum(-1, keepdim=True) + 1e-9)
    unused = (1 - share.clamp(max=1 - 1e-6)).log().unflatten(-2, (-1, chunk)).sum(-2).exp()
    return 1 - unused.mean()


@dataclass
class Steered:
    """The weight of the chunk loss. After `stable` steps it follows the loss, interval by interval: it is
    multiplied by the ratio of two means, by at least 1.025 where the loss rises, and never exceeds 4 times
    its start.
    """

    start: float
    stable: int
    every: int
    seen: list[float] = field(default_factory=list)
    weight: float = 0.0

    def __post_init__(self) -> None:
        self.weight = self.start

    def update(self, loss: float) -> None:
        """Updates the weight with the chunk loss of one more step."""
        self.seen.append(loss)
        if len(self.seen) < max(self.stable, 2 * self.every) or len(self.seen) % self.every:
            return
        trend = fmean(self.seen[-self.every :]) / fmean(self.seen[-2 * self.every : -self.every])
        self.weight = min(self.weight * (max(trend, 1.025) if trend > 1 else trend), 4 * self.start)


def unused(active: torch.Tensor, count: int) -> float:
    """CLS_count: the share of experts that `count` consecutive tokens together leave unused, over all
    positions of active [..., T, E]. CLS_1 is TLS, the share of inactive (token, expert) pairs.
    """
    return 1.0 - float(active.unfold(-2, count, 1).any(-1).float().mean())


def block_reader(model: LlamaForCausalLM) -> Reader:
    """A reader of the experts that such a mixture activates."""

    @torch.inference_mode()
    def read(ids: torch.Tensor) -> torch.Tensor:
        model.model(ids)
        return scores(model) > 0

    return read


def mixtral_reader(model: nn.Module) -> Reader:
    """A reader of the experts that the routers of a Mixtral choose."""

    @torch.inference_mode()
    def read(ids: torch.Tensor) -> torch.Tensor:
        layers_active = []

        def see(router, inputs, output) -> None:
            logits, _, chosen = output
            active = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, chosen, True)
            layers_active.append(active.view(*ids.shape, -1).cpu())

        hooks = [router.register_forward_hook(see) for router in routers(model)]
        try:
            model.base_model(ids.to(model.device))
        finally:
            for hook in hooks:
                hook.remove()
        return torch.stack(layers_active)

    return read
