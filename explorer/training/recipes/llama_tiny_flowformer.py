"""llama-tiny-flowformer: Flow-Attention in four layers: queries and keys compete as sinks and sources of a
flow, and the state kept of a text has the same size, however long the text is.
"""

from argparse import Namespace

import torch

from decoders.models.architectures.flow_attention import Flowformer
from explorer.training.small import DRAFT_SHAPE, begun, config_of, texts, train_small

SHAPE = DRAFT_SHAPE | dict(num_hidden_layers=4)
NOTE = (
    "Good for: seeing a state that stays the same size, so that every branch of a draft needs a copy of it. "
    "Feed-forward nets are the draft's; its attention had to be learned again and is far from it."
)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    read = texts(args, in_bytes=False)
    torch.manual_seed(0)
    model = Flowformer(config_of("tiny_flowformer", SHAPE, len(read.tokenizer)))
    blocks = model.layers.blocks
    begun(model, [(blocks[i], i // 2, False) for i in range(4)])
    torch.nn.init.zeros_(model.places.weight)
    train_small("llama-tiny-flowformer", model, read, args, 0.025, NOTE)
