"""How often a causal model solves the checkable tasks: greedily, sampled once, the best of sixteen samples
with a true verifier, and the majority of the sixteen.
"""

from collections import Counter
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

from explorer.tasks import HELD_OUT_SEED, TASKS, problems
from explorer.training.answers import ACCURACIES, accuracy, answers
from explorer.training.evaluation.findings import Findings

NAMES, PROBLEMS, SAMPLES = tuple(TASKS), 100, 16
# Tasks of which several answers are drawn: those that end in one outcome, by different ways.
VOTED = ("sum", "difference", "column_sum", "chain", "word_problem", "countdown")
STORY = "sample.txt"
BEGINNING = "Once upon a time, there was a little"


def outcome(text: str) -> str:
    """The part of an answer by which votes are counted: the last line."""
    return text.strip().split("\n")[-1].strip()


def voted(texts: list[str]) -> str:
    """The first of the texts with the most frequent outcome."""
    commonest = Counter(outcome(text) for text in texts).most_common(1)[0][0]
    return next(text for text in texts if outcome(text) == commonest)


def accuracies(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, task: str, count: int, samples: int
) -> dict[str, float]:
    """Shares of `count` held-out problems of one task that are solved: `greedy`; at temperature 1 `sampled`
    (mean of all samples), `best` (any sample is right) and `majority`; without samples `greedy` alone.
    """
    asked = problems(task, count, HELD_OUT_SEED)
    prompts = [p.prompt for p in asked]
    result = {"greedy": accuracy(asked, answers(model, tokenizer, prompts))}
    if not samples:
        return result
    torch.manual_seed(0)
    texts = answers(model, tokenizer, [prompt for prompt in prompts for _ in range(samples)], temperature=1.0)
    groups = [texts[i * samples : (i + 1) * samples] for i in range(count)]
    pairs = zip(asked, groups, strict=True)
    graded = [[TASKS[p.task].check(p, text).right for text in group] for p, group in pairs]
    return result | {
        "sampled": sum(sum(row) for row in graded) / (count * samples),
        "best": sum(any(row) for row in graded) / count,
        "majority": accuracy(asked, [voted(group) for group in groups]),
    }


def loaded(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Model, in float32, and tokenizer of a folder, through plain transformers."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, trust_remote_code=False)
    return model.to(device).eval(), AutoTokenizer.from_pretrained(folder, trust_remote_code=False)


def solved(folder: Path, samples: int) -> Findings:
    """Task -> see `accuracies`; `samples` answers are sampled only for the tasks in `VOTED`."""
    model, tokenizer = loaded(folder)
    result = {}
    for task in NAMES:
        result[task] = accuracies(model, tokenizer, task, PROBLEMS, samples if task in VOTED else 0)
        print(f"{task:15}", "  ".join(f"{k} {v:.2f}" for k, v in result[task].items()), flush=True)
    return Findings({ACCURACIES: result})


def measure(folder: Path, corpus: Path) -> Findings:
    """Greedily alone."""
    return solved(folder, samples=0)


def measure_votes(folder: Path, corpus: Path) -> Findings:
    """Greedily, and by sampled answers."""
    return solved(folder, SAMPLES)


def measure_story(folder: Path, corpus: Path) -> Findings:
    """A story for the card, at temperature 0.8 and top_p 0.9, seed 1."""
    model, tokenizer = loaded(folder)
    start = tokenizer(BEGINNING, return_tensors="pt").to(model.device)
    torch.manual_seed(1)
    rows = model.generate(
        **start, max_new_tokens=120, do_sample=True, temperature=0.8, top_p=0.9, top_k=0, pad_token_id=1
    )
    return Findings({STORY: tokenizer.decode(rows[0], skip_special_tokens=True)})
