"""Why a verifier decided as it did: a code with numbers. decoders/explain/verdicts.py makes the sentence."""

from collections.abc import Mapping
from enum import StrEnum
from types import UnionType
from typing import Any, NamedTuple


class Code(StrEnum):
    """What decided. The numbers of a reason are the arguments of its sentence."""

    # tests of drafted tokens
    MOST_LIKELY = "most likely"  # the target's most likely token
    OTHER_PREFERRED = "other preferred"  # the target prefers the token of id `preferred`
    DREW_IT = "drew it"  # the target drew the same token
    DREW_ANOTHER = "drew another"
    TOKEN_REJECTION = "token rejection"
    CERTAIN_DRAFT = "certain draft"  # token rejection where the draft's probabilities are not known
    K_SEQ = "K-SEQ"
    BLOCK = "block"
    TRAVERSAL = "traversal"
    ON_ACCEPTED_PATH = "on accepted path"
    BEAM_COIN = "beam coin"
    OTHER_BEAM = "other beam"  # after BEAM_COIN: it passed, and another beam is kept
    ADJUSTED_TARGET = "adjusted target"
    ADJUSTED_ARGMAX = "adjusted argmax"
    LENIENT = "lenient"
    SHARE_OF_BEST = "share of best"
    NEIGHBOURS = "neighbours"
    NEIGHBOURS_ARGMAX = "neighbours argmax"
    NEARLY_BEST = "nearly best"
    DIVERGENCE = "divergence"
    TYPICAL = "typical"
    OTHER_PATH = "other path"  # after TYPICAL: it passed, and another path is kept
    IS_ARGMAX = "is argmax"
    IS_NOT_ARGMAX = "is not argmax"
    JUDGE = "judge"  # after the ordinary test rejected it
    FIRST_OF_BLOCK = "first of block"  # before the test that would have rejected it
    RANK = "rank"
    MOST_LIKELY_NUMBER = "most likely number"
    NO_NUMBERS = "no numbers"
    NUMBERS_APART = "numbers apart"
    CUT = "cut"  # after any test that it passed
    KEPT_BY_MISTAKE = "kept by mistake"
    # drafted tokens that were not tested
    SIBLING_ACCEPTED = "sibling accepted"
    PARENT_NOT_ACCEPTED = "parent not accepted"
    # the target's own token
    ALL_ACCEPTED = "all accepted"
    RESIDUAL = "residual"
    RESIDUAL_OF_TARGET = "residual of target"
    RESIDUAL_ON_PATH = "residual on path"
    TARGET = "target"
    TARGET_NOT_DRAFTED = "target, not drafted"
    TARGET_BY_MISTAKE = "target by mistake"
    ARGMAX_NOT_DRAFTED = "argmax, not drafted"
    ARGMAX_DID_NOT_PASS = "argmax, did not pass"
    ARGMAX_AFTER_ALL = "argmax after all"
    ARGMAX_AFTER_DRAFT = "argmax after draft"
    NEXT_FRAGMENT = "next fragment"
    # notes
    MODELS_AGREE = "models agree"
    TRANSPORT_BOUND = "transport bound"


class Reason(NamedTuple):
    """A code, and the numbers that its sentence names, see `NUMBERS`."""

    code: Code
    numbers: dict[str, Any] = {}

    def to_json(self) -> dict[str, Any]:
        """{"code": ..., its numbers}."""
        return {"code": self.code.value, **self.numbers}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Reason":
        """The inverse of `to_json`. Raises ValueError for an unknown code."""
        return cls(Code(record["code"]), {name: value for name, value in record.items() if name != "code"})


P: dict[str, type | UnionType] = {"p": float}
# The numbers of each code; those that are left out have none.
NUMBERS: dict[Code, Mapping[str, type | UnionType]] = {
    Code.OTHER_PREFERRED: {"preferred": int, "p_preferred": float, "p": float},
    Code.DREW_IT: P,
    Code.DREW_ANOTHER: P,
    Code.TOKEN_REJECTION: {"p": float, "q": float, "u": float | None, "accepted": bool, "slot": int},
    Code.CERTAIN_DRAFT: {"p": float, "u": float | None, "accepted": bool},
    Code.K_SEQ: {"p": float, "q": float, "rho": float, "probability": float, "accepted": bool},
    Code.BLOCK: {"length": int, "kept": int, "weight": float, "probability": float, "passed": bool},
    Code.TRAVERSAL: {"probability": float, "passed": bool},
    Code.BEAM_COIN: {"p": float, "q": float, "probability": float},
    Code.ADJUSTED_TARGET: {"p": float, "moved": float, "q": float, "probability": float, "accepted": bool},
    Code.ADJUSTED_ARGMAX: {"p": float, "moved": float, "accepted": bool},
    Code.LENIENT: {
        "p": float,
        "q": float,
        "discounted": float,
        "probability": float,
        "accepted": bool,
        "u": float | None,
    },
    Code.SHARE_OF_BEST: {"p": float, "lenience": float, "best": float, "accepted": bool},
    Code.NEIGHBOURS: {
        "p": float,
        "count": int,
        "lifted": float,
        "q": float,
        "probability": float,
        "accepted": bool,
        "u": float | None,
    },
    Code.NEIGHBOURS_ARGMAX: {"p": float, "count": int, "lifted": float, "best": float, "accepted": bool},
    Code.NEARLY_BEST: {"rank": int, "gap": float, "beta": int, "tau": float, "accepted": bool},
    Code.DIVERGENCE: {"apart": float | None, "limit": float, "measure": str},  # None: infinite
    Code.TYPICAL: {"p": float, "line": float},
    Code.JUDGE: {"score": float, "delta": float},
    Code.FIRST_OF_BLOCK: {"minimum": int},
    Code.RANK: {"rank": int, "count": int},
    Code.NUMBERS_APART: {"apart": float, "epsilon": float},
    Code.ALL_ACCEPTED: P,
    Code.RESIDUAL: P,
    Code.RESIDUAL_OF_TARGET: P,
    Code.RESIDUAL_ON_PATH: P,
    Code.TARGET: P,
    Code.TARGET_NOT_DRAFTED: P,
    Code.TARGET_BY_MISTAKE: P,
    Code.TRANSPORT_BOUND: {"draws": int, "taken": float, "bound": float},
}


def wrong_reason(reason: Reason) -> str | None:
    """Why a reason lacks the numbers of its code, as a sentence; None if it has them."""
    wanted = NUMBERS.get(reason.code, {})
    if reason.numbers.keys() == wanted.keys() and all(
        is_of(reason.numbers[name], kind) for name, kind in wanted.items()
    ):
        return None
    return f"the reason {reason.code.value!r} has not its numbers: {', '.join(wanted) or 'none'}."


def is_of(value: Any, kind: type | UnionType) -> bool:
    """Whether a JSON value is of this kind; a whole number is also a float, and a truth value only a bool."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, kind) or (isinstance(value, int) and isinstance(0.0, kind))
