"""What the recipes share for small models that read a source and write its answer: rows, the loss, the loop
in float32, and how many answers are right.
"""

from argparse import Namespace
from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from decoders.models.architectures.source_stream import SourceStream, rows_of
from explorer.corpus import IGNORED
from explorer.training import cards
from explorer.training.answers import ACCURACIES
from explorer.training.loop import Curve, descend, run_steps, ship, write_json

Problem = tuple[str, str]  # prompt up to its separator, answer
Rows = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # sources, which places count, answers with their ends
BYTES = "bytes, the end of a text and padding: 258 tokens"
RATE = 4e-3  # of AdamW; Muon's steps cost more than these networks


def rows(tokenizer: PreTrainedTokenizerBase, problems: list[Problem], end: int = 0) -> Rows:
    """Sources [N, S], a mask of their tokens, and labels [N, A]: answers with their ends, then IGNORED."""
    sources, seen = rows_of(
        [tokenizer(prompt)["input_ids"] if prompt else [] for prompt, _ in problems], "cpu"
    )
    answers, there = rows_of([[*tokenizer(answer)["input_ids"], end] for _, answer in problems], "cpu")
    return sources, seen, answers.masked_fill(~there, IGNORED)


def loss(model: SourceStream, batch: Rows) -> torch.Tensor:
    """Nats per token of the answers and their ends."""
    sources, seen, labels = batch
    logits = model.answer_logits(sources, seen, labels[:, :-1].clamp(min=0))
    return cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)


def made(build: Callable[[], SourceStream], seed: int = 0) -> SourceStream:
    """A fresh model, always with the same initial weights."""
    torch.manual_seed(seed)
    return build()


def fit(
    model: torch.nn.Module,
    feed: Callable[[int], Rows],
    held: Rows,
    million_tokens: float,
    args: Namespace,
    name: str,
    of: Callable[[torch.nn.Module, Rows], torch.Tensor] = loss,
    rate: float = RATE,
) -> Curve:
    """Trains it on the batches that `feed(tokens seen)` gives, until this many million answer tokens are
    read. of: the loss of a batch. rate: of AdamW.
    """

    def step(seen: int) -> tuple[int, list[float]]:
        batch = feed(seen)
        return int((batch[-1] != IGNORED).sum()), [descend(of(model, batch), model)]

    def validate() -> list[float]:
        with torch.no_grad():
            return [loss(model, held).item()]

    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    budget = args.million_tokens or million_tokens
    return run_steps(model, [optimizer], step, validate, budget, args.work / name)


@torch.no_grad()
def finished(
    model: SourceStream,
    tokenizer: PreTrainedTokenizerFast,
    name: str,
    curve: Curve,
    held: Rows,
    about: dict[str, str],
    accuracies: dict[str, dict[str, float]],
) -> None:
    """Ships it with its measurements: task -> column -> share. about: its architecture, and for the card its
    vocabulary and its training data.
    """
    facts = {
        **about,
        "context": model.config.max_position_embeddings,
        "million_tokens": round(curve[-1][0], 3),
        "tokens_of": "of answers",
    }
    folder = ship(model, tokenizer, name, curve, loss(model, held).item(), **facts)
    write_json(folder / ACCURACIES, accuracies)
    cards.write(folder)


@torch.no_grad()
def written(model: SourceStream, batch: Rows, longest: int, end: int = 0) -> list[list[int]]:
    """Its greedy answer to each source, without the end."""
    sources, seen, _ = batch
    answers = sources[:, :0]
    for _ in range(longest):
        answers = torch.cat([answers, model.answer_logits(sources, seen, answers)[:, -1:].argmax(-1)], 1)
        if (answers == end).any(1).all():
            break
    return [row[: row.index(end)] if end in row else row for row in answers.tolist()]


def solved(
    model: SourceStream, tokenizer: PreTrainedTokenizerBase, problems: list[Problem], longest: int
) -> float:
    """Share of the problems whose greedy answer is exactly right."""
    wrote = written(model, rows(tokenizer, problems), longest)
    right = [tokenizer(answer)["input_ids"] for _, answer in problems]
    return sum(a == b for a, b in zip(wrote, right, strict=True)) / len(problems)


@torch.no_grad()
def bytes_right(model: SourceStream, batch: Rows) -> float:
    """Share of the answer tokens, ends included, that are the most likely ones, each given the right tokens
    before it.
    """
    sources, seen, labels = batch
    predicted = model.answer_logits(sources, seen, labels[:, :-1].clamp(min=0)).argmax(-1)
    counted = labels != IGNORED
    return ((predicted == labels) & counted).sum().item() / counted.sum().item()
