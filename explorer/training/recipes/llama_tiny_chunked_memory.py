"""llama-tiny-chunked-memory: three attentions in each of two layers: over the whole text, over the current
chunk of 32 tokens, and over eight gated summaries of the chunks before it.
"""

from argparse import Namespace

import torch

from decoders.models.architectures.chunked_memory import ChunkedMemory
from explorer.training.small import DRAFT_SHAPE, attending, begun, config_of, texts, train_small

SHAPE = DRAFT_SHAPE | dict(num_hidden_layers=2, chunk=32, slots=8)
NOTE = (
    "Good for: seeing a queue of summaries beside a cache; it begins as the draft, to which two new paths "
    "add nothing at first. Reconstructed: the paper's details are not public in code."
)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    read = texts(args, in_bytes=False)
    torch.manual_seed(0)
    model = ChunkedMemory(config_of("tiny_chunked_memory", SHAPE, len(read.tokenizer)))
    begun(model, [(model.layers[i], i, False) for i in range(2)])
    for i, block in enumerate(model.layers):
        attending(block.whole, i)
        torch.nn.init.zeros_(block.local.o.weight)
        torch.nn.init.zeros_(block.memory.o.weight)
    train_small("llama-tiny-chunked-memory", model, read, args, 0.025, NOTE)
