"""llama-tiny-fastdraft-pretrained: a draft of a seventeenth of llama-tiny's size, trained on stories alone:
the first of FastDraft's three stages (2024).
"""

from argparse import Namespace

from explorer.corpus import prepare
from explorer.training.loop import llama
from explorer.training.stages import finish, stage

SHAPE = dict(hidden_size=64, layers=2, heads=2, intermediate_size=176)
NAME = "llama-tiny-fastdraft-pretrained"


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    model = llama(**SHAPE)
    finish(model, texts, NAME, stage(model, texts, args, NAME, 1.6))
