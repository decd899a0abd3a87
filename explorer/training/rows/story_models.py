"""Llamas that read stories and problems, a row each. Imports no torch."""

from dataclasses import dataclass

from explorer.training.rows.row import Row


@dataclass(frozen=True)
class Stage:
    """One stage of training. name: of its checkpoints; tasks: share of the rows that are problems; layers: to
    how many the model is deepened first; exits: after how many layers it learns to predict early.
    """

    name: str
    million_tokens: float
    tasks: float = 0.0
    layers: int | None = None
    exits: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StoryModel(Row):
    """Trained by `training/stages.py`. start: the shape of a fresh Llama, or the name of a shipped one."""

    start: dict | str
    stages: tuple[Stage, ...]


ROWS = (
    StoryModel(
        "llama-tiny",
        "the target, twelve Llama layers of width 192, 6.1 M parameters. It was trained on stories (with "
        "eight layers, then twelve), then on stories and checkable tasks with early exits after layers 3, "
        "6 and 9.",
        start=dict(hidden_size=192, layers=8, heads=6, intermediate_size=512),
        stages=(
            Stage("llama-tiny-8", 10),
            Stage("llama-tiny-12", 8, layers=12),
            Stage("llama-tiny-mixed", 20, tasks=0.375, exits=(3, 6, 9)),
        ),
    ),
    StoryModel(
        "llama-tiny-draft",
        "the draft for llama-tiny: two Llama layers of width 128, 0.9 M parameters, trained on the same "
        "texts.",
        start=dict(hidden_size=128, layers=2, heads=4, intermediate_size=352),
        stages=(Stage("llama-tiny-draft", 20), Stage("llama-tiny-draft-mixed", 14, tasks=0.375)),
    ),
    StoryModel(
        "llama-tiny-fastdraft-pretrained",
        "a draft of a seventeenth of llama-tiny's size, trained on stories alone: the first of FastDraft's "
        "three stages (2024).",
        start=dict(hidden_size=64, layers=2, heads=2, intermediate_size=176),
        stages=(Stage("llama-tiny-fastdraft-pretrained", 1.6),),
    ),
    StoryModel(
        "llama-tiny-fastdraft-continued",
        "the same draft, trained further on stories and problems, as FastDraft (2024) continues with web "
        "texts and code. This is the second of its three stages.",
        start="llama-tiny-fastdraft-pretrained",
        stages=(Stage("llama-tiny-fastdraft-continued", 0.8, tasks=0.5),),
    ),
)
