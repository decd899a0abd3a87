"""llama-tiny-judge: a linear head on the frozen llama-tiny that says whether a token is right, whoever wrote
it (Judge Decoding, 2025), learned from right answers to the checkable tasks and from the draft's wrong ones.
"""

import random
from argparse import Namespace

import torch
import training
from measure_tasks import answers
from modules import ship_scorer, train_scorer
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from decoders.heads import Judge, Target, files
from decoders.heads.judge import UNASKED
from explorer.tasks import TASKS, Problem
from explorer.tasks.prefixes import SCORED, possible

TARGET, DRAFT, NAME = "llama-tiny", "llama-tiny-draft-distilled", "llama-tiny-judge"
MILLION_TOKENS = 0.6
EPOCHS, BATCH = 3, 8
ROW, PAD = 96, 1  # tokens of a problem with its answer; longer ones are left out
CHUNK = 64  # problems that are answered at a time
HELD_OUT = 10  # every 10th chunk is kept for validation


def truths(problem: Problem, pieces: list[str]) -> list[int]:
    """For each piece of an answer, the end of text being the last and empty one: 1 while it can still become
    right, 0 for the piece with which it no longer can, and nothing is asked behind that.
    """
    text, found = "", []
    for at, piece in enumerate(pieces):
        if 0 in found:
            found.append(UNASKED)
            continue
        text += piece
        ended = at == len(pieces) - 1
        right = TASKS[problem.task].check(problem, text).right if ended else possible(problem, text)
        found.append(int(right))
    return found


def judged_row(
    tokenizer: PreTrainedTokenizerFast, problem: Problem, answer: str
) -> tuple[list[int], list[int]] | None:
    """Tokens [ROW] of a problem with an answer and its end, padded, and their truth [ROW]; None if they are
    too long.
    """
    prompt, wrote = tokenizer([problem.prompt, answer])["input_ids"]
    left = ROW - len(prompt) - len(wrote) - 1
    if left < 0:
        return None
    pieces = [tokenizer.decode([token]) for token in wrote]
    truth = [UNASKED] * len(prompt) + truths(problem, [*pieces, ""])
    return prompt + wrote + [tokenizer.eos_token_id] + [PAD] * left, truth + [UNASKED] * left


def judged_answers(
    draft: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, tokens: float
) -> tuple[training.Rows, training.Rows]:
    """Rows and truths to learn from, and to validate on: of each problem its right answer and one that the
    draft wrote at temperature 1.
    """
    rows: tuple[list, list] = ([], [])
    truth: tuple[list, list] = ([], [])
    chunk = 0
    while not rows[0] or not rows[1] or sum(map(len, rows)) * ROW < tokens:
        rng = random.Random(f"judge {chunk}")
        made = [TASKS[rng.choice(SCORED)].make(rng) for _ in range(CHUNK)]
        torch.manual_seed(chunk)
        wrote = answers(draft, tokenizer, [p.prompt for p in made], temperature=1.0)
        pairs = zip(made + made, [p.answer for p in made] + wrote, strict=True)
        kept = [row for row in (judged_row(tokenizer, *pair) for pair in pairs) if row]
        part = chunk % HELD_OUT == 0
        rows[part].extend(row for row, _ in kept)
        truth[part].extend(said for _, said in kept)
        chunk += 1
        print(f"{chunk * CHUNK} problems answered", flush=True)
    told, held = ((torch.tensor(rows[part]), torch.tensor(truth[part])) for part in (False, True))
    return told, held


def main(args: Namespace) -> None:
    """Trains and ships it."""
    target, draft = (training.trained(name).eval().requires_grad_(False) for name in (TARGET, DRAFT))
    tokenizer = PreTrainedTokenizerFast.from_pretrained(training.MODELS / TARGET)
    budget = args.million_tokens or MILLION_TOKENS
    told, held = judged_answers(draft, tokenizer, budget * 1e6 / EPOCHS)
    torch.manual_seed(0)
    head = Judge(Target.of(target)).to(target.device)
    digest = "-".join(files.weights_sha256(training.MODELS / name)[:8] for name in (TARGET, DRAFT))
    curve = train_scorer(head, target, told, held, budget, args.work / f"{NAME}-{digest}", BATCH)
    facts = {
        "answers": len(told[0]) + len(held[0]),
        "tasks": list(SCORED),
        "wrong_tokens": int((told[1] == 0).sum() + (held[1] == 0).sum()),
        "right_tokens": int((told[1] == 1).sum() + (held[1] == 1).sum()),
        "note": "The loss is binary cross-entropy in nats, right and wrong tokens counting alike.",
    }
    ship_scorer(NAME, head, TARGET, tokenizer, curve, "token", facts)
