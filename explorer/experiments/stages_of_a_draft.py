"""What does each stage of training a draft add?

FastDraft trains a draft a fiftieth as large as its target in three stages: it reads plain text, continues
with a mix that contains code, and finally learns from what the target itself writes at several temperatures,
without the target's probabilities. Here a draft of a seventeenth of the target's size has read 1.6 million
tokens of stories, then 0.8 million of stories and problems, then 0.8 million of the target's own text; the
paper's read ten billion. Overlap: the mean of sum min(p, q), how often a token sampled from the draft is
accepted, along texts sampled from the target at temperature 1. Accepted: the share of the tested tokens in
greedy chains of four. MBSU: the speed-up if time were proportional to memory, c t / (c + 4), where c is the
target's size divided by the draft's and t the tokens per target forward.
"""

import torch

from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import check_pair, load
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, prompts
from explorer.experiments.basis import Basis, by_pairs
from explorer.experiments.measures import acceptance, tokens_per_forward
from explorer.experiments.reading import moved, rows_with, two

PAPERS = ("fastdraft",)
STAGES = {  # stage -> the draft after it; each stage continues training from the one before
    "pre-trained": "llama-tiny-fastdraft-pretrained",
    "continued": "llama-tiny-fastdraft-continued",
    "aligned": "llama-tiny-fastdraft",
}
KINDS = ("stories", "word problems", "records")
PROMPTS, SEEDS, TOKENS, DRAFTED = 6, 4, 48, 4
COLUMNS = ["stage", "kind", "overlap", "accepted", "tokens per forward", "MBSU"]


def size(model: LoadedModel) -> int:
    """The number of parameters of a model."""
    return sum(p.numel() for p in model.model.parameters())


def mbsu(ratio: float, tokens: float, drafted: int) -> float:
    """Memory-bound speed-up: c t / (c + gamma), of a target that is `ratio` times as large as its draft, at
    `tokens` tokens per target forward and `drafted` tokens per round.
    """
    return ratio * tokens / (ratio + drafted)


@torch.inference_mode()
def overlap(target: LoadedModel, draft: LoadedModel, texts: list[tuple[int, list[int]]]) -> float:
    """The mean of sum min(p, q) at temperature 1 over all positions of `texts`, each a text and the index of
    its first new token.
    """
    total = places = 0.0
    for begun, text in texts:
        ids = torch.tensor([text], device=target.model.device)
        p, q = (one.model(ids).logits[0, begun - 1 : -1].float().softmax(-1) for one in (target, draft))
        total, places = total + torch.minimum(p, q).sum().item(), places + len(p)
    return total / places


def drawn(models: Models, kind: str) -> list[tuple[int, list[int]]]:
    """Texts that the target samples after the prompts of a kind, each with the index of its first new
    token.
    """
    target, texts = models["target"], []
    for prompt in progress.each(prompts(kind, PROMPTS)):
        ids = target.encode(prompt)
        for seed in range(SEEDS):
            trace = decoded(models, "sample", prompt, TOKENS, seed, temperature=1.0)
            texts.append((len(ids), ids + trace.output()))
    return texts


def run(models: Models) -> Result:
    """One row per stage and kind of text."""
    target = models["target"]
    drafts = {stage: load(name) for stage, name in STAGES.items()}
    for draft in drafts.values():
        check_pair(target, draft)
    rows, texts = [], {kind: drawn(models, kind) for kind in progress.each(KINDS, until=0.5)}
    for stage, draft in progress.each(drafts.items()):
        pair, ratio = {"target": target, "draft": draft}, size(target) / size(draft)
        for kind in progress.each(KINDS):
            settings = {"num_assistant_tokens": DRAFTED, "temperature": 0.0}
            asked = prompts(kind, PROMPTS)
            traces = [decoded(pair, "speculative", text, TOKENS, **settings) for text in asked]
            tokens = tokens_per_forward(traces)
            shares = overlap(target, draft, texts[kind]), acceptance(traces) or 0.0
            rows.append([stage, kind, *shares, tokens, mbsu(ratio, tokens, DRAFTED)])
    lines = [
        Line(kind, [[at, row[2]] for at, row in enumerate((r for r in rows if r[1] == kind), start=1)])
        for kind in KINDS
    ]
    chart = Chart("Overlap after each stage", "stage", "mean of sum min(p, q)", lines)
    places = sum(len(text) - begun for kind in KINDS for begun, text in texts[kind])
    says = [
        f"The draft has {size(draft):,} parameters, {ratio:.0f} times fewer than its target; its stages were "
        f"compared at the same {places:,} positions.",
        *(gained(rows, kind) for kind in KINDS),
    ]
    stories = texts[KINDS[0]]
    by_prompt = [stories[at : at + SEEDS] for at in range(0, len(stories), SEEDS)]
    first, *_, last = drafts.values()
    gains = [overlap(target, last, some) - overlap(target, first, some) for some in by_prompt]
    compared = [by_pairs("overlap on stories, last stage against first", gains)]
    return Result(COLUMNS, rows, says, chart, compared=compared)


def gained(rows: list[list], kind: str) -> str:
    """The effect of the second and the third stage on one kind of text."""
    before, between, after = (row for row in rows if row[1] == kind)
    return (
        f"On {kind} the overlap {moved(before[2], between[2])} in the second stage and "
        f"{moved(between[2], after[2])} in the third; at the end a target forward yields {two(after[4])} "
        f"tokens, an MBSU of {two(after[5])}."
    )


def finding(answer: dict) -> str:
    """The overlap on stories before and after alignment."""
    stages = rows_with(answer, "kind", KINDS[0])
    first, last = stages[0]["overlap"], stages[-1]["overlap"]
    return (
        "From its first stage of training to its last, which is on the target's own text, the overlap of a "
        f"small draft with its target {moved(first, last)} on stories, and a target forward then yields "
        f"{two(stages[-1]['tokens per forward'])} tokens."
    )


STANDS = Basis({"prompts": PROMPTS, "seeds": SEEDS}, trained=1)
