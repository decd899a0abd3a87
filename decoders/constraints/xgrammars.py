"""The same kinds of grammar, checked by xgrammar: a second engine, to compare with. Knows texts and
tokens.
"""

import re
from functools import cache

import numpy as np
import torch

from decoders.constraints.grammars import NAMES, Vocabulary, choices_of, problem
from decoders.constraints.problem import ConstraintProblem, json_value

SPELLING = {  # between the parts of JSON
    "compact": {"any_whitespace": False, "separators": (",", ":")},
    "spaced": {"any_whitespace": False, "separators": (", ", ": ")},
    "any": {"any_whitespace": True},
}


@cache
def _library():
    """xgrammar, which is no part of the usual set-up. Raises ConstraintProblem if it is not there."""
    try:
        import xgrammar
    except ImportError:
        raise ConstraintProblem(
            "xgrammar is not installed; choose the engine llguidance, or install requirements-xgrammar.txt."
        ) from None
    return xgrammar


def _compiled(kind: str, typed: str, white_space: str, compiler):
    match kind:
        case "json_schema":
            json_value(typed, NAMES[kind])
            return compiler.compile_json_schema(typed, strict_mode=False, **SPELLING[white_space])
        case "regex":
            return compiler.compile_regex(typed)
        case "gbnf":
            return compiler.compile_grammar(typed)
        case "choices":
            quoted = (quoted_text(choice) for choice in choices_of(typed))
            return compiler.compile_grammar("root ::= " + " | ".join(quoted))
    raise ConstraintProblem(f"xgrammar has no {NAMES[kind]}; choose the engine llguidance.")


def quoted_text(text: str) -> str:
    """A text as a GBNF grammar spells it."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


class XGrammar:
    """A constraint that xgrammar checks; see `constraint.Constraint`."""

    def __init__(self, kind: str, typed: str, vocabulary: Vocabulary, white_space: str = "compact"):
        """As `grammars.Grammar`. Raises ConstraintProblem with one sentence."""
        xgrammar = _library()
        self.vocabulary, self.ends = vocabulary.size, vocabulary.ends
        if "xgrammar" not in vocabulary.made:
            # an empty text stands for what no text has: xgrammar never allows it
            tokens = [b"" if t in vocabulary.special else s for t, s in enumerate(vocabulary.tokens)]
            info = xgrammar.TokenizerInfo(
                tokens,
                vocab_type=xgrammar.VocabType.RAW,
                vocab_size=len(tokens),
                stop_token_ids=vocabulary.ends,
            )
            vocabulary.made["xgrammar"] = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        try:
            compiled = _compiled(kind, typed, white_space, vocabulary.made["xgrammar"])
        except (RuntimeError, ValueError, TypeError) as error:
            if isinstance(error, ConstraintProblem):
                raise
            raise problem(kind, _reason(str(error))) from None
        self.first = xgrammar.GrammarMatcher(compiled)
        self.bits = xgrammar.allocate_token_bitmask(1, len(vocabulary.tokens))

    def start(self):
        return self.first

    def allowed(self, state) -> torch.Tensor:
        if state.is_terminated():
            return torch.zeros(self.vocabulary, dtype=torch.bool)
        if not state.fill_next_token_bitmask(self.bits):  # False: every token is allowed
            return torch.ones(self.vocabulary, dtype=torch.bool)
        bits = np.unpackbits(self.bits.numpy().view(np.uint8)[0], bitorder="little")
        allowed = torch.from_numpy(bits[: self.vocabulary].astype(bool))
        allowed[[end for end in self.ends if end < self.vocabulary]] = False
        return allowed

    def advance(self, state, token: int):
        below = state.fork()
        return below if below.accept_token(token) else None

    def may_end(self, state) -> bool:
        return state.is_completed()

    def forced(self, state) -> list[int]:
        return []  # it gives characters, and cuts them into no tokens


def _reason(text: str) -> str:
    """What an error of xgrammar says, without where in its own source it arose."""
    return re.sub(r"^\[[^]]*\] \S+: ", "", text.strip().split("\n")[0])
