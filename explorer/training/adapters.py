"""Trains low-rank changes of llama-tiny on texts with additional tokens: the rows of rows/adapters.py."""

import json
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from decoders.models import lora
from decoders.models.catalog import TARGET
from decoders.search.planned.topic_tokens import TOPICS
from explorer.corpus import Texts, prepare, read_stories
from explorer.training import loop
from explorer.training.data import Rows, flaws, forms, fragments
from explorer.training.loop import held_out_loss, trained
from explorer.training.low_rank import adapted, fit_labelled, ship
from explorer.training.rows.adapters import Adapter


@dataclass(frozen=True)
class Lessons:
    """What an adapter learns from: batches by the number of tokens that were read, and batches that are never
    fed; files: name -> text, shipped beside the adapter.
    """

    batch: Callable[[int], Rows]
    kept: list[Rows]
    files: dict[str, str] = field(default_factory=dict)


def documents(maker: type, added: tuple[str, ...], row: Adapter, texts: Texts, args: Namespace) -> Lessons:
    """Fresh documents by a maker with `batch(seed, count)`."""
    made = maker(lora.with_tokens(texts.tokenizer, list(added)))
    kept = [made.batch(f"held out {at}", row.batch) for at in range(row.held_out)]
    return Lessons(lambda seen: made.batch(str(seen), row.batch), kept)


def story_forms(row: Adapter, texts: Texts, args: Namespace) -> Lessons:
    """Stories and problems with the middle last, stories with topics, and plain rows between them."""
    train, held = read_stories(args.corpus)
    topics = forms.topics_of(train)
    tokenizer = lora.with_tokens(texts.tokenizer, list(forms.ADDED))
    seen, unseen = (forms.Forms(stories, tokenizer, topics) for stories in (train, held))
    kept = [unseen.batch(f"held out {at}") for at in range(row.held_out)]
    return Lessons(partial(seen.mixed, texts.stories), kept, {TOPICS: json.dumps(topics.weights) + "\n"})


# a row's `texts` -> the tokens that are added, and what makes the lessons
TEXTS: dict[str, tuple[tuple[str, ...], Callable[[Adapter, Texts, Namespace], Lessons]]] = {
    "programs": (flaws.ADDED, partial(documents, flaws.Programs, flaws.ADDED)),
    "modules": (fragments.ADDED, partial(documents, fragments.Modules, fragments.ADDED)),
    "forms": (forms.ADDED, story_forms),
}


def train_row(row: Adapter, args: Namespace) -> None:
    """Trains and ships one adapter."""
    texts, (added, made) = prepare(args.corpus, args.work), TEXTS[row.texts]
    base, model = trained(TARGET), adapted(trained(TARGET), added, row.rank).to(loop.device())
    before = held_out_loss(base, texts.held)
    lessons = made(row, texts, args)
    budget = args.million_tokens or row.million_tokens
    curve = fit_labelled(model, lessons.batch, lessons.kept, row.rate, budget, args.work / row.name)
    facts = {
        "tokens_of": row.tokens_of.format(batch=row.batch),
        "note": row.note.format(before=before, held_out=curve[-1][2]),
    }
    ship(row.name, model, TARGET, added, row.rank, curve, texts.held, facts, lessons.files)
