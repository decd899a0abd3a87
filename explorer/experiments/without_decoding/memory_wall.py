"""Why do many tokens in one forward cost so little more than one?

AI and Memory Wall (Gholami et al. 2024): a forward takes as long as its slower part, reading the weights and
the cache, or the arithmetic; m tokens at once multiply the arithmetic and read the same bytes. Operations and
bytes are counted from the shapes of target and draft. This machine's four figures (the fixed cost of a layer,
and the cost of a byte of weights, of a byte of keys and values, and of an operation) are fitted to the
forwards over the shortest and the longest context with 1, 8 and 32 new tokens; all others are predicted. All
are measured in turn, and the shortest time counts, which leaves out the load of other programs. Weights of a
few megabytes may fit into the processor's cache and take no time of their own, and small operators are mostly
fixed cost. First chart: measured and predicted times. Second: the target's forwards on a data-centre GPU and
a phone, where nothing is measured.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import compress
from statistics import median

import numpy as np
import torch
from scipy.optimize import nnls

from decoders.engine.kv_cache import query_width
from decoders.engine.tree import Tree
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.reading import percent, rows_of
from explorer.timing import in_turn
from visualizers.analysis.cost_model import Shape, step
from visualizers.analysis.roofline import DEVICES, Device

PAPERS = ("ai-and-memory-wall",)
CONTEXTS, NEW = (64, 128, 256, 512), (1, 2, 4, 8, 16, 32)
FITTED = (1, 8, 32)  # tokens per forward used for the fit, with the shortest and the longest context
TIMES = 100  # measurements of each
CURVE = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # tokens per forward in the second chart
BYTES = 4  # per weight and per element of the cache


@dataclass(frozen=True)
class Machine:
    """The seconds that a layer takes regardless of its input, and those per byte of weights, per byte of keys
    and values, and per operation.
    """

    layer: float
    weight_byte: float
    cache_byte: float
    operation: float

    def seconds(self, shape: Shape, cost: dict) -> float:
        """The seconds of a forward: the sum of its parts, as if nothing overlapped."""
        reads = self.weight_byte * cost["bytes_weights"] + self.cache_byte * cost["bytes_kv"]
        return self.layer * shape.layers + reads + self.operation * cost["flops"]


def shape_of(model) -> Shape:
    """The shape of a Llama-like transformer."""
    config = model.config
    heads = config.num_attention_heads
    return Shape(
        config.num_hidden_layers,
        config.hidden_size,
        heads,
        config.num_key_value_heads,
        query_width(config),
        config.intermediate_size,
        config.vocab_size,
    )


@contextmanager
def forward(model, context: int, new: int) -> Iterator[Callable[[], None]]:
    """While it is open: a call that scores `new` consecutive tokens after a cached text, `context` tokens in
    all.
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


def fitted(shapes: list[Shape], costs: list[dict], seconds: list[float]) -> Machine:
    """The machine with the smallest relative error on these forwards, with no figure below 0."""
    table = np.array(
        [
            [shape.layers, cost["bytes_weights"], cost["bytes_kv"], cost["flops"]]
            for shape, cost in zip(shapes, costs, strict=True)
        ],
        float,
    )
    table /= np.array(seconds)[:, None]
    scale = table.max(0)
    return Machine(*(nnls(table / scale, np.ones(len(seconds)))[0] / scale))


def run(models: Models) -> Result:
    """One row per model, context and number of tokens at once; curves of two machines that are not here."""
    shapes = {role: shape_of(model.model) for role, model in models.items()}
    contexts = [n for n in CONTEXTS if n <= min(model.context for model in models.values())]
    asked = [(role, context, new) for role in models for context in contexts for new in NEW]
    with ExitStack() as open_ones:
        calls = [open_ones.enter_context(forward(models[role], *row)) for role, *row in asked]
        for call in progress.each(calls):
            call()
        seconds = in_turn(calls, TIMES, min)
    shown, costs = [shapes[role] for role, _, _ in asked], []
    for shape, (_, context, new) in zip(shown, asked, strict=True):
        costs.append(step(shape, Device(1, 1, 0, 0, 0), context, 1, new, BYTES, BYTES))
    ends = contexts[0], contexts[-1]
    known = [context in ends and new in FITTED for _, context, new in asked]
    here = fitted(*(list(compress(all_of, known)) for all_of in (shown, costs, seconds)))
    rows = []
    for (role, context, new), shape, cost, took, is_known in zip(
        asked, shown, costs, seconds, known, strict=True
    ):
        predicted, fit = here.seconds(shape, cost), "yes" if is_known else ""
        times = [took * 1e3, predicted * 1e3, predicted / took - 1]
        rows.append([role, context, new, round(cost["ai"], 2), *times, fit])
    misses = [abs(row[6]) for row in rows if not row[7]]
    says = [
        f"For the {len(misses)} forwards that were not fitted, the prediction is off by a median of "
        f"{percent(median(misses))} and by {percent(max(misses))} at most.",
        f"Fitted here: {here.layer * 1e6:.0f} µs per layer; {rate(here.weight_byte, 'bytes of weights')}, "
        f"{rate(here.cache_byte, 'bytes of keys and values')}, {rate(here.operation, 'operations')}.",
        "Verifying m drafted tokens does m times the arithmetic per byte: the reason why speculation pays "
        "where memory is the bottleneck.",
    ]
    columns = ["model", "context", "tokens at once", "operations per byte", "ms measured", "ms predicted"]
    return Result(
        [*columns, "off by", "fitted"], rows, says, measured(rows), pictures=[elsewhere(shapes["target"])]
    )


def rate(seconds: float, what: str) -> str:
    """The rate of a machine in words, if one `what` takes this many seconds."""
    return f"{1e-9 / seconds:.3g} billion {what} per second" if seconds else f"{what} in no time of their own"


def measured(rows: list[list]) -> Chart:
    """The target's forwards over the shortest and the longest context, measured and predicted."""
    own = [row for row in rows if row[0] == rows[0][0]]
    lines = [
        Line(f"{context} tokens, {what}", [[row[2], row[at]] for row in own if row[1] == context])
        for context in (own[0][1], own[-1][1])
        for what, at in (("measured", 4), ("predicted", 5))
    ]
    return Chart("A forward of the target", "tokens at once", "ms", lines)


def elsewhere(shape: Shape) -> Chart:
    """The time per token of a forward on machines that are not here."""
    lines = [
        Line(name, [[new, 1e6 * step(shape, DEVICES[name], 512, 1, new)["seconds"] / new] for new in CURVE])
        for name in ("data-centre GPU", "phone")
    ]
    return Chart("Microseconds per token, by the roofline", "tokens at once", "µs per token", lines, log=True)


def finding(answer: dict) -> str:
    """How much longer many tokens at once take than one, at the longest context."""
    rows = [row for row in rows_of(answer) if row["model"] == "target"]
    longest = max(row["context"] for row in rows)
    at = {row["tokens at once"]: row["ms measured"] for row in rows if row["context"] == longest}
    few, many = min(at), max(at)
    return (
        f"A forward over {many} tokens does {many} times the arithmetic of a forward over {few}, but takes "
        f"{at[many] / at[few]:.1f} times as long, since the layers' fixed cost and the "
        "weights are paid for once."
    )


STANDS = Basis({"machine": 1, "measurements of each": TIMES})
