"""Why do many tokens in one forward cost so little more than one?

AI and Memory Wall (Gholami et al. 2024): a forward takes as long as its slower part, reading the weights and
the cache, or the arithmetic; m tokens at once multiply the arithmetic and read the same bytes. Counted are
operations and bytes of the target's own shape. This machine's three figures (memory, arithmetic, the fixed
cost of a forward) are fitted to the odd rows; the even rows are predicted, and all are measured in turn. A
model of a few megabytes may lie in the processor's cache, so the fitted memory figure can be the cache's.
Chart: the same model's forwards on a data-centre GPU and a phone, where nothing is measured.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median

import numpy as np
import torch
from scipy.optimize import nnls

from decoders.engine.tree import Tree
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.reading import percent, rows_of
from explorer.timing import in_turn
from visualizers.analysis.cost_model import Shape, step
from visualizers.analysis.roofline import DEVICES, Device

PAPERS = ("ai-and-memory-wall",)
CONTEXTS, NEW = (64, 128, 256, 512), (1, 8, 32)
TIMES = 15  # measurements of each
CURVE = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # tokens at once, in the chart
BYTES = 4  # of a weight and of an element of the cache, here


def shape_of(model) -> Shape:
    """The shape of a transformer of Llama's kind."""
    config = model.config
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    return Shape(
        config.num_hidden_layers,
        config.hidden_size,
        heads,
        config.num_key_value_heads,
        width,
        config.intermediate_size,
        config.vocab_size,
    )


@contextmanager
def forward(model, context: int, new: int) -> Iterator[Callable[[], None]]:
    """While it is open: a call that scores `new` tokens in a row behind others, `context` with them, which
    stay in the cache.
    """
    tree = Tree([token % 200 + 10 for token in range(context - new)])
    scorer = model.engine.attach(tree)
    scorer.score([tree.trunk - 1])

    @torch.inference_mode()
    def once() -> None:
        nodes = [tree.trunk - 1]
        for token in range(new):
            nodes.append(tree.add(nodes[-1], token + 10))
        scorer.score(nodes[1:])
        scorer.release(nodes[1:])

    try:
        yield once
    finally:
        scorer.close()


def fitted(costs: list[dict], seconds: list[float]) -> Device:
    """The machine whose fixed cost, memory and arithmetic fit these forwards best, none below zero. The two
    parts are added here, as on a processor that cannot hide one behind the other.
    """
    table = np.array([[1.0, cost["bytes_weights"] + cost["bytes_kv"], cost["flops"]] for cost in costs])
    scale = table.max(0)
    launch, per_byte, per_flop = nnls(table / scale, np.array(seconds))[0] / scale
    tiny = 1e-18  # a part that costs nothing
    return Device(1e-9 / max(per_byte, tiny), 1e-12 / max(per_flop, tiny), launch * 1e6, 0, 0)


def predicted(device: Device, cost: dict) -> float:
    """Seconds of a forward on the fitted machine: fixed cost, reading and arithmetic one after the other."""
    moved = cost["bytes_weights"] + cost["bytes_kv"]
    return device.launch * 1e-6 + moved / (device.bandwidth * 1e9) + cost["flops"] / (device.compute * 1e12)


def run(models: Models) -> Result:
    """A row per context and number of tokens at once; curves of two machines that are not here."""
    target = models["target"]
    shape, longest = shape_of(target.model), min(target.context, CONTEXTS[-1])
    pairs = [(context, new) for context in CONTEXTS if context <= longest for new in NEW]
    with ExitStack() as open_ones:
        calls = [open_ones.enter_context(forward(target, context, new)) for context, new in pairs]
        for call in calls:
            call()
        seconds = in_turn(calls, TIMES)
    here = Device(1, 1, 0, 0, 0)
    costs = [step(shape, here, context, 1, new, BYTES, BYTES) for context, new in pairs]
    device = fitted(costs[::2], seconds[::2])
    rows, misses = [], []
    for at, ((context, new), cost, took) in enumerate(zip(pairs, costs, seconds, strict=True)):
        said = predicted(device, cost)
        rows.append(
            [
                context,
                new,
                round(cost["ai"], 2),
                took * 1e3,
                said * 1e3,
                said / took - 1,
                "" if at % 2 else "yes",
            ]
        )
        if at % 2:
            misses.append(abs(said / took - 1))
    lines = [
        Line(name, [[new, 1e6 * step(shape, DEVICES[name], 512, 1, new)["seconds"] / new] for new in CURVE])
        for name in progress.each(("data-centre GPU", "phone"))
    ]
    says = [
        f"Rows that were not fitted are missed by {percent(median(misses))} in the median and "
        f"{percent(max(misses))} at most.",
        f"Fitted here: {device.launch:.0f} µs per forward, {device.bandwidth:.3g} GB/s, "
        f"{device.compute * 1e3:.3g} GFLOP/s.",
        "Verifying m drafted tokens does m times the arithmetic per byte: the reason why speculation pays "
        "where memory is the bottleneck.",
    ]
    columns = ["context", "tokens at once", "operations per byte", "ms measured", "ms predicted", "off by"]
    chart = Chart(
        "Microseconds per token, by the roofline", "tokens at once", "µs per token", lines, log=True
    )
    return Result([*columns, "fitted"], rows, says, chart)


def finding(answer: dict) -> str:
    """How much more many tokens at once take than one, at the longest context."""
    rows = rows_of(answer)
    longest = max(row["context"] for row in rows)
    at = {row["tokens at once"]: row["ms measured"] for row in rows if row["context"] == longest}
    few, many = min(at), max(at)
    return (
        f"A forward over {many} tokens does {many} times the arithmetic of a forward over {few}, but takes "
        f"{at[many] / at[few]:.1f} times as long, since both read the same weights."
    )
