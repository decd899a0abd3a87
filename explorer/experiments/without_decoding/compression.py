"""What does a smaller model forget first?

The target with part of its weights set to zero (the smallest by magnitude, or by Wanda: weight times input
norm, row by row), with two of every four kept, and rounded to few bits. Four things are measured. perplexity
and agreement (share of positions at which its most likely token is the original's) on text sampled from the
original; knowledge: answers that are only in the weights (opposites, words of a toy language); in context:
answers that are in the prompt (copies, fact sheets); acceptance: the probability that the original accepts a
token that the smaller model drafts, the sum of min(p, q). An answer is right if greedy decoding would write
it token for token. The study asks models of 7B and more about facts and documents.
"""

from collections.abc import Callable
from statistics import fmean

import torch

from decoders.models.edited_model import edited
from explorer.experiments import Chart, Line, Models, progress
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.models.small import next_loss, own_text
from explorer.experiments.reading import Row, moved, percent, rows_with
from explorer.experiments.sweep import Setting, Sweep
from explorer.tasks import HELD_OUT_SEED, problems

PAPERS = ("compressing-llms",)
ROWS, LENGTH, COUNT = 24, 64, 25
SHARES = ("0", "0.1", "0.2", "0.3", "0.5", "0.7")
KNOWN, SHOWN = ("opposite", "translate"), ("copy", "facts")  # in the weights, in the prompt
EDITS = (
    *(("magnitude", share) for share in SHARES),
    *(("wanda", share) for share in SHARES[1:]),
    ("magnitude", "2of4"),
    ("wanda", "2of4"),
    *(("bits", bits) for bits in ("8", "4", "3")),
)
PERPLEXITY, KNOWLEDGE, CONTEXT = "perplexity", "knowledge", "in context"
Asked = list[tuple[list[int], list[int]]]  # (prompt, right answer), as tokens


def asked(models: Models, tasks: tuple[str, ...]) -> Asked:
    """Problems of some tasks as tokens, with the end of the answer."""
    target = models["target"]
    end = [min(target.eos)] if target.eos else []
    selected = [problem for task in tasks for problem in problems(task, COUNT, HELD_OUT_SEED)]
    return [(target.encode(p.prompt), [*target.cut(p.answer), *end]) for p in selected]


@torch.no_grad()
def written(model: torch.nn.Module, problems: Asked, batch: int = 25) -> float:
    """The share of answers that greedy decoding would write: at every position the right token is the most
    likely one, given the right tokens before it.
    """
    solved = []
    for at in range(0, len(problems), batch):
        some = problems[at : at + batch]
        longest = max(len(prompt) + len(answer) for prompt, answer in some)
        rows = [[*prompt, *answer] + [0] * (longest - len(prompt) - len(answer)) for prompt, answer in some]
        states = model.base_model(input_ids=torch.tensor(rows, device=model.device)).last_hidden_state
        for row, (prompt, answer) in zip(states, some, strict=True):
            logits = model.get_output_embeddings()(row[len(prompt) - 1 : len(prompt) + len(answer) - 1])
            solved.append(logits.argmax(-1).tolist() == answer)
    return fmean(solved)


@torch.no_grad()
def compared(model: torch.nn.Module, whole: torch.Tensor, rows: torch.Tensor) -> tuple[float, float, float]:
    """(perplexity, agreement, acceptance) over rows [N, T]; `whole` [N, T, V]: the original's logits."""
    logits = model(input_ids=rows).logits.float()
    same = (logits.argmax(-1) == whole.argmax(-1)).float().mean()
    accepted = torch.minimum(logits.softmax(-1), whole.softmax(-1)).sum(-1).mean()
    return float(next_loss(logits, rows).exp()), float(same), float(accepted)


def settings(models: Models) -> list[Setting]:
    """Every edit of the target, with what all of them are asked."""
    with progress.part(0.1):
        rows = own_text(models, ROWS, LENGTH).to(models["target"].model.device)
    with torch.no_grad():
        whole = models["target"].model(input_ids=rows).logits.float()
    given = {"rows": rows, "whole": whole, "known": asked(models, KNOWN), "shown": asked(models, SHOWN)}
    return [Setting((" ".join(edit),), parameters={"edit": edit, **given}) for edit in EDITS]


def measured(
    models: Models, edit: tuple[str, str], rows: torch.Tensor, whole: torch.Tensor, known: Asked, shown: Asked
) -> Row:
    """What an edit leaves of the target."""
    model = edited(models["target"].model, (edit,), min(models["target"].eos, default=0))
    perplexity, same, accepted = compared(model, whole, rows)
    return {
        PERPLEXITY: perplexity,
        "agreement": same,
        KNOWLEDGE: written(model, known),
        CONTEXT: written(model, shown),
        "acceptance": accepted,
    }


def chart(rows: list[Row]) -> Chart:
    """What Wanda leaves of each column, by share; for perplexity, the ratio before / after."""
    edits = {row["edit"]: row for row in rows}
    before = edits["magnitude 0"]
    left = [(float(share), edits.get(f"wanda {share}", before)) for share in SHARES]
    lines = [
        Line(name, [[x, before[name] / row[name] if name == PERPLEXITY else row[name]] for x, row in left])
        for name in list(before)[1:]
    ]
    what = "share, and perplexity before / after"
    return Chart("The target, pruned by Wanda", "share of weights that are zero", what, lines)


def lost(edits: dict[str, Row], column: str) -> Callable[[str], float]:
    """A function: the loss of an edit in one column, as a share of the unedited value."""
    start = edits["magnitude 0"][column]
    return lambda edit: 1 - edits[edit][column] / start if start else 0.0


def says(rows: list[Row]) -> list[str]:
    """Knowledge against answers in context, Wanda against magnitude, and few bits."""
    edits, sentences = {row["edit"]: row for row in rows}, []
    knows, reads = lost(edits, KNOWLEDGE), lost(edits, CONTEXT)
    for kind in ("magnitude", "wanda"):
        first = [s for s in SHARES[1:] if knows(f"{kind} {s}") > reads(f"{kind} {s}")]
        listed = ", ".join(first) or "none"
        sentences.append(
            f"Pruned by {kind}, knowledge loses more than answers in context at {len(first)} of "
            f"{len(SHARES) - 1} shares ({listed})."
        )
    left = {edit: row[PERPLEXITY] for edit, row in edits.items()}
    lower = sum(left[f"wanda {s}"] < left[f"magnitude {s}"] for s in SHARES[1:])
    sentences.append(
        f"Wanda has the lower perplexity at {lower} of {len(SHARES) - 1} shares; with two of every "
        f"four weights kept it has {left['wanda 2of4']:.2f}, and magnitude {left['magnitude 2of4']:.2f}; "
        f"with half of all weights zero anywhere it has {left['wanda 0.5']:.2f}."
    )
    for bits in ("8", "4", "3"):
        row = edits[f"bits {bits}"]
        sentences.append(
            f"Rounded to {bits} bits: perplexity {row[PERPLEXITY]:.2f}, knowledge {percent(row[KNOWLEDGE])}, "
            f"in context {percent(row[CONTEXT])}; {percent(row['acceptance'])} of what it drafts would be "
            "accepted."
        )
    return sentences


SWEEP = Sweep(names=("edit",), settings=settings, decode=measured, says=says, chart=chart, one_process=True)


def finding(answer: dict) -> str:
    """The effect of half of the weights at zero on perplexity, knowledge and context."""
    (before,), (after,) = (rows_with(answer, "edit", name) for name in ("magnitude 0", "wanda 0.5"))
    return (
        "With half of its weights set to zero by Wanda, the share of right answers "
        f"{moved(before[CONTEXT], after[CONTEXT], percent)} where the prompt holds the answer, and "
        f"{moved(before[KNOWLEDGE], after[KNOWLEDGE], percent)} where only the weights know it."
    )


def stands(answer: dict) -> Basis:
    """Problems of two kinds, answered greedily."""
    (before,), (after,) = (rows_with(answer, "edit", name) for name in ("magnitude 0", "wanda 0.5"))
    many = len(SHOWN) * COUNT
    compared = [
        by_shares(f"right answers, {kind}, pruned against whole", after[kind], before[kind], many)
        for kind in (CONTEXT, KNOWLEDGE)
    ]
    return Basis({"problems of each kind": many}, compared=compared)
