"""Why a verifier decided as it did: a code with numbers. decoders/explain/verdicts.py makes the sentence."""

from enum import StrEnum
from typing import NamedTuple

PATH_PROBABILITY = "probability of the path"  # the name of a watched number


class Code(StrEnum):
    """What decided. The numbers of a reason are the arguments of its sentence."""

    # tests of drafted tokens
    MOST_LIKELY = "most likely"  # the target's most likely token
    OTHER_PREFERRED = "other preferred"  # the target prefers the token `preferred`
    DREW_IT = "drew it"  # the target drew the same token
    DREW_ANOTHER = "drew another"
    TOKEN_REJECTION = "token rejection"
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
    """A code, and the numbers that its sentence names."""

    code: Code
    numbers: dict[str, float | str | None] = {}
