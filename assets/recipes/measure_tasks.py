"""How often a causal model solves the checkable tasks: greedy, sampled once, the best of sixteen samples with
a true verifier, and the majority of the sixteen. Through transformers' `generate`: no strategy of ours
measures itself.

    PYTHONPATH=. python assets/recipes/measure_tasks.py llama-tiny [--problems 100] [--samples 16]
"""

import argparse
import json
from collections import Counter
from pathlib import Path

import torch
from training import MODELS
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

from explorer.tasks import TASKS, Problem, problems

HELD_OUT_SEED = 1_000_003  # recipes name their seeds by tokens read and never reach it
BATCH = 64
NEW_TOKENS = 160


@torch.no_grad()
def answers(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, prompts: list[str], temperature: float = 0.0
) -> list[str]:
    """What `model` writes after each prompt, up to its end of text: greedy, or sampled at `temperature`."""
    found = []
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {}
    for start in range(0, len(prompts), BATCH):
        some = tokenizer(
            prompts[start : start + BATCH], padding=True, padding_side="left", return_tensors="pt"
        )
        inputs = {name: some[name].to(model.device) for name in ("input_ids", "attention_mask")}
        rows = model.generate(**inputs, max_new_tokens=NEW_TOKENS, pad_token_id=1, eos_token_id=0, **sampling)
        found += tokenizer.batch_decode(rows[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return found


def outcome(text: str) -> str:
    """What votes of several answers are counted by: the last line."""
    return text.strip().split("\n")[-1].strip()


def voted(texts: list[str]) -> str:
    """The first of the texts whose outcome is the most frequent."""
    most = Counter(outcome(text) for text in texts).most_common(1)[0][0]
    return next(text for text in texts if outcome(text) == most)


def accuracy(asked: list[Problem], texts: list[str]) -> float:
    """Share of the answers that the tasks' checkers call right."""
    right = [TASKS[p.task].check(p, text).right for p, text in zip(asked, texts, strict=True)]
    return sum(right) / len(right)


def accuracies(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, task: str, count: int, samples: int
) -> dict[str, float]:
    """Shares of `count` held-out problems of one task that are solved: `greedy`; at temperature 1 `sampled`
    (mean of all samples), `best` (any sample is right) and `majority`; without samples `greedy` alone.
    """
    asked = problems(task, count, HELD_OUT_SEED)
    prompts = [p.prompt for p in asked]
    found = {"greedy": accuracy(asked, answers(model, tokenizer, prompts))}
    if not samples:
        return found
    torch.manual_seed(0)
    texts = answers(model, tokenizer, [prompt for prompt in prompts for _ in range(samples)], temperature=1.0)
    groups = [texts[i * samples : (i + 1) * samples] for i in range(count)]
    pairs = zip(asked, groups, strict=True)
    graded = [[TASKS[p.task].check(p, text).right for text in group] for p, group in pairs]
    return found | {
        "sampled": sum(sum(row) for row in graded) / (count * samples),
        "best": sum(any(row) for row in graded) / count,
        "majority": accuracy(asked, [voted(group) for group in groups]),
    }


def table(rows: dict[str, dict[str, float]]) -> str:
    """The accuracies of all tasks in percent, as a table in Markdown."""
    columns = list(next(iter(rows.values())))
    lines = ["| task | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name, row in rows.items():
        lines.append(f"| {name} | " + " | ".join(f"{100 * row[c]:.0f}" for c in columns) + " |")
    return "\n".join(lines)


def measure(folder: Path, count: int, samples: int) -> dict[str, dict[str, float]]:
    """task -> accuracies of the model in `folder`."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(device).eval()
    found = {}
    for task in TASKS:
        found[task] = accuracies(model, tokenizer, task, count, samples)
        print(f"{task:15}", "  ".join(f"{k} {v:.2f}" for k, v in found[task].items()), flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a folder, or the name of a shipped model")
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--samples", type=int, default=16)
    given = parser.parse_args()
    where = MODELS / given.model if (MODELS / given.model).is_dir() else Path(given.model)
    measured = measure(where, given.problems, given.samples)
    print(table(measured))
    (where / "accuracies.json").write_text(json.dumps(measured, indent=1) + "\n")
