"""llama-tiny-outlook: a small network on the frozen llama-tiny that predicts whether it will accept all, some
or none of the tokens that llama-tiny-draft-distilled drafts next (H-RAD of SpecBranch, 2025), trained on
greedy text.
"""

import random
from argparse import Namespace
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from decoders.heads import Outlook, Taps, Target, take_taps
from decoders.heads.scorers.outlook import ALL, NONE, SOME, UNASKED
from decoders.models.loaded_model import LoadedModel
from explorer.corpus import read_stories
from explorer.tasks import TASKS
from explorer.training import loop
from explorer.training.modules import as_places, continued, frozen, ship_scorer, train_scorer, work_of

TARGET, DRAFT, NAME = "llama-tiny", "llama-tiny-draft-distilled", "llama-tiny-outlook"
MILLION_TOKENS = 0.15  # a place counts each time that it is looked at
WINDOW = 4  # tokens that the draft guesses
TEXTS, PROMPT, WRITTEN, WRITERS = 256, 16, 96, 64  # WRITERS: texts that are written at a time
BATCH, HELD_OUT = 64, 8


def beginnings(tokenizer: PreTrainedTokenizerFast, stories: list[str]) -> list[list[int]]:
    """Beginnings of stories and problems, PROMPT tokens of each, shuffled."""
    rng = random.Random(0)
    problems = [TASKS[rng.choice(list(TASKS))].make(rng) for _ in range(8 * TEXTS)]
    asked = [p.prompt + p.answer for p in problems]
    cut = (tokenizer(text)["input_ids"][:PROMPT] for text in (*stories[: 3 * TEXTS], *asked))
    begun = [ids for ids in cut if len(ids) == PROMPT]
    rng.shuffle(begun)
    return begun


@torch.no_grad()
def greedy_texts(target: PreTrainedModel, begun: list[list[int]]) -> torch.Tensor:
    """Texts [TEXTS, PROMPT + WRITTEN], fewer if there are not enough beginnings: the target's greedy
    continuations.
    """
    result = []
    for at in range(0, min(TEXTS, len(begun)), WRITERS):
        ids = torch.tensor(begun[at : min(at + WRITERS, TEXTS)], device=target.device)
        wrote = continued(target, ids, PROMPT + WRITTEN, sampled=False)
        result.append(wrote.cpu())
        print(f"{sum(map(len, result))} texts written", flush=True)
    return torch.cat(result)


def fates(guessed: torch.Tensor) -> torch.Tensor:
    """The fates of windows: truth [B, T] in row n is that of the window after token n + 1. guessed [B, T]:
    whether the draft's most likely token after token n is the text's own, which is greedy.
    """
    count = guessed.shape[1]
    truth = torch.full(guessed.shape, UNASKED)
    for n in range(PROMPT - 1, count - WINDOW - 1):
        passed = guessed[:, n + 1 : n + 1 + WINDOW].long().cumprod(1).sum(1)
        truth[:, n] = torch.where(passed == 0, NONE, torch.where(passed == WINDOW, ALL, SOME))
    return truth


@torch.no_grad()
def asked_places(
    head: Outlook, target: PreTrainedModel, draft: PreTrainedModel, texts: torch.Tensor
) -> loop.Rows:
    """The head's inputs [N, D] at all labelled positions of greedy texts, and the truths [N]."""
    read, truths = [], []
    for some in texts.split(BATCH):
        taps: Taps = take_taps(target, some.to(target.device), head.reads)
        best = draft(input_ids=some.to(draft.device)).logits.argmax(-1).cpu()
        guessed = torch.zeros(some.shape, dtype=torch.bool)
        guessed[:, :-1] = best[:, :-1] == some[:, 1:]
        truth = fates(guessed)[:, :-1]
        read.append(head.inputs(taps).cpu()[truth != UNASKED])
        truths.append(truth[truth != UNASKED])
    return torch.cat(read), torch.cat(truths)


def fit(
    target: LoadedModel, draft: LoadedModel, texts: torch.Tensor, budget: float, work: Path
) -> tuple[Outlook, loop.Curve, dict]:
    """The head of a pair, trained along greedy texts [R, PROMPT + WRITTEN] by the target, its losses, and
    facts. budget: in millions of positions.
    """
    torch.manual_seed(0)
    head = Outlook(Target.of(target.model), of=draft.name, window=WINDOW)
    apart = torch.arange(len(texts)) % HELD_OUT == 0
    train, held = (asked_places(head, target.model, draft.model, texts[part]) for part in (~apart, apart))
    read, train, held = as_places(train, held)
    truth = torch.cat([train[1], held[1]])

    def loss(some: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(head(read[some]).float(), wanted)

    curve = train_scorer(head, loss, train, held, budget, work, BATCH)
    predicted = head.eval()(read[held[0]]).argmax(-1)
    facts = {
        "places": len(read),
        "tokens_of": "of greedy text, each several times",
        "shares": [round(float((truth == fate).float().mean()), 3) for fate in (NONE, SOME, ALL)],
        "held_out_right": round(float((predicted == held[1]).float().mean()), 3),
        "note": f"It reads `{target.name}` and predicts whether none, some or all of {WINDOW} tokens of "
        f"`{draft.name}` pass. The loss is cross-entropy in nats; `shares`: how often each of these happens.",
    }
    return head, curve, facts


def main(args: Namespace) -> None:
    """Trains and ships it."""
    target, work = frozen(TARGET), work_of(args.work, NAME, TARGET, DRAFT)
    stories, _ = read_stories(args.corpus)
    texts = greedy_texts(target.model, beginnings(target.tokenizer, stories))
    budget = args.million_tokens or MILLION_TOKENS
    head, curve, facts = fit(target, frozen(DRAFT), texts, budget, work)
    ship_scorer(NAME, head, TARGET, target.tokenizer, curve, "window", facts, partner=DRAFT)
