"""llama-tiny-diffusion: a masked-diffusion model like LLaDA (Nie et al. 2025), with llama-tiny's weights, no
causal mask and one additional token, the mask.
"""

import random
from argparse import Namespace
from functools import partial

import torch

from explorer.corpus import END, IGNORED, Texts, prepare, story_rows
from explorer.tasks import TASKS
from explorer.training.loop import compiled, ship, train, trained

MASK = 4096  # the token after the shared vocabulary
CANVAS = 128  # tokens per row: prompt and answer, filled up with ends of text, which are also targets
MIN_MASKED = 1e-3  # smallest share of masked tokens
TASK_SHARE = 0.6


def task_canvases(texts: Texts, seed: str, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """One problem per row: (tokens [count, CANVAS], labels); the prompt is never masked."""
    rng = random.Random(f"canvas {seed}")
    rows, labels = [], []
    while len(rows) < count:
        problem = TASKS[rng.choice(list(TASKS))].make(rng)
        prompt, answer = texts.tokenizer([problem.prompt, problem.answer + END])["input_ids"]
        if len(prompt) + len(answer) > CANVAS:
            continue
        left = CANVAS - len(prompt) - len(answer)
        rows.append(prompt + answer + [0] * left)
        labels.append([IGNORED] * len(prompt) + answer + [0] * left)
    return torch.tensor(rows), torch.tensor(labels)


def canvases(texts: Texts, seen: int, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The batch after `seen` tokens: problems, and pieces of stories, some with a given beginning."""
    tasks = round(batch * TASK_SHARE)
    pieces = story_rows(texts.stories, seen, (batch - tasks + 1) // 2).reshape(-1, CANVAS)[: batch - tasks]
    given, rng = pieces.clone(), random.Random(f"given {seen}")
    for row in given:
        row[: rng.choice((0, rng.randrange(CANVAS // 2)))] = IGNORED
    rows, labels = task_canvases(texts, str(seen), tasks)
    return torch.cat([rows, pieces]), torch.cat([labels, given])


def denoising(model: torch.nn.Module, rows: torch.Tensor, labels: torch.Tensor, seed: int) -> torch.Tensor:
    """LLaDA's objective: each row draws t, each of its tokens is masked with probability t; cross-entropy of
    the masked ones divided by t, summed, divided by the number of tokens that could be masked.
    """
    generator = torch.Generator().manual_seed(seed)
    share = (1 - MIN_MASKED) * torch.rand(len(rows), 1, generator=generator) + MIN_MASKED
    open_ = labels != IGNORED
    hidden = (torch.rand(rows.shape, generator=generator) < share).to(rows.device) & open_
    everywhere = torch.zeros(1, 1, rows.shape[1], rows.shape[1], device=rows.device)
    logits = model(input_ids=rows.masked_fill(hidden, MASK), attention_mask=everywhere).logits
    losses = torch.nn.functional.cross_entropy(logits[hidden].float(), rows[hidden], reduction="none")
    weights = (1 / share.to(rows.device)).expand(rows.shape)[hidden]
    return (losses * weights).sum() / open_.sum()


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    model = trained("llama-tiny")
    model.resize_token_embeddings(MASK + 1)
    model.config.mask_token_id = MASK
    forward = compiled(model)
    held, held_labels = canvases(texts, 10**9, 64)

    @torch.no_grad()
    def validate() -> float:
        """The same loss on problems and pieces that are never fed."""
        return denoising(model, held.to(model.device), held_labels.to(model.device), seed=0).item()

    curve = train(
        model,
        lambda rows, labels: denoising(forward, rows, labels, seed=int(rows.sum())),
        partial(canvases, texts, batch=32),
        validate,
        args.million_tokens or 12,
        args.work / "llama-tiny-diffusion",
    )
    texts.tokenizer.add_special_tokens({"mask_token": "<|mask|>"})
    facts = {
        "mask_token_id": MASK,
        "architecture": "Llama (every place sees all others)",
        "tokens_of": f"in rows of {CANVAS}",
        "note": "Losses are LLaDA's bound, in nats per token that may be masked, over problems and stories.",
    }
    ship(model, texts.tokenizer, "llama-tiny-diffusion", curve, validate(), **facts)
