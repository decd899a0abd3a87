"""llama-tiny-forms: llama-tiny with a low-rank adapter and fifteen additional tokens, for two forms of text:
with the middle last (PRE a SUF c MID b EOT), and with a topic in front of each sentence.
"""

import json
from argparse import Namespace

from decoders.models import lora
from decoders.search.planned.topic_tokens import TOPICS
from explorer.corpus import prepare, read_stories
from explorer.training import loop
from explorer.training.adapting import Labelled, adapted, fit_labelled, ship
from explorer.training.data.forms import ADDED, Forms, topics_of
from explorer.training.loop import held_out_loss, trained

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

    def batch(seen: int) -> Labelled:
        return forms.mixed(texts.stories, seen)

    budget = args.million_tokens or 2.4
    curve = fit_labelled(model, batch, kept, RATE, budget, args.work / NAME)
    note = NOTE.format(before=before, forms=curve[-1][2])
    files = {TOPICS: json.dumps(topics.weights) + "\n"}
    facts = {"tokens_of": "in rows of 512", "note": note}
    ship(NAME, model, BASE, ADDED, RANK, curve, texts.held, facts, files)
