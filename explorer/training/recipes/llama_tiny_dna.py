"""llama-tiny-dna: a distributed neural architecture. At each of four steps, a router sends every token to one
of four modules or leaves it unchanged.
"""

from argparse import Namespace

import torch

from decoders.models.architectures.dna import Dna
from explorer.training.small import DRAFT_SHAPE, begun, config_of, texts, train_small

SHAPE = DRAFT_SHAPE | dict(num_hidden_layers=4, pool=4)
NOTE = (
    "Good for: seeing which route each token takes. The routers are reconstructed; what they learned in so "
    "short a training says nothing about what they would learn in a long one."
)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    read = texts(args, in_bytes=False)
    torch.manual_seed(0)
    model = Dna(config_of("tiny_dna", SHAPE, len(read.tokenizer)))
    begun(model, [(model.pool[i], i // 2, False) for i in range(4)])
    train_small("llama-tiny-dna", model, read, args, 0.025, NOTE)
