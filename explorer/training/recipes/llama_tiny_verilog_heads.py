"""llama-tiny-verilog-heads: four Medusa heads on the frozen llama-tiny-verilog, for whole fragments only."""

from argparse import Namespace

import torch

from decoders.heads import Fragments, Target
from decoders.models.loading import load
from explorer.tasks.verilog import FRAGMENT
from explorer.training import loop
from explorer.training.data.fragments import Modules
from explorer.training.drafters import ship
from explorer.training.modules import train_modules, work_of

TARGET, NAME = "llama-tiny-verilog", "llama-tiny-verilog-heads"
MILLION_TOKENS = 0.3
BATCH, ROW, HELD_OUT = 4, 256, 32  # rows of comments and modules, and how many are never fed
DEPTH, RANK = 4, 32


def main(args: Namespace) -> None:
    """Trains and ships them."""
    target = load(str(loop.MODELS / TARGET), loop.device(), "float32")
    model = target.model.eval().requires_grad_(False)
    modules, mark = Modules(target.tokenizer), target.tokenizer.convert_tokens_to_ids(FRAGMENT)
    torch.manual_seed(0)
    heads = {Fragments.kind: Fragments(Target.of(model), mark, DEPTH, RANK).to(model.device)}
    held = modules.packed("held out", HELD_OUT, ROW)

    def feed(seen: int) -> torch.Tensor:
        return modules.packed(str(seen), BATCH, ROW)

    budget = args.million_tokens or MILLION_TOKENS
    curve = train_modules(heads, model, feed, held, budget, work_of(args.work, NAME, TARGET))
    ship(NAME, heads, model, TARGET, target.tokenizer, held, curve)
