"""llama-tiny-set-block: llama-tiny, trained to fill masks inside the next block as well as to predict the
next token (Set Block Decoding, 2025).
"""

from argparse import Namespace

import torch

from explorer.corpus import IGNORED, prepare
from explorer.training.loop import trained
from explorer.training.masked_streams import MASK, block_starts, fit_both, next_token_loss, two_streams

BATCH = 8
BLOCKS = (2, 4, 8, 8, 16)  # sizes of blocks, of which each row draws one
MILLION_TOKENS = 1.5
RATES = (2e-3, 1e-3)
NOTE = (
    "The loss is the mean of two: the cross-entropy of the next token, and that of the masked tokens of a "
    "copy, in nats per token; each row draws its share of masked tokens, and blocks of 2 to 16 tokens."
)


def both(
    forward, head: torch.nn.Module, rows: torch.Tensor, labels: torch.Tensor, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy of the next token, and of masked tokens each at its own position."""
    generator = torch.Generator().manual_seed(seed)
    share = torch.rand(len(rows), 1, generator=generator)
    size = torch.tensor(BLOCKS)[torch.randint(len(BLOCKS), (len(rows), 1), generator=generator)]
    hidden = (torch.rand(rows.shape, generator=generator) < share).to(rows.device) & (labels != IGNORED)
    inside = torch.ones(1, 1, 1, dtype=torch.bool, device=rows.device)
    starts = block_starts(labels, size.to(rows.device))
    clean, masked = two_streams(forward, rows, hidden, starts, inside)
    filled = torch.nn.functional.cross_entropy(head(masked[hidden]).float(), rows[hidden])
    return next_token_loss(head, clean, rows, labels), filled


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    torch.manual_seed(0)
    model = trained("llama-tiny")
    model.resize_token_embeddings(MASK + 1)
    model.config.mask_token_id, model.config.denoiser = MASK, "set_block"
    words = {
        "architecture": "Llama (causal; inside the block of masks every position sees all others)",
        "note": NOTE,
    }
    fit_both(args, "llama-tiny-set-block", texts, model, both, BATCH, MILLION_TOKENS, RATES, words)
