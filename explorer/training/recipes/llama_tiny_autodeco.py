"""llama-tiny-autodeco: two heads on the frozen llama-tiny that predict with which temperature and top-p to
sample the next token (AutoDeco, 2025), trained on stories and on llama-tiny's own right answers.
"""

from argparse import Namespace

import torch
from transformers import LlamaForCausalLM

from decoders.heads import AutoDeco, Target
from decoders.heads.scorers.reward import PREFIX
from explorer.corpus import IGNORED, ROW, Texts, prepare, story_rows
from explorer.training import loop
from explorer.training.modules import as_places, ship_scorer, train_scorer, work_of
from explorer.training.recipes.llama_tiny_reward import PAD, graded_answers
from explorer.training.recipes.llama_tiny_reward import ROW as ANSWER

TARGET, NAME = "llama-tiny", "llama-tiny-autodeco"
MILLION_PLACES = 0.25  # a place counts each time that it is looked at
STORIES = 0.12  # million tokens of stories that are read
ANSWERS = 10_000  # that are graded; the right ones are read
ROWS = 16  # rows that are read at a time
BATCH, RATES = 512, (1e-3, 1e-3)
HELD_OUT = 12  # rows of stories kept for validation; of the right answers, one in this many


@torch.no_grad()
def places(target: LlamaForCausalLM, rows: torch.Tensor, labels: torch.Tensor) -> loop.Rows:
    """The target's states [N, d] at all labelled positions of rows [R, T], and the next token at each."""
    hidden = target.model(input_ids=rows.to(target.device)).last_hidden_state[:, :-1]
    wanted = labels[:, 1:] != IGNORED
    return hidden.cpu().float()[wanted], labels[:, 1:][wanted]


def gathered(target: LlamaForCausalLM, rows: torch.Tensor, labels: torch.Tensor) -> loop.Rows:
    """The same, a few rows at a time, without the padding common to them."""
    result = []
    for some, wanted in zip(rows.split(ROWS), labels.split(ROWS), strict=True):
        longest = int((some != PAD).sum(1).max())
        result.append(places(target, some[:, :longest], wanted[:, :longest]))
        print(f"{sum(len(tokens) for _, tokens in result)} places read", flush=True)
    return joined(result)


def joined(parts: list[loop.Rows]) -> loop.Rows:
    """Rows and truths of all parts, concatenated."""
    return tuple(torch.cat(some) for some in zip(*parts, strict=True))


def right_answers(rows: torch.Tensor, truth: torch.Tensor) -> loop.Rows:
    """The right ones of graded answers (rows [R, T], truth [R, T, 3], see llama_tiny_reward), shortest first,
    with labels; their prompts have none.
    """
    right = (truth[..., -1] == 1).any(1)
    rows, answer = rows[right], truth[right][..., PREFIX] >= 0
    order = (rows != PAD).sum(1).argsort(stable=True)
    return rows[order], torch.where(answer, rows, IGNORED)[order]


def read_texts(target: LlamaForCausalLM, texts: Texts, args: Namespace) -> tuple[loop.Rows, loop.Rows]:
    """Positions to learn from, and held-out positions: of stories, and of the target's own right answers."""
    scale = (args.million_tokens or MILLION_PLACES) / MILLION_PLACES
    stories = story_rows(texts.stories, 0, max(1, round(scale * STORIES * 1e6 / ROW)))
    kept = work_of(args.work, "llama-tiny-reward", TARGET)
    chunks = graded_answers(target, texts.tokenizer, kept / "answers.pt", scale * ANSWERS * ANSWER)
    rows, labels = right_answers(*(torch.cat(part) for part in chunks))
    apart = torch.arange(len(rows)) % HELD_OUT == 0
    held = [(texts.held[:HELD_OUT],) * 2, (rows[apart], labels[apart])]
    train = [(stories, stories), (rows[~apart], labels[~apart])]
    return tuple(joined([gathered(target, *pair) for pair in part if len(pair[0])]) for part in (train, held))


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    target = loop.trained(TARGET).eval().requires_grad_(False)
    train, held = read_texts(target, texts, args)
    read, train, held = as_places(train, held)
    torch.manual_seed(0)
    head = AutoDeco(Target.of(target)).to(target.device)

    def loss(some: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return head.loss(read[some.cpu()].to(wanted.device), wanted)

    work = work_of(args.work, NAME, TARGET)
    budget = args.million_tokens or MILLION_PLACES
    curve = train_scorer(head, loss, train, held, budget, work, BATCH, RATES)
    facts = {
        "places": len(read),
        "tokens_of": "of stories and of its own right answers, each several times",
        "note": "The answers are the right ones of those that `llama-tiny-reward` learned from, three drawn "
        "at temperature 1 for each greedy one. The loss is that of the paper, the sum of two weighted "
        "cross-entropies in nats: under the predicted temperature, and under the predicted top-p, which is "
        "smooth during training.",
    }
    ship_scorer(NAME, head, TARGET, texts.tokenizer, curve, "token", facts)
