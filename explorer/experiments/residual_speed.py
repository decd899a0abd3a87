"""How early does the model know its next token?

Two streams through the target's layers, along texts that it wrote itself: the usual one, and the fast one of
M2R2's adapters. After each layer: the cosine between the state and the last one, both as the head reads them;
how often the head's prediction there is already the final one; and for the fast stream, which layer of the
usual one it is nearest to. Without shipped adapters both streams are the same.
"""

from statistics import fmean

import torch
from torch.nn import functional as F

from decoders.heads import Taps, take_taps
from decoders.speculative.self_draft.kangaroo import EITHER
from decoders.speculative.self_draft.m2r2 import adapters_of
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import KINDS, decoded, prompts
from explorer.experiments.basis import Basis, by_pairs
from explorer.experiments.reading import percent, rows_of
from visualizers.analysis.calibration import wilson

PAPERS = ("m2r2",)
COUNT, TOKENS = 8, 40


def texts(models: Models) -> list[torch.Tensor]:
    """Prompts [1, T] of every kind with greedy's continuation."""
    target, result = models["target"], []
    for prompt in progress.each(prompt for kind in KINDS for prompt in prompts(kind, COUNT)):
        wrote = decoded(models, "greedy", prompt, TOKENS).output()
        result.append(torch.tensor([[*target.encode(prompt), *wrote]], device=target.model.device))
    return result


class Tally:
    """The statistics of one stream's states [N, d] after one layer, summed over texts."""

    def __init__(self) -> None:
        self.alike, self.right, self.near = [], [], []

    def add(self, state: torch.Tensor, taps: Taps, target, usual: list[torch.Tensor] | None = None) -> None:
        """state [T, d], without a norm; `usual`: the states after every layer, for comparison."""
        read = F.rms_norm(state, (target.width,), target.last_norm, target.eps)
        self.alike += F.cosine_similarity(read.float(), taps.hidden[0], dim=-1).tolist()
        self.right += (target.logits(read).argmax(-1) == taps.logits[0].argmax(-1)).tolist()
        if usual is not None:
            apart = torch.stack([(state - h).norm(dim=-1) / h.norm(dim=-1) for h in usual])
            self.near += apart.argmin(0).tolist()

    def row(self) -> list[float]:
        return [fmean(self.alike), fmean(self.right)]


@torch.inference_mode()
def run(models: Models) -> Result:
    """One row per layer; the very last state, which is normalised already, is not a row."""
    adapters = adapters_of({"adapters": EITHER}, models["target"])
    target, layers, exit = adapters.target, adapters.target.layers, adapters.settings["exit"]
    slow, fast = [Tally() for _ in range(layers)], [Tally() for _ in range(exit + 1)]
    with progress.part(0.7):
        read = texts(models)
    for tokens in progress.each(read):
        taps = take_taps(models["target"].model, tokens, tuple(range(layers)))
        usual = [taps.states[layer][0].to(target.embed.dtype) for layer in range(layers)]
        for tally, state in zip(slow, usual, strict=True):
            tally.add(state, taps, target)
        for tally, state in zip(fast, adapters.along_text(tokens), strict=True):
            tally.add(state[0], taps, target, usual)
    table = []
    for layer, tally in enumerate(slow):
        beside = [*fast[layer].row(), fmean(fast[layer].near)] if layer <= exit else [None] * 3
        table.append([layer, *tally.row(), *beside])
    columns = [
        "after layers",
        "usual: cosine",
        "usual: right",
        "fast: cosine",
        "fast: right",
        "fast: nearest layer",
    ]
    (h, a), places = (tally.row() for tally in (slow[exit], fast[exit])), len(fast[exit].right)
    low, high = wilson(round(a[1] * places), places)
    level = next((at for at, tally in enumerate(slow) if tally.row()[1] >= a[1]), layers)
    says = [
        f"After {exit} of {layers} layers the head's prediction is already the final one at {h[1]:.0%} of "
        f"{places:,} positions on the usual stream, at {a[1]:.0%} ({low:.0%} to {high:.0%}) on the fast one.",
        f"The usual stream is right as often after {level} layers.",
        f"The fast stream is then nearest to the usual one after {fmean(fast[exit].near):.1f} layers, on "
        "average over all positions.",
    ]
    lines = [
        Line("usual: right", [[row[0], row[2]] for row in table]),
        Line("usual: cosine", [[row[0], row[1]] for row in table]),
        Line("fast: right", [[row[0], row[4]] for row in table[: exit + 1]]),
        Line("fast: cosine", [[row[0], row[3]] for row in table[: exit + 1]]),
    ]
    chart = Chart(
        "What the last layer will say, layer by layer",
        "after this many layers",
        "share of positions, cosine",
        lines,
    )
    gaps = [int(b) - int(a) for a, b in zip(slow[exit].right, fast[exit].right, strict=True)]
    texts_of = torch.tensor(gaps).float().split([tokens.shape[1] for tokens in read])
    per_text = [float(some.mean()) for some in texts_of]
    compared = [by_pairs("final choice known, with the adapter against without", per_text)]
    return Result(columns, table, says, chart, compared=compared)


def finding(answer: dict) -> str:
    """The deepest layer of the fast stream, compared with the usual stream there."""
    rows = rows_of(answer)
    deep = [row for row in rows if row["fast: right"] is not None][-1]
    return (
        f"After {deep['after layers']} of {len(rows)} layers the model already has its final choice for "
        f"{percent(deep['usual: right'])} of the tokens, and with a small adapter for "
        f"{percent(deep['fast: right'])}."
    )


STANDS = Basis({"texts of each kind": COUNT}, trained=1)
