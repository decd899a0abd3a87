"""llama-tiny-reward: a head on the frozen llama-tiny that scores prefixes (is every step right; can the
answer still become right) and whole answers, trained on the target's own answers and the exact checkers.
"""

import random
from argparse import Namespace
from pathlib import Path

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from decoders.heads import Target, take_taps
from decoders.heads.scorers.reward import QUESTIONS, Reward
from explorer.tasks import TASKS, Problem
from explorer.tasks.prefixes import SCORED, WITH_STEPS, possible
from explorer.training.answers import answers
from explorer.training.modules import frozen, ship_scorer, train_scorer, work_of

TARGET, NAME = "llama-tiny", "llama-tiny-reward"
ROW = 192  # tokens of a problem with its answer; longer ones are left out
PAD, UNASKED = 1, -1
SAMPLED = 3  # answers at temperature 1 for each greedy one
CHUNK = 64  # problems whose answers are written and graded at a time
BATCH = 32
EPOCHS = 3  # more only learn the answers by heart
HELD_OUT = 10  # every 10th chunk is kept for validation


def truths(problem: Problem, pieces: list[str]) -> list[list[int]]:
    """The truth after each piece of an answer [pieces, 3]: steps at the ends of lines, the beginning after
    every piece, the outcome at the end.
    """
    text, result = "", []
    for at, piece in enumerate(pieces):
        text += piece
        ended = at == len(pieces) - 1
        steps = outcome = UNASKED
        if problem.task in WITH_STEPS and text.strip() and (ended or piece.endswith("\n")):
            grade = TASKS[problem.task].check(problem, text)
            steps = int(all(right for _, right in grade.steps))
        if ended:
            outcome = int(TASKS[problem.task].check(problem, text).right)
        result.append([steps, outcome if ended else int(possible(problem, text)), outcome])
    return result


def graded_row(
    tokenizer: PreTrainedTokenizerFast, problem: Problem, answer: str
) -> tuple[list[int], list[list[int]]] | None:
    """Tokens [ROW] of a problem with its answer and its end, padded, and their truths [ROW, 3]; None if it is
    too long. The end has the truth of the whole text.
    """
    prompt, wrote = tokenizer([problem.prompt, answer])["input_ids"]
    if len(prompt) + len(wrote) + 1 > ROW:
        return None
    pieces = [tokenizer.decode([token]) for token in wrote]
    truth = [[UNASKED] * 3] * len(prompt) + truths(problem, [*pieces, ""])
    tokens = prompt + wrote + [tokenizer.eos_token_id]
    left = ROW - len(tokens)
    return tokens + [PAD] * left, truth + [[UNASKED] * 3] * left


def graded_answers(
    target: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, path: Path, tokens: float
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Rows [R, ROW] and truths [R, ROW, 3] of answers that the target wrote, in chunks, at least two; kept in
    `path` as they are made, so that an interrupted run continues.
    """
    kept = torch.load(path, weights_only=True) if path.exists() else {"chunks": 0, "rows": [], "truth": []}
    while kept["chunks"] < 2 or sum(map(len, kept["rows"])) * ROW < tokens:
        rng = random.Random(f"reward {kept['chunks']}")
        made = [TASKS[rng.choice(SCORED)].make(rng) for _ in range(CHUNK)]
        torch.manual_seed(kept["chunks"])
        asked, wrote = list(made), answers(target, tokenizer, [p.prompt for p in made])
        for _ in range(SAMPLED):
            asked += made
            wrote += answers(target, tokenizer, [p.prompt for p in made], temperature=1.0)
        graded = [graded_row(tokenizer, p, text) for p, text in zip(asked, wrote, strict=True)]
        graded = [pair for pair in graded if pair]
        kept["rows"].append(torch.tensor([row for row, _ in graded]))
        kept["truth"].append(torch.tensor([truth for _, truth in graded], dtype=torch.int8))
        kept["chunks"] += 1
        torch.save(kept, path)
        print(f"{sum(map(len, kept['rows']))} answers written and graded", flush=True)
    return kept["rows"], kept["truth"]


def main(args: Namespace) -> None:
    """Trains and ships it."""
    loaded = frozen(TARGET)
    model, tokenizer = loaded.model, loaded.tokenizer
    budget = args.million_tokens or 12
    work = work_of(args.work, NAME, TARGET)
    chunks = graded_answers(model, tokenizer, work / "answers.pt", budget * 1e6 / EPOCHS)
    held, held_truth = (torch.cat(part[::HELD_OUT]) for part in chunks)
    rows, truth = (torch.cat([c for i, c in enumerate(part) if i % HELD_OUT]) for part in chunks)
    torch.manual_seed(0)
    head = Reward(Target.of(model)).to(model.device)

    def loss(some: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        longest = int((some != PAD).sum(1).max())
        return head.loss(take_taps(model, some[:, :longest]), wanted[:, :longest])

    curve = train_scorer(head, loss, (rows, truth), (held, held_truth), budget, work, BATCH)
    facts = {
        "answers": len(rows) + len(held),
        "tasks": list(SCORED),
        "note": "The loss is binary cross-entropy in nats, averaged over the questions "
        + " and ".join(", ".join(QUESTIONS).rsplit(", ", 1))
        + ".",
    }
    ship_scorer(NAME, head, TARGET, tokenizer, curve, "question", facts)
