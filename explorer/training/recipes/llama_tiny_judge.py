"""llama-tiny-judge: a linear head on the frozen llama-tiny that judges whether a token is right, whoever
wrote it (Judge Decoding, 2025), trained on right answers to the checkable tasks and on wrong ones of the
draft.
"""

import random
from argparse import Namespace
from itertools import pairwise
from pathlib import Path

import torch
from transformers import PreTrainedModel

from decoders.heads import Judge, Target, take_taps
from decoders.heads.scorers.judge import UNASKED
from decoders.models.loaded_model import LoadedModel
from decoders.refusal import Refusal
from explorer.tasks import TASKS, Problem
from explorer.tasks.prefixes import SCORED, possible
from explorer.training import loop
from explorer.training.answers import answers
from explorer.training.modules import as_places, frozen, ship_scorer, train_scorer, work_of

TARGET, DRAFT, NAME = "llama-tiny", "llama-tiny-draft-distilled", "llama-tiny-judge"
MILLION_TOKENS = 0.4  # a token of an answer counts each time that it is looked at
PROBLEMS, BATCH = 1024, 64
CHUNK = 64  # problems that are answered at a time
ROW = 96  # tokens of a problem with its answer; longer ones are left out
READ = 16  # rows that the target reads at a time
HELD_OUT = 8  # every 8th chunk is kept for validation


def truths(problem: Problem, pieces: list[str]) -> list[int]:
    """For each piece of an answer, the last one being the empty end of text: 1 while it can still become
    right, 0 for the piece with which it no longer can, and UNASKED after that.
    """
    text, result = "", []
    for at, piece in enumerate(pieces):
        if 0 in result:
            result.append(UNASKED)
            continue
        text += piece
        ended = at == len(pieces) - 1
        right = TASKS[problem.task].check(problem, text).right if ended else possible(problem, text)
        result.append(int(right))
    return result


def pieces_of(model: LoadedModel, answer: str, tokens: list[int]) -> list[str]:
    """The text that each token adds to an answer. A character of several tokens counts for the last one; a
    space that a tokenizer puts before every text is left out.
    """
    whole, texts = b"", [""]
    for token in tokens:
        whole += model.bytes_of(token)
        text = whole.decode("utf-8", "ignore")
        texts.append(text if answer.startswith(" ") else text.removeprefix(" "))
    return [after[len(before) :] for before, after in pairwise(texts)]


def judged_row(
    model: LoadedModel, problem: Problem, answer: str, max_tokens: int
) -> tuple[list[int], list[int]] | None:
    """Tokens [T] of a problem with an answer and its end, and their truths [T]; None if there are more than
    `max_tokens`.
    """
    prompt, wrote = model.encode(problem.prompt), model.cut(answer)
    end = [] if model.tokenizer.eos_token_id is None else [model.tokenizer.eos_token_id]
    tokens = prompt + wrote + end
    if len(tokens) > max_tokens:
        return None
    truth = [UNASKED] * len(prompt) + truths(problem, [*pieces_of(model, answer, wrote), ""])
    return tokens, truth[: len(tokens)]


@torch.no_grad()
def states_of(
    target: PreTrainedModel, rows: list[tuple[list[int], list[int]]]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The target's states [N, d] after all tokens of rows that have a truth, and these truths [N]."""
    hidden, truths = [], []
    rows = sorted(rows, key=lambda row: len(row[0]))  # short ones together
    for at in range(0, len(rows), READ):
        some = rows[at : at + READ]
        longest = len(some[-1][0])
        tokens, truth = (  # what is padded stands after what is read
            torch.tensor([row[part] + [pad] * (longest - len(row[part])) for row in some])
            for part, pad in ((0, 0), (1, UNASKED))
        )
        taps = take_taps(target, tokens.to(target.device))
        hidden.append(taps.hidden[truth.to(target.device) != UNASKED].cpu())
        truths.append(truth[truth != UNASKED])
    return torch.cat(hidden), torch.cat(truths)


def judged_states(
    target: LoadedModel, draft: LoadedModel, chunks: int, max_tokens: int
) -> tuple[loop.Rows, loop.Rows]:
    """States and truths for training, and for validation: for each problem its right answer and one that the
    draft sampled at temperature 1, if they have at most `max_tokens` tokens.
    """
    states: dict[bool, list] = {False: [], True: []}
    for chunk in range(chunks):
        rng = random.Random(f"judge {chunk}")
        made = [TASKS[rng.choice(SCORED)].make(rng) for _ in range(CHUNK)]
        torch.manual_seed(chunk)
        wrote = answers(draft.model, draft.tokenizer, [p.prompt for p in made], temperature=1.0)
        pairs = zip(made + made, [p.answer for p in made] + wrote, strict=True)
        rows = [row for row in (judged_row(target, *pair, max_tokens) for pair in pairs) if row]
        if not rows:
            raise Refusal(f"No problem with its answer fits into {max_tokens} tokens of this tokenizer.")
        states[chunk % HELD_OUT == 0].append(states_of(target.model, rows))
        print(f"{(chunk + 1) * CHUNK} problems answered", flush=True)
    train, held = (tuple(map(torch.cat, zip(*states[part], strict=True))) for part in (False, True))
    return train, held


def fit(
    target: LoadedModel, draft: LoadedModel, budget: float, work: Path, max_tokens: int = ROW
) -> tuple[Judge, loop.Curve, dict]:
    """The head of a target, its losses, and facts. It is trained on standardised states; its weights are then
    converted to take the raw ones. budget: in millions of tokens; max_tokens: of a problem with its answer.
    """
    train, held = judged_states(target, draft, max(2, PROBLEMS // CHUNK), max_tokens)
    middle, size = train[0].mean(0), train[0].std(0) + 1e-6
    torch.manual_seed(0)
    head = Judge(Target.of(target.model))
    states, train, held = as_places(train, held)
    states, truth = (states - middle) / size, torch.cat([train[1], held[1]])

    def loss(some: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return head.loss_of(states[some], wanted)

    curve = train_scorer(head, loss, train, held, budget, work, BATCH)
    with torch.no_grad():
        head.output.weight /= size
        head.output.bias -= head.output.weight @ middle
    facts = {
        "answers": 2 * CHUNK * max(2, PROBLEMS // CHUNK),
        "tasks": list(SCORED),
        "wrong_tokens": int((truth == 0).sum()),
        "right_tokens": int((truth == 1).sum()),
        "tokens_of": "of answers, each several times",
        "note": "The loss is binary cross-entropy in nats, with right and wrong tokens weighted equally.",
    }
    return head, curve, facts


def main(args: Namespace) -> None:
    """Trains and ships it."""
    target, work = frozen(TARGET), work_of(args.work, NAME, TARGET, DRAFT)
    head, curve, facts = fit(target, frozen(DRAFT), args.million_tokens or MILLION_TOKENS, work)
    ship_scorer(NAME, head, TARGET, target.tokenizer, curve, "token", facts)
