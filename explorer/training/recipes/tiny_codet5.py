"""tiny-codet5: an encoder-decoder of the T5 architecture for small Verilog modules, 0.3 M parameters, with
the tasks of CodeT5 and the modes of CodeT5+. It fills in names (a third of them right) and spans (hardly any)
after sentinels, writes a module for a comment and a comment for a module (hardly ever without a mistake),
continues after an empty source, and finds the last part of a text by its first.
"""

import random
from argparse import Namespace
from collections.abc import Callable

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from decoders.models.architectures.codet5 import CodeT5Config, CodeT5Stream
from decoders.models.architectures.sentinels import fills
from decoders.models.architectures.source_stream import rows_of
from explorer.corpus import IGNORED
from explorer.tasks.verilog import CLOCK, MODULES, SIGNALS
from explorer.training.data.holes import Holes, Row, module_tokenizer
from explorer.training.small_streams import Rows, bytes_right, finished, fit, made, written

NAME = "tiny-codet5"
SHAPE = dict(d_model=64, d_kv=16, num_heads=4, d_ff=128, num_layers=3, num_decoder_layers=2)
ABOUT = {
    "architecture": "T5",
    "tokens": "byte-level BPE made from modules, in which each name is one token; twelve sentinels",
    "data": "Verilog modules of one statement after their comments, made by a program: "
    "`explorer/tasks/verilog.py`",
}
LONGEST, BATCH, HELD_OUT = 256, 8, 48
CONTRASTED = 4  # the vectors learn too in one of this many batches with sources
TAGS, CONTRAST, TEMPERATURE = 0.2, 0.1, 0.1  # weights of the two losses beside that of the answers
CROP = 0.6  # share of a source that a crop keeps
RATE = 2.5e-3
Maker = Callable[[random.Random, bool], Row]


def packed(made: list[Row]) -> Rows:
    """Rows in the form of `small_streams.rows`, from texts."""
    sources, seen = rows_of([source for source, _ in made], "cpu")
    answers, there = rows_of([answer for _, answer in made], "cpu")
    return sources, seen, answers.masked_fill(~there, IGNORED)


def crops(sources: torch.Tensor, seen: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The first and the last part of each source, as (tokens, mask)."""
    texts = [row[there].tolist() for row, there in zip(sources, seen, strict=True)]
    sizes = [max(1, round(CROP * len(text))) for text in texts]
    first = rows_of([text[:size] for text, size in zip(texts, sizes, strict=True)], "cpu")
    return [first, rows_of([text[-size:] for text, size in zip(texts, sizes, strict=True)], "cpu")]


def contrast(model: CodeT5Stream, sources: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """InfoNCE of two crops of each source: the other crop of the same text against those of all others."""
    first, last = (model.vectors(*crop) for crop in crops(sources, seen))
    return cross_entropy(first @ last.T / TEMPERATURE, torch.arange(len(first)))


@torch.no_grad()
def nearest(model: CodeT5Stream, sources: torch.Tensor, seen: torch.Tensor) -> float:
    """Share of first crops whose nearest last crop, of all texts, is that of the same text."""
    first, last = (model.vectors(*crop) for crop in crops(sources, seen))
    return ((first @ last.T).argmax(1) == torch.arange(len(first))).float().mean().item()


def holes_right(holes: Holes, wrote: list[list[int]], right: list[list[int]]) -> float:
    """Share of the sentinels of the right answers that have the right fill."""
    filled = [dict(fills(answer, holes.sentinels, holes.end)) for answer in wrote]
    pairs = [
        (one.get(sentinel), fill)
        for one, answer in zip(filled, right, strict=True)
        for sentinel, fill in fills(answer, holes.sentinels, holes.end)
    ]
    return sum(a == b for a, b in pairs) / len(pairs)


def learned(model: CodeT5Stream, batch: Rows, names: torch.Tensor, contrasted: bool = True) -> torch.Tensor:
    """The loss of the answers; where there is a source, also those of the tags and of the vectors."""
    sources, seen, labels = batch
    memory, there = model.read(sources, seen)
    logits = model.head(model.written(memory, there, labels[:, :-1].clamp(min=0)))
    total = cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
    if sources.shape[1]:
        tag_logits = model.tags(memory[:, 1:])[..., 0][seen]
        total = total + TAGS * binary_cross_entropy_with_logits(
            tag_logits, torch.isin(sources, names)[seen].float()
        )
        if contrasted:
            total = total + CONTRAST * contrast(model, sources, seen)
    return total


def main(args: Namespace) -> None:
    """Trains and ships it."""
    tokenizer = module_tokenizer(LONGEST)
    holes = Holes(tokenizer)
    names = torch.tensor(tokenizer.convert_tokens_to_ids([*MODULES, *SIGNALS, CLOCK]))
    config = CodeT5Config(
        **SHAPE,
        vocab_size=len(tokenizer),
        feed_forward_proj="gated-silu",
        dropout_rate=0.0,
        tie_word_embeddings=True,
        pad_token_id=1,
        eos_token_id=0,
        decoder_start_token_id=1,
        separator=[holes.arrow],
        sentinels=holes.sentinels,
        max_position_embeddings=LONGEST,
    )
    model = made(lambda: CodeT5Stream(config))
    sourced: list[Maker] = [holes.spans, holes.identifiers, holes.written]

    def feed(seen: int) -> Rows:
        rng = random.Random(f"codet5 {seen}")
        if rng.random() < 0.5:  # as many batches without a source as with one
            return packed([holes.told(rng) for _ in range(BATCH)])
        return packed([rng.choice(sourced)(rng) for _ in range(BATCH)])

    def of(model: CodeT5Stream, batch: Rows) -> torch.Tensor:
        return learned(model, batch, names, int(batch[0].sum()) % CONTRASTED == 0)

    rng = random.Random("held out")
    asked = {
        maker.__name__: [maker(rng, True) for _ in range(HELD_OUT)]
        for maker in (holes.spans, holes.identifiers, holes.written, holes.told)
    }
    held = packed(asked["spans"] + asked["identifiers"])
    curve = fit(model, feed, held, 1.3, args, NAME, of, RATE)
    accuracies = {task: {"tokens": bytes_right(model, packed(some))} for task, some in asked.items()}
    for task in ("spans", "identifiers", "written"):
        wrote = written(model, packed(asked[task]), 160)
        right = [answer[:-1] for _, answer in asked[task]]
        accuracies[task]["greedy"] = sum(a == b for a, b in zip(wrote, right, strict=True)) / HELD_OUT
        if task != "written":
            accuracies[task]["holes"] = holes_right(holes, wrote, right)
    accuracies["alike"] = {"nearest": nearest(model, *held[:2])}
    finished(model, tokenizer, NAME, curve, held, ABOUT, accuracies)
