"""tiny-megabyte: MEGABYTE on bytes: a global transformer reads patches of four bytes, a local one writes the
bytes of a patch.
"""

from argparse import Namespace

import torch

from decoders.models.architectures.megabyte import Megabyte
from explorer.training.small import config_of, texts, train_small

SHAPE = dict(
    hidden_size=96,
    num_hidden_layers=2,
    num_attention_heads=4,
    patch=4,
    global_width=128,
    global_layers=3,
    global_heads=4,
)
NOTE = "Good for: seeing few expensive steps and many cheap ones; tokens are bytes. It hardly writes words."


def main(args: Namespace) -> None:
    """Trains and ships it."""
    read = texts(args, in_bytes=True)
    torch.manual_seed(0)
    model = Megabyte(config_of("tiny_megabyte", SHAPE, len(read.tokenizer)))
    train_small("tiny-megabyte", model, read, args, 0.12, NOTE)
