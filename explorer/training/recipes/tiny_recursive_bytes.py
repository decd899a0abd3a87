"""tiny-recursive-bytes: a recursive convolutional auto-encoder of bytes, 0.3 M parameters. It encodes a
sentence of up to 63 bytes as one vector and decodes all its bytes at once. It was trained on sentences made
by rule, and no others.
"""

import random
from argparse import Namespace

from decoders.models.architectures.recursive_bytes import RecursiveBytes, RecursiveConfig
from explorer.tasks.correction import sentence
from explorer.training.data.byte_tokens import byte_tokenizer
from explorer.training.data.conversions import ARROW, held
from explorer.training.small_streams import (
    BYTES,
    Problem,
    Rows,
    bytes_right,
    finished,
    fit,
    made,
    rows,
    solved,
)

NAME = "tiny-recursive-bytes"
SHAPE = dict(length=64, channels=64, vector=256)
ABOUT = {
    "architecture": "Recursive convolutional auto-encoder",
    "tokens": BYTES,
    "data": "sentences made by rule: `explorer/tasks/correction.py`",
}
LONGEST, BATCH, HELD_OUT = 144, 32, 128


def copies(rng: random.Random, count: int, unseen: bool = False) -> list[Problem]:
    """`count` sentences, each the source and the answer; with `unseen` only such as are never fed."""
    made = []
    while len(made) < count:
        text = sentence(rng)
        if held(text) == unseen and len(text) < SHAPE["length"]:
            made.append((f"{text}{ARROW}", text))
    return made


def main(args: Namespace) -> None:
    """Trains and ships it."""
    tokenizer = byte_tokenizer(LONGEST)
    separator = tokenizer(ARROW)["input_ids"]
    config = RecursiveConfig(**SHAPE, separator=separator, max_position_embeddings=LONGEST)
    model = made(lambda: RecursiveBytes(config))

    def feed(seen: int) -> Rows:
        return rows(tokenizer, copies(random.Random(f"copies {seen}"), BATCH))

    unseen = copies(random.Random("held out"), HELD_OUT, unseen=True)
    asked = rows(tokenizer, unseen)
    curve = fit(model, feed, asked, 1.4, args, NAME)
    accuracies = {
        "bytes": {"all at once": bytes_right(model, asked)},
        "sentences": {"all at once": solved(model, tokenizer, unseen, SHAPE["length"])},
    }
    finished(model, tokenizer, NAME, curve, asked, ABOUT, accuracies)
