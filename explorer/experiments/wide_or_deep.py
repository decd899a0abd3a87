"""Should a draft be wide or deep?

Decoding Speculative Decoding finds that a draft's latency, which its depth sets, matters more than how well
it models language. Here four drafts with equally many parameters in their layers, from one wide layer to
eight narrow ones, start from the target's embeddings cut to their width and learn for the same few steps to
predict as the target does on its own text; the drafts that come with the project are compared with them.
Throughput = TAR / (gamma t_draft + t_target), with TAR the tokens per round, the target's own included, and
both times medians of forwards on this machine. TAR is replayed: a draft's best token would have been accepted
where it is that of the target's recorded greedy text, so that no target has to run; at one gamma it is
decoded as well. Story accuracy: how often a draft's best token is the next one of stories that people wrote.
Drafts this small solve no tasks, so the study's task accuracy is left out.
"""

import math
import statistics
from pathlib import Path

import torch

from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.trace.events import Forward
from decoders.trace.trace import Trace
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, prompts
from explorer.experiments.basis import Basis
from explorer.experiments.measures import tokens_per_forward
from explorer.experiments.models.guesses import written
from explorer.experiments.models.small import own_text
from explorer.experiments.models.small_llama import small_llama
from explorer.experiments.reading import percent, rows_of, two
from explorer.experiments.small_trainings.distilled_drafts import corpus_rows
from explorer.experiments.statistics import spearman

PAPERS = ("decoding-speculative-decoding",)
READS_CORPUS = True
SHAPES = {1: 160, 2: 112, 4: 80, 8: 56}  # layers -> width; layers x width^2 is nearly the same
HEADS = 4
SHIPPED = ("llama-tiny-draft", "llama-tiny-draft-distilled", "llama-tiny-fastdraft")
TEXTS, LENGTH, STEPS, BATCH, RATE = 256, 128, 200, 4, 3e-3
GAMMAS, LIVE = range(1, 11), 4  # drafted tokens per round; the number in timed decodings
KINDS, EACH, NEW_TOKENS = ("stories", "word problems", "records"), 6, 48
COLUMNS = ["draft", "layers", "width", "story accuracy", "perplexity", "TAR", "live TAR"]
COLUMNS += ["ms per draft token", "best gamma", "tokens/s"]


def throughput(tar: float, gamma: int, t_draft: float, t_target: float) -> float:
    """Tokens per second: `tar` tokens per round of `gamma` draft forwards and one of the target's."""
    return tar / (gamma * t_draft + t_target)


def best_gamma(tars: dict[int, float], t_draft: float, t_target: float) -> int:
    """The gamma in `tars` with the highest throughput."""
    return max(tars, key=lambda gamma: throughput(tars[gamma], gamma, t_draft, t_target))


def rounds_of(right: list[bool], gamma: int) -> int:
    """Rounds in which chains of `gamma` would have written a recorded text; `right`: whether the draft's best
    guess at each of its tokens is right. Each round takes the guesses before the first wrong one, and one
    token of the target's.
    """
    place = rounds = 0
    while place < len(right):
        guessed = right[place : min(place + gamma, len(right) - 1)]
        place += (guessed.index(False) if False in guessed else len(guessed)) + 1
        rounds += 1
    return rounds


def replayed(texts: list[list[bool]], gamma: int) -> float:
    """TAR of chains of `gamma` over recorded texts."""
    return sum(map(len, texts)) / sum(rounds_of(right, gamma) for right in texts)


@torch.inference_mode()
def right_guesses(draft: LoadedModel, texts: list[list[int]], starts: list[int]) -> list[list[bool]]:
    """For each text after its start: whether the draft's best token there is the one that was written."""
    right = []
    for text, start in zip(texts, starts, strict=True):
        ids = torch.tensor([text], device=draft.model.device)
        best = draft.model(input_ids=ids).logits[0, start - 1 : -1].argmax(-1)
        right.append((best == ids[0, start:]).tolist())
    return right


@torch.inference_mode()
def language(draft: LoadedModel, rows: torch.Tensor) -> tuple[float, float]:
    """Accuracy of the best token and perplexity over rows [R, T]."""
    logits = torch.cat([draft.model(input_ids=some).logits[:, :-1].float() for some in rows.split(8)])
    wanted = rows[:, 1:].flatten()
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted)
    return (logits.flatten(0, 1).argmax(-1) == wanted).float().mean().item(), math.exp(loss.item())


def begun(target: LoadedModel, layers: int, width: int) -> LoadedModel:
    """An untrained draft of this shape with the target's embeddings projected onto their `width` principal
    directions.
    """
    model = small_llama(target.engine.vocabulary, width, layers, HEADS)
    table = target.model.get_input_embeddings().weight.float().cpu()
    _, _, axes = torch.linalg.svd(table, full_matrices=False)
    cut = table @ axes[:width].T
    model.model.embed_tokens.weight.data.copy_(cut * 0.02 / cut.std())
    model.generation_config.eos_token_id = min(target.eos, default=None)
    where = target.model.device
    return LoadedModel(f"{layers} x {width}", model.to(where), target.tokenizer, tokens_of=target)


def train(target: LoadedModel, drafts: list[LoadedModel], rows: torch.Tensor) -> None:
    """Trains all drafts, in place, to predict as the target does after each token of the same batches of
    `rows`.
    """
    generator = torch.Generator().manual_seed(0)
    opts = [torch.optim.AdamW(d.model.parameters(), RATE, betas=(0.9, 0.95)) for d in drafts]
    for step in progress.each(range(STEPS)):
        some = rows[torch.randint(len(rows), (BATCH,), generator=generator)].to(target.model.device)
        with torch.no_grad():
            p = target.model(input_ids=some).logits.float().softmax(-1).flatten(0, 1)
        rate = RATE * min((step + 1) / 20, 0.5 * (1 + math.cos(math.pi * step / STEPS)))
        for draft, opt in zip(drafts, opts, strict=True):
            opt.param_groups[0]["lr"] = rate
            opt.zero_grad()
            logits = draft.model(input_ids=some).logits.float().flatten(0, 1)
            torch.nn.functional.cross_entropy(logits, p).backward()
            torch.nn.utils.clip_grad_norm_(draft.model.parameters(), 1.0)
            opt.step()
    for draft in drafts:
        draft.model.eval().requires_grad_(False)


def median_seconds(traces: list[Trace], kind: str) -> float:
    """The median seconds of forwards of this kind."""
    steps = [step for trace in traces for step in trace.steps]
    return statistics.median(f.seconds for step in steps for f in step.of(Forward) if f.kind == kind)


def run(models: Models, corpus: Path) -> Result:
    """One row per draft at its best gamma."""
    target = models["target"]
    with progress.part(0.2):
        rows = own_text(models, TEXTS, LENGTH)
    drafts = [begun(target, layers, width) for layers, width in SHAPES.items()]
    with progress.part(0.8):
        train(target, drafts, rows)
    drafts += [load(name) for name in SHIPPED]
    asked = [text for kind in KINDS for text in prompts(kind, EACH)]
    ids = [target.encode(text) for text in asked]
    texts, stories = written(target, ids, NEW_TOKENS), corpus_rows(target, corpus)
    live = {}
    for draft in progress.each(drafts):
        pair, settings = {"target": target, "draft": draft}, {"num_assistant_tokens": LIVE}
        live[draft.name] = [
            decoded(pair, "speculative", text, NEW_TOKENS, temperature=0.0, **settings) for text in asked
        ]
    t_target = median_seconds([trace for traces in live.values() for trace in traces], "verify")
    table, lines = [], []
    for draft in drafts:
        right, traces = right_guesses(draft, texts, list(map(len, ids))), live[draft.name]
        tars, t_draft = {g: replayed(right, g) for g in GAMMAS}, median_seconds(traces, "draft")
        speeds = {g: throughput(tars[g], g, t_draft, t_target) for g in GAMMAS}
        gamma, config = best_gamma(tars, t_draft, t_target), draft.model.config
        shape = [config.num_hidden_layers, config.hidden_size, *language(draft, stories)]
        measured = [tars[LIVE], tokens_per_forward(traces), 1000 * t_draft, gamma, speeds[gamma]]
        table.append([draft.name, *shape, *measured])
        lines.append(Line(draft.name, [[float(g), speed] for g, speed in speeds.items()]))
    chart = Chart("Throughput by draft length, calculated", "drafted tokens gamma", "tokens/s", lines)
    spots = [Line(row[0], [[row[7], row[5]]]) for row in table]
    scatter = Chart("Tokens per round against latency", "ms per draft token", f"TAR at {LIVE}", spots)
    return Result(COLUMNS, table, sentences(table, t_target), chart, pictures=[scatter])


def sentences(table: list[list], t_target: float) -> list[str]:
    """What determines the drafts' order by speed, and whether replay and decoding agree."""
    says = [f"A check by the target takes {1000 * t_target:.1f} ms."]
    for some, which in ((table[: len(SHAPES)], "those of equal size"), (table, "all drafts")):
        accuracy, tar, latency, speed = ([row[at] for row in some] for at in (3, 5, 7, 9))
        ranks = [spearman(one, speed) for one in (accuracy, tar, latency)]
        words = ["–" if rank is None else two(rank) for rank in ranks]
        says.append(
            f"Rank correlation of throughput over {which}: {words[0]} with story accuracy, {words[1]} with "
            f"TAR, {words[2]} with the time of a draft token."
        )
    apart = max(abs(row[5] - row[6]) for row in table)
    return [*says, f"TAR by replay and by decoding differ by at most {apart:.3f} at gamma {LIVE}."]


def finding(answer: dict) -> str:
    """The widest and the deepest of the drafts with equal parameters; not their times, which the machine of
    one run decides.
    """
    rows = rows_of(answer)[: len(SHAPES)]
    wide, deep = rows[0], rows[-1]
    return (
        f"With as many parameters in its layers, a draft of {wide['layers']} wide layer guesses "
        f"{percent(wide['story accuracy'])} of a story's tokens and yields {two(wide['TAR'])} tokens per "
        f"round of {LIVE}, one of {deep['layers']} narrow layers {percent(deep['story accuracy'])} and "
        f"{two(deep['TAR'])}."
    )


STANDS = Basis(
    {"prompts": EACH * len(KINDS), "machine": 1},
    trained=1,
    unfinished="perplexities are several times those of the shipped drafts",
)
