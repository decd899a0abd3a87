"""llama-tiny-wedlm: llama-tiny-set-block, trained to fill masks under a plain causal mask, where known tokens
come before masks, all at their true positions (WeDLM, 2025).
"""

from argparse import Namespace

import torch

from explorer.corpus import IGNORED, prepare
from explorer.training.loop import trained
from explorer.training.masked_streams import block_starts, fit_both, next_token_loss, two_streams

BATCH = 8
BLOCK = 16  # tokens per block, within which known tokens stand first
MILLION_TOKENS = 1.2
RATES = (2e-3, 1e-3)
NOTE = (
    "The loss is the mean of two, the cross-entropy of the next token and that of the masked tokens of a "
    f"copy, in nats per token; each block of {BLOCK} tokens draws its share of masks, and is weighted by one "
    "over it."
)


def hide(labels: torch.Tensor, starts: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Which labelled tokens are masked [N, T], and the share sampled for the block of each. In a block of n
    labelled tokens round(share * n) random ones are masked.
    """
    learned = labels != IGNORED
    drawn = 1 - torch.rand(labels.shape, generator=generator).to(labels.device)  # in (0, 1]
    share = drawn.gather(1, starts)
    same = (starts[:, :, None] == starts[:, None, :]) & learned[:, None, :]
    order = torch.rand(labels.shape, generator=generator).to(labels.device)
    rank = (same & (order[:, None, :] < order[:, :, None])).sum(2)
    return learned & (rank < (share * same.sum(2)).round()), share


def physical(hidden: torch.Tensor) -> torch.Tensor:
    """Which positions see which [N, T, T] if the known ones come first, then the masks, each group in the
    order of its positions, under a causal mask.
    """
    at = torch.arange(hidden.shape[1], device=hidden.device)
    rank = at + hidden * hidden.shape[1]
    return rank[:, None, :] <= rank[:, :, None]


def both(
    forward, head: torch.nn.Module, rows: torch.Tensor, labels: torch.Tensor, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy of the next token, and of masked tokens at their own positions, weighted by the inverse
    of their block's masked share.
    """
    generator = torch.Generator().manual_seed(seed)
    starts = block_starts(labels, torch.full((len(rows), 1), BLOCK, device=rows.device))
    hidden, share = hide(labels, starts, generator)
    clean, masked = two_streams(forward, rows, hidden, starts, physical(hidden))
    losses = torch.nn.functional.cross_entropy(head(masked[hidden]).float(), rows[hidden], reduction="none")
    weights = 1 / share[hidden]
    return next_token_loss(head, clean, rows, labels), (losses * weights).sum() / weights.sum()


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    model = trained("llama-tiny-set-block")
    model.config.denoiser = "wedlm"
    words = {
        "architecture": "Llama (causal; known tokens before masks, each at its true position)",
        "note": NOTE,
    }
    fit_both(args, "llama-tiny-wedlm", texts, model, both, BATCH, MILLION_TOKENS, RATES, words)
