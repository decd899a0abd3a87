"""llama-tiny-adaeagle: a small network that predicts how many tokens of EAGLE's chain llama-tiny will accept,
before they are drafted (AdaEAGLE, 2024), trained on texts that llama-tiny wrote greedily.
"""

from argparse import Namespace

import torch
from torch.nn import functional as F

from decoders.heads import AdaEagle, DraftModule, Target, take_taps
from decoders.heads.scorers.adaeagle import UNASKED, accepted_lengths
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.models.model_heads import load_heads
from explorer.corpus import prepare
from explorer.training import loop
from explorer.training.modules import parted, ship_scorer, train_scorer, work_of
from explorer.training.own_text import PROMPT, own_text

TARGET, EAGLE, NAME = "llama-tiny", "llama-tiny-heads", "llama-tiny-adaeagle"
TEXT = 60_000  # tokens that the target writes
MILLION_TOKENS = 0.4  # each is looked at several times
OWN_BATCH, BATCH, HELD_OUT = 32, 16, 8


@torch.no_grad()
def labelled(target: LoadedModel, eagle: DraftModule, rows: torch.Tensor, max_tokens: int) -> torch.Tensor:
    """The truths [R, T] of rows [R, T] that the target wrote greedily after PROMPT tokens, with its EAGLE
    layer.
    """
    truths = []
    for some in rows.split(BATCH):
        taps = take_taps(target.model, some)
        truths.append(accepted_lengths(eagle.along(taps, max_tokens), some))
    truth = torch.cat(truths)
    truth[:, : PROMPT - 1] = UNASKED
    return truth


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts, target = prepare(args.corpus, args.work), load(str(loop.MODELS / TARGET), dtype="float32")
    eagle = load_heads(str(loop.MODELS / EAGLE), target)["eagle"]
    written = own_text(target.model, texts, args.work, TEXT, 0.0, OWN_BATCH)
    rows = torch.from_numpy(written).long()
    torch.manual_seed(0)
    head = AdaEagle(Target.of(target.model))
    truths = labelled(target, eagle, rows, head.settings["most"])

    def loss(some: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        return head.loss(take_taps(target.model, some), truth)

    work, budget = work_of(args.work, NAME, TARGET), args.million_tokens or MILLION_TOKENS
    curve = train_scorer(head, loss, *parted(rows, HELD_OUT, truths), budget, work, BATCH)
    asked = truths[truths != UNASKED].float()
    counts = torch.bincount(asked.long(), minlength=head.settings["most"] + 1)
    best = min(range(len(counts)), key=lambda k: F.l1_loss(asked, torch.full_like(asked, k)).item())
    facts = {
        "lengths": {str(k): round(n / len(asked), 3) for k, n in enumerate(counts.tolist())},
        "best_constant": best,
        "best_constant_error": round(F.l1_loss(asked, torch.full_like(asked, best)).item(), 3),
        "note": "The loss is the mean absolute difference, in tokens; drafting too little counts twice.",
    }
    ship_scorer(NAME, head, TARGET, texts.tokenizer, curve, "place", facts)
