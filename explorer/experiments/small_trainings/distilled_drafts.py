"""Which divergence, and whose text, bring a draft closest to its target?

DistillSpec trains a draft on its target's probabilities, since a drafted token is accepted with probability
sum min(p, q) = 1 - TV(p, q). Two choices matter: on whose text the two are compared, and which divergence is
minimised. Here a small draft that has read stories and problems, but none of the target's text, takes the
same few steps from the same weights in every cell: on stories of the corpus, on text sampled from the target,
or on text that the draft itself samples at each step (on-policy, without gradients through the sampling).
Overlap: the mean of sum min(p, q) at temperature 1 along further texts of the target. Same best token: how
often the two agree greedily. The study trains billions of times as much, and decodes with the drafts that it
has trained.
"""

import copy
from collections.abc import Callable
from pathlib import Path

import torch

from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import check_pair, load
from decoders.refusal import Refusal
from decoders.speculative.divergences import DIVERGENCES
from explorer.corpus import read_stories
from explorer.experiments import Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.models.small import fit, own_text
from explorer.experiments.pictures import Heat, Strip
from explorer.experiments.reading import moved, percent, rows_of

PAPERS = ("distillspec",)
READS_CORPUS = True
BEGUN_FROM = "llama-tiny-fastdraft-continued"
DIVERGED = ("forward KL", "reverse KL", "JSD 0.5", "TVD")
STORIES, TARGETS, OWN = "stories", "the target's text", "its own text"
SOURCES = (STORIES, TARGETS, OWN)
ROWS, HELD_OUT, LENGTH = 160, 32, 64  # texts for training and for evaluation, and tokens of each
STEPS, BATCH, RATE = 100, 8, 2e-3
COLUMNS = ["text", "divergence", "overlap", "gain", "same best token"]
Wanted = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]  # picked rows -> tokens, logits of p


def corpus_rows(target: LoadedModel, corpus: Path) -> torch.Tensor:
    """The first tokens [ROWS, LENGTH] of stories that have as many. Raises Refusal with one sentence."""
    stories, _ = read_stories(corpus)
    cut = (target.cut(story)[:LENGTH] for story in stories)
    rows = [ids for ids, _ in zip((c for c in cut if len(c) == LENGTH), range(ROWS), strict=False)]
    if not rows:
        raise Refusal(f"The corpus {str(corpus)!r} has no story of {LENGTH} tokens.")
    return torch.tensor(rows, device=target.model.device)


@torch.no_grad()
def logits_of(model: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
    """Logits [N, T, V] of the next token after each token of rows [N, T]."""
    return torch.cat([model(input_ids=some).logits.float() for some in rows.split(BATCH)])


def agreement(p: torch.Tensor, q: torch.Tensor) -> tuple[float, float]:
    """The mean overlap of two tensors of logits [..., V], and how often their most likely tokens agree."""
    overlap = torch.minimum(p.softmax(-1), q.softmax(-1)).sum(-1).mean().item()
    return overlap, (p.argmax(-1) == q.argmax(-1)).float().mean().item()


def read_once(target: LoadedModel, rows: torch.Tensor) -> Wanted:
    """Rows of a fixed text, which the target reads only once."""
    logits = logits_of(target.model, rows)
    return lambda pick: (rows[pick], logits[pick])


def drawn_again(target: LoadedModel, draft: LoadedModel) -> Wanted:
    """Text that the draft samples with its current weights, and the target's predictions for it."""

    def wanted(pick: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = own_text({"target": draft}, len(pick), LENGTH, seed=int(pick.sum()))
        rows = rows.to(target.model.device)
        return rows, logits_of(target.model, rows)

    return wanted


def distil(draft: LoadedModel, wanted: Wanted, divergence: str, rows: int) -> None:
    """Trains `draft` in place for STEPS steps to reduce the mean divergence from the target."""
    model = draft.model.requires_grad_(True)

    def loss(pick: torch.Tensor) -> torch.Tensor:
        tokens, p = wanted(pick[:, 0])
        return DIVERGENCES[divergence](p, model(input_ids=tokens).logits.float()).mean()

    fit(model.parameters(), loss, torch.arange(rows)[:, None], STEPS, BATCH, RATE)
    model.requires_grad_(False)


def copied(draft: LoadedModel) -> LoadedModel:
    """A trainable copy of a draft."""
    return LoadedModel(draft.name, copy.deepcopy(draft.model).float(), draft.tokenizer, tokens_of=draft)


def run(models: Models, corpus: Path) -> Result:
    """One row for the untrained draft, and one per text and divergence."""
    target, begun = models["target"], load(BEGUN_FROM)
    check_pair(target, begun)
    with progress.part(0.05):
        held = own_text(models, HELD_OUT, LENGTH, seed=1).to(target.model.device)
    p = logits_of(target.model, held)
    start = agreement(p, logits_of(begun.model, held))
    rows = [["none", "none", start[0], 0.0, start[1]]]
    fixed = {STORIES: corpus_rows(target, corpus)}
    with progress.part(0.1):
        fixed[TARGETS] = own_text(models, len(fixed[STORIES]), LENGTH).to(target.model.device)
    for source in progress.each(SOURCES, weight=lambda source: 4.0 if source == OWN else 1.0):
        read = read_once(target, fixed[source]) if source in fixed else None
        for divergence in progress.each(DIVERGED):
            draft = copied(begun)
            distil(draft, read or drawn_again(target, draft), divergence, len(fixed[STORIES]))
            overlap, same = agreement(p, logits_of(draft.model, held))
            rows.append([source, divergence, overlap, overlap - start[0], same])
    grid = [Strip(s, [s], [[row[3]] for row in rows if row[0] == s]) for s in SOURCES]
    low, high = min(row[3] for row in rows), max(row[3] for row in rows)
    says = "A cell: the gain in overlap, by divergence and text"
    heat = Heat("What distillation gains", says, list(DIVERGED), grid, low, max(high, low + 1e-6))
    return Result(COLUMNS, rows, sentences(rows), pictures=[heat])


def sentences(rows: list[list]) -> list[str]:
    """The best cell, and the best result of each text and of each divergence."""
    start, *cells = rows
    best = max(cells, key=lambda row: row[2])
    lines = [
        f"The draft begins at an overlap of {start[2]:.3f}. Most is gained on {best[0]} by {best[1]}: "
        f"{best[2]:.3f}."
    ]
    for at, names in ((0, SOURCES), (1, DIVERGED)):
        tops = {name: max(row[2] for row in cells if row[at] == name) for name in names}
        lines.append("At best: " + ", ".join(f"{name} {top:.3f}" for name, top in tops.items()) + ".")
    return lines


def finding(answer: dict) -> str:
    """The overlap before and after, on the target's text and on the draft's own."""
    start, *cells = rows_of(answer)
    tops = {s: max(row["overlap"] for row in cells if row["text"] == s) for s in (TARGETS, OWN)}
    return (
        "A few steps of distillation move the overlap of a small draft with its target: it "
        f"{moved(start['overlap'], tops[TARGETS], percent)} on the target's text, and comes to "
        f"{percent(tops[OWN])} on text that the draft writes itself."
    )


STANDS = Basis({"held-out texts": HELD_OUT}, trained=1)
