"""llama-tiny-feature-drafters: the drafters of EAGLE-3, Chimera, Falcon and Gumiho on the frozen llama-tiny,
trained half on stories and tasks, half on text that the target wrote itself at temperature 1.
"""

from argparse import Namespace

import torch

from decoders.heads import Chimera, DraftModule, Eagle3, Falcon, Gumiho, Target
from explorer.training.recipes.llama_tiny_heads import train

NAME = "llama-tiny-feature-drafters"
MILLION_TOKENS = 0.4  # a quarter of an hour on one core


def choose_words(modules: dict[str, DraftModule], tokens: torch.Tensor, kind: str = "eagle3") -> None:
    """EAGLE-3's draft, or that of another kind, keeps the most frequent tokens of its training text, as many
    as it has room for; ties to the smaller id.
    """
    drafter = modules[kind]
    counts = torch.bincount(tokens, minlength=len(drafter.target.head))
    kept = counts.argsort(descending=True, stable=True)[: len(drafter.d2t)]
    print(f"the draft's vocabulary covers {counts[kept].sum() / counts.sum():.3f} of the tokens", flush=True)
    drafter.keep(kept.sort().values.to(drafter.d2t.device))


def main(args: Namespace) -> None:
    """Trains and ships all four."""

    def made(shared: Target) -> list[DraftModule]:
        return [make(shared) for make in (Eagle3, Chimera, Falcon, Gumiho)]

    train(args, NAME, MILLION_TOKENS, made, choose_words, eight_bits=True)
