"""llama-tiny-wedlm: llama-tiny-set-block taught to fill masks under a plain causal mask, where known tokens
stand before masks, all at their true positions (WeDLM, 2025).
"""

from argparse import Namespace
from functools import partial

import torch

from explorer.corpus import IGNORED, prepare
from explorer.training.loop import compiled, ship, train, trained
from explorer.training.masked_streams import MASK, ROW, block_starts, mixed, next_token_loss, two_streams

BATCH = 8
BLOCK = 16  # tokens per block, within which known tokens stand first
RATES = (2e-3, 1e-3)
NOTE = (
    "The loss is the mean of two, the cross-entropy of the next token and that of the masked tokens of a "
    f"copy, in nats per token; each block of {BLOCK} tokens draws its share of masks, and weighs one over it."
)


def hide(labels: torch.Tensor, starts: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Which labelled tokens are masked [N, T], and the share that was drawn for the block of each.

    In a block of n labelled tokens round(share * n) random ones are masked.
    """
    learned = labels != IGNORED
    drawn = 1 - torch.rand(labels.shape, generator=generator).to(labels.device)  # in (0, 1]
    share = drawn.gather(1, starts)
    same = (starts[:, :, None] == starts[:, None, :]) & learned[:, None, :]
    order = torch.rand(labels.shape, generator=generator).to(labels.device)
    rank = (same & (order[:, None, :] < order[:, :, None])).sum(2)
    return learned & (rank < (share * same.sum(2)).round()), share


def physical(hidden: torch.Tensor) -> torch.Tensor:
    """Which positions see which [N, T, T] if those that are known stand first, then the masks, each group in
    the order of its positions, under a causal mask.
    """
    at = torch.arange(hidden.shape[1], device=hidden.device)
    rank = at + hidden * hidden.shape[1]
    return rank[:, None, :] <= rank[:, :, None]


def both(
    forward, head: torch.nn.Module, rows: torch.Tensor, labels: torch.Tensor, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy of the next token, and of masked tokens each at its own position, weighted by one over
    the share that was masked of their block.
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
    forward = compiled(model.model)
    held, held_labels = mixed(texts, 10**9, 64)

    @torch.no_grad()
    def validate() -> list[float]:
        """Both losses on problems and pieces that are never fed."""
        parts = both(model.model, model.lm_head, held.to(model.device), held_labels.to(model.device), seed=0)
        return [part.item() for part in parts]

    curve = train(
        model,
        lambda rows, labels: sum(both(forward, model.lm_head, rows, labels, seed=int(rows.sum()))) / 2,
        partial(mixed, texts, batch=BATCH),
        lambda: sum(validate()) / 2,
        args.million_tokens or 1.2,
        args.work / "llama-tiny-wedlm",
        rates=RATES,
    )
    texts.tokenizer.add_special_tokens({"mask_token": "<|mask|>"})
    following, filled = validate()
    facts = {
        "million_tokens": round(curve[-1][0], 2),
        "held_out_loss": round((following + filled) / 2, 4),
        "next_token_loss": round(following, 4),
        "masked_loss": round(filled, 4),
        "mask_token_id": MASK,
        "architecture": "Llama (causal; known tokens before masks, each at its true position)",
        "tokens_of": f"in rows of {ROW}, each read clean and masked",
        "note": NOTE,
    }
    ship(model, texts.tokenizer, "llama-tiny-wedlm", curve, facts)
