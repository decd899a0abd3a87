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
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.models.small import next_loss, own_text
from explorer.experiments.reading import moved, percent, rows_with
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


def run(models: Models) -> Result:
    """One row per edit."""
    target = models["target"].model
    with progress.part(0.1):
        rows = own_text(models, ROWS, LENGTH).to(target.device)
    with torch.no_grad():
        whole = target(input_ids=rows).logits.float()
    known, shown = asked(models, KNOWN), asked(models, SHOWN)
    table: list[list[Cell]] = []
    for key, value in progress.each(EDITS):
        model = edited(target, ((key, value),), min(models["target"].eos, default=0))
        perplexity, same, accepted = compared(model, whole, rows)
        table.append(
            [f"{key} {value}", perplexity, same, written(model, known), written(model, shown), accepted]
        )
    columns = ["edit", "perplexity", "agreement", "knowledge", "in context", "acceptance"]
    chart = Chart(
        "The target, pruned by Wanda",
        "share of weights that are zero",
        "share, and perplexity before / after",
        [Line(name, curve(table, at)) for at, name in enumerate(columns) if at],
    )
    return Result(columns, table, conclusions(table), chart)


def curve(table: list[list[Cell]], at: int) -> list[list[float | None]]:
    """What Wanda leaves of one column, by share; for perplexity, the ratio before / after."""
    rows = {row[0]: row for row in table}
    before = rows["magnitude 0"]
    points = []
    for share in SHARES:
        row = rows.get(f"wanda {share}", before)
        points.append([float(share), before[at] / row[at] if at == 1 else row[at]])
    return points


def lost(table: list[list[Cell]], at: int) -> Callable[[str], float]:
    """A function: the loss of an edit in one column, as a share of the unedited value."""
    values = {row[0]: row[at] for row in table}
    start = values["magnitude 0"]
    return lambda edit: 1 - values[edit] / start if start else 0.0


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    rows = {row[0]: row for row in table}
    knows, reads = lost(table, 3), lost(table, 4)
    says = []
    for kind in ("magnitude", "wanda"):
        first = [s for s in SHARES[1:] if knows(f"{kind} {s}") > reads(f"{kind} {s}")]
        listed = ", ".join(first) or "none"
        says.append(
            f"Pruned by {kind}, knowledge loses more than answers in context at {len(first)} of "
            f"{len(SHARES) - 1} shares ({listed})."
        )
    pairs = [(rows[f"wanda {s}"][1], rows[f"magnitude {s}"][1]) for s in SHARES[1:]]
    says.append(
        f"Wanda has the lower perplexity at {sum(w < m for w, m in pairs)} of {len(pairs)} shares; with two "
        f"of four kept it has {rows['wanda 2of4'][1]:.2f}, magnitude {rows['magnitude 2of4'][1]:.2f}, and "
        f"half of all weights zero anywhere {rows['wanda 0.5'][1]:.2f}."
    )
    for bits in ("8", "4", "3"):
        row = rows[f"bits {bits}"]
        says.append(
            f"Rounded to {bits} bits: perplexity {row[1]:.2f}, knowledge {percent(row[3])}, in context "
            f"{percent(row[4])}; {percent(row[5])} of what it drafts would be accepted."
        )
    return says


def finding(answer: dict) -> str:
    """The effect of half of the weights at zero on perplexity, knowledge and context."""
    (before,), (after,) = (rows_with(answer, "edit", name) for name in ("magnitude 0", "wanda 0.5"))
    return (
        "With half of its weights zero by Wanda, the share of right answers that stand in the prompt "
        f"{moved(before['in context'], after['in context'], percent)}, of those that only the weights know "
        f"{moved(before['knowledge'], after['knowledge'], percent)}."
    )


def stands(answer: dict) -> Basis:
    """Problems of two kinds, answered greedily."""
    (before,), (after,) = (rows_with(answer, "edit", name) for name in ("magnitude 0", "wanda 0.5"))
    many = len(SHOWN) * COUNT
    compared = [
        by_shares(f"right answers, {kind}, pruned against whole", after[kind], many, before[kind], many)
        for kind in ("in context", "knowledge")
    ]
    return Basis({"problems of each kind": many}, compared=compared)
