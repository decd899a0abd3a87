"""llama-tiny-draft: the draft for llama-tiny: two Llama layers of width 128, 0.9 M parameters, trained on the
same texts.
"""

from argparse import Namespace

from explorer.corpus import prepare
from explorer.training.loop import llama
from explorer.training.stages import finish, stage

SHAPE = dict(hidden_size=128, layers=2, heads=4, intermediate_size=352)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    model = llama(**SHAPE)
    curve = stage(model, texts, args, "llama-tiny-draft", 20)
    curve = stage(model, texts, args, "llama-tiny-draft-mixed", 14, tasks=0.375, curve=curve)
    finish(model, texts, "llama-tiny-draft", curve)
