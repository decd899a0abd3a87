"""llama-tiny-filter: the filter of Learn2PD (2025) on the frozen llama-tiny-diffusion: it reads the
confidences of a block and predicts which positions already hold their final token.
"""

import random
from argparse import Namespace
from pathlib import Path

import torch

from decoders.heads import Filter, Target
from decoders.heads.scorers.filter import UNASKED
from explorer.corpus import Texts, prepare, story_rows
from explorer.tasks import TASKS
from explorer.training.modules import frozen, ship_scorer, train_scorer, work_of

MODEL, NAME = "llama-tiny-diffusion", "llama-tiny-filter"
BLOCK, BLOCKS = 32, 2  # positions of a block, blocks of a canvas
STORIES, PROBLEMS = 60, 120  # prompts that are answered one token per forward
TOGETHER = 20  # canvases in a forward
LONGEST = 48  # tokens of a prompt; longer ones are left out, stories are cut
MILLION_TOKENS = 12.0  # a position counts each time that it is looked at
BATCH = 128
RATES = (2e-3, 1e-3)
THETA = 0.96  # from which on a position is accepted
HELD_OUT = 8  # every 8th prompt is kept for validation
Records = tuple[torch.Tensor, torch.Tensor]  # confidences and truths [N, BLOCK]


def prompts(texts: Texts) -> list[list[int]]:
    """Problems of all tasks and beginnings of stories, as tokens."""
    rng, result = random.Random("filter"), []
    while len(result) < PROBLEMS:
        asked = texts.tokenizer(TASKS[rng.choice(list(TASKS))].make(rng).prompt)["input_ids"]
        if len(asked) <= LONGEST:
            result.append(asked)
    for row in story_rows(texts.stories, 0, STORIES).tolist():
        result.append(row[: rng.randrange(2, LONGEST)])
    return result


@torch.no_grad()
def filled(model: torch.nn.Module, asked: list[list[int]]) -> Records:
    """Fills the canvas after each prompt one token per forward, at the most confident position of the
    leftmost open block, and records the block's confidences in every forward; truths: 1 where the most likely
    token is the final one of the position, 0 where it is not, UNASKED where the position was already filled.
    """
    mask, size = model.config.mask_token_id, BLOCK * BLOCKS
    lengths = torch.tensor([[len(prompt)] for prompt in asked])
    width = int(lengths.max()) + size
    rows, sees = torch.zeros(len(asked), width, dtype=torch.long), torch.zeros(len(asked), width)
    for row, seen, prompt in zip(rows, sees, asked, strict=True):  # what pads a row stands after, unseen
        row[: len(prompt)], seen[len(prompt) + size :] = torch.tensor(prompt), -torch.inf
        row[len(prompt) : len(prompt) + size] = mask
    kept = []
    for block in range(BLOCKS):
        places = lengths + block * BLOCK + torch.arange(BLOCK)
        for _ in range(BLOCK):
            logits = model(input_ids=rows, attention_mask=sees[:, None, None]).logits[..., :mask]
            here = logits.gather(1, places[..., None].expand(-1, -1, mask)).float()
            confidences, best = here.softmax(-1).max(-1)  # [B, BLOCK]
            open_ = rows.gather(1, places) == mask
            surest = confidences.masked_fill(~open_, -1.0).argmax(1, keepdim=True)
            kept.append((block, confidences, best, open_))
            rows.scatter_(1, places.gather(1, surest), best.gather(1, surest))
    result = []
    for block, confidences, best, open_ in kept:
        final = rows.gather(1, lengths + block * BLOCK + torch.arange(BLOCK))
        result.append((confidences, torch.where(open_, (best == final).long(), UNASKED)))
    confidences, truths = zip(*result, strict=True)
    return torch.cat(confidences), torch.cat(truths)


def records(model: torch.nn.Module, asked: list[list[int]], path: Path) -> Records:
    """The records of all prompts, kept in `path`."""
    if path.exists():
        return torch.load(path, weights_only=True)
    asked, parts = sorted(asked, key=len), []
    for start in range(0, len(asked), TOGETHER):
        parts.append(filled(model, asked[start : start + TOGETHER]))
        print(f"{min(start + TOGETHER, len(asked))} of {len(asked)} prompts answered", flush=True)
    confidences, truths = (torch.cat(part) for part in zip(*parts, strict=True))
    torch.save((confidences, truths), path)
    return confidences, truths


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts, model = prepare(args.corpus, args.work), frozen(MODEL)
    work = work_of(args.work, NAME, MODEL)
    asked = prompts(texts)
    train = records(model.model, [p for i, p in enumerate(asked) if i % HELD_OUT], work / "train.pt")
    held = records(model.model, asked[::HELD_OUT], work / "held.pt")
    torch.manual_seed(0)
    head = Filter(Target.of(model.model), BLOCK)

    def loss(confidences: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        with torch.autocast(truth.device.type, enabled=False):  # near 1 a bfloat16 tells little apart
            return head.loss(confidences, truth)

    curve = train_scorer(head, loss, train, held, args.million_tokens or MILLION_TOKENS, work, BATCH, RATES)
    truth = held[1]
    asked_of = truth != UNASKED
    precision, recall = precision_and_recall(head.scores(held[0])[asked_of], truth[asked_of] == 1)
    facts = {
        "prompts": len(asked),
        "blocks": len(train[0]),
        "precision": round(precision, 4),
        "recall": round(recall, 4),
        "tokens_of": "(positions of blocks, each several times)",
        "note": "The loss is binary cross-entropy in nats. "
        f"At a theta of {THETA} it accepts {recall:.1%} of the held-out positions that hold their final "
        f"token; of those that it accepts, {precision:.1%} do.",
    }
    ship_scorer(NAME, head, MODEL, model.tokenizer, curve, "position", facts)


def precision_and_recall(scores: torch.Tensor, final: torch.Tensor) -> tuple[float, float]:
    """The share of the positions [N] with a score above THETA that are final, and the share of the final ones
    that have such a score.
    """
    accepted = scores > THETA
    right = int((accepted & final).sum())
    return right / max(1, int(accepted.sum())), right / max(1, int(final.sum()))
