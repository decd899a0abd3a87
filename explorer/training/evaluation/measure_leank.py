"""How far llama-tiny with LeanK's learned mask, and with other masks of the same size, is from its full
cache, on held-out stories and problems.
"""

from pathlib import Path
from statistics import fmean

import torch
from torch.nn import functional as F
from transformers.cache_utils import DynamicCache

from decoders.heads import KeyMask
from decoders.memory.calibration import keys_and_values, own_text
from decoders.memory.leank import kept_channels, largest
from explorer.corpus import pack, read_stories, rows_of, task_rows
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import model_with
from explorer.training.recipes.llama_tiny_leank import ANSWER

FILE, HELD_ROWS, SEEDS = "masks.json", 16, 4


@torch.no_grad()
def divergences(mask: KeyMask, rows: torch.Tensor, ways: list[torch.Tensor]) -> list[float]:
    """For each way of factors [L, Hkv, D]: KL(full || thinned) in nats, mean over the last ANSWER tokens of
    rows [R, T], which are read with the factors as in decoding; the tokens before are prefilled as usual.
    """
    model, totals = mask.target.model, [0.0] * len(ways)
    for some in rows.split(4):
        past = DynamicCache()
        full = model(input_ids=some, past_key_values=past).logits[:, -ANSWER:].log_softmax(-1)
        for at, factors in enumerate(ways):
            past.crop(-ANSWER)
            states = mask.hidden(some[:, -ANSWER:], factors, past, drop=True)
            thinned = mask.target.logits(states).log_softmax(-1)
            kl = F.kl_div(thinned, full, log_target=True, reduction="none").sum(-1)
            totals[at] += kl.mean().item() * len(some)
    return [total / len(rows) for total in totals]


def masks_of(mask: KeyMask) -> dict[str, list[torch.Tensor]]:
    """The masks to compare, by name; several where they are random."""
    kept, model = mask.kept, mask.target.model
    size = keys_and_values(model, own_text(model))[0].float().abs().mean((2, 3))  # [L, Hkv, D]
    random_scores = [torch.rand(size.shape, generator=torch.Generator().manual_seed(n)) for n in range(SEEDS)]
    flat = kept.sum().item() / kept.numel()
    return {
        "learned": [kept.float()],
        "learned, times alpha": [kept * mask.alphas],
        "by size": [kept_channels(size, 1 - flat, mask.settings["align"]).float()],
        "by size, as many per head": [largest(size, kept.sum(-1)).float()],
        "at random, as many per head": [largest(one, kept.sum(-1)).float() for one in random_scores],
        "none kept": [torch.zeros_like(size)],
    }


def measure(folder: Path, corpus: Path) -> Findings:
    """For each mask the share of channels that it keeps and the mean KL on held-out stories and problems."""
    target = model_with(folder, "float32")
    mask = target.heads["leank"]
    held = {
        "stories": rows_of(pack(read_stories(corpus)[1], target.tokenizer))[-HELD_ROWS:],
        "problems": task_rows(target.tokenizer, "held out", HELD_ROWS)[0],
    }
    ways = [(name, one) for name, some in masks_of(mask).items() for one in some]
    kls = {text: divergences(mask, tokens, [one for _, one in ways]) for text, tokens in held.items()}
    rows = {}
    for name in dict.fromkeys(name for name, _ in ways):
        own = [at for at, (other, _) in enumerate(ways) if other == name]
        columns = {"kept": [float((ways[at][1] != 0).float().mean()) for at in own]}
        columns |= {text: [kls[text][at] for at in own] for text in held}
        rows[name] = {column: round(fmean(values), 5) for column, values in columns.items()}
    return Findings({FILE: rows})
