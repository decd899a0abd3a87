"""Attention and feed-forward layers on separate machines: micro-batches go back and forth, layer by layer, in
a pipeline (AFD of Step-3, StepFun 2025; the timeline is our reconstruction).

The transfer, in both directions together, is a stage too.
"""

from dataclasses import dataclass

from decoders.refusal import Refusal

STAGES = ("attention", "transfer", "feed-forward")


@dataclass(frozen=True)
class Turn:
    """One micro-batch on one stage in one layer, from `start` to `end`."""

    stage: int
    micro_batch: int
    layer: int
    start: float
    end: float


def timeline(seconds: tuple[float, float, float], layers: int, micro_batches: int) -> list[Turn]:
    """All turns in the order in which they start: each stage serves one micro-batch at a time, first come
    first served. seconds: what a turn takes on each stage. Raises ValueError for counts below 1.
    """
    if min(layers, micro_batches) < 1:
        raise Refusal("A pipeline has at least one layer and one micro-batch.")
    free, ready = [0.0] * len(STAGES), [0.0] * micro_batches
    waiting = [(0, 0)] * micro_batches  # the next (layer, stage) of each micro-batch
    turns = []
    while any(layer < layers for layer, _ in waiting):
        begins = [
            (max(ready[batch], free[stage]), layer, batch)
            for batch, (layer, stage) in enumerate(waiting)
            if layer < layers
        ]
        start, layer, batch = min(begins)
        stage = waiting[batch][1]
        end = start + seconds[stage]
        free[stage] = ready[batch] = end
        turns.append(Turn(stage, batch, layer, start, end))
        waiting[batch] = (layer, stage + 1) if stage + 1 < len(STAGES) else (layer + 1, 0)
    return turns


def period(seconds: tuple[float, float, float]) -> float:
    """Seconds between two micro-batches that leave a layer, with at least three in flight: those of the
    slowest stage.
    """
    return max(seconds)


def idle(turns: list[Turn], stage: int) -> float:
    """Seconds for which a stage waits between its first and its last turn: its bubbles."""
    own = [turn for turn in turns if turn.stage == stage]
    return own[-1].end - own[0].start - sum(turn.end - turn.start for turn in own)
