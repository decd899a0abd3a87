"""Problems that a program can check: made from a seed, in a fixed prompt form, with a checker per task.

`TASKS` maps a name to a `Task`; modules of this folder with a tuple `TASKS` are found automatically when it
is first asked for: the sandbox needs none of them.
"""

import importlib
import pkgutil
import random
from functools import cache
from typing import Any

from decoders.refusal import Refusal
from explorer.tasks.problem import Grade, Problem, Task

HELD_OUT_SEED = 1_000_003  # for evaluation; training recipes use the number of tokens read so far as seed

__all__ = ["HELD_OUT_SEED", "TASKS", "Grade", "Problem", "Task", "problems"]

TASKS: dict[str, Task]


@cache
def all_tasks() -> dict[str, Task]:
    """Every task by name."""
    return {
        task.name: task
        for module in pkgutil.iter_modules(__path__)
        for task in getattr(importlib.import_module(f"{__name__}.{module.name}"), "TASKS", ())
    }


def __getattr__(name: str) -> Any:
    if name == "TASKS":
        return all_tasks()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def problems(name: str, count: int, seed: int = 0) -> list[Problem]:
    """`count` problems of one task. Raises Refusal with one sentence if there is no such task."""
    tasks = all_tasks()
    if name not in tasks:
        raise Refusal(f"There is no task named {name!r}; choose one of: {', '.join(tasks)}.")
    rng = random.Random(f"{name} {seed}")
    return [tasks[name].make(rng) for _ in range(count)]
