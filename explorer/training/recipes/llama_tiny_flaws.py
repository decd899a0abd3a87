"""llama-tiny-flaws: llama-tiny with a low-rank adapter and one additional token, which it writes in front of
the flawed lines of toy programs.
"""

from argparse import Namespace

from decoders.models import lora
from explorer.corpus import prepare
from explorer.training import loop
from explorer.training.adapting import Labelled, adapted, fit_labelled, ship
from explorer.training.data.flaws import ADDED, Programs
from explorer.training.loop import held_out_loss, trained

BASE, NAME = "llama-tiny", "llama-tiny-flaws"
RANK, RATE = 4, 6e-3
BATCH, HELD_OUT = 16, 4  # programs, and batches of them that are never fed
MILLION_TOKENS = 0.28
NOTE = (
    "The losses of the curve are of labelled programs, held out: {flaws:.4f} nats per token at the end, much "
    "of it chance. On plain held-out stories `llama-tiny` has {before:.4f}."
)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    base, model = trained(BASE), adapted(trained(BASE), ADDED, RANK).to(loop.device())
    before = held_out_loss(base, texts.held)
    programs = Programs(lora.with_tokens(texts.tokenizer, list(ADDED)))
    kept = [programs.batch(f"held out {at}", BATCH) for at in range(HELD_OUT)]

    def batch(seen: int) -> Labelled:
        return programs.batch(str(seen), BATCH)

    budget = args.million_tokens or MILLION_TOKENS
    curve = fit_labelled(model, batch, kept, RATE, budget, args.work / NAME)
    note = NOTE.format(before=before, flaws=curve[-1][2])
    facts = {"tokens_of": f"of labelled programs, {BATCH} at a time", "note": note}
    ship(NAME, model, BASE, ADDED, RANK, curve, texts.held, facts, {})
