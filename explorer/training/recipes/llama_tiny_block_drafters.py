"""llama-tiny-block-drafters: the drafters of DFlash and P-EAGLE on the frozen llama-tiny, trained half on
stories and tasks, half on text that the target wrote itself at temperature 1.
"""

from argparse import Namespace
from functools import partial

from decoders.heads import DFlash, DraftModule, PEagle, Target
from explorer.training.recipes.llama_tiny_feature_drafters import choose_words
from explorer.training.recipes.llama_tiny_heads import train

NAME = "llama-tiny-block-drafters"
MILLION_TOKENS = 0.9  # half an hour on one core


def main(args: Namespace) -> None:
    """Trains and ships both."""

    def made(shared: Target) -> list[DraftModule]:
        return [DFlash(shared), PEagle(shared)]

    train(args, NAME, MILLION_TOKENS, made, partial(choose_words, kind="peagle"), eight_bits=True)
