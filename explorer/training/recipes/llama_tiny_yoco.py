"""llama-tiny-yoco: You Only Cache Once: two layers with sliding windows of 32 tokens produce one set of keys
and values, which two upper layers read; a prompt runs through the upper half only at its last token.
"""

from argparse import Namespace

from decoders.models.architectures.yoco import Yoco
from explorer.training.small import DRAFT_SHAPE, begun, bridged, config_of, texts, train_small

SHAPE = DRAFT_SHAPE | dict(num_hidden_layers=4, window=32)
NOTE = (
    "Good for: seeing a cache of n + W L / 2 rows instead of n L, and a prompt that skips half of the "
    "layers. A draft's nodes need both halves, so verification skips nothing. Simplified: four layers."
)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    read = texts(args, in_bytes=False)
    model = Yoco(config_of("tiny_yoco", SHAPE, len(read.tokenizer)))
    lower, upper = model.lower.blocks, model.upper
    begun(model, [(lower[0], 0, False), (lower[1], 0, True), (upper[0], 1, False), (upper[1], 1, True)])
    bridged(model.bridge, 1)
    train_small("llama-tiny-yoco", model, read, args, 0.05, NOTE)
