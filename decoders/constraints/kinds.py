"""The kinds of constraint that a lane's parameters name, and how each is made from a typed text."""

import weakref
from typing import Any

from decoders.constraints.automaton import OfBytes
from decoders.constraints.constraint import Constraint
from decoders.constraints.grammars import Grammar
from decoders.constraints.intersection import Intersection
from decoders.constraints.labels import Labels, labels_of
from decoders.constraints.matchers import Vocabulary
from decoders.constraints.monitors import ArgumentMonitor, MemberMonitor, monitored
from decoders.constraints.problem import ConstraintProblem
from decoders.constraints.settings import ENGINES, NAMES, NONE
from decoders.constraints.words import ForbiddenWords, RequiredWords, groups_of, words_of
from decoders.constraints.xgrammars import XGrammar


def labelled(typed: str, vocabulary: Vocabulary, prompt: bytes) -> Constraint:
    """Labels of a list, each once, with a comma and a space between them."""
    return OfBytes(Labels(labels_of(typed)), vocabulary)


def without_words(typed: str, vocabulary: Vocabulary, prompt: bytes) -> Constraint:
    """Any text without some words."""
    return ForbiddenWords(words_of(typed), vocabulary)


def with_words(typed: str, vocabulary: Vocabulary, prompt: bytes) -> Constraint:
    """Any text that ends only with some words in it."""
    return RequiredWords(groups_of(typed), vocabulary)


def with_members(typed: str, vocabulary: Vocabulary, prompt: bytes) -> Constraint:
    """Python whose members and calls agree with the typed declarations and those of the prompt."""
    members, call = monitored(typed)
    dots = MemberMonitor(vocabulary, members, prompt)
    return Intersection([dots, ArgumentMonitor(vocabulary, call, prompt)])


OWN = {  # that no engine checks
    "labels": labelled,
    "words": without_words,
    "required_words": with_words,
    "members": with_members,
}
CHECKERS = dict(zip(ENGINES, (Grammar, XGrammar), strict=True))  # in the order of their names

_vocabularies: "weakref.WeakKeyDictionary[Any, Vocabulary]" = weakref.WeakKeyDictionary()


def vocabulary_of(model: Any, eos: frozenset[int]) -> Vocabulary:
    """The tokens of a model, read once and kept as long as its engine is there."""
    engine = model.engine
    known = _vocabularies.get(engine)
    if known is None or known.eos != sorted(eos):
        tokens = [model.bytes_of(token) for token in range(engine.vocabulary)]
        is_text = getattr(model.bytes_of, "is_text", lambda token: True)
        special = [token for token in range(engine.vocabulary) if not is_text(token)]
        cut = model.cut or model.encode
        known = _vocabularies[engine] = Vocabulary(tokens, sorted(eos), special, cut)
    return known


def constraint_of(
    parameters: dict, model: Any, eos: frozenset[int], prompt: bytes = b""
) -> Constraint | None:
    """The constraint that a lane's parameters ask for, None for none. Raises ConstraintProblem (a ValueError)
    with one sentence for a text that cannot be used. prompt: what monitors read beside the typed text.
    """
    kind = parameters.get("constraint", NONE)
    if kind == NONE:
        return None
    typed = parameters["constraint_text"]
    if parameters.get("token_healing"):
        raise ConstraintProblem(
            "A constraint begins after the prompt, and token_healing changes its end; use one of them."
        )
    if not typed.strip():
        raise ConstraintProblem(f"The {NAMES[kind]} is empty; type one, or choose the constraint none.")
    if any("\ud800" <= sign <= "\udfff" for sign in typed):
        raise ConstraintProblem(f"The {NAMES[kind]} has half of a character in it; type it again.")
    if kind in OWN:
        return OWN[kind](typed, vocabulary_of(model, eos), prompt)
    made = CHECKERS[parameters["constraint_engine"]]
    return made(kind, typed, vocabulary_of(model, eos), parameters["constraint_white_space"])
