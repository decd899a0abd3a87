"""Which attention fits which machine?

The cost table of Step-3 (StepFun 2025), recomputed: what attention alone caches and computes per token in
four public models, for a context of 32,768 tokens at one byte per element. A machine is balanced for an
attention design whose operations per byte equal its ridge point. The second part puts attention and
feed-forward layers on separate machines: three micro-batches in a pipeline, with stages of equal and of
unequal duration, simulated step by step. Everything is computed from shapes; none of these models and
machines is used here.
"""

from explorer.experiments import Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.pictures import Heat, Strip
from explorer.experiments.reading import rows_of
from visualizers.analysis.cost_model import Shape, attention
from visualizers.analysis.disaggregation import STAGES, idle, period, timeline

PAPERS = ("step-3-is-large-yet-affordable",)
CONTEXT, ELEMENT = 32_768, 1  # tokens; bytes
DESIGNS = {  # layers, _, query heads, cached heads, head size; sizes that attention does not use are 1
    "Step-3, MFA": Shape(61, 1, 64, 1, 256, 1, 1),
    "DeepSeek-V3, MLA": Shape(61, 1, 128, 1, 576, 1, 1, shared=True),
    "Qwen3-235B, 4 KV heads": Shape(94, 1, 64, 4, 128, 1, 1),
    "ERNIE, 8 KV heads": Shape(54, 1, 64, 8, 128, 1, 1),
}
RIDGES = {"H20": 74, "H800": 591, "A800": 156}  # operations per byte; the last two without a source
PIPELINES = {"balanced": (2.0, 2.0, 2.0), "slow feed-forward": (1.0, 1.0, 3.0)}
LAYERS, MICRO_BATCHES, SHOWN = 61, 3, 24  # SHOWN: time steps in the picture


def nearest(ai: float) -> str:
    """The machine whose ridge point is nearest in ratio."""
    return min(RIDGES, key=lambda name: max(RIDGES[name] / ai, ai / RIDGES[name]))


def picture() -> Heat:
    """Which micro-batch each stage serves over time: 0 for none."""
    strips = []
    for name, seconds in PIPELINES.items():
        turns = timeline(seconds, LAYERS, MICRO_BATCHES)
        served = [[0] * SHOWN for _ in STAGES]
        for turn in turns:
            for moment in range(int(turn.start), min(int(turn.end), SHOWN)):
                served[turn.stage][moment] = turn.micro_batch + 1
        moments = [str(moment) for moment in range(SHOWN)]
        strips += [
            Strip(f"{name}: {stage}", moments, [row]) for stage, row in zip(STAGES, served, strict=True)
        ]
    says = "which of three micro-batches a stage serves, the first palest; white: idle"
    return Heat(
        "Attention and feed-forward layers on separate machines", says, ["time"], strips, 0.0, MICRO_BATCHES
    )


def run(models: Models) -> Result:
    """One row per design; sentences on the two pipelines."""
    rows = []
    for name, shape in progress.each(DESIGNS.items()):
        cost = attention(shape, CONTEXT, cache_bytes=ELEMENT)
        rows.append(
            [name, cost["bytes"] / 1e9, cost["flops"] / 1e9, round(cost["ai"], 1), nearest(cost["ai"])]
        )
    says = []
    for name, seconds in PIPELINES.items():
        turns = timeline(seconds, LAYERS, MICRO_BATCHES)
        waits = ", ".join(f"{stage} {idle(turns, at):g}" for at, stage in enumerate(STAGES))
        says.append(
            f"Pipeline, {name}: a micro-batch leaves a layer every {period(seconds):g} units of time; over "
            f"{LAYERS} layers the stages wait: {waits}."
        )
    says.append(
        "MLA's operations follow the paper's count, 576 for scores and 576 for values; values need only 512."
    )
    columns = ["design", "GB of cache read", "GFLOP", "operations per byte", "nearest ridge"]
    return Result(columns, rows, says, pictures=[picture()])


def finding(answer: dict) -> str:
    """The two extremes in operations per byte."""
    rows = sorted(rows_of(answer), key=lambda row: row["operations per byte"])
    low, high = rows[0], rows[-1]
    ratio = high["operations per byte"] / low["operations per byte"]
    return (
        f"Per byte of cache, {high['design']} computes {ratio:.0f} times as much as "
        f"{low['design']}, so the same machine is compute-bound for one and memory-bound for the other."
    )


STANDS = Basis(exact="everything is computed from published shapes")
