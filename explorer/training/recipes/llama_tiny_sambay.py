"""llama-tiny-sambay: SambaY, a decoder-hybrid-decoder: retention and sliding windows in the lower layers,
then one full attention, and above it a memory unit, which reads no cache, and a cross-attention.
"""

from argparse import Namespace

import torch

from decoders.models.architectures.sambay import SambaY
from explorer.training.small import DRAFT_SHAPE, begun, bridged, config_of, texts, train_small

SHAPE = DRAFT_SHAPE | dict(num_hidden_layers=8, window=32)
NOTE = (
    "Good for: seeing an upper layer that reads no cache: a generated token reads L / 4 caches instead of "
    "L / 2 (YOCO) or L. Simplified: gated retention stands in for Mamba."
)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    read = texts(args, in_bytes=False)
    torch.manual_seed(0)
    model = SambaY(config_of("tiny_sambay", SHAPE, len(read.tokenizer)))
    lower, upper = model.lower.blocks, model.upper
    below = [(lower[1], 0, False), *((lower[i], 0, True) for i in (0, 2, 3)), (model.publisher, 0, True)]
    begun(model, [*below, (model.full, 1, False), (upper[0], 1, True), (upper[1], 1, True)])
    bridged(model.bridge, 1)
    train_small("llama-tiny-sambay", model, read, args, 0.025, NOTE)
