"""Does a summary follow its plan?

llama-tiny-summaries writes summaries of fact sheets that it was not trained on. A plan is a random set of
clauses; which clauses a summary states is found by aligning its sentences with the sheet's clauses, and
adherence is the F1 of the two sets. It is compared with the adherence of the same summary to another set of
as many clauses. A control that learned such summaries without the two losses with tags, llama-tiny fine-tuned
here, reads the same tagged sheets. Then lists of four: four plans, four beams, four groups of diverse beam
search, and four nucleus samples, all by the shipped model. distinct-2: share of distinct token bigrams; mean,
best: ROUGE of a list's texts with the sheet's own summary; first: of the text that is ranked first.
"""

import copy
import random
from math import hypot
from statistics import fmean

import torch

from decoders.lane import Lane, Limits
from decoders.models.catalog import TARGET
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.search.beam.hypotheses import returned
from decoders.search.planned.discourse_units import agreement, oracle, rouge
from decoders.search.planned.plan_tags import source_of, tags_of
from decoders.search.planned.topic_tokens import sentences
from decoders.trace.scores import Rank, ScoreName
from decoders.trace.trace import Trace
from explorer.experiments import Cell, Models, Result, progress
from explorer.experiments.asked import text_of
from explorer.experiments.basis import Basis, by_error
from explorer.experiments.models.small import fit
from explorer.experiments.reading import rows_of, two
from explorer.experiments.statistics import distinct, lead
from explorer.tasks.summaries import Sheet, make_sheet

PAPERS = ("generating-edu-extracts-for-plan-guided-summary",)
MODEL = "llama-tiny-summaries"
SHEETS, LISTS, TOKENS = 200, 16, 64  # sheets of the two parts; maximum tokens of a summary
LIST = 4  # texts per list
ROWS, STEPS, BATCH, RATE = 1600, 160, 8, 1e-3  # of the control's training
IGNORED = -100  # label of tokens without loss
WAYS: dict[str, tuple[str, dict]] = {
    "plans": ("edu_plans", {"num_plans": LIST}),
    "beams": ("beam", {"num_beams": LIST, "num_return_sequences": LIST}),
    "diverse beams": ("diverse_beam", {"num_beams": LIST, "num_beam_groups": LIST}),
    "nucleus": ("sample", {"top_p": 0.9, "temperature": 1.0}),
}


def sheets(count: int, seed: str = "held out") -> list[Sheet]:
    """Sheets that no recipe trains on."""
    rng = random.Random(f"plans and summaries {seed}")
    return [make_sheet(rng) for _ in range(count)]


def summariser(models: Models) -> LoadedModel:
    """The target if it knows the tags, otherwise the shipped model that does."""
    target = models["target"]
    return target if tags_of(target) else load(MODEL, str(target.model.device))


# ---- adherence


def unguided(model: LoadedModel) -> LoadedModel:
    """The control: llama-tiny with the same tokens, fine-tuned on sheets without tags."""
    control = copy.deepcopy(load(TARGET, str(model.model.device), "float32").model).requires_grad_(True)
    torch.manual_seed(0)
    control.resize_token_embeddings(model.model.config.vocab_size)
    rows = []
    for sheet in sheets(ROWS, "read"):
        asked, answer = model.encode(sheet.prompt), [*model.encode(sheet.answer), *model.eos]
        rows.append(torch.tensor([asked + answer, [IGNORED] * len(asked) + answer]).T)
    rows = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=IGNORED)  # [R, T, 2]

    def loss(some: torch.Tensor) -> torch.Tensor:
        ids, labels = some.to(control.device).unbind(-1)
        return control(input_ids=ids.clamp(min=0), labels=labels).loss

    fit(control.parameters(), loss, rows, STEPS, BATCH, RATE)
    return LoadedModel(f"{TARGET} without tags", control.eval().requires_grad_(False), model.tokenizer)


def adherences(model: LoadedModel, asked: list[Sheet]) -> tuple[list[float], list[float]]:
    """For greedy summaries of sheets tagged with a plan: how well they follow that plan, and another one."""
    rng, kept, others = random.Random(0), [], []
    for sheet in progress.each(asked):
        source = source_of(model.encode(sheet.prompt), model.bytes_of)
        count = len(oracle(source.texts, sheet.summary))
        plan, other = (rng.sample(range(len(source.texts)), count) for _ in range(2))
        ids, _ = source.tagged(plan, tags_of(model))
        trace = Lane("greedy", ids, {"target": model}, limits=Limits(TOKENS)).run()
        summary = sentences(text_of({"target": model}, trace.output()))
        kept.append(agreement(source.texts, summary, plan))
        others.append(agreement(source.texts, summary, other))
    return kept, others


# ---- lists


def listed(model: LoadedModel, way: str, sheet: Sheet) -> list[list[int]]:
    """The texts of a list, the top-ranked one first."""
    strategy, given = WAYS[way]
    ids, seeds = model.encode(sheet.prompt), range(LIST if strategy == "sample" else 1)
    traces = [Lane(strategy, ids, {"target": model}, given, seed, Limits(TOKENS)).run() for seed in seeds]
    if strategy == "sample":
        means = [t.costs.totals()["logprob"] / len(t.output()) for t in traces]
        order = sorted(range(LIST), key=lambda i: -means[i])
        return [traces[i].output() for i in order]
    if strategy == "edu_plans":
        return ranked(traces[0])
    return [tokens for tokens, _ in returned(traces[0])]


def ranked(trace: Trace) -> list[list[int]]:
    """The summaries of all plans, best first."""
    index, plans = trace.index(), []
    scores = [e for e in trace.steps[-1].of(Rank) if e.name == ScoreName.RERANKER]
    for score in sorted(scores, key=lambda e: e.rank):
        plans.append([index.token[node] for node in index.path(score.node)])
    return plans


def worth(model: LoadedModel, way: str, asked: list[Sheet]) -> dict[str, list[float]]:
    """For each sheet the diversity of a list's texts, and their similarity to its own summary."""
    measured: dict[str, list[float]] = {"distinct-2": [], "mean": [], "best": [], "first": []}
    for sheet in progress.each(asked):
        texts = listed(model, way, sheet)
        near = [rouge(text_of({"target": model}, text), sheet.answer) for text in texts]
        figures = (distinct(texts, 2), fmean(near), max(near), near[0])
        for name, figure in zip(measured, figures, strict=True):
            measured[name].append(figure)
    return measured


def run(models: Models) -> Result:
    """One row per realiser, then one per way to make lists."""
    model, asked = summariser(models), sheets(SHEETS)
    rows: list[list[Cell]] = []
    says = []
    realisers = ((MODEL, lambda: model), ("without like and unlike", lambda: unguided(model)))
    for name, realiser in progress.each(realisers, until=0.7):
        with progress.part(0.5):
            realised = realiser()
        kept, others = adherences(realised, asked)
        gap, error = lead(kept, others)
        rows.append([name, fmean(kept), fmean(others), gap, error, *[None] * 4])
        says.append(
            f"{name}: adherence to the plan {fmean(kept):.2f}, to another plan {fmean(others):.2f}; ahead by "
            f"{gap:.3f} ± {error:.3f} over {len(asked)} sheets."
        )
    lists = {way: worth(model, way, asked[:LISTS]) for way in progress.each(WAYS)}
    rows += [[way, *[None] * 4, *map(fmean, figures.values())] for way, figures in lists.items()]
    for way in list(WAYS)[1:]:
        gaps = {
            name: lead(lists["plans"][name], lists[way][name]) for name in ("distinct-2", "best", "first")
        }
        gaps_text = ", ".join(f"{name} {gap:+.3f} ± {error:.3f}" for name, (gap, error) in gaps.items())
        says.append(f"Four plans against {way}: {gaps_text}.")
    columns = ["realiser, or way", "to its plan", "to another", "ahead", "± error", *lists["plans"]]
    return Result(columns, rows, [one.replace(" -", " −") for one in says])


def finding(answer: dict) -> str:
    """The trained model and its control."""
    trained, control = rows_of(answer)[:2]
    return (
        "Summaries by a model that was trained to follow plans match their plan with an F1 of "
        f"{two(trained['to its plan'])} and another plan with {two(trained['to another'])}; without that "
        f"training the values are {two(control['to its plan'])} and {two(control['to another'])}."
    )


def stands(answer: dict) -> Basis:
    """Sheets; the control was trained once."""
    shipped, control = rows_of(answer)[:2]
    more = shipped["ahead"] - control["ahead"], hypot(shipped["± error"], control["± error"])
    compared = by_error("lead of its own plan, trained on plans against not", *more)
    return Basis({"sheets": SHEETS}, trained=1, compared=[compared])
