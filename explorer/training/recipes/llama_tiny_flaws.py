"""llama-tiny-flaws: llama-tiny with a low-rank adapter and one token more, which it writes in front of the
flawed lines of toy programs.
"""

from argparse import Namespace

import torch

from decoders.models import lora
from explorer.corpus import prepare
from explorer.training import loop
from explorer.training.adapting import adapted, learned_of, ship
from explorer.training.data.flaws import ADDED, Programs
from explorer.training.loop import compiled, held_out_loss, trained

BASE, NAME = "llama-tiny", "llama-tiny-flaws"
RANK, RATE = 4, 6e-3
BATCH, HELD_OUT = 16, 4  # programs, and batches of them that are never fed
MILLION_TOKENS = 0.28
NOTE = (
    "The losses of the curve are of labelled programs, held out: {flaws:.4f} nats per token at the end, much "
    "of it chance. On plain held-out stories `llama-tiny` has {before:.4f}."
)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    base, model = trained(BASE), adapted(trained(BASE), ADDED, RANK).to(loop.device())
    before = held_out_loss(base, texts.held)
    programs = Programs(lora.with_tokens(texts.tokenizer, list(ADDED)))
    kept = [programs.batch(f"held out {at}", BATCH) for at in range(HELD_OUT)]
    opt = torch.optim.AdamW(learned_of(model), lr=RATE, weight_decay=0.0)
    forward = compiled(model)

    def loss(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        where = next(model.parameters()).device
        with torch.autocast(where.type, torch.bfloat16):
            return forward(input_ids=rows.to(where), labels=labels.to(where)).loss

    def step(seen: int) -> tuple[int, list[float]]:
        rows, labels = programs.batch(str(seen), BATCH)
        value = loss(rows, labels)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        return rows.numel(), [value.item()]

    @torch.no_grad()
    def validate() -> list[float]:
        return [sum(loss(*pair).item() for pair in kept) / len(kept)]

    budget = args.million_tokens or MILLION_TOKENS
    curve = loop.go_on(model, [opt], step, validate, budget, args.work / NAME)
    note = NOTE.format(before=before, flaws=curve[-1][2])
    facts = {"tokens_of": f"of labelled programs, {BATCH} at a time", "note": note}
    ship(NAME, model, BASE, ADDED, RANK, curve, texts.held, facts, {})
