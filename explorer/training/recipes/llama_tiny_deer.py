"""llama-tiny-deer: llama-tiny-diffusion, aligned with llama-tiny so that it can draft for it (DEER, Cheng et
al. 2025): it learned to continue the target's own texts, then to be right about the tokens at the boundary.
"""

from argparse import Namespace
from functools import partial

import numpy as np
import torch

from decoders.models.catalog import TARGET
from explorer.corpus import prepare
from explorer.training.loop import compiled, ship, train, trained
from explorer.training.own_text import own_text
from explorer.training.recipes.llama_tiny_diffusion import CANVAS, MIN_MASKED

DRAFTER = "llama-tiny-diffusion"
KIND = "deer"  # what config.json says of it
MILLION_TOKENS = (0.15, 0.3)  # of the two stages
OWN_TOKENS = 1.5e5  # written by the target, greedily and at temperature 1 each
BATCH = 8
LONGEST = 32  # masks after the boundary in the second stage, at most
DECAY = 1.05  # how much more a token counts than the one after it
RATES = (1e-3, 5e-4)  # of Muon and AdamW: a sixth of what fresh weights take
HELD_OUT = 20  # every 20th text of the target is kept for validation


def pieces(texts: torch.Tensor, count: int, seed: int) -> torch.Tensor:
    """`count` pieces of CANVAS tokens [count, CANVAS], sampled from texts [R, T]."""
    generator = torch.Generator().manual_seed(seed)
    rows = texts[torch.randint(len(texts), (count,), generator=generator)]
    starts = torch.randint(texts.shape[1] - CANVAS + 1, (count, 1), generator=generator)
    return rows.gather(1, starts + torch.arange(CANVAS))


def continuation(rows: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens of rows [B, T] that stage I masks, and the weights [B, T] of their losses: each row is cut
    at a random position; after it each of L tokens is masked with probability t and weighs 1 / (t L).
    """
    generator = torch.Generator().manual_seed(seed)
    size = rows.shape[1]
    cut = torch.randint(1, size, (len(rows), 1), generator=generator)
    share = (1 - MIN_MASKED) * torch.rand(len(rows), 1, generator=generator) + MIN_MASKED
    masked = (torch.arange(size) >= cut) & (torch.rand(rows.shape, generator=generator) < share)
    return masked, masked / (share * (size - cut))


def boundary(rows: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens of rows [B, T] that stage II masks, and the weights [B, T] of their losses: the last R
    tokens of a row, 1 <= R <= LONGEST; the i-th of them weighs DECAY ** (R - i), normalised to 1 per row.
    """
    generator = torch.Generator().manual_seed(seed)
    size = rows.shape[1]
    count = torch.randint(1, LONGEST + 1, (len(rows), 1), generator=generator)  # R
    place = torch.arange(size) - (size - count) + 1  # i: 1 at the boundary
    weights = (place >= 1) * DECAY ** (count - place)
    return place >= 1, weights / weights.sum(1, keepdim=True)


def loss_of(model: torch.nn.Module, inner, mask: int, hide, rows: torch.Tensor, seed: int) -> torch.Tensor:
    """Cross-entropy of the tokens of rows [B, T] that `hide(rows, seed)` masks, in nats, with its weights;
    the mean over rows. inner: the layers of `model`, possibly compiled.
    """
    masked, weights = (part.to(rows.device) for part in hide(rows, seed))
    everywhere = torch.zeros(1, 1, rows.shape[1], rows.shape[1], device=rows.device)
    states = inner(input_ids=rows.masked_fill(masked, mask), attention_mask=everywhere).last_hidden_state
    logits = model.lm_head(states[masked]).float()
    losses = torch.nn.functional.cross_entropy(logits, rows[masked], reduction="none")
    return (losses * weights[masked]).sum() / len(rows)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    target, model = trained(TARGET), trained(DRAFTER)
    mask = model.config.mask_token_id
    budgets = [args.million_tokens or budget for budget in MILLION_TOKENS]
    wanted = min(OWN_TOKENS, 1e6 * max(budgets))
    own = [own_text(target, texts, args.work, wanted, t) for t in (0.0, 1.0)]
    rows = torch.from_numpy(np.concatenate(own).astype(np.int64))
    apart = torch.arange(len(rows)) % HELD_OUT == 0
    held = pieces(rows[apart], 32, seed=0)
    inner, curve = compiled(model.model), []

    def feed(seen: int) -> tuple[torch.Tensor, torch.Tensor]:
        fed = pieces(rows[~apart], BATCH, seed=seen + 1)
        return fed, fed

    def loss(fed: torch.Tensor, labels: torch.Tensor, hide) -> torch.Tensor:
        return loss_of(model, inner, mask, hide, fed, seed=int(fed.sum()))

    @torch.no_grad()
    def validate() -> float:
        """The loss of stage II on pieces that are never fed."""
        return loss_of(model, inner, mask, boundary, held.to(model.device), seed=0).item()

    for stage, (hide, budget) in enumerate(zip((continuation, boundary), budgets, strict=True), 1):
        before = curve[-1][0] if curve else 0.0
        work = args.work / f"llama-tiny-deer-{stage}"
        curve += train(model, partial(loss, hide=hide), feed, validate, budget, work, before, RATES)
    model.config.denoiser = KIND
    texts.tokenizer.add_special_tokens({"mask_token": "<|mask|>"})
    facts = {
        "mask_token_id": mask,
        "architecture": "Llama (every place sees all others)",
        "aligned_with": TARGET,
        "stages": budgets,
        "tokens_of": f"that the target wrote, in rows of {CANVAS}",
        "note": "Held-out losses are those of the second stage: in nats per token after the boundary, near "
        "ones counting more. Training losses are those of the stage under way.",
    }
    ship(model, texts.tokenizer, "llama-tiny-deer", curve, validate(), **facts)
