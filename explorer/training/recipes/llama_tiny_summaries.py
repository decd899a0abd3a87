"""llama-tiny-summaries: llama-tiny with a low-rank adapter and thirteen additional tokens, for summaries of
fact sheets: of the units between tags, or with a topic in front of each sentence.
"""

import json
import random
from argparse import Namespace
from statistics import fmean

import torch
from torch.nn import functional as F
from transformers import LlamaForCausalLM

from decoders.models import lora
from decoders.search.planned.topic_tokens import TOPICS, Topics
from explorer.corpus import IGNORED, prepare
from explorer.tasks.summaries import make_sheet
from explorer.training import loop
from explorer.training.data.forms import topics_of
from explorer.training.data.sheets import ADDED, Sheets
from explorer.training.loop import Curve, half_precision, held_out_loss, trained
from explorer.training.low_rank import adapted, learned_of, ship

BASE, NAME = "llama-tiny", "llama-tiny-summaries"
RANK, RATE = 8, 6e-3
BATCH, FINE, COARSE = 3, 0.656, 8  # sheets, each in four documents; before FINE million tokens COARSE ones
LIKE, UNLIKE = 1.0, 0.2  # weights of the losses with tags, beside the one without
COMMON, FREQUENT, STARTS = (
    40,
    0.3,
    12,
)  # words by which topics are recognised: this many, in no larger share of sentences
SHEETS = 3000  # by whose sentences topics are recognised
HELD_OUT = 4  # batches that are never fed
MILLION_TOKENS = 1.38
LOSSES = ("mle", "like", "unlike", "topics")
NOTE = (
    "The losses of the curve are means of four, held out at the end: after the bare sheet {mle:.3f} nats "
    "per token of the summary (`mle`); with tags around the units that it tells {like:.3f} (`like`); "
    "-log(1 - p) with tags around others {unlike:.3f} (`unlike`), which counts for {weight:g}; with a topic "
    "in front of each sentence {topics:.3f}. On plain held-out stories `llama-tiny` has {before:.4f}."
)


def topics_of_sheets() -> Topics:
    """The topics of the sentences of summaries."""
    rng = random.Random("topics")
    return topics_of(
        ["".join(make_sheet(rng).answer).strip() for _ in range(SHEETS)], COMMON, FREQUENT, STARTS
    )


def losses(model: LlamaForCausalLM, rows: torch.Tensor, labels: torch.Tensor) -> list[torch.Tensor]:
    """The losses [4] in nats per token of what `Sheets.batch` gives: mle, like, unlike, topics. Unlikelihood
    is -log(1 - p) of each token of the summary after the wrong tags.
    """
    states = model.model(input_ids=rows.flatten(0, 1)).last_hidden_state[:, :-1].unflatten(0, rows.shape[:2])
    result = []
    for at in range(len(rows)):
        labelled = labels[at, :, 1:] != IGNORED
        logits = model.lm_head(states[at][labelled]).float()
        nll = F.cross_entropy(logits, labels[at, :, 1:][labelled], reduction="none")
        result.append(unlikelihood(nll).mean() if at == 2 else nll.mean())
    return result


def unlikelihood(nll: torch.Tensor) -> torch.Tensor:
    """-log(1 - p) of tokens with the negative log-likelihoods -log p."""
    return -torch.log1p(-torch.exp(-nll).clamp(max=1 - 1e-4))


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts, topics = prepare(args.corpus, args.work), topics_of_sheets()
    base, model = trained(BASE), adapted(trained(BASE), ADDED, RANK).to(loop.device())
    before = held_out_loss(base, texts.held)
    sheets = Sheets(lora.with_tokens(texts.tokenizer, list(ADDED)), topics)
    kept = [sheets.batch(f"held out {at}", COARSE) for at in range(HELD_OUT)]
    opt = torch.optim.AdamW(learned_of(model), lr=RATE, weight_decay=0.0)
    weights = torch.tensor([1.0, LIKE, UNLIKE, 1.0], device=loop.device())

    def loss(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        where = weights.device
        with half_precision(where):
            return weights * torch.stack(losses(model, rows.to(where), labels.to(where)))

    def step(seen: int) -> tuple[int, list[float]]:
        rows, labels = sheets.batch(str(seen), COARSE if seen < FINE * 1e6 else BATCH)
        losses = loss(rows, labels)
        losses.sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        return rows.numel(), losses.tolist()

    @torch.no_grad()
    def validate() -> list[float]:
        return torch.stack([loss(*pair) for pair in kept]).mean(0).tolist()

    budget = args.million_tokens or MILLION_TOKENS
    curve = loop.run_steps(model, [opt], step, validate, budget, args.work / NAME)
    named = {name: round(loss, 4) for name, loss in zip(LOSSES, curve[-1][-len(LOSSES) :], strict=True)}
    named["unlike"] /= UNLIKE
    note = NOTE.format(before=before, weight=UNLIKE, **named)
    tokens_of = f"of sheets, {COARSE}, later {BATCH} at a time, in four documents each"
    facts = {"tokens_of": tokens_of, "note": note}
    files = {TOPICS: json.dumps(topics.weights) + "\n"}
    ship(NAME, model, BASE, ADDED, RANK, mean(curve), texts.held, facts, files)


def mean(curve: Curve) -> Curve:
    """Of points with several training losses, and as many held-out ones, their means."""
    half = len(LOSSES) + 1
    return [(point[0], fmean(point[1:half]), fmean(point[half:])) for point in curve]
