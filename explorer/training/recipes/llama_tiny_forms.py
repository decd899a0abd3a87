"""llama-tiny-forms: llama-tiny with a low-rank adapter and fifteen tokens more, for two forms of text: with
the middle last (PRE a SUF c MID b EOT), and with a topic in front of each sentence.
"""

import json
from argparse import Namespace

import torch

from decoders.models import lora
from decoders.search.planned.topic_tokens import TOPICS
from explorer.corpus import prepare, read_stories
from explorer.training import loop
from explorer.training.adapting import adapted, learned_of, ship
from explorer.training.data.forms import ADDED, Forms, topics_of
from explorer.training.loop import compiled, held_out_loss, trained

BASE, NAME = "llama-tiny", "llama-tiny-forms"
RANK = 4
RATE = 1e-2
NOTE = (
    "The losses of the curve are of the two new forms, held out: {forms:.4f} nats per token at the end. On "
    "plain held-out stories `llama-tiny` has {before:.4f}."
)
HELD_OUT = 5  # batches that are never fed


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    train, held = read_stories(args.corpus)
    topics = topics_of(train)
    base, model = trained(BASE), adapted(trained(BASE), ADDED, RANK).to(loop.device())
    before = held_out_loss(base, texts.held)
    tokenizer = lora.with_tokens(texts.tokenizer, list(ADDED))
    forms, unseen = Forms(train, tokenizer, topics), Forms(held, tokenizer, topics)
    kept = [unseen.batch(f"held out {at}") for at in range(HELD_OUT)]
    opt = torch.optim.AdamW(learned_of(model), lr=RATE, weight_decay=0.0)
    forward = compiled(model)

    def loss(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        where = next(model.parameters()).device
        with torch.autocast(where.type, torch.bfloat16):
            return forward(input_ids=rows.to(where), labels=labels.to(where)).loss

    def step(seen: int) -> tuple[int, list[float]]:
        rows, labels = forms.mixed(texts.stories, seen)
        value = loss(rows, labels)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        return rows.numel(), [value.item()]

    @torch.no_grad()
    def validate() -> list[float]:
        return [sum(loss(*pair).item() for pair in kept) / len(kept)]

    budget = args.million_tokens or 2.4
    curve = loop.go_on(model, [opt], step, validate, budget, args.work / NAME)
    note = NOTE.format(before=before, forms=curve[-1][2])
    files = {TOPICS: json.dumps(topics.weights) + "\n"}
    facts = {"tokens_of": "in rows of 512", "note": note}
    ship(NAME, model, BASE, ADDED, RANK, curve, texts.held, facts, files)
