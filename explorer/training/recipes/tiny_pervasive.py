"""tiny-pervasive: pervasive attention, convolutions over a grid of answer by source, 47,000 parameters. It
reverses three to seven different letters of the first twelve, and does nothing else.
"""

import random
from argparse import Namespace

from decoders.models.architectures.pervasive_attention import PervasiveAttention, PervasiveConfig
from explorer.training.data.byte_tokens import byte_tokenizer
from explorer.training.data.conversions import ARROW, conversions, turned
from explorer.training.small_streams import BYTES, Rows, finished, fit, made, rows, solved

NAME = "tiny-pervasive"
SHAPE = dict(width=16, layers=4, kernel=(3, 3))
ABOUT = {
    "architecture": "Pervasive attention",
    "tokens": BYTES,
    "data": "words of random letters: `explorer/training/data/conversions.py`",
}
LONGEST, BATCH, HELD_OUT = 64, 32, 64


def main(args: Namespace) -> None:
    """Trains and ships it."""
    tokenizer = byte_tokenizer(LONGEST)
    config = PervasiveConfig(
        **SHAPE, separator=tokenizer(ARROW)["input_ids"], max_position_embeddings=LONGEST
    )
    model = made(lambda: PervasiveAttention(config))

    def feed(seen: int) -> Rows:
        return rows(tokenizer, conversions(random.Random(f"pervasive {seen}"), BATCH, (turned,)))

    unseen = conversions(random.Random("held out"), HELD_OUT, (turned,), unseen=True)
    held = rows(tokenizer, unseen)
    curve = fit(model, feed, held, 0.25, args, NAME)
    accuracies = {"turned": {"greedy": solved(model, tokenizer, unseen, 9)}}
    finished(model, tokenizer, NAME, curve, held, ABOUT, accuracies)
