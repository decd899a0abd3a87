"""llama-tiny-m2r2: adapters that let a second stream through llama-tiny's first layers say early what its
last layer will say (M2R2, 2025); half on stories and tasks, half on text that llama-tiny wrote itself.
"""

from argparse import Namespace

import torch
import training
from corpus import prepare
from llama_tiny_draft_distilled import own_text
from llama_tiny_heads import OWN_BATCH, OWN_SHARE, VALIDATION_ROWS, check_tokenizer, rows_after, ship
from modules import train_modules

from decoders.heads import M2R2, Target, files

TARGET, NAME = "llama-tiny", "llama-tiny-m2r2"
MILLION_TOKENS = 1.2  # a quarter of an hour on two cores
EXIT, RANK = 3, 64


def main(args: Namespace) -> None:
    """Trains and ships them."""
    texts = prepare(args.corpus, args.work)
    model = training.trained(TARGET).eval().requires_grad_(False)
    source = training.MODELS / TARGET
    check_tokenizer(texts, source)
    work = args.work / f"{NAME}-{files.weights_sha256(source)[:8]}"  # of just these weights
    work.mkdir(parents=True, exist_ok=True)
    budget = args.million_tokens or MILLION_TOKENS
    own = own_text(model, texts, args.work, OWN_SHARE * budget * 1e6, OWN_BATCH)
    torch.manual_seed(0)
    modules = {M2R2.kind: M2R2(Target.of(model), EXIT, RANK).to(model.device)}
    held = texts.held[:VALIDATION_ROWS]
    curve = train_modules(modules, model, lambda seen: rows_after(seen, texts, own), held, budget, work)
    ship(NAME, modules, model, texts, curve, source)
