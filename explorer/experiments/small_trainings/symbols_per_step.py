"""How many symbols should one step write?

Music models write each frame as K symbols; a pattern says which symbols of which frames one forward writes.
Text has no such levels: here each token of the target's own text is written as three digits of base 16, and
one small model per pattern learns equally long from the same rows. Few forwards against many bits: what does
each pattern cost? Level 1 is the most significant digit; bits are those of tokens that no model has seen. No
code for stack-delay is known: odd frames are begun when both neighbours are finished, as its description
allows.
"""

import math

import torch
from torch.nn import functional as F

from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.basis import FAR_ABOVE, Basis
from explorer.experiments.models.small import fit, own_text
from explorer.experiments.reading import rows_with, two
from explorer.experiments.small_trainings.codebook_patterns import Pattern, SymbolModel, digits, patterns

PAPERS = ("stack-and-delay",)
BASE, LEVELS, FRAMES = 16, 3, 16
WIDTH, LAYERS = 64, 4
ROWS, HELD_OUT, STEPS, RATE = 2048, 256, 400, 4e-3
DRAWN = 12  # frames in the chart


def trained(pattern: Pattern, symbols: torch.Tensor) -> SymbolModel:
    """A small model trained on rows of symbols [R, T, K] in one pattern."""
    torch.manual_seed(0)
    model = SymbolModel(pattern, BASE, WIDTH, LAYERS)
    fit(model.parameters(), lambda some: model.losses(some).mean(), symbols, STEPS, rate=RATE)
    return model.eval()


@torch.inference_mode()
def own_bits(models: Models, rows: torch.Tensor) -> float:
    """Bits per token of the target itself, after an end-of-text token, as when it wrote them."""
    model = models["target"].model
    begin = torch.full((len(rows), 1), min(models["target"].eos, default=0))
    logits = model(torch.cat([begin, rows], 1).to(model.device)).logits[:, :-1].float().cpu()
    return float(F.cross_entropy(logits.flatten(0, 1), rows.flatten())) / math.log(2)


def counted_bits(rows: torch.Tensor, held: torch.Tensor) -> float:
    """Bits per token [.., T, K] if digits were sampled independently with the frequencies of the rows."""
    total = 0.0
    for level in range(LEVELS):
        counts = torch.bincount(rows[..., level].flatten(), minlength=BASE) + 1.0
        total -= float((counts / counts.sum()).log2()[held[..., level]].mean())
    return total


def drawn(made: dict[str, Pattern]) -> list[Line]:
    """The step at which each token's last symbol is written."""
    labels = {name: name for name in made} | {"flat": "flat and stack"}
    return [
        Line(labels[name], [[float(t), float(steps[-1])] for t, steps in enumerate(pattern.schedule)])
        for name, pattern in made.items()
        if name != "stack"
    ]


def run(models: Models) -> Result:
    """One row per pattern; curves of its schedule."""
    with progress.part(0.1):
        text = own_text(models, ROWS + HELD_OUT, FRAMES)
    symbols = digits(text, BASE, LEVELS)
    rows, held = symbols[:ROWS], symbols[ROWS:]
    table = []
    for name, pattern in progress.each(patterns(FRAMES, LEVELS).items()):
        model = trained(pattern, rows)
        with torch.inference_mode():
            bits = [loss / math.log(2) for loss in model.losses(held).tolist()]
        table.append([name, pattern.steps, FRAMES / pattern.steps, *bits, sum(bits)])
    levels = [f"bits, level {k + 1}" for k in range(LEVELS)]
    columns = ["pattern", f"forwards for {FRAMES} tokens", "tokens per forward", *levels, "bits per token"]
    by_name = {row[0]: row for row in table}
    best, quick = min(table, key=lambda row: row[-1]), by_name["parallel"]
    staggered, late = by_name["stack-delay"], by_name["delay"]
    says = [
        f"The pattern with the fewest bits per token is {best[0]}: {best[-1]:.2f} at {best[2]:.2f} tokens "
        f"per forward; parallel needs {quick[-1]:.2f} at {quick[2]:.2f}. Each was trained once.",
        f"Stack-delay needs {staggered[-1]:.2f} bits with {staggered[1]} forwards, delay {late[-1]:.2f} with "
        f"{late[1]}: in music the authors found stack-delay better, "
        f"{'and so it is here' if staggered[-1] < late[-1] else 'here it is not'}.",
        f"For scale: {counted_bits(rows, held):.2f} bits if each digit were drawn by its frequency alone, "
        f"{own_bits(models, text[ROWS:]):.2f} for the target that wrote the text.",
        "For text the split is artificial: digits of a token's number mean nothing, and with one of them "
        "wrong it is another token, where a frame of music with a wrong last level sounds nearly the same.",
    ]
    chart = Chart("When a token's last symbol is made", "token", "forward", drawn(patterns(DRAWN, LEVELS)))
    return Result(columns, table, says, chart)


def finding(answer: dict) -> str:
    """All symbols of a token at once, against one after the other."""
    (parallel,), (flat,) = (rows_with(answer, "pattern", name) for name in ("parallel", "flat"))
    forwards = next(name for name in answer["columns"] if name.startswith("forwards"))
    return (
        f"A token's symbols cost {two(parallel['bits per token'])} bits when all are written at once, in "
        f"{parallel[forwards]} forwards, and {two(flat['bits per token'])} bits one by one, in "
        f"{flat[forwards]}."
    )


STANDS = Basis({"held-out texts": HELD_OUT}, trained=1, unfinished=FAR_ABOVE)
