"""llama-tiny-lens: an affine map for each depth of llama-tiny, through which its last norm and output matrix
read a middle state better (a tuned lens, 2023), trained on stories and tasks to match the target's own
distributions.
"""

from argparse import Namespace

from decoders.heads import Target, TunedLens, take_taps
from explorer.corpus import mixed_rows, prepare
from explorer.training import loop
from explorer.training.modules import held_out_losses, ship_scorer, work_of

TARGET, NAME = "llama-tiny", "llama-tiny-lens"
MILLION_TOKENS = 0.155  # three minutes on one core
BATCH, TASKS = 8, 0.25
VALIDATION_ROWS = 8


def main(args: Namespace) -> None:
    """Trains and ships it. In float32: where a CPU has no units for bfloat16 that is seven times as fast."""
    texts, model = prepare(args.corpus, args.work), loop.trained(TARGET).eval().requires_grad_(False)
    lens = TunedLens(Target.of(model)).to(model.device)
    held = texts.held[:VALIDATION_ROWS].to(model.device)

    def step(seen: int) -> tuple[int, list[float]]:
        rows = mixed_rows(texts.stories, texts.tokenizer, seen, BATCH, TASKS)[0].to(model.device)
        return rows.numel(), [loop.descend(lens.loss(take_taps(model, rows, lens.reads)), lens)]

    def validate() -> list[float]:
        losses = held_out_losses({NAME: lens}, [take_taps(model, held, lens.reads)])
        lens.train()
        return losses

    work, budget = work_of(args.work, NAME, TARGET), args.million_tokens or MILLION_TOKENS
    curve = loop.run_steps(lens, loop.optimizers(lens, lens.rates), step, validate, budget, work)
    note = (
        "The loss is KL(p || q) in nats, p the target's own distribution, q that of a depth, averaged over "
        "depths. After layers 3, 6 and 9, where the target was trained with early exits, it gains nothing: "
        "there the logit lens is as good."
    )
    ship_scorer(NAME, lens, TARGET, texts.tokenizer, curve, "token", {"note": note}, eight_bits=True)
