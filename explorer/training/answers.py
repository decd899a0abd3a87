"""A causal model's answers to checkable problems, and how many are right. Uses transformers' `generate`, so
that no strategy of ours measures itself.
"""

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from explorer.tasks import TASKS, Problem

BATCH = 64
NEW_TOKENS = 160
ACCURACIES = "accuracies.json"  # in a model's folder: task -> column -> share that is solved


@torch.no_grad()
def answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[str],
    temperature: float = 0.0,
    limit: int | None = None,
) -> list[str]:
    """The model's continuation of each prompt, up to its end of text or `limit` (NEW_TOKENS if None) tokens:
    greedy, or sampled at `temperature`.
    """
    result = []
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {}
    for start in range(0, len(prompts), BATCH):
        some = tokenizer(
            prompts[start : start + BATCH], padding=True, padding_side="left", return_tensors="pt"
        )
        inputs = {name: some[name].to(model.device) for name in ("input_ids", "attention_mask")}
        rows = model.generate(
            **inputs,
            max_new_tokens=limit or NEW_TOKENS,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            **sampling,
        )
        result += tokenizer.batch_decode(rows[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return result


def accuracy(asked: list[Problem], texts: list[str]) -> float:
    """Share of the answers that the tasks' checkers accept."""
    right = [TASKS[p.task].check(p, text).right for p, text in zip(asked, texts, strict=True)]
    return sum(right) / len(right)
