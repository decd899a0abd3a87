"""MBLM: a hierarchy of patches of bytes with one stage per size, in which slower stages condition faster ones
(Multiscale Byte Language Models, Egli et al. 2025, section 3).

Stage s advances once every `stride` bytes, the product of the patch sizes below it. Positions are rotary
inside a stage; the paper leaves the choice to each stage.
"""

import math

import torch
from torch import nn

from decoders.models.architectures.causal import Architecture, ArchitectureConfig
from decoders.models.architectures.layers import Attention, Block, Retention, Stack, State, one_by_one

PAPERS = ("multiscale-byte-language-models-a-hierarchical-architecture",)


class Stage(nn.Module):
    """One stage: patches of `stride` bytes become vectors [..., d], shifted by one after a learned start
    vector, and the output of the stage above is added.
    """

    def __init__(self, config: "MblmConfig", number: int):
        super().__init__()
        width, self.stride = config.widths[number], math.prod(config.patches[number:])
        self.size = config.patches[number - 1] if number else None  # slots per patch of the stage above
        self.embed = nn.Embedding(config.vocab_size, width // self.stride if config.plain else width)
        flat = self.embed.embedding_dim * self.stride
        self.patch = (
            nn.Identity()
            if config.plain
            else nn.Sequential(nn.LayerNorm(flat), nn.Linear(flat, width), nn.LayerNorm(width))
        )
        self.start = nn.Parameter(torch.randn(width) * 0.02)
        above = config.widths[number - 1] if number else 0
        self.told = nn.Linear(above, self.size * width, bias=False) if number else None
        mixers = [
            Retention(width, config.heads[number])
            if config.mixers[number] == "retention"
            else Attention(width, config.heads[number])
            for _ in range(config.layers[number])
        ]
        self.stack = Stack([Block(width, 8 * width // 3, mixer) for mixer in mixers])
        self.norm = nn.RMSNorm(width, eps=1e-6)

    def patched(self, ids: torch.Tensor) -> torch.Tensor:
        """Bytes [B, N * stride] as patch vectors [B, N, d]."""
        return self.patch(self.embed(ids).unflatten(1, (-1, self.stride)).flatten(2))

    def inputs(self, ids: torch.Tensor, above: torch.Tensor | None) -> torch.Tensor:
        """The stage's inputs for bytes [B, N * stride]: [B, N, d] for the top stage; for others one row per
        patch of the stage above, [B * N / size, size, d]. above: the outputs [B, N / size, d above] of that
        stage.
        """
        x = self.patched(ids)
        if self.size is not None:
            x = x.unflatten(1, (-1, self.size)).flatten(0, 1)
        x = torch.cat([self.start.expand(x.shape[0], 1, -1), x[:, :-1]], 1)
        return x if above is None else x + self.told(above).flatten(0, 1).view_as(x)


class MblmConfig(ArchitectureConfig):
    """Per stage, slowest first: widths, layers, heads, mixers (`attention` or `retention`). patches: slots of
    each stage but the first per patch of the stage above. plain: patch vectors are concatenated embeddings,
    as in MEGABYTE.
    """

    model_type = "tiny_mblm"
    patches: tuple = (8, 4)
    widths: tuple = (128, 96, 64)
    layers: tuple = (2, 2, 2)
    heads: tuple = (4, 4, 4)
    mixers: tuple = ("retention", "attention", "attention")
    plain: bool = False


class Mblm(Architecture):
    """hidden_size is the width of the last stage, whose states predict bytes."""

    config_class = MblmConfig

    def build(self, config: MblmConfig) -> None:
        self.stages = nn.ModuleList(Stage(config, number) for number in range(len(config.widths)))
        self.calls = [0] * len(self.stages)  # calls of each stage by `advance`

    def read(
        self, ids: torch.Tensor, state: State = None, last_only: bool = False
    ) -> tuple[torch.Tensor, State]:
        """As `Architecture.read`. Without a state all bytes are read at once; with one, byte by byte."""
        if state is None:
            states = self.parallel(ids)
            state = self.left_after(ids) if not self.training else None
        else:
            states, state = one_by_one(self.advance, ids, state)
        return states[:, -1:] if last_only else states, state

    def parallel(self, ids: torch.Tensor) -> torch.Tensor:
        """States [B, T, d] that predict bytes 1 to T from bytes 0 to T - 1, all patches at once."""
        stride = self.stages[0].stride
        padded = nn.functional.pad(ids, (0, stride - ids.shape[1] % stride))  # at least one byte of padding
        above = None
        for stage in self.stages:
            x = stage.inputs(padded, above)
            y, _ = stage.stack(x, None, 0)
            above = stage.norm(y).reshape(ids.shape[0], -1, y.shape[-1])
        return above[:, 1 : ids.shape[1] + 1]

    def left_after(self, ids: torch.Tensor) -> State:
        """The state after a text: each stage's cache of the patches in its current parent patch, which it
        reads again.
        """
        many, above, stages = ids.shape[1], None, []
        for number, stage in enumerate(self.stages):
            parent = self.stages[number - 1].stride if number else 0
            first = many // parent * parent if number else 0  # where the current parent patch begins
            whole = (many - first) // stage.stride  # patches of it that are complete
            x = stage.patched(ids[:, first : first + whole * stage.stride]) if whole else None
            start = stage.start.expand(ids.shape[0], 1, -1)
            x = start if x is None else torch.cat([start, x], 1)
            if number:
                x = x + stage.told(above).unflatten(-1, (stage.size, -1))[:, 0, : whole + 1]
            y, cache = stage.stack(x, None, 0)
            above = stage.norm(y[:, -1:])
            stages.append((cache, above))
        return many, ids[:, -self.stages[0].stride :], stages

    def advance(self, byte: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Reads one more byte [B, 1]: (the state [B, 1, d] that predicts the next one, the new state). Only
        stages at a patch boundary compute anything.
        """
        many, tail, before = state
        many, tail = many + 1, torch.cat([tail, byte], 1)[:, -self.stages[0].stride :]
        above, stages = None, []
        for number, (stage, (cache, output)) in enumerate(zip(self.stages, before, strict=True)):
            if many % stage.stride == 0:
                slot = many // stage.stride % stage.size if number else many // stage.stride
                cache = cache if slot else None
                last = tail[:, -stage.stride :]
                x = stage.patched(last) if slot else stage.start.expand(byte.shape[0], 1, -1)
                if number:
                    x = x + stage.told(above).unflatten(-1, (stage.size, -1))[:, :, slot]
                y, cache = stage.stack(x, cache, slot)
                output = stage.norm(y)
                self.calls[number] += 1
            stages.append((cache, output))
            above = output
        return above, (many, tail, stages)

    def get_output_embeddings(self) -> nn.Module:
        """The head."""
        return self.embed


def calls_of(tokens: int, patches: tuple[int, ...]) -> list[int]:
    """How often each stage computes for this many bytes: ceil(T / stride)."""
    return [-(-tokens // math.prod(patches[number:])) for number in range(len(patches) + 1)]


MODEL = Mblm
