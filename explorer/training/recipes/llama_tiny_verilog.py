"""llama-tiny-verilog: llama-tiny with a low-rank adapter and one additional token, for small Verilog modules
with a mark at the end of each syntactic fragment.
"""

from argparse import Namespace

from decoders.models import lora
from explorer.corpus import prepare
from explorer.training import loop
from explorer.training.adapting import Labelled, adapted, fit_labelled, ship
from explorer.training.data.fragments import ADDED, Modules
from explorer.training.loop import held_out_loss, trained

BASE, NAME = "llama-tiny", "llama-tiny-verilog"
RANK, RATE = 8, 6e-3
BATCH, HELD_OUT = 16, 4  # modules, and batches of them that are never fed
MILLION_TOKENS = 2.4
NOTE = (
    "The losses of the curve are of marked modules, held out: {modules:.4f} nats per token at the end. On "
    "plain held-out stories `llama-tiny` has {before:.4f}. Its Verilog is gates, a multiplexer, registers "
    "and a counter, in modules of up to three statements: nothing else of the language."
)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    base, model = trained(BASE), adapted(trained(BASE), ADDED, RANK).to(loop.device())
    before = held_out_loss(base, texts.held)
    modules = Modules(lora.with_tokens(texts.tokenizer, list(ADDED)))
    kept = [modules.batch(f"held out {at}", BATCH) for at in range(HELD_OUT)]

    def batch(seen: int) -> Labelled:
        return modules.batch(str(seen), BATCH)

    budget = args.million_tokens or MILLION_TOKENS
    curve = fit_labelled(model, batch, kept, RATE, budget, args.work / NAME)
    note = NOTE.format(before=before, modules=curve[-1][2])
    facts = {"tokens_of": f"of modules with marks, {BATCH} at a time", "note": note}
    ship(NAME, model, BASE, ADDED, RANK, curve, texts.held, facts, {})
