"""llama-tiny-planner: a small pointer network on llama-tiny-summaries that predicts which clauses of a text a
summary will use (EDU-PGA, 2023), trained on fact sheets and their summaries.
"""

import random
from argparse import Namespace

import torch
from torch.nn import functional as F

from decoders.heads import Planner, Target, take_taps
from decoders.heads.scorers.planner import unit_vectors
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.search.planned.discourse_units import labels, oracle
from decoders.search.planned.plan_tags import source_of, tags_of
from explorer.tasks.summaries import make_sheet
from explorer.training import loop
from explorer.training.modules import parted, ship_scorer, train_scorer, work_of

TARGET, NAME = "llama-tiny-summaries", "llama-tiny-planner"
SHEETS = 4000
MAX_UNITS = 8  # units of a sheet
MILLION_TOKENS = 0.9  # of sheets; a token counts each time that it is looked at
NOTE = (
    f"It reads the mean of the states of `{TARGET}` in each unit, all of which have tags, and that of the "
    "whole text. The loss is the cross-entropy of the oracle plan, nats per choice, and the divergence of "
    "its salience from soft labels, the best ROUGE of a unit with any sentence of the summary."
)
BATCH, RATES, HELD_OUT = 32, (2e-3, 1e-3), 10
Read = tuple[torch.Tensor, ...]


@torch.no_grad()
def read_sheets(target: LoadedModel, seed: str, count: int) -> tuple[torch.Tensor, Read]:
    """(tokens of fact sheets [N, T], padded with 0; the inputs of a planner's loss for them: vectors, counts,
    plans, soft labels).
    """
    rng, tags = random.Random(f"planner {seed}"), tags_of(target)
    rows, result = [], []
    for _ in range(count):
        sheet = make_sheet(rng)
        source = source_of(target.encode(sheet.prompt), target.bytes_of)
        row, places = source.tagged(range(len(source.spans)), tags)
        states = take_taps(target.model, torch.tensor([row], device=target.model.device)).hidden[0, places]
        plan, soft_labels = oracle(source.texts, sheet.summary), labels(source.texts, sheet.summary)
        vectors, missing = unit_vectors(states, source.spans), MAX_UNITS - len(soft_labels)
        rows.append(torch.tensor(row))
        result.append(
            (
                F.pad(vectors, (0, 0, 0, missing)).cpu(),
                torch.tensor(len(soft_labels)),
                torch.tensor(plan + [-1] * (MAX_UNITS - len(plan))),
                torch.tensor(soft_labels + [0.0] * missing),
            )
        )
    tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return tokens, tuple(torch.stack(part) for part in zip(*result, strict=True))


def main(args: Namespace) -> None:
    """Trains and ships it."""
    target = load(str(loop.MODELS / TARGET), loop.device(), "float32")
    work = work_of(args.work, NAME, TARGET)
    path = work / "sheets.pt"
    if not path.exists():
        torch.save(read_sheets(target, "read", SHEETS), path)
    tokens, read = torch.load(path, weights_only=True)
    torch.manual_seed(0)
    head = Planner(Target.of(target.model)).to(target.model.device)

    def loss(rows: torch.Tensor, some: torch.Tensor) -> torch.Tensor:
        return head.loss(*(part[some.cpu()].to(rows.device) for part in read))

    budget = args.million_tokens or MILLION_TOKENS
    curve = train_scorer(head, loss, *parted(tokens, HELD_OUT), budget, work, BATCH, RATES)
    facts = {
        "documents": len(tokens),
        "tokens_of": "of sheets, each several times",
        "note": NOTE,
    }
    ship_scorer(NAME, head, TARGET, target.tokenizer, curve, "choice", facts)
