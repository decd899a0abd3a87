"""Problems that a program can check: made from a seed, in a fixed prompt form, with a checker per task.

`TASKS` maps a name to a `Task`; modules of this folder with a tuple `TASKS` are found automatically.
"""

import importlib
import pkgutil
import random

from decoders.refusal import Refusal
from explorer.tasks.problem import Grade, Problem, Task

HELD_OUT_SEED = 1_000_003  # for evaluation; training recipes use the number of tokens read so far as seed

__all__ = ["HELD_OUT_SEED", "TASKS", "Grade", "Problem", "Task", "problems"]

TASKS: dict[str, Task] = {
    task.name: task
    for module in pkgutil.iter_modules(__path__)
    for task in getattr(importlib.import_module(f"{__name__}.{module.name}"), "TASKS", ())
}


def problems(name: str, count: int, seed: int = 0) -> list[Problem]:
    """`count` problems of one task. Raises Refusal with one sentence if there is no such task."""
    if name not in TASKS:
        raise Refusal(f"There is no task named {name!r}; choose one of: {', '.join(TASKS)}.")
    rng = random.Random(f"{name} {seed}")
    return [TASKS[name].make(rng) for _ in range(count)]
