"""How far the numbers in another program's file can be trusted: what was checked, and what failed.

A report is numbers; decoders/explain/trust.py makes the sentences. A trace carries it in its header, so that
a saved trace is as doubtful as the file that it was made from.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

VOCABULARY = 2**18  # tokens; the largest vocabularies in wide use have about as many
SCALES = ("log-probabilities", "probabilities", "none")  # what a file's numbers are


class Fault(StrEnum):
    """What is wrong. Its numbers are those of its `Finding`."""

    MASS_OVER_1 = "mass over 1"  # value: the largest sum of listed probabilities
    IMPROBABLE = "improbable"  # value: the probability of the most likely token
    NOT_LISTED = "not listed"  # the written token is more likely than one that is listed, and is not listed
    SPELLING = "spelling"  # at: the character of the text from which on the tokens spell another
    TOKEN_COUNT = "token count"  # value: tokens that the file counts; other: tokens that it lists
    DRAFT_COUNT = "draft count"  # value: accepted tokens; other: drafted tokens
    ROUND_COUNT = "round count"  # value: rounds that the file counts; other: rounds of its histogram
    DRAFT_PLACES = "draft places"  # value: places with the draft's probabilities; other: tokens
    KL_BELOW_0 = "KL below 0"  # value: the lowest divergence that the file gives


@dataclass(frozen=True)
class Finding:
    """A fault: at how many places it occurs, the place where it is first or worst, from 1, and its numbers;
    0 where it has none.
    """

    fault: str
    count: int = 1
    at: int = 0
    value: float = 0.0
    other: float = 0.0


@dataclass(frozen=True)
class Trust:
    """The report on one answer. Entropies and surprise are in nats, means over the tokens that list others,
    or sums over all tokens that have a number.
    """

    dialect: str  # a name in decoders/trace/imports/dialects.py
    scale: str  # one of SCALES
    processed: bool | None  # whether they are after the processors; None where the file does not say
    tokens: int
    numbered: int  # tokens that have a number of their own
    listed: int  # likely tokens that every place lists at least
    missing: float | None  # the largest mass that a place leaves out; None where nothing is listed
    missing_at: int | None  # that place, from 1
    entropy_low: float | None  # if the mass that is left out were one token
    entropy_high: float | None  # if it were spread evenly over a vocabulary of VOCABULARY tokens
    surprise: float  # of the tokens that have a number
    surprise_beyond: float  # of those that have none, at least
    faults: tuple[Finding, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether nothing that was checked failed."""
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        """Its fields; those that are unset are left out."""
        record = asdict(self) | {"faults": [asdict(finding) for finding in self.faults]}
        return {name: value for name, value in record.items() if value is not None}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Trust":
        """The inverse of `to_json`."""
        faults = tuple(Finding(**one) for one in record["faults"])
        unset = dict.fromkeys(("processed", "missing", "missing_at", "entropy_low", "entropy_high"))
        return cls(**{**unset, **record, "faults": faults})
