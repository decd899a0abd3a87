"""llama-tiny-outlook: a small network on the frozen llama-tiny that foretells whether it will accept all,
some or none of what llama-tiny-draft-distilled guesses next (H-RAD of SpecBranch, 2025), learned from greedy
text.
"""

import random
from argparse import Namespace

import torch
import training
from corpus import read_stories
from modules import ship_scorer, train_scorer, work_of
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from decoders.heads import Outlook, Taps, Target, take_taps
from decoders.heads.outlook import ALL, NONE, SOME, UNASKED
from explorer.tasks import TASKS

TARGET, DRAFT, NAME = "llama-tiny", "llama-tiny-draft-distilled", "llama-tiny-outlook"
MILLION_TOKENS = 0.15  # a place counts each time that it is looked at
WINDOW = 4  # tokens that the draft guesses
TEXTS, PROMPT, WRITTEN, WRITERS = 256, 16, 96, 64  # WRITERS: texts that are written at a time
BATCH, HELD_OUT = 64, 8


@torch.no_grad()
def greedy_texts(
    target: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, stories: list[str]
) -> torch.Tensor:
    """Texts [TEXTS, PROMPT + WRITTEN]: what the target writes greedily after beginnings of stories and
    problems.
    """
    rng = random.Random(0)
    problems = [TASKS[rng.choice(list(TASKS))].make(rng) for _ in range(8 * TEXTS)]
    asked = [p.prompt + p.answer for p in problems]
    cut = (tokenizer(text)["input_ids"][:PROMPT] for text in (*stories[: 3 * TEXTS], *asked))
    begun = [ids for ids in cut if len(ids) == PROMPT]
    rng.shuffle(begun)
    found = []
    for at in range(0, TEXTS, WRITERS):
        ids = torch.tensor(begun[at : min(at + WRITERS, TEXTS)], device=target.device)
        wrote = target.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False,
            max_new_tokens=WRITTEN, min_new_tokens=WRITTEN, eos_token_id=None,
        )  # fmt: skip
        found.append(wrote.cpu())
        print(f"{sum(map(len, found))} texts written", flush=True)
    return torch.cat(found)


def fates(guessed: torch.Tensor) -> torch.Tensor:
    """How windows fare: truth [B, T] of row n of the window behind token n + 1. guessed [B, T]: whether the
    draft's likeliest token behind token n is the text's own, which is greedy.
    """
    count = guessed.shape[1]
    truth = torch.full(guessed.shape, UNASKED)
    for n in range(PROMPT - 1, count - WINDOW - 1):
        passed = guessed[:, n + 1 : n + 1 + WINDOW].long().cumprod(1).sum(1)
        truth[:, n] = torch.where(passed == 0, NONE, torch.where(passed == WINDOW, ALL, SOME))
    return truth


@torch.no_grad()
def asked_places(
    head: Outlook, target: LlamaForCausalLM, draft: LlamaForCausalLM, texts: torch.Tensor
) -> training.Rows:
    """What the head reads [N, D] at all places of greedy texts that are asked about, and the truth [N]."""
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


def main(args: Namespace) -> None:
    """Trains and ships it."""
    target, draft = (training.trained(name).eval().requires_grad_(False) for name in (TARGET, DRAFT))
    tokenizer = PreTrainedTokenizerFast.from_pretrained(training.MODELS / TARGET)
    stories, _ = read_stories(args.corpus)
    texts = greedy_texts(target, tokenizer, stories)
    torch.manual_seed(0)
    head = Outlook(Target.of(target), of=DRAFT, window=WINDOW)
    apart = torch.arange(len(texts)) % HELD_OUT == 0
    told, held = (asked_places(head, target, draft, texts[part]) for part in (~apart, apart))
    read, truth = (torch.cat(parts) for parts in zip(told, held, strict=True))

    def loss(some: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(head(read[some]).float(), wanted)

    work = work_of(args.work, NAME, TARGET, DRAFT)
    places = torch.arange(len(read)).split([len(told[1]), len(held[1])])
    told, held = ((at, truth[at]) for at in places)
    budget = args.million_tokens or MILLION_TOKENS
    curve = train_scorer(head, loss, told, held, budget, work, BATCH)
    said = head.eval()(read[held[0]]).argmax(-1)
    facts = {
        "places": len(read),
        "tokens_of": "of greedy text, each several times",
        "shares": [round(float((truth == fate).float().mean()), 3) for fate in (NONE, SOME, ALL)],
        "held_out_right": round(float((said == held[1]).float().mean()), 3),
        "note": f"It reads `{TARGET}` and foretells how {WINDOW} tokens of `{DRAFT}` will fare. The loss is "
        "cross-entropy in nats; `shares`: how often none, some, all of them pass.",
    }
    ship_scorer(NAME, head, TARGET, tokenizer, curve, "window", facts)
