"""MEGABYTE: a global transformer runs once per patch of P bytes, and a local one writes the bytes of each
patch one by one (Yu et al. 2023, section 2).

Positions are rotary in both; the paper learns them.
"""

import torch
from torch import nn

from decoders.models.architectures.causal import Architecture, ArchitectureConfig
from decoders.models.architectures.layers import State, attention_stack, one_by_one

PAPERS = ("megabyte",)


class MegabyteConfig(ArchitectureConfig):
    """global_*: sizes of the model over patches; hidden_size, num_hidden_layers, num_attention_heads: of the
    local one.
    """

    model_type = "tiny_megabyte"
    patch: int = 4
    global_width: int = 192
    global_layers: int = 4
    global_heads: int = 4


class Megabyte(Architecture):
    """A patch vector concatenates the embeddings of its bytes, each of width global_width / P."""

    config_class = MegabyteConfig

    def build(self, config: MegabyteConfig) -> None:
        wide, width, self.patch = config.global_width, config.hidden_size, config.patch
        self.bytes = nn.Embedding(config.vocab_size, wide // self.patch)
        self.start = nn.Parameter(torch.randn(wide) * 0.02)  # the patch before the first
        self.slow = attention_stack(wide, 8 * wide // 3, config.global_layers, config.global_heads)
        self.slow_norm = nn.RMSNorm(wide, eps=1e-6)
        self.slice = nn.Linear(wide // self.patch, width, bias=False)
        self.local = nn.Embedding(config.vocab_size, width)
        self.pad = nn.Parameter(torch.randn(width) * 0.02)  # the byte before the first of a patch
        layers, heads = config.num_hidden_layers, config.num_attention_heads
        self.fast = attention_stack(width, 8 * width // 3, layers, heads)
        self.fast_norm = nn.RMSNorm(width, eps=1e-6)
        self.calls = [0, 0]  # calls of both models by `advance`

    def read(
        self, ids: torch.Tensor, state: State = None, last_only: bool = False
    ) -> tuple[torch.Tensor, State]:
        """As `Architecture.read`. Without a state all bytes are read in one parallel pass; with one, byte by
        byte.
        """
        if state is None:
            states, state = self.prompt(ids)
        else:
            states, state = one_by_one(self.advance, ids, state)
        return states[:, -1:] if last_only else states, state

    def patches(self, ids: torch.Tensor) -> torch.Tensor:
        """Bytes [B, K * P] as patch vectors [B, K, D]."""
        return self.bytes(ids).unflatten(1, (-1, self.patch)).flatten(2)

    def prompt(self, ids: torch.Tensor) -> tuple[torch.Tensor, State]:
        """(states that predict bytes 1 to T, all patches at once; the state after the last one)."""
        batch, many, p = *ids.shape, self.patch
        whole = many // p * p
        start = self.start.expand(batch, 1, -1)
        known = torch.cat([start, self.patches(ids[:, :whole])], 1) if whole else start
        y, cache = self.slow(known, None, 0)  # for the K whole patches and the current one
        slices = self.slice(self.slow_norm(y).unflatten(-1, (p, -1)))  # [B, K + 1, P, d]
        padded = nn.functional.pad(ids, (0, whole + p - many)).unflatten(1, (-1, p))
        before = self.local(padded)[:, :, :-1]
        x = torch.cat([self.pad.expand(batch, before.shape[1], 1, -1), before], 2) + slices
        y, _ = self.fast(x.flatten(0, 1), None, 0)
        states = self.fast_norm(y).view(batch, -1, y.shape[-1])[:, 1 : many + 1]
        _, near = self.fast(x[:, -1, : many - whole + 1], None, 0)  # the local cache of the current patch
        return states, (many, ids[:, whole:], cache, slices[:, -1], near)

    def advance(self, byte: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Reads one more byte [B, 1]: (the state [B, 1, d] that predicts the next one, the new state)."""
        many, written, cache, slices, near = state
        many, written = many + 1, torch.cat([written, byte], 1)
        slot = many % self.patch
        if slot == 0:  # the patch is full
            y, cache = self.slow(self.patches(written), cache, many // self.patch)
            slices = self.slice(self.slow_norm(y).unflatten(-1, (self.patch, -1)))[:, 0]
            written, near = written[:, :0], None
            self.calls[0] += 1
        own = self.local(byte) if slot else self.pad.expand(byte.shape[0], 1, -1)
        y, near = self.fast(own + slices[:, slot : slot + 1], near, slot)
        self.calls[1] += 1
        return self.fast_norm(y), (many, written, cache, slices, near)


def serial_steps(patch: int, global_layers: int, local_layers: int) -> tuple[int, int]:
    """Sequential layers per patch: L_G + P L_L here, and P (L_G + L_L) for a plain stack of both."""
    return global_layers + patch * local_layers, patch * (global_layers + local_layers)


MODEL = Megabyte
