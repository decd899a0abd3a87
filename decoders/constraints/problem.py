"""What is wrong with a typed constraint, and where in its text."""

import json
from typing import Any

from decoders.refusal import Refusal


class ConstraintProblem(Refusal):
    """One sentence; `line` and `column` count from 1, None where the fault has no place."""

    def __init__(self, sentence: str, line: int | None = None, column: int | None = None):
        super().__init__(sentence)
        self.line, self.column = line, column


def json_value(typed: str, what: str) -> Any:
    """The JSON value of a typed text. Raises ConstraintProblem with its place."""
    try:
        return json.loads(typed)
    except json.JSONDecodeError as error:
        reason = error.msg[0].lower() + error.msg[1:]
        raise ConstraintProblem(
            f"The {what} is not JSON: {reason} at line {error.lineno}, column {error.colno}.",
            error.lineno,
            error.colno,
        ) from None
    except RecursionError:
        raise ConstraintProblem(f"The {what} is nested too deeply; make it flatter.") from None
