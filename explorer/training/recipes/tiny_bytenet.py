"""tiny-bytenet: ByteNet, dilated convolutions that read a source and write its answer byte by byte, 0.2 M
parameters. It writes number words as digits, right for a third of those that it was not trained on, and
dates, hardly any of them right.
"""

import random
from argparse import Namespace

from decoders.models.architectures.bytenet import ByteNet, ByteNetConfig
from explorer.training.data.byte_tokens import byte_tokenizer
from explorer.training.data.conversions import ARROW, conversions, date, digits
from explorer.training.small_streams import BYTES, Rows, finished, fit, made, rows, solved

NAME = "tiny-bytenet"
SHAPE = dict(width=32, dilations=(1, 2, 4, 8, 16), sets=2, unfold=(1.0, 2))
KINDS = (digits, date)
ABOUT = {
    "architecture": "ByteNet",
    "tokens": BYTES,
    "data": "words, numbers and dates made by a program: `explorer/training/data/conversions.py`",
}
LONGEST, BATCH, HELD_OUT = 128, 64, 64


def main(args: Namespace) -> None:
    """Trains and ships it."""
    tokenizer = byte_tokenizer(LONGEST)
    separator = tokenizer(ARROW)["input_ids"]
    model = made(
        lambda: ByteNet(ByteNetConfig(**SHAPE, separator=separator, max_position_embeddings=LONGEST))
    )

    def feed(seen: int) -> Rows:
        return rows(tokenizer, conversions(random.Random(f"bytenet {seen}"), BATCH, KINDS))

    held = rows(tokenizer, conversions(random.Random("held out"), HELD_OUT, KINDS, unseen=True))
    curve = fit(model, feed, held, 0.6, args, NAME)
    asked = {
        kind.__name__: conversions(random.Random("asked"), HELD_OUT, (kind,), unseen=True) for kind in KINDS
    }
    accuracies = {name: {"greedy": solved(model, tokenizer, made, 24)} for name, made in asked.items()}
    finished(model, tokenizer, NAME, curve, held, ABOUT, accuracies)
