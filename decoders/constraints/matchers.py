"""Turns a typed text into llguidance's form of the grammar, and a matcher of it.

Does not import torch, so that a separate process starts quickly.
"""

import itertools
import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from decoders.constraints.problem import ConstraintProblem, json_value
from decoders.refusal import Refusal, said_by

NAMES = {  # how each kind is called in a sentence
    "json_schema": "JSON schema",
    "regex": "regular expression",
    "lark": "Lark grammar",
    "gbnf": "GBNF grammar",
    "choices": "list of choices",
}
LIMITS = {  # of llguidance: what one grammar may take, so that none hangs an app
    "max_items_in_row": 1000,
    "initial_lexer_fuel": 500_000,
    "step_lexer_fuel": 100_000,
    "step_max_items": 30_000,
    "max_lexer_states": 50_000,
    "max_grammar_size": 50_000,
    "verbose_errors": False,
}
SPELLING = {  # between the parts of JSON
    "compact": {"whitespace_flexible": False},
    "spaced": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    "any": {"whitespace_flexible": True},
}
WHITE_SPACE = tuple(SPELLING)
NO_TEXT = "it allows no text at all"
SPACED = "every token here begins with a space"
LARK_MARGIN = "   1 | "  # what llguidance puts in front of the line with a fault
NUMBERS = itertools.count()
LONGEST = 160  # characters of an engine's reason that a sentence quotes
WAYS_OUT = (  # what to do about a reason of an engine that reads like this, the first that does
    (r"Enable 'coerce_one_of'", "use anyOf"),
    (r"Unimplemented keys|Unknown format", "remove it"),
    (r"not supported", "write it without"),
    (r"Resource '|Default retriever", "put what it names into the schema"),
    (r"to start$", "try again when the machine is less busy"),
    (r"crashed|took more than|grammar size|exceeded|too large", "make it smaller"),
    (SPACED, "let it begin with a space"),
    (NO_TEXT, "loosen it"),
)
CORRECT = "correct it"
OTHER_ENGINE = {  # kind -> reasons of llguidance for which there is xgrammar, and what that one does
    "json_schema": (
        r"coerce_one_of|Unimplemented keys|Unknown format",
        "which knows more of schemas and says what it leaves unchecked",
    ),
    "gbnf": (r"^(?!.*(crashed|took more than|allows no text))", "which reads more of GBNF"),
}
REWORDED = (  # what engines say of options and parts that a person cannot see
    (r"Enable 'coerce_one_of'.*", ""),
    (r"Regex is empty: .*", "its pattern, format and lengths leave no string"),
    (r"retrieving it failed: .*", "none is fetched"),
    (r"following special tokens are available: ⟦⟧", "there is none"),
    (r"^Check failed: \(.*?\) is (?:false|true): ", ""),
    (r" The JSON string is:.*", ""),
    (r"EBNF (?:parser|lexer) error at line \d+, column \d+: ", ""),
    (r"Regex parsing (?:error|warning) at position \d+: ", ""),
)


class Vocabulary:
    """The tokens of a model as a grammar reads them: their bytes, which of them end a text, which of them are
    not text, and how a text is cut into them.
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        eos: Sequence[int],
        special: Sequence[int],
        cut: Callable[[str], list[int]],
    ):
        self.size, self.eos, self.cut = len(tokens), list(eos), cut
        # engines want an end of text; a model without one gets one that no text has
        self.tokens = [*tokens] if eos else [*tokens, b"<end of text>"]
        if b" " not in tokens:  # and llguidance a space, or it stops where only the space is certain
            self.tokens.append(b" ")
        self.ends = self.eos or [self.size]
        self.special = sorted({*special, *self.ends})
        self.made: dict[str, Any] = {}  # what an engine makes of it, made once
        self.number = next(NUMBERS)  # its name where it is known to another process


def choices_of(typed: str) -> list[str]:
    """The texts of a list of choices, one per line or between |; double quotes keep spaces. Raises
    ConstraintProblem if it is empty.
    """
    pieces = typed.split("\n") if "\n" in typed.strip() else typed.split("|")
    kept = [piece.strip() for piece in pieces if piece.strip()]
    kept = [piece[1:-1] if len(piece) > 2 and piece[0] == piece[-1] == '"' else piece for piece in kept]
    if not kept:
        raise ConstraintProblem("The list of choices is empty; type one choice per line.")
    return list(dict.fromkeys(kept))


def grammar_of(kind: str, typed: str, white_space: str) -> str:
    """The grammar in llguidance's own form."""
    from llguidance import LLMatcher
    from llguidance.gbnf_to_lark import gbnf_to_lark

    match kind:
        case "json_schema":
            schema = json_value(typed, NAMES[kind])
            if not isinstance(schema, dict | bool):
                raise ConstraintProblem("The JSON schema must be an object in braces, or true.")
            schema = schema if isinstance(schema, dict) else {} if schema else {"enum": []}
            return LLMatcher.grammar_from_json_schema(schema, overrides=SPELLING[white_space])
        case "regex":
            return LLMatcher.grammar_from_regex(typed)
        case "lark":
            return LLMatcher.grammar_from_lark(typed)
        case "gbnf":
            try:
                return LLMatcher.grammar_from_lark(gbnf_to_lark(typed))
            except Exception as error:  # the converter raises bare ones
                reason = str(error).removeprefix("Failed to convert the grammar from GBNF to Lark: ")
                raise constraint_problem(kind, reason) from None
        case "choices":
            any_of = " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices_of(typed))
            return LLMatcher.grammar_from_lark(f"start: {any_of}")
    raise Refusal(f"llguidance has no kind {kind!r}.")


def constraint_problem(kind: str, reason: str, engine: str = "llguidance") -> ConstraintProblem:
    """An engine's complaint as one sentence that says what to do, with its place where it names one."""
    line, column, first = None, None, reason.strip().split("\n")[0]
    if place := re.search(r"(?:at )?(\d+)\((\d+)\): ?", first):
        line, column = int(place[1]), int(place[2])
        first = first.replace(place[0], "")
    elif place := re.search(r" at line (\d+)(?:, column (\d+))?", first):
        line, column = int(place[1]), int(place[2]) if place[2] else None
    if kind == "regex":  # its place is one in the rule that llguidance puts around it
        line, column = None, None
        if pointed := re.search(r"^( *)\^", reason.replace(LARK_MARGIN, ""), re.MULTILINE):
            line, column = 1, max(1, len(pointed[1]) - 3)
        elif place := re.search(r"^Regex parsing error at position (\d+)", first):
            line, column = 1, int(place[1])
    if explained := re.search(r"^ *error: (.*)", reason, re.MULTILINE):  # of an expression, below a drawing
        first = explained[1] if kind == "regex" else f"in a regular expression, {explained[1]}"
    return ConstraintProblem(
        f"The {NAMES[kind]} cannot be used: {worded(first)}; {way_out(kind, first, engine)}.", line, column
    )


def no_text(vocabulary: Vocabulary) -> str:
    """The reason why a grammar allows no token, for `constraint_problem`."""
    texts = {*range(len(vocabulary.tokens))}.difference(vocabulary.special)
    spaced = all(vocabulary.tokens[token][:1] in (b"", b" ") for token in texts)
    return f"{NO_TEXT}, since {SPACED}" if spaced else NO_TEXT


def worded(reason: str) -> str:
    """An engine's message in words that need no knowledge of the engine."""
    for said, ours in REWORDED:
        reason = re.sub(said, ours, reason)
    return said_by(reason, LONGEST)


def way_out(kind: str, reason: str, engine: str = "llguidance") -> str:
    """What a person can do about an engine's complaint."""
    way = next((way for said, way in WAYS_OUT if re.search(said, reason)), CORRECT)
    said, does = OTHER_ENGINE.get(kind, ("", ""))
    if does and engine == "llguidance" and re.search(said, reason):
        way += f", or set constraint_engine to xgrammar, {does}"
    return way


def matcher_of(kind: str, typed: str, vocabulary: Vocabulary, white_space: str) -> Any:
    """llguidance's matcher of a typed text, before its first token. Raises ConstraintProblem with one
    sentence.
    """
    import llguidance

    try:
        if "llguidance" not in vocabulary.made:
            vocabulary.made["llguidance"] = llguidance.LLTokenizer(
                llguidance.TokenizerWrapper(_Wrapped(vocabulary)),
                n_vocab=len(vocabulary.tokens),
                eos_token=vocabulary.ends,
            )
        matcher = llguidance.LLMatcher(
            vocabulary.made["llguidance"],
            grammar_of(kind, typed, white_space),
            log_level=0,
            limits=llguidance.LLParserLimits(**LIMITS),
        )
    except ConstraintProblem:
        raise
    except ValueError as error:  # half of a surrogate pair, or a number of hundreds of digits
        raise constraint_problem(kind, str(error)) from None
    if matcher.is_error():
        raise constraint_problem(kind, matcher.get_error())
    return matcher


class _Wrapped:
    """A vocabulary with the names that llguidance gives its parts."""

    def __init__(self, vocabulary: Vocabulary):
        self.tokens, self.special_token_ids = vocabulary.tokens, vocabulary.special
        self.eos_token_id, self.bos_token_id = vocabulary.ends[0], None
        self.cut = vocabulary.cut

    def __call__(self, text: bytes | str) -> list[int]:
        spelled = text if isinstance(text, bytes) else text.encode()
        tokens = self.cut(spelled.decode("utf-8", "replace"))
        if b"".join(self.tokens[token] for token in tokens) == spelled:
            return tokens
        return self._longest_first(spelled)  # WordPiece and others begin a text with the start of a word

    def _longest_first(self, text: bytes) -> list[int]:
        """Tokens of a text, greedily: always the longest token with which the rest begins."""
        found, at = [], 0
        while at < len(text):
            ends = range(min(len(text), at + self.longest), at, -1)
            token = next((self.pieces[text[at:end]] for end in ends if text[at:end] in self.pieces), None)
            if token is None:
                break
            at += len(self.tokens[token])
            found.append(token)
        return found

    @cached_property
    def pieces(self) -> dict[bytes, int]:
        """The token of each piece of text; of several the first."""
        special = set(self.special_token_ids)
        return {
            piece: token
            for token, piece in reversed([*enumerate(self.tokens)])
            if piece and token not in special
        }

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest piece."""
        return max(map(len, self.pieces), default=0)
