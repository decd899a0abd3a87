"""How well the judge of llama-tiny-judge tells right tokens from wrong ones on problems that it never saw,
and how many of them judge decoding solves.
"""

import random
from pathlib import Path

import torch

from decoders.heads import take_taps
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from explorer.experiments.measures import tokens_per_forward
from explorer.tasks import HELD_OUT_SEED, Problem, problems
from explorer.training.answers import ACCURACIES, accuracy, answers
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import answer_of, model_with, traces
from explorer.training.evaluation.measure_reward import auc
from explorer.training.recipes.llama_tiny_judge import DRAFT, ROW, judged_row

ASKED = ("sum", "difference", "column_sum", "chain", "word_problem", "countdown", "reverse", "sort", "count")
PROBLEMS, NEW_TOKENS, DRAFTED = 20, 80, 16
DELTAS = (1.0, 0.9, 0.5, 0.0)


def area(pair: dict[str, LoadedModel], asked: list[Problem]) -> float | None:
    """The area under the ROC curve over tokens of right answers, and of the draft's."""
    torch.manual_seed(0)
    target, draft = pair["target"], pair["draft"]
    wrote = answers(draft.model, draft.tokenizer, [p.prompt for p in asked], temperature=1.0)
    scores, truths = [], []
    for problem, answer in zip(asked + asked, [p.answer for p in asked] + wrote, strict=True):
        row = judged_row(target, problem, answer, ROW)
        if row is None:
            continue
        tokens, truth = torch.tensor([row[0]], device=target.model.device), torch.tensor(row[1])
        judged = target.heads["judge"].along(take_taps(target.model, tokens))[0].cpu()
        scores += judged[truth >= 0].tolist()
        truths += truth[truth >= 0].tolist()
    return auc(scores, truths)


def solved(pair: dict[str, LoadedModel], asked: list[Problem], delta: float) -> tuple[float, float]:
    """(share of problems that judge decoding solves, greedily, tokens per target forward)."""
    settings = {"delta": delta, "num_assistant_tokens": DRAFTED}
    lanes = traces("judge", [p.prompt for p in asked], pair, settings, NEW_TOKENS, seed=0)
    right = accuracy(asked, [answer_of(pair["target"], trace) for trace in lanes])
    return right, tokens_per_forward(lanes)


def measure(folder: Path, corpus: Path) -> Findings:
    """Task -> `delta D`, the share of held-out problems that are solved with it; as facts the area under the
    ROC curve, and tokens per target forward for each delta.
    """
    pair = {"target": model_with(folder), "draft": load(str(folder.parent / DRAFT))}
    sets = {task: problems(task, PROBLEMS, HELD_OUT_SEED) for task in ASKED}
    result, pace = {task: {} for task in ASKED}, dict.fromkeys(map(str, DELTAS), 0.0)
    for task, asked in sets.items():
        for delta in DELTAS:
            result[task][f"delta {delta:g}"], tokens = solved(pair, asked, delta)
            pace[str(delta)] += tokens / len(ASKED)
        print(f"{task:16}", result[task], flush=True)
    everything = [problem for asked in sets.values() for problem in asked]
    random.Random(0).shuffle(everything)
    facts = {"auc": {"right": area(pair, everything)}, "tokens_per_forward_by_delta": pace}
    return Findings({ACCURACIES: result}, facts)
