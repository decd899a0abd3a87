"""Whether what is typed for a lane's constraint can be used, and where it is wrong, while it is typed.

Knows the models in use; the page shows the sentence (assets/web/page/constraint.js).
"""

import asyncio
import time
from typing import Any

from decoders.constraints.kinds import CONSTRAINT, NONE, constraint_of
from decoders.constraints.problem import ConstraintProblem
from decoders.trace.number_format import many
from explorer.page_requests import Constraint
from explorer.runs.validation import as_json, check_models

NAMED = 6  # tokens that may begin the text


def functions(runs, loader) -> list:
    """What the page can ask for: see `explorer.page.layout.server_functions`."""

    async def explorer_constraint(request: Constraint) -> str:
        """`{parameters, models}` gives `{good, sentence, line, column}`: see `judged`."""

        async def made() -> dict:
            models = loader.find(check_models(request.models)).wait()
            return await asyncio.to_thread(judged, request.parameters, models["target"])

        return await as_json(made())

    return [explorer_constraint]


def judged(given: dict[str, Any], target: Any) -> dict:
    """`good`: whether a lane on this model could use it; `sentence`: what is wrong, or what may come first;
    `line` and `column` from 1, where the fault has a place.
    """
    try:
        values = {p.name: p.parse(given.get(p.name, p.default)) for p in CONSTRAINT}
        if values["constraint"] == NONE:
            return {"good": True, "sentence": "", "line": None, "column": None}
        start = time.perf_counter()
        constraint = constraint_of(values, target, target.eos)
        seconds = time.perf_counter() - start
        first = constraint.allowed(constraint.start()).nonzero()[:, 0].tolist()
    except ConstraintProblem as problem:
        return {"good": False, "sentence": str(problem), "line": problem.line, "column": problem.column}
    except ValueError as problem:
        return {"good": False, "sentence": str(problem), "line": None, "column": None}
    words = [target.bytes_of(token).decode("utf-8", "replace") for token in first[:NAMED]]
    named = ", ".join(f"“{word}”" for word in words) + (", …" if len(first) > NAMED else "")
    sentence = f"Ready after {1000 * seconds:.0f} ms. {many(len(first), 'token')} may come first: {named}."
    return {"good": True, "sentence": sentence, "line": None, "column": None}
