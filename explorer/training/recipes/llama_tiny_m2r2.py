"""llama-tiny-m2r2: adapters that let a second stream through llama-tiny's first layers predict early what its
last layer will predict (M2R2, 2025), trained half on stories and tasks, half on text that llama-tiny wrote
itself.
"""

from argparse import Namespace

from decoders.heads import M2R2
from explorer.training.recipes.llama_tiny_heads import train

NAME = "llama-tiny-m2r2"
MILLION_TOKENS = 1.2  # a quarter of an hour on two cores
EXIT, RANK = 3, 64


def main(args: Namespace) -> None:
    """Trains and ships them."""
    train(args, NAME, MILLION_TOKENS, lambda shared: (M2R2(shared, EXIT, RANK),))
