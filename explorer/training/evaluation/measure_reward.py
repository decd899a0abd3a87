"""How well the reward heads of llama-tiny-reward tell right from wrong on problems that they never saw: the
area under the ROC curve of each question, and how many problems the best of sixteen answers by their score
solves.
"""

from pathlib import Path

import torch

from decoders.heads import Reward, read_answers, take_taps
from decoders.heads.scorers.reward import PREFIX, QUESTIONS
from decoders.models.loaded_model import LoadedModel
from explorer.tasks import HELD_OUT_SEED, TASKS, Problem, problems
from explorer.tasks.prefixes import SCORED
from explorer.training.answers import ACCURACIES, accuracy, answers
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import model_with
from explorer.training.evaluation.measure_tasks import SAMPLES
from explorer.training.recipes.llama_tiny_reward import BATCH, PAD, graded_row

PROBLEMS, LONGEST = 50, 64  # of each task; tokens of an answer: right ones have up to 46
Places = dict[str, tuple[list[float], list[int]]]  # question -> scores and truths, a place each


def auc(scores: list[float], truths: list[int]) -> float | None:
    """Probability that a right one scores higher than a wrong one, ties half; None without both kinds."""
    right = torch.tensor([s for s, t in zip(scores, truths, strict=True) if t])
    wrong = torch.tensor([s for s, t in zip(scores, truths, strict=True) if not t]).sort().values
    if not len(right) or not len(wrong):
        return None
    below = torch.searchsorted(wrong, right) + torch.searchsorted(wrong, right, right=True)
    return (below.float().mean() / (2 * len(wrong))).item()


def scored(
    target: LoadedModel, head: Reward, asked: list[Problem], texts: list[str], places: Places
) -> list[float]:
    """The outcome score of each answer; every question's scores and truths are added to `places`. An answer
    that is too long to read has the score 0.
    """
    rows = [graded_row(target.tokenizer, problem, text) for problem, text in zip(asked, texts, strict=True)]
    result = [0.0] * len(rows)
    whole = [at for at, row in enumerate(rows) if row]
    for some in (whole[start : start + BATCH] for start in range(0, len(whole), BATCH)):
        tokens = torch.tensor([rows[at][0] for at in some], device=target.model.device)
        tokens = tokens[:, : int((tokens != PAD).sum(1).max())]
        truths = [torch.tensor(rows[at][1]) for at in some]
        spans = [(truth[:, PREFIX] >= 0).nonzero()[:, 0] for truth in truths]
        starts = torch.tensor([int(span[0]) - 1 for span in spans], device=tokens.device)
        read = read_answers(take_taps(target.model, tokens), starts, max(map(len, spans)))
        for at, truth, span, hidden, log_p in zip(some, truths, spans, *read, strict=True):
            scores = head.scores(hidden[: len(span) + 1], log_p[: len(span) + 1])
            for question, wanted in zip(QUESTIONS, truth[span].unbind(1), strict=True):
                counted = wanted >= 0
                places[question][0].extend(scores[question][1:].cpu()[counted].tolist())
                places[question][1].extend(wanted[counted].tolist())
            result[at] = scores["outcome"][-1].item()
    return result


def measured(
    target: LoadedModel, head: Reward, count: int, samples: int
) -> tuple[dict[str, dict[str, float]], dict[str, float | None]]:
    """(task -> shares of `count` held-out problems that are solved: `greedy`; at temperature 1 `sampled`, the
    mean of all samples, `chosen`, the one with the highest outcome score, and `best`, any of them; question
    -> area under the ROC curve, over all tasks).
    """
    result, places = {}, {question: ([], []) for question in QUESTIONS}
    for task in SCORED:
        asked = problems(task, count, HELD_OUT_SEED)
        greedy = answers(target.model, target.tokenizer, [p.prompt for p in asked], limit=LONGEST)
        torch.manual_seed(0)
        repeated = [p for p in asked for _ in range(samples)]
        texts = answers(target.model, target.tokenizer, [p.prompt for p in repeated], 1.0, LONGEST)
        scores = scored(target, head, repeated, texts, places)
        right = [TASKS[task].check(p, text).right for p, text in zip(repeated, texts, strict=True)]
        groups = [range(i * samples, (i + 1) * samples) for i in range(count)]
        result[task] = {
            "greedy": accuracy(asked, greedy),
            "sampled": sum(right) / len(right),
            "chosen": sum(right[max(group, key=scores.__getitem__)] for group in groups) / count,
            "best": sum(any(right[i] for i in group) for group in groups) / count,
        }
        print(f"{task:15}", "  ".join(f"{k} {v:.2f}" for k, v in result[task].items()), flush=True)
    return result, {question: auc(*pair) for question, pair in places.items()}


def measure(folder: Path, corpus: Path) -> Findings:
    """How many problems are solved; as facts the areas under the ROC curve: see `measured`."""
    target = model_with(folder)
    result, areas = measured(target, target.heads["reward"], PROBLEMS, SAMPLES)
    print("area under the ROC curve:", areas)
    return Findings({ACCURACIES: result}, {"auc": areas, "samples": SAMPLES})
