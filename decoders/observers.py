"""Which observers a lane has, in the order in which their events stand in a step."""

from typing import Any

from decoders.attention_sources import AttentionSources
from decoders.constraints.bias import BiasRecord
from decoders.constraints.forbidden import ForbiddenTokens
from decoders.constraints.places.place import place_record_of
from decoders.constraints.settings import MEASURE
from decoders.logits.watermark import detector_of
from decoders.memory.lane_memory import LaneMemory
from decoders.observer import Observer


def observers_of(lane: Any, memory: LaneMemory | None) -> list[Observer]:
    """The observers that a lane's parameters ask for. Every lane is observed for forbidden tokens, since its
    strategy may apply a constraint itself; for attention, where the engine gives it; and for spans of
    reasoning.
    """
    vocabulary = lane.models["target"].engine.vocabulary
    wanted = (
        ForbiddenTokens(),
        AttentionSources(),
        thinking_of(lane),
        detector_of(lane.shaping, vocabulary),
        place_record_of(lane),
        memory,
        BiasRecord(lane) if lane.parameters.get(MEASURE) else None,
    )
    return [observer for observer in wanted if observer is not None]


def thinking_of(lane: Any) -> Observer | None:
    """What looks at the reasoning of a lane, unless nothing says that it may have any."""
    said = (lane.shaping.get(name) for name in ("thinking_budget", "span_delimiters"))
    if not any(said) and not lane.models["target"].chat_template:
        return None
    from decoders.thinking import observer  # few lanes have one

    return observer(lane)
