"""Patterns: in which step each of a frame's K symbols is made, and a small model that is trained for any of
them (Le Lan et al. 2023, "Stack-and-Delay"; Copet et al. 2023 for parallel, delay and flat).

A schedule is a list of frames, each with the step of its levels. Stack-delay is reconstructed from the
paper's description, not taken from its code.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaModel

from decoders.refusal import Refusal

Schedule = list[list[int]]  # [T][K] -> step


def parallel(frames: int, levels: int) -> Schedule:
    """All levels of a frame at once."""
    return [[t] * levels for t in range(frames)]


def delay(frames: int, levels: int) -> Schedule:
    """Level k of frame t at step t + k."""
    return [[t + k for k in range(levels)] for t in range(frames)]


def flat(frames: int, levels: int) -> Schedule:
    """One symbol after the other."""
    return [[t * levels + k for k in range(levels)] for t in range(frames)]


def interleaved(frames: int, levels: int) -> list[int]:
    """The frames in the order in which they are begun: odd ones only once both neighbours are finished."""
    late = levels + 1 + (levels + 1) % 2
    return sorted(range(frames), key=lambda t: t + late * (t % 2))


def stack_delay(frames: int, levels: int) -> Schedule:
    """Frames in interleaved order, one begun at each step, so that `levels` of them are in progress at a
    time; at both ends, where neighbours are missing, a frame waits until its neighbours are finished.
    """
    begun: dict[int, int] = {}
    free = 0
    for t in interleaved(frames, levels):
        beside = [begun[near] + levels for near in (t - 1, t + 1) if near in begun]
        begun[t] = max([free, *beside])
        free = begun[t] + 1
    return [[begun[t] + k for k in range(levels)] for t in range(frames)]


@dataclass(frozen=True)
class Pattern:
    """`stacked`: the whole stack of a finished frame is kept as one state, and no frame sees the unfinished
    stack of another; otherwise each symbol keeps a state of its own.
    """

    schedule: Schedule
    stacked: bool = False

    @property
    def steps(self) -> int:
        """Forwards for all symbols."""
        return 1 + max(map(max, self.schedule))


def patterns(frames: int, levels: int) -> dict[str, Pattern]:
    """The patterns by name, for T = `frames` and K = `levels`."""
    return {
        "parallel": Pattern(parallel(frames, levels)),
        "delay": Pattern(delay(frames, levels)),
        "stack-delay": Pattern(stack_delay(frames, levels), stacked=True),
        "stack": Pattern(flat(frames, levels), stacked=True),
        "flat": Pattern(flat(frames, levels)),
    }


def mask(pattern: Pattern) -> torch.Tensor:
    """Which states see which [2N, 2N], N = T K symbols frame by frame: first N states that carry symbols,
    then N queries. A query sees the results of earlier steps and itself.
    """
    step = torch.tensor(pattern.schedule).flatten()
    levels = len(pattern.schedule[0])
    frame = torch.arange(len(step)) // levels
    kept = torch.ones(len(step), len(step), dtype=torch.bool)
    if pattern.stacked:
        finished = torch.arange(len(step)) % levels == levels - 1
        kept = finished[None, :] | (frame[:, None] == frame[None, :])
    carries = kept & (step[None, :] <= step[:, None])
    asks = kept & (step[None, :] < step[:, None])
    none, itself = torch.zeros_like(kept), torch.eye(len(step), dtype=torch.bool)
    return torch.cat([torch.cat([carries, none], 1), torch.cat([asks, itself], 1)])


def digits(tokens: torch.Tensor, base: int, levels: int) -> torch.Tensor:
    """Token ids [..., T] as digits in that base [..., T, K], most significant first."""
    if int(tokens.max()) >= base**levels:
        raise Refusal(f"{levels} symbols of {base} do not hold token {tokens.max()}; use more levels.")
    return torch.stack([tokens // base ** (levels - 1 - k) % base for k in range(levels)], -1)


class SymbolModel(nn.Module):
    """A Llama without words of its own that reads symbols [B, T, K] and predicts logits [B, T, K, base] of
    each, given what its pattern wrote before. All patterns train the same weights; positions are frames.
    """

    def __init__(self, pattern: Pattern, base: int, width: int, layers: int, heads: int = 4):
        super().__init__()
        self.pattern, levels = pattern, len(pattern.schedule[0])
        self.body = LlamaModel(
            LlamaConfig(
                vocab_size=1,
                hidden_size=width,
                intermediate_size=2 * width,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                pad_token_id=None,
                bos_token_id=0,
                eos_token_id=0,
            )
        )
        self.symbol = nn.Parameter(0.5 * torch.randn(levels, base, width))
        # [0] for symbols that are read, [1] for those that are predicted
        self.level = nn.Parameter(0.5 * torch.randn(2, levels, width))
        self.to_logits = nn.Parameter(torch.randn(levels, width, base) / width**0.5)
        frames = torch.arange(len(pattern.schedule)).repeat_interleave(levels)
        self.register_buffer("places", frames.repeat(2)[None])
        hidden = torch.zeros(2 * len(frames), 2 * len(frames)).masked_fill(~mask(pattern), -1e9)
        self.register_buffer("hidden", hidden[None, None])

    def forward(self, symbols: torch.Tensor) -> torch.Tensor:
        """Logits [B, T, K, base] of symbols [B, T, K]; see the class."""
        levels = range(symbols.shape[-1])
        carried = torch.stack([self.symbol[k][symbols[..., k]] for k in levels], 2)  # [B, T, K, width]
        if self.pattern.stacked:
            carried = carried.cumsum(2)  # sum of the levels so far
        asked = self.level[1].expand_as(carried)
        states = torch.cat([(carried + self.level[0]).flatten(1, 2), asked.flatten(1, 2)], 1)
        out = self.body(inputs_embeds=states, position_ids=self.places, attention_mask=self.hidden)
        answers = out.last_hidden_state[:, states.shape[1] // 2 :].view_as(carried)
        return torch.einsum("btkw,kwv->btkv", answers, self.to_logits)

    def losses(self, symbols: torch.Tensor) -> torch.Tensor:
        """Nats per symbol, level by level [K], each given what its pattern wrote before."""
        each = F.cross_entropy(self(symbols).movedim(-1, 1), symbols, reduction="none")
        return each.mean((0, 1))
