"""Regular expressions, JSON schemas and context-free grammars, checked by llguidance.

A state is a matcher of that library, which is copied before it reads a token. The library runs in the app's
process, but only on grammars that a separate process has survived (`llguidance_worker.py`).
"""

from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from decoders.constraints import llguidance_worker
from decoders.constraints.constraint import Constraint, DeadEnd
from decoders.constraints.matchers import Vocabulary, constraint_problem, matcher_of, no_text, worded
from decoders.constraints.problem import ConstraintProblem


class Grammar(Constraint):
    """A constraint that llguidance checks."""

    def __init__(self, kind: str, typed: str, vocabulary: Vocabulary, white_space: str = "compact"):
        """white_space: one of WHITE_SPACE, of JSON. Raises ConstraintProblem with one sentence."""
        if find_spec("llguidance") is None:
            raise ConstraintProblem("A grammar needs llguidance; install it with: pip install llguidance.")
        self.vocabulary = vocabulary.size
        llguidance_worker.tried(kind, typed, vocabulary, white_space)
        self.first = matcher_of(kind, typed, vocabulary, white_space)
        self.ends = vocabulary.ends
        if not self.allowed(self.first).any() and not self.may_end(self.first):
            raise constraint_problem(kind, no_text(vocabulary))

    def start(self) -> Any:
        return self.first

    def allowed(self, state) -> torch.Tensor:
        if state.is_error() or state.is_stopped():
            return torch.zeros(self.vocabulary, dtype=torch.bool)
        bits = np.unpackbits(np.frombuffer(state.compute_bitmask(), dtype=np.uint8), bitorder="little")
        allowed = torch.from_numpy(bits[: self.vocabulary].astype(bool))
        allowed[[end for end in self.ends if end < self.vocabulary]] = False
        return allowed

    def advance(self, state, token: int) -> Any:
        below = state.deep_copy()
        if below.consume_token(token):
            return below
        if not self.allowed(state)[token]:
            return None
        raise DeadEnd(
            f"llguidance gave up here: {worded(below.get_error())}; make it smaller."
        )  # a limit of its own

    def accepts(self, state, token: int) -> bool:
        return state.validate_tokens([token]) == 1

    def may_end(self, state) -> bool:
        return state.is_accepting()

    def forced(self, state) -> list[int]:
        tokens = state.compute_ff_tokens()
        return tokens[: min((i for i, t in enumerate(tokens) if t in self.ends), default=len(tokens))]
