"""llama-tiny-fastdraft: the same draft, aligned with llama-tiny: trained on what the target wrote at several
temperatures, without its probabilities. This is the last of FastDraft's three stages (2024).
"""

from argparse import Namespace

import numpy as np
import torch

from decoders.models.catalog import TARGET
from explorer.corpus import ROW, prepare
from explorer.training.loop import causal_loss, device, held_out_loss, train, trained
from explorer.training.own_text import at_all_temperatures
from explorer.training.stages import VALIDATION_ROWS, finish

NAME, BUDGET, OWN_SHARE, ROWS = "llama-tiny-fastdraft", 0.8, 0.06, 16
BEGUN_FROM = "llama-tiny-fastdraft-continued"


def main(args: Namespace) -> None:
    """Trains and ships it: the cross-entropy of the target's own text, sequence-level distillation."""
    texts = prepare(args.corpus, args.work)
    model, target = trained(BEGUN_FROM), trained(TARGET)
    budget = args.million_tokens or BUDGET
    own = at_all_temperatures(target, texts, args.work, OWN_SHARE * budget * 1e6)

    def feed(seen: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(seen)
        pick = torch.randint(len(own), (ROWS,), generator=generator)
        rows = torch.from_numpy(own[pick.numpy()].astype(np.int64)).view(ROWS, ROW)
        return rows, rows

    def validate() -> float:
        return held_out_loss(model, texts.held[:VALIDATION_ROWS])

    model.to(device()).float()
    curve = train(model, causal_loss(model), feed, validate, budget, args.work / NAME)
    finish(model, texts, NAME, curve, distilled_from=TARGET)
