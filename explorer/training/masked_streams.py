"""What the recipes share for models that write masks after a causal past: rows of problems and stories, the
blocks of their answers, and one forward over two streams, the clean row and a copy of it with masks.

The clean stream is an ordinary causal pass. A position of the masked copy sees the clean tokens before its
block, and those positions of its own block that the recipe names.
"""

import random
from argparse import Namespace
from collections.abc import Callable
from functools import partial

import torch
from transformers import LlamaForCausalLM

from decoders.models import rounded_change
from explorer.corpus import END, IGNORED, Texts, story_rows
from explorer.tasks import TASKS
from explorer.training import check
from explorer.training.data import Rows
from explorer.training.loop import compiled, ship, train

BASE = "llama-tiny"  # of which the models are shipped as changes
MASK = 4096  # the token after the shared vocabulary
ROW = 128  # tokens per row of one stream
TASK_SHARE = 0.6  # of the rows of a batch
Both = Callable[..., tuple[torch.Tensor, torch.Tensor]]  # forward, head, rows, labels, seed -> losses
MAX_ENDS = 8  # ends of text after an answer, which are targets too


def problem_rows(texts: Texts, seed: str, count: int) -> Rows:
    """Consecutive problems: (rows [count, ROW], labels); prompts have no loss. After each answer come one to
    MAX_ENDS end-of-text tokens, so that a model learns what follows the first one.
    """
    rng = random.Random(f"streams {seed}")
    ids, labels = [], []
    while len(ids) < count * ROW:
        problem = TASKS[rng.choice(list(TASKS))].make(rng)
        ends = END * rng.randint(1, MAX_ENDS)
        prompt, answer = texts.tokenizer([problem.prompt, problem.answer + ends])["input_ids"]
        ids += prompt + answer
        labels += [IGNORED] * len(prompt) + answer
    size = count * ROW
    return torch.tensor(ids[:size]).view(count, ROW), torch.tensor(labels[:size]).view(count, ROW)


def mixed(texts: Texts, seen: int, batch: int) -> Rows:
    """The batch after `seen` tokens: problems, and pieces of stories with a given beginning."""
    tasks = round(batch * TASK_SHARE)
    pieces = story_rows(texts.stories, seen, batch - tasks, ROW)
    given, rng = pieces.clone(), random.Random(f"given {seen}")
    for row in given:
        row[: rng.randrange(1, ROW // 2)] = IGNORED
    rows, labels = problem_rows(texts, str(seen), tasks)
    return torch.cat([rows, pieces]), torch.cat([labels, given])


def block_starts(labels: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """The start of each position's block [N, T]: blocks of `size` [N, 1] tokens, counted from the beginning
    of each answer or prompt.
    """
    at = torch.arange(labels.shape[1], device=labels.device).expand_as(labels)
    learned = labels != IGNORED
    turns = torch.zeros_like(learned)
    turns[:, 1:] = learned[:, 1:] != learned[:, :-1]
    segment = torch.where(turns, at, 0).cummax(1).values
    return segment + (at - segment) // size * size


def two_streams(
    forward: Callable, rows: torch.Tensor, hidden: torch.Tensor, starts: torch.Tensor, inside: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The last states [N, T, H] of the clean stream and of the masked one, in one forward.

    rows [N, T]; hidden [N, T]: which tokens the copy masks; starts [N, T]: where each position's block
    begins; inside [N, T, T]: which positions see which within a block.
    """
    count, size = rows.shape
    at = torch.arange(size, device=rows.device)
    causal = (at[None, :] <= at[:, None]).expand(count, -1, -1)
    past = at[None, None, :] < starts[:, :, None]
    own = (starts[:, :, None] == starts[:, None, :]) & inside
    sees = torch.cat([torch.cat([causal, torch.zeros_like(causal)], 2), torch.cat([past, own], 2)], 1)
    blocked = torch.zeros(sees.shape, device=rows.device).masked_fill(~sees, torch.finfo(torch.float32).min)
    states = forward(
        input_ids=torch.cat([rows, rows.masked_fill(hidden, MASK)], 1),
        attention_mask=blocked[:, None],
        position_ids=torch.cat([at, at])[None],
    ).last_hidden_state
    return states[:, :size], states[:, size:]


def fit_both(
    args: Namespace,
    name: str,
    texts: Texts,
    model: LlamaForCausalLM,
    both: Both,
    batch: int,
    million_tokens: float,
    rates: tuple[float, float],
    words: dict[str, str],
) -> None:
    """Trains a model on the mean of two losses, next token and masked tokens, and ships it. `both` returns
    the two; `batch`: number of rows; million_tokens: unless the arguments set another budget; `words`:
    architecture and note.
    """
    forward = compiled(model.model)
    held, held_labels = mixed(texts, 10**9, 64)

    @torch.no_grad()
    def validate() -> list[float]:
        """Both losses on problems and pieces that are never fed."""
        parts = both(model.model, model.lm_head, held.to(model.device), held_labels.to(model.device), seed=0)
        return [part.item() for part in parts]

    curve = train(
        model,
        lambda rows, labels: sum(both(forward, model.lm_head, rows, labels, seed=int(rows.sum()))) / 2,
        partial(mixed, texts, batch=batch),
        lambda: sum(validate()) / 2,
        args.million_tokens or million_tokens,
        args.work / name,
        rates=rates,
    )
    texts.tokenizer.add_special_tokens({"mask_token": "<|mask|>"})
    following, filled = validate()
    facts = {
        "next_token_loss": round(following, 4),
        "masked_loss": round(filled, 4),
        "mask_token_id": MASK,
        "tokens_of": f"in rows of {ROW}, each read clean and masked",
        **words,
    }
    folder = ship(model, texts.tokenizer, name, curve, (following + filled) / 2, **facts)
    rounded_change.write(folder, BASE, words="llama-tiny-diffusion")
    check.write(folder)


def next_token_loss(
    head: torch.nn.Module, states: torch.Tensor, rows: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """Mean cross-entropy of the labelled tokens, each from the state before it."""
    counted = labels[:, 1:] != IGNORED
    logits = head(states[:, :-1][counted]).float()
    return torch.nn.functional.cross_entropy(logits, rows[:, 1:][counted])
