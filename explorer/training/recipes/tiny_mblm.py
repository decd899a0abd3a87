"""tiny-mblm: a multiscale byte language model of three stages: patches of 32 bytes, patches of 4 bytes and
single bytes. The slowest stage is gated retention, the others are transformers.
"""

from argparse import Namespace

import torch

from decoders.models.architectures.mblm import Mblm
from explorer.training.small import config_of, texts, train_small

SHAPE = dict(hidden_size=64, num_attention_heads=4)
NOTE = (
    "Good for: seeing three clock rates in one model; tokens are bytes. It hardly writes words. "
    "Simplified: gated retention stands in for the paper's Mamba."
)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    read = texts(args, in_bytes=True)
    torch.manual_seed(0)
    model = Mblm(config_of("tiny_mblm", SHAPE, len(read.tokenizer)))
    train_small("tiny-mblm", model, read, args, 0.12, NOTE)
