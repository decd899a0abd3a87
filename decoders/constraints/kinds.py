"""The kinds of constraint that a lane's parameters name, and what makes each of a typed text.

Knows the parts of a model that it needs (vocabulary, bytes, how a text is cut), no lane.
"""

import weakref
from typing import Any

from decoders.constraints.constraint import Constraint
from decoders.constraints.grammars import NAMES, WHITE_SPACE, Grammar, Vocabulary
from decoders.constraints.problem import ConstraintProblem
from decoders.constraints.xgrammars import XGrammar
from decoders.strategy import Parameter

NONE = "none"
KINDS = (NONE, *NAMES)
ENGINES = {"llguidance": Grammar, "xgrammar": XGrammar}
GROUP = "Constraint"
CONSTRAINT = (
    Parameter(
        "constraint",
        "choice",
        NONE,
        "What the text must be: JSON of a schema, a match of a regular expression, a sentence of a grammar, "
        "or one of some choices.",
        choices=KINDS,
        group=GROUP,
    ),
    Parameter("constraint_text", "text", "", "The schema, expression, grammar or choices.", group=GROUP),
    Parameter(
        "constraint_white_space",
        "choice",
        "compact",
        "Between the parts of JSON: none, a space behind each comma and colon, or any.",
        choices=WHITE_SPACE,
        group=GROUP,
    ),
    Parameter(
        "constraint_engine",
        "choice",
        "llguidance",
        "Which library checks schemas, expressions and grammars.",
        choices=tuple(ENGINES),
        group=GROUP,
    ),
)

FAST_FORWARD = Parameter(
    "constraint_fast_forward",
    "bool",
    False,
    "Write tokens that the constraint forces at once, with one forward for all of them.",
    group=GROUP,
)

_vocabularies: "weakref.WeakKeyDictionary[Any, Vocabulary]" = weakref.WeakKeyDictionary()


def vocabulary_of(model: Any, eos: frozenset[int]) -> Vocabulary:
    """The tokens of a model, read once and kept as long as its engine is there."""
    engine = model.engine
    known = _vocabularies.get(engine)
    if known is None or known.eos != sorted(eos):
        tokens = [model.bytes_of(token) for token in range(engine.vocabulary)]
        is_text = getattr(model.bytes_of, "is_text", lambda token: True)
        special = [token for token in range(engine.vocabulary) if not is_text(token)]
        cut = getattr(model, "cut", None) or model.encode
        known = _vocabularies[engine] = Vocabulary(tokens, sorted(eos), special, cut)
    return known


def constraint_of(parameters: dict, model: Any, eos: frozenset[int]) -> Constraint | None:
    """The constraint that a lane's parameters ask for, None for none. Raises ConstraintProblem (a ValueError)
    with one sentence for a text that the engine cannot use.
    """
    kind = parameters.get("constraint", NONE)
    if kind == NONE:
        return None
    typed = parameters["constraint_text"]
    if parameters.get("token_healing"):
        raise ConstraintProblem(
            "A constraint begins behind the prompt, and token_healing changes its end; use one of them."
        )
    if not typed.strip():
        raise ConstraintProblem(f"The {NAMES[kind]} is empty; type one, or choose the constraint none.")
    made = ENGINES[parameters["constraint_engine"]]
    return made(kind, typed, vocabulary_of(model, eos), parameters["constraint_white_space"])
