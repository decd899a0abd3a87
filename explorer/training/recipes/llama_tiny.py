"""llama-tiny: the target, twelve Llama layers of width 192, 6.1 M parameters. It was trained on stories (with
eight layers, then twelve), then on stories and checkable tasks with early exits after layers 3, 6 and 9.
"""

from argparse import Namespace

from explorer.corpus import prepare
from explorer.training.loop import deepened, exits_loss, llama
from explorer.training.stages import finish, stage

SHAPE = dict(hidden_size=192, heads=6, intermediate_size=512)
LAYERS = (8, 12)
EXITS = (3, 6, 9)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    model = llama(layers=LAYERS[0], **SHAPE)
    curve = stage(model, texts, args, "llama-tiny-8", 10)
    model = deepened(model, LAYERS[1])
    curve = stage(model, texts, args, "llama-tiny-12", 8, curve=curve)
    loss = exits_loss(model, EXITS, weight=0.3)
    curve = stage(model, texts, args, "llama-tiny-mixed", 20, tasks=0.375, loss=loss, curve=curve)
    finish(model, texts, "llama-tiny", curve, exits=EXITS)
