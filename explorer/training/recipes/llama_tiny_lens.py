"""llama-tiny-lens: an affine map for each depth of llama-tiny, through which its last norm and head read a
middle state better (a tuned lens, 2023), learned on stories and tasks from the target's own distributions.
"""

from argparse import Namespace

import torch

from decoders.heads import Target, TunedLens
from decoders.models import head_files
from explorer.corpus import mixed_rows, prepare
from explorer.training import check, loop
from explorer.training.modules import train_modules, work_of, write_training

TARGET, NAME = "llama-tiny", "llama-tiny-lens"
MILLION_TOKENS = 0.6  # five minutes on one core
BATCH, TASKS = 8, 0.25
VALIDATION_ROWS = 8


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts, model = prepare(args.corpus, args.work), loop.trained(TARGET).eval().requires_grad_(False)
    lens = TunedLens(Target.of(model)).to(model.device)

    def feed(seen: int) -> torch.Tensor:
        return mixed_rows(texts.stories, texts.tokenizer, seen, BATCH, TASKS)[0]

    work, budget = work_of(args.work, NAME, TARGET), args.million_tokens or MILLION_TOKENS
    curve = train_modules({lens.kind: lens}, model, feed, texts.held[:VALIDATION_ROWS], budget, work)
    folder, parts = loop.MODELS / NAME, {lens.kind: lens}
    head_files.save(folder, parts, TARGET, loop.MODELS / TARGET, texts.tokenizer, eight_bits=True)
    note = "The loss is KL(p || q) in nats, p the target's own distribution, q that of a depth: their mean."
    write_training(folder, lens, curve, "token", {"note": note})
    check.write(folder)
