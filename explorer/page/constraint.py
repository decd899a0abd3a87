"""Checks a lane's constraint while it is typed: whether it is usable and, if not, where the error is.

The page shows the message (assets/web/page/constraint.js).
"""

import asyncio
import time
from typing import Any

from decoders.constraints.problem import ConstraintProblem
from decoders.constraints.settings import CONSTRAINT, NONE
from decoders.refusal import Refusal
from decoders.trace.number_format import many
from explorer.page_requests import Constraint
from explorer.runs.validation import as_json, check_models

AROUND = 30  # characters shown on either side of an error
NAMED = 6  # how many of the allowed first tokens are listed


def functions(runs, loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""

    async def explorer_constraint(request: Constraint) -> str:
        """`{parameters, models}` gives `{good, sentence, fault}`: see `check_constraint`."""

        async def check() -> dict:
            models = loader.find(check_models(request.models)).wait()
            return await asyncio.to_thread(check_constraint, request.parameters, models["target"])

        return await as_json(check())

    return [explorer_constraint]


def check_constraint(given: dict[str, Any], target: Any) -> dict:
    """Compiles a constraint for a model and returns `{good, sentence, fault}`.

    `good` says whether a lane could use it. `sentence` names the error, or else the tokens that can come
    first. `fault` is an excerpt of the constraint with a mark below the error, empty if it has no position.
    """
    from decoders.constraints.kinds import constraint_of  # with torch, which the page is up before

    try:
        values = {p.name: p.parse(given.get(p.name, p.default)) for p in CONSTRAINT}
        if values["constraint"] == NONE:
            return {"good": True, "sentence": "", "fault": ""}
        start = time.perf_counter()
        constraint = constraint_of(values, target, target.eos)
        seconds = time.perf_counter() - start
        first = constraint.allowed(constraint.start()).nonzero()[:, 0].tolist()
    except ConstraintProblem as problem:
        fault = marked_excerpt(values["constraint_text"], problem.line, problem.column)
        return {"good": False, "sentence": str(problem), "fault": fault}
    except Refusal as problem:
        return {"good": False, "sentence": str(problem), "fault": ""}
    words = [target.bytes_of(token).decode("utf-8", "replace") for token in first[:NAMED]]
    named = ", ".join(f"“{word}”" for word in words) + (", …" if len(first) > NAMED else "")
    sentence = f"Ready after {1000 * seconds:.0f} ms. {many(len(first), 'token')} may come first: {named}."
    sentence = " ".join([sentence, *getattr(constraint, "notes", ())])
    return {"good": True, "sentence": sentence, "fault": ""}


def marked_excerpt(text: str, line: int | None, column: int | None) -> str:
    """The text around a position, with a mark below it; `line` and `column` count from 1."""
    if not line or not column or line > text.count("\n") + 1:
        return ""
    start = max(0, column - 1 - AROUND)
    whole = text.split("\n")[line - 1]
    return f"{whole[start : column - 1 + AROUND]}\n{' ' * (column - 1 - start)}▲"
