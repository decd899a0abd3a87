"""llama-tiny-recurrent-heads: Hydra, Hydra++, the MLP speculator, ReDrafter, Clover and Clover-2, which read
the drafted path token by token, and Amphista and blockwise heads, which guess all depths in parallel, on the
frozen llama-tiny. They were trained half on stories and tasks, half on text that the target wrote itself at
temperature 1.
"""

from argparse import Namespace

import torch

from decoders.heads import (
    Amphista,
    Blockwise,
    Clover,
    Clover2,
    DraftModule,
    Hydra,
    HydraPlus,
    MlpSpeculator,
    ReDrafter,
    take_taps,
)
from explorer.training.recipes.llama_tiny_heads import train

NAME = "llama-tiny-recurrent-heads"
MILLION_TOKENS = 0.4
BATCH, LENGTH = 8, 128  # small, for there are few tokens
VALIDATION_ROWS = 8
KINDS = (Hydra, HydraPlus, MlpSpeculator, ReDrafter, Clover, Clover2, Amphista, Blockwise)


def choose_unit(modules: dict[str, DraftModule], tokens: torch.Tensor) -> None:
    """Clover-2 reads the target's states in units of their root mean square."""
    drafter = modules["clover2"]
    rows = tokens[: 8 * LENGTH].view(8, LENGTH)
    taps = take_taps(drafter.target.model, rows, drafter.reads)
    drafter.unit.copy_(taps.states[drafter.target.layers].square().mean().sqrt())


def main(args: Namespace) -> None:
    """Trains and ships all eight."""
    train(
        args,
        NAME,
        MILLION_TOKENS,
        lambda shared: [kind(shared) for kind in KINDS],
        choose_unit,
        batch=BATCH,
        length=LENGTH,
        validation_rows=VALIDATION_ROWS,
        eight_bits=True,
    )
