"""llama-tiny-lud: llama-tiny with a low-rank adapter and a placeholder token, trained to predict the rest of
a lexical unit after placeholders, all of it in one forward (LUD, 2024).
"""

import random
from argparse import Namespace

import torch
from torch.nn import functional as F

from decoders.heads.path_independent.lexical_units import mark_units
from decoders.heads.path_independent.lookahead_tokens import slots_see
from explorer.corpus import mixed_rows, prepare
from explorer.training import loop
from explorer.training.loop import held_out_loss, trained
from explorer.training.low_rank import adapted, learned_of, ship

BASE, NAME, PLACEHOLDER = "llama-tiny", "llama-tiny-lud", "<|unit|>"
RANK, RATE = 8, 3e-3
BATCH, LENGTH, TASKS, PLACES = 8, 128, 0.5, 12  # PLACES: of a row, with placeholders after them
ALPHA, PLACEHOLDERS = 0.9, 3  # a unit has one token more than placeholders, at most
MILLION_TOKENS, HELD_OUT = 0.25, 4
NOTE = (
    "The loss is the mean of two, in nats per token: of the next token of whole rows, and of later tokens "
    "after placeholders, half of these in front of lexical units. On plain held-out stories `llama-tiny` "
    "has {before:.4f}."
)
Example = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # rows [B, T], hosts [B, A], labels [B, A, K]


@torch.no_grad()
def examples(base: torch.nn.Module, rows: torch.Tensor, seed: int) -> Example:
    """Positions of each row and the tokens after the next one: half of them precede units, as marked by the
    base model, half are arbitrary, so that a guess is confident only where it may be.
    """
    logprobs = base(input_ids=rows).logits[:, :-1].float().log_softmax(-1)
    probs = logprobs.gather(-1, rows[:, 1:, None])[..., 0].exp()  # row[t] is of token t + 1, [B, T - 1]
    hosts, rng = torch.zeros(len(rows), PLACES, dtype=torch.long), random.Random(seed)
    last = rows.shape[1] - PLACEHOLDERS - 2
    for at, row in enumerate(probs.tolist()):
        units = [first for first, end in mark_units(row, ALPHA, 1 + PLACEHOLDERS) if end - first > 1]
        units = [first for first in units if first <= last]
        chosen = rng.sample(units, min(PLACES // 2, len(units)))
        chosen += rng.choices(range(last + 1), k=PLACES - len(chosen))
        hosts[at] = torch.tensor(chosen)
    places = hosts[:, :, None] + 2 + torch.arange(PLACEHOLDERS)  # [B, A, K]
    labels = rows.cpu().gather(1, places.flatten(1)).view_as(places)
    return rows, hosts, labels


def both(model: torch.nn.Module, example: Example, placeholder: int) -> torch.Tensor:
    """The mean of the next-token loss of the rows and of the placeholders' loss."""
    rows, hosts, labels = example
    where, (texts, length) = rows.device, rows.shape
    slots = labels[0].numel()
    tokens = torch.cat([rows, torch.full((texts, slots), placeholder, device=where)], 1)
    places = (hosts[:, :, None] + 1 + torch.arange(PLACEHOLDERS)).flatten(1)
    positions = torch.cat([torch.arange(length).expand(texts, -1), places], 1).to(where)
    sees = torch.zeros(texts, 1, length + slots, length + slots, dtype=torch.bool)
    sees[:, :, :length, :length] = torch.ones(length, length, dtype=torch.bool).tril()
    for text in range(texts):
        sees[text, 0, length:] = slots_see(hosts[text], PLACEHOLDERS, length)
    mask = torch.zeros(sees.shape).masked_fill(~sees, torch.finfo(torch.float32).min).to(where)
    logits = model(input_ids=tokens, position_ids=positions, attention_mask=mask).logits.float()
    plain = F.cross_entropy(logits[:, : length - 1].flatten(0, 1), rows[:, 1:].flatten())
    guessed = F.cross_entropy(logits[:, length:].flatten(0, 1), labels.flatten().to(where))
    return (plain + guessed) / 2


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    base = trained(BASE).eval().requires_grad_(False)
    model = adapted(trained(BASE), [PLACEHOLDER], RANK).to(loop.device())
    placeholder = model.config.vocab_size - 1
    model.config.mask_token_id, model.config.denoiser = placeholder, "lud"
    before = held_out_loss(base, texts.held)
    opt = torch.optim.AdamW(learned_of(model), lr=RATE, weight_decay=0.0)

    def drawn(seed: int) -> Example:
        rows = mixed_rows(texts.stories, texts.tokenizer, seed, BATCH, TASKS)[0][:, :LENGTH]
        return examples(base, rows.to(base.device), seed)

    held = [examples(base, rows.to(base.device), 0) for rows in texts.held[: HELD_OUT * BATCH].split(BATCH)]

    def step(seen: int) -> tuple[int, list[float]]:
        return BATCH * LENGTH, [loop.descend(both(model, drawn(seen), placeholder), model)]

    @torch.no_grad()
    def validate() -> list[float]:
        return [sum(both(model, example, placeholder).item() for example in held) / len(held)]

    budget = args.million_tokens or MILLION_TOKENS
    curve = loop.run_steps(model, [opt], step, validate, budget, args.work / NAME)
    facts = {
        "alpha": ALPHA,
        "placeholders": PLACEHOLDERS,
        "tokens_of": "of stories and tasks",
        "note": NOTE.format(before=before),
    }
    ship(NAME, model, BASE, [PLACEHOLDER], RANK, curve, texts.held, facts, {})
