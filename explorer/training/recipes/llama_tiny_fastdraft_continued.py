"""llama-tiny-fastdraft-continued: the same draft, trained further on stories and problems, as FastDraft
(2024) continues with web texts and code. This is the second of its three stages.
"""

from argparse import Namespace

from explorer.corpus import prepare
from explorer.training.loop import trained
from explorer.training.recipes import llama_tiny_fastdraft_pretrained
from explorer.training.stages import finish, stage

NAME, TASKS = "llama-tiny-fastdraft-continued", 0.5  # share of rows that are problems


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    model = trained(llama_tiny_fastdraft_pretrained.NAME)
    finish(model, texts, NAME, stage(model, texts, args, NAME, 0.8, tasks=TASKS))
