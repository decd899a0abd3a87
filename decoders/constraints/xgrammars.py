"""The same kinds of grammar, checked by xgrammar: a second engine, to compare with."""

import base64
import re
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import torch

from decoders.constraints.constraint import Constraint, DeadEnd
from decoders.constraints.matchers import NAMES, Vocabulary, choices_of, constraint_problem, no_text, worded
from decoders.constraints.problem import ConstraintProblem, json_value
from decoders.constraints.xgrammar_worker import Worker
from decoders.refusal import said_by

NOT_THERE = (
    "xgrammar is not installed; choose the engine llguidance, or run pip install --no-deps xgrammar "
    "apache-tvm-ffi."
)
GAVE_UP = "xgrammar refused a token that it had allowed"
KINDS = ("json_schema", "regex", "gbnf", "choices")
UNCHECKED = (  # keys of schemas that xgrammar passes over without a warning
    "$dynamicRef", "contains", "dependencies", "dependentRequired", "dependentSchemas", "else", "if", "not",
    "then", "unevaluatedProperties", "uniqueItems",
)  # fmt: skip
FORMATS = (  # that xgrammar checks; it passes over others without a warning
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri",
    "uri-reference", "uri-template", "json-pointer", "relative-json-pointer",
)  # fmt: skip
OF_NAMES = ("properties", "patternProperties", "$defs", "definitions")  # their keys are names
VALUES = ("enum", "const", "default", "examples")  # what is in them is no schema


@dataclass(eq=False)
class State:
    """Where a text stands: the worker's number for it, what may follow [V], whether it may end."""

    worker: Worker
    life: int
    number: int
    allowed: torch.Tensor
    ends: bool

    def __del__(self) -> None:
        if self.life == self.worker.lives:
            self.worker.dropped.append(self.number)


class XGrammar(Constraint):
    """A constraint that xgrammar checks."""

    def __init__(self, kind: str, typed: str, vocabulary: Vocabulary, white_space: str = "compact"):
        """As `grammars.Grammar`. Raises ConstraintProblem with one sentence."""
        if find_spec("xgrammar") is None:
            raise ConstraintProblem(NOT_THERE)
        if kind not in KINDS:
            raise ConstraintProblem(f"xgrammar has no {NAMES[kind]}; choose the engine llguidance.")
        self.vocabulary, self.ends = vocabulary.size, vocabulary.ends
        if "xgrammar" not in vocabulary.made:
            # an empty text stands for what no text has: xgrammar never allows it
            tokens = [b"" if t in vocabulary.special else s for t, s in enumerate(vocabulary.tokens)]
            vocabulary.made["xgrammar"] = Worker(tokens, vocabulary.ends)
        self.worker = vocabulary.made["xgrammar"]
        schema = json_value(typed, NAMES[kind]) if kind == "json_schema" else {}
        if kind == "choices":
            choices_of(typed)
        answer = self.worker.ask("compile", kind, typed, white_space)
        if "problem" in answer:
            raise constraint_problem(kind, reason(answer["problem"]), "xgrammar")
        self.notes = [f"xgrammar warns: {worded(said)}." for said in answer["warnings"]]
        if unchecked := sorted(unchecked_in(schema)):
            them = "them" if len(unchecked) > 1 else "it"
            self.notes.append(f"xgrammar does not check {', '.join(unchecked)}; a text may break {them}.")
        self.first = self._state(answer)
        if not self.first.allowed.any() and not self.first.ends:
            raise constraint_problem(kind, no_text(vocabulary), "xgrammar")

    def _state(self, answer: dict) -> State:
        bits = np.unpackbits(
            np.frombuffer(base64.b64decode(answer["mask"]), dtype=np.uint8), bitorder="little"
        )
        allowed = torch.zeros(self.vocabulary, dtype=torch.bool)
        given = bits[: self.vocabulary].astype(bool)
        allowed[: len(given)] = torch.from_numpy(given)
        allowed[[end for end in self.ends if end < self.vocabulary]] = False
        return State(self.worker, self.worker.lives, answer["state"], allowed, answer["ends"])

    def start(self) -> State:
        return self.first

    def allowed(self, state: State) -> torch.Tensor:
        return state.allowed.clone()

    def advance(self, state: State, token: int) -> State | None:
        if not state.allowed[token]:
            return None
        gone = state.life != self.worker.lives
        answer = {"problem": self.worker.crashed} if gone else self.worker.ask("advance", state.number, token)
        if "problem" in answer or answer["state"] is None:
            raise DeadEnd(f"{worded(reason(answer.get('problem', GAVE_UP)))}; choose the engine llguidance.")
        return self._state(answer)

    def accepts(self, state: State, token: int) -> bool:
        return bool(state.allowed[token])

    def may_end(self, state: State) -> bool:
        return state.ends

    def forced(self, state: State) -> list[int]:
        return []  # it gives characters, and cuts them into no tokens


def unchecked_in(schema: object) -> set[str]:
    """The keys and formats of a schema, and of those in it, that xgrammar passes over."""
    if isinstance(schema, list):
        return set().union(*map(unchecked_in, schema))
    if not isinstance(schema, dict):
        return set()
    found = {key for key in UNCHECKED if key in schema}
    if isinstance(named := schema.get("format"), str) and named not in FORMATS:
        found.add(f"the format {said_by(named, 40)}")
    for key, value in schema.items():
        inside = list(value.values()) if key in OF_NAMES and isinstance(value, dict) else value
        found |= unchecked_in(inside) if key not in VALUES else set()
    return found


def reason(text: str) -> str:
    """The message of an xgrammar error, without the place in xgrammar's source."""
    return re.sub(r"^\[[^]]*\] \S+: ", "", text.strip().split("\n")[0])
