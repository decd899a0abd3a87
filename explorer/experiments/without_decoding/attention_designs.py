"""Which attention fits which machine?

The cost table of Step-3 (StepFun 2025), recomputed: what attention alone caches and computes per token in
four public models, for a context of 32,768 tokens at one byte per element. A machine is balanced for an
attention design whose operations per byte equal its ridge point. The second part puts attention and
feed-forward layers on separate machines: three micro-batches in a pipeline, with stages of equal and of
unequal duration, simulated step by step. Everything is computed from shapes; none of these models and
machines is used here.
"""

from explorer.experiments import Models
from explorer.experiments.basis import Basis
from explorer.experiments.pictures import Heat, Strip
from explorer.experiments.reading import Row, highest, lowest, rows_of
from explorer.experiments.sweep import Setting, Sweep
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
PER_BYTE = "operations per byte"
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


def computed(models: Models, shape: Shape) -> Row:
    """What the attention of a design reads and computes for a token."""
    cost = attention(shape, CONTEXT, cache_bytes=ELEMENT)
    return {
        "GB of cache read": cost["bytes"] / 1e9,
        "GFLOP": cost["flops"] / 1e9,
        PER_BYTE: round(cost["ai"], 1),
        "nearest ridge": nearest(cost["ai"]),
    }


def says(rows: list[Row]) -> list[str]:
    """How long the stages of both pipelines wait."""
    sentences = []
    for name, seconds in PIPELINES.items():
        turns = timeline(seconds, LAYERS, MICRO_BATCHES)
        waits = ", ".join(f"{stage} {idle(turns, at):g}" for at, stage in enumerate(STAGES))
        sentences.append(
            f"Pipeline, {name}: a micro-batch leaves a layer every {period(seconds):g} units of time; over "
            f"{LAYERS} layers the stages wait: {waits}."
        )
    return [
        *sentences,
        "MLA's operations follow the paper's count, 576 for scores and 576 for values; values need only 512.",
    ]


SWEEP = Sweep(
    names=("design",),
    settings=lambda models: [Setting((name,), parameters={"shape": one}) for name, one in DESIGNS.items()],
    decode=computed,
    says=says,
    pictures=lambda rows: [picture()],
    one_process=True,
)


def finding(answer: dict) -> str:
    """The two extremes in operations per byte."""
    low, high = (pick(rows_of(answer), PER_BYTE) for pick in (lowest, highest))
    return (
        f"Per byte of cache, {high['design']} computes {high[PER_BYTE] / low[PER_BYTE]:.0f} times as much as "
        f"{low['design']}, so the same machine is compute-bound for one and memory-bound for the other."
    )


STANDS = Basis(exact="everything is computed from published shapes")
