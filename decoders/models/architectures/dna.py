"""DNA: a pool of modules instead of fixed layers; at every step a router sends each token to one module, or
leaves it unchanged (Towards Distributed Neural Architectures, 2025).

A reconstruction: routers are linear, the best module's sigmoid is its gate, and a bias against overused
modules balances the load.
"""

from collections.abc import Callable

import torch
from torch import nn

from decoders.models.architectures.causal import Architecture, ArchitectureConfig
from decoders.models.architectures.layers import (
    Attention,
    Block,
    State,
    appended,
    attend,
    merge_heads,
    rotated,
    split_heads,
    visible,
)

PAPERS = ("towards-distributed-neural-architectures",)
NUDGE = 1e-3  # change of the balancing bias per training step


class DnaConfig(ArchitectureConfig):
    """num_hidden_layers: steps; pool: modules."""

    model_type = "tiny_dna"
    pool: int = 6


class Dna(Architecture):
    """`forced`, for tests and experiments: the module of each step for all tokens, with gate 1."""

    config_class = DnaConfig

    def build(self, config: DnaConfig) -> None:
        width, inner, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
        made = (Attention(width, heads, config.num_key_value_heads) for _ in range(config.pool))
        self.pool = nn.ModuleList(Block(width, inner, mixer) for mixer in made)
        steps, ways = config.num_hidden_layers, config.pool + 1  # the last choice leaves a token unchanged
        self.routers = nn.ModuleList(nn.Linear(width, ways, bias=False) for _ in range(steps))
        self.balance = nn.Parameter(torch.zeros(steps, ways), requires_grad=False)
        self.forced: list[int] | None = None

    def read(
        self, ids: torch.Tensor, state: State = None, last_only: bool = False
    ) -> tuple[torch.Tensor, State]:
        """As `Architecture.read`; the state holds keys, values and the chosen module of every token per
        step.
        """
        start, past = state or (0, [None] * len(self.routers))
        x, kept = self.embed(ids), []
        for step, before in enumerate(past):
            x, after = self.visit(x, step, before, start)
            kept.append(after)
        return x[:, -1:] if last_only else x, (start + ids.shape[1], kept)

    def chosen(self, x: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Each token's module [B, T] and gate [B, T, 1]."""
        if self.forced is not None:
            where = torch.full(x.shape[:2], self.forced[step], device=x.device)
            return where, x.new_ones(*x.shape[:2], 1)
        scores = self.routers[step](x)
        where = (scores + self.balance[step]).argmax(-1)
        if self.training:
            used = torch.bincount(where.flatten(), minlength=scores.shape[-1]).to(x.dtype)
            self.balance.data[step] -= NUDGE * (used - used.mean()).sign()
        return where, scores.gather(-1, where[..., None]).sigmoid()

    def visit(self, x: torch.Tensor, step: int, past: State, start: int) -> tuple[torch.Tensor, State]:
        """h + gate * (module(h) - h) for every token. Inside a module, a token attends only to tokens that
        visit the same module at this step; one masked attention computes all modules.
        """
        where, gate = self.chosen(x, step)
        heads = [self.pool[0].mixer.heads] + [self.pool[0].mixer.kv_heads] * 2
        q, k, v = (
            split_heads(
                self.through(x, where, lambda block, h, m=m: getattr(block.mixer, m)(block.norm(h))), n
            )
            for m, n in zip("qkv", heads, strict=True)
        )
        k, v = appended(past and past[:2], rotated(k, start), v)
        all_where = where if past is None else torch.cat([past[2], where], 1)
        seen = visible(x.shape[1], k.shape[2], None, x.device) & (where[..., None] == all_where[:, None])
        looked = merge_heads(attend(rotated(q, start), k, v, seen[:, None]))
        y = x + self.through(looked, where, lambda block, h: block.mixer.o(h))
        y = y + self.through(y, where, lambda block, h: block.net(block.net_norm(h)))
        stays = (where == len(self.pool))[..., None]
        return torch.where(stays, x, x + gate * (y - x)), (k, v, all_where)

    def through(self, x: torch.Tensor, where: torch.Tensor, part: Callable) -> torch.Tensor:
        """part(module, rows) of every token's own module; zeros for tokens that are left unchanged."""
        width = part(self.pool[0], x[:, :0]).shape[-1]
        result = x.new_zeros(*x.shape[:2], width)
        for number, block in enumerate(self.pool):
            mine = where == number
            if mine.any():
                result = result.masked_scatter(mine[..., None], part(block, x[mine]))
        return result

    @torch.no_grad()
    def paths(self, ids: torch.Tensor) -> torch.Tensor:
        """[B, T, steps]: the module that each token visits at each step; the pool's size means unchanged."""
        _, (_, kept) = self.read(ids)
        return torch.stack([where for _, _, where in kept], -1)


MODEL = Dna
