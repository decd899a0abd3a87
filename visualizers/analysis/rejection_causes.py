"""The causes of a rejection: their names, their definitions in numbers, and the rules, in one place. The
table in Microscope, the acceptance report, the CSV of drafted tokens and the documentation take them from
here.

The rules are tried in the order of CAUSES, and the first that applies is the cause. p and q are the
probabilities of the rejected token under target and draft, u the random number of its test. `not in the
draft's vocabulary`, `drift` and `depth` need the drafter's guess at that position (`Guess`), which the
acceptance report measures.
"""

from collections.abc import Iterable
from dataclasses import dataclass

UNSURE_BITS = 2.0  # entropy of the target's distribution from which it is uncertain
SURE = 0.5  # q from which the draft is confident
HALF = 0.5  # of all draws of u; and the share of the highest probability that makes a near tie
HIDDEN, VOCABULARY, OUTSIDE, LUCK, TREE, DRIFT, DEPTH, UNSURE, TIE, OVER, DOUBT, WITHOUT = (
    "not in the file",
    "not in the draft's vocabulary",
    "outside the target's filter",
    "bad luck",
    "not in the tree",
    "drift",
    "depth",
    "target uncertain",
    "near tie",
    "draft overconfident",
    "draft uncertain",
    "draft without q",
)
CAUSES = {
    HIDDEN: "The lane was imported, and its file does not name the rejected tokens.",
    VOCABULARY: "The draft can never propose the token that the text has there.",
    OUTSIDE: "p is 0: top-k, top-p or another processor has removed the token.",
    LUCK: f"At least {HALF:g} of all draws of u would have accepted the token.",
    TREE: "Two or more tokens were drafted for this position, and none was accepted.",
    DRIFT: "Given the target's own features, the same drafter would have been right here.",
    DEPTH: "Asked for the next token alone, the same drafter would have been right here.",
    UNSURE: f"The target's distribution has an entropy of at least {UNSURE_BITS:g} bits here.",
    TIE: f"No u was drawn, and p is at least {HALF:g} of the target's highest probability.",
    OVER: f"The target's entropy is not known to reach {UNSURE_BITS:g} bits, and q is at least {SURE:g}.",
    DOUBT: f"The target's entropy is not known to reach {UNSURE_BITS:g} bits, and q is below {SURE:g}.",
    WITHOUT: "No other cause applies, and the draft gives its tokens no probability q.",
}


@dataclass(frozen=True)
class Guess:
    """What a drafter guesses at a position if it is given all true tokens before it and, for a head, the
    target's true features.

    right: whether its most likely token is the text's, None where it cannot guess; known: whether its
    vocabulary has the text's token; sees_path: whether its deeper guesses read drafted tokens, so that its
    features can drift.
    """

    right: bool | None
    known: bool = True
    sees_path: bool = True


def cause_of(
    rejected: dict, none_of: int, best: float | None, guess: Guess | None = None, hidden: bool = False
) -> str:
    """The cause of a rejection, one of CAUSES.

    `rejected`: p, q, u, acceptance, entropy (bits) and depth of the rejected token, see
    `drafted_tokens.drafted_tokens`; `none_of`: how many tokens were drafted for its position, 0 if one of
    them was accepted; `best`: the target's highest probability there; `hidden`: whether the file of an
    imported lane leaves out which tokens were rejected.
    """
    p, q, chance, bits = (rejected[name] for name in ("p", "q", "acceptance", "entropy"))
    rules = {
        HIDDEN: hidden,
        VOCABULARY: guess is not None and not guess.known,
        OUTSIDE: p == 0.0,
        LUCK: chance is not None and chance >= HALF,
        TREE: none_of > 1,
        DRIFT: deeper(rejected, guess) and guess.sees_path,
        DEPTH: deeper(rejected, guess),
        UNSURE: bits is not None and bits >= UNSURE_BITS,
        TIE: rejected["u"] is None and None not in (p, best) and p >= HALF * best,
        OVER: q is not None and q >= SURE,
        DOUBT: q is not None,
        WITHOUT: True,
    }
    return next(cause for cause, applies in rules.items() if applies)


def deeper(rejected: dict, guess: Guess | None) -> bool:
    """Whether the drafter, below its first guess, was wrong where it is right if it is asked anew."""
    return guess is not None and rejected["depth"] > 1 and bool(guess.right)


def in_order(causes: Iterable[str]) -> list[str]:
    """The causes that occur, in the order of CAUSES."""
    occurring = set(causes)
    return [cause for cause in CAUSES if cause in occurring]
