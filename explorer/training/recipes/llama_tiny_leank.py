"""llama-tiny-leank: how much each key channel of llama-tiny matters, and the fixed mask by which the memory
LeanK (2025) leaves out half of them, trained on stories and tasks to reproduce the target's own last states.
"""

from argparse import Namespace

import torch

from decoders.heads import KeyMask, Target
from decoders.models import head_files
from explorer.corpus import mixed_rows, prepare
from explorer.training import check, loop
from explorer.training.loss_picture import loss_picture
from explorer.training.mask_picture import mask_picture
from explorer.training.modules import work_of

TARGET, NAME = "llama-tiny", "llama-tiny-leank"
MILLION_TOKENS = 0.1024  # 200 steps
BATCH, TASKS = 2, 0.5
ANSWER = 64  # the last tokens of a row, which read with thinned keys; the others are their context
VALIDATION_ROWS = 4
RATE, PENALTY = 0.02, 0.06  # the paper's for Llama: AdamW's rate, and lambda of mean |alpha|
FIRST = 0.8  # share of the steps that learn alpha under the penalty; the rest learn under the mask
EVERY = 10  # steps between two points of the curve


def schedule(progress: float) -> float:
    """Factor of the learning rate: up over the first fifth, down over the last one, never below 0.1."""
    return min(1.0, max(0.1, min(progress, 1 - progress) / 0.2))


def main(args: Namespace) -> None:
    """Trains and ships it, in float32."""
    texts, model = prepare(args.corpus, args.work), loop.trained(TARGET).eval().requires_grad_(False)
    mask = KeyMask(Target.of(model)).to(model.device)
    held = texts.held[:VALIDATION_ROWS].to(model.device)
    work, budget = work_of(args.work, NAME, TARGET), args.million_tokens or MILLION_TOKENS

    def stage(name: str, share: float, before: float, factors, penalty: float, rate: float) -> loop.Curve:
        def step(seen: int) -> tuple[int, list[float]]:
            seen += int(before * 1e6)
            rows = mixed_rows(texts.stories, texts.tokenizer, seen, BATCH, TASKS)[0].to(model.device)
            mask.alphas.data.clamp_(0.0, 1.0)
            distance = mask.loss(rows, ANSWER, factors())
            (distance + penalty * mask.alphas.abs().mean()).backward()
            return rows.numel(), [distance.item()]

        @torch.no_grad()
        def validate() -> list[float]:
            return [mask.loss(held, ANSWER, factors()).item()]

        adam = torch.optim.AdamW(mask.parameters(), lr=rate, weight_decay=0.0)
        return loop.run_steps(
            mask, [adam], step, validate, share * budget, work / name, before, schedule, every=EVERY
        )

    curve = stage("alphas", FIRST, 0.0, lambda: mask.alphas, PENALTY, RATE)
    mask.alphas.data.clamp_(0.0, 1.0)
    alphas = mask.alphas.detach().clone()
    curve += stage("mask", 1 - FIRST, curve[-1][0], mask.straight_through, 0.0, RATE / 2)
    mask.alphas.data.clamp_(0.0, 1.0)
    ship(mask, alphas, curve, texts.tokenizer)


def ship(mask: KeyMask, alphas: torch.Tensor, curve: loop.Curve, tokenizer) -> None:
    """Writes alphas and mask, their picture, losses, facts and how the recipe differs from the paper."""
    folder, kept = loop.MODELS / NAME, mask.choose()
    head_files.save(folder, {mask.kind: mask}, TARGET, loop.MODELS / TARGET, tokenizer, dtype=torch.float32)
    curve = [(tokens, 1000 * training, 1000 * held) for tokens, training, held in curve]
    columns = ["million_tokens", "distance_training_loss", "distance_held_out_loss"]
    picture = loss_picture(loop.save_curve(folder, columns, curve), f"{NAME}: loss of distance")
    (folder / "loss-distance.svg").write_text(picture, "utf-8")
    (folder / "mask.svg").write_text(mask_picture(alphas, kept, NAME), "utf-8")
    facts = {
        "parameters": mask.alphas.numel(),
        "million_tokens": round(curve[-1][0], 2),
        "held_out_loss": round(curve[-1][2], 4),
        "kept": round(float(kept.float().mean()), 4),
        "empty_heads": int((~kept.any(-1)).sum()),
        "note": NOTE.format(first=FIRST, answer=ANSWER, penalty=PENALTY, **mask.settings),
    }
    loop.write_json(folder / "facts.json", facts)
    check.write(folder)


NOTE = (
    "The loss is 1000 times the mean squared distance of the last {answer} tokens' states, after the last "
    "norm, from those of the unpruned target. Stage 1 ({first:.0%} of the steps) adds to the distance "
    "{penalty} times mean |alpha|; "
    "stage 2 reads alpha where a channel is kept, else 0, at rho {prune}, with a straight-through gradient. "
    "The first {sink} and newest {recent} tokens are read with all channels, and a head keeps a multiple "
    "of {align} channels. The paper trains on synthetic key retrieval in 4k to 96k tokens, for 2000 and 200 "
    "steps; here the text is rows of stories and problems of 256 and 512. The paper's published code never "
    "reads the setting `steps`, so 1000 run, and does not pass the sizes of sink and recent to the attention "
    "that it trains; here both take effect. As there, training multiplies by alpha and decoding does "
    "not, unless `memory_mask` says so. A head that keeps no channel still sees the middle's values in "
    "training (all logits 0), but not in decoding."
)
