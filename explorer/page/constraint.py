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

AROUND = 30  # characters shown on either side of a fault
NAMED = 6  # tokens that may begin the text


def functions(runs, loader) -> list:
    """What the page can ask for: see `explorer.page.layout.server_functions`."""

    async def explorer_constraint(request: Constraint) -> str:
        """`{parameters, models}` gives `{good, sentence, fault}`: see `judged`."""

        async def made() -> dict:
            models = loader.find(check_models(request.models)).wait()
            return await asyncio.to_thread(judged, request.parameters, models["target"])

        return await as_json(made())

    return [explorer_constraint]


def judged(given: dict[str, Any], target: Any) -> dict:
    """`good`: whether a lane on this model could use it; `sentence`: what is wrong, or what may come first;
    `fault`: the line with what is wrong and a mark below it, where that has a place.
    """
    try:
        values = {p.name: p.parse(given.get(p.name, p.default)) for p in CONSTRAINT}
        if values["constraint"] == NONE:
            return {"good": True, "sentence": "", "fault": ""}
        start = time.perf_counter()
        constraint = constraint_of(values, target, target.eos)
        seconds = time.perf_counter() - start
        first = constraint.allowed(constraint.start()).nonzero()[:, 0].tolist()
    except ConstraintProblem as problem:
        fault = marked(values["constraint_text"], problem.line, problem.column)
        return {"good": False, "sentence": str(problem), "fault": fault}
    except ValueError as problem:
        return {"good": False, "sentence": str(problem), "fault": ""}
    words = [target.bytes_of(token).decode("utf-8", "replace") for token in first[:NAMED]]
    named = ", ".join(f"“{word}”" for word in words) + (", …" if len(first) > NAMED else "")
    sentence = f"Ready after {1000 * seconds:.0f} ms. {many(len(first), 'token')} may come first: {named}."
    return {"good": True, "sentence": sentence, "fault": ""}


def marked(text: str, line: int | None, column: int | None) -> str:
    """The surroundings of a place in a text, which is counted from 1, with a mark below it."""
    if not line or not column or line > text.count("\n") + 1:
        return ""
    start = max(0, column - 1 - AROUND)
    whole = text.split("\n")[line - 1]
    return f"{whole[start : column - 1 + AROUND]}\n{' ' * (column - 1 - start)}▲"
