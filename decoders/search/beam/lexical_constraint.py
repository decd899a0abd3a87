"""Phrases that a text must contain, token by token: how much of them a prefix has met, and which tokens come
next.

The state is immutable: each hypothesis carries its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from decoders.logits.token_constraints import Cut, forms, pieces
from decoders.refusal import Refusal

MAX_TOKENS = 32  # of all phrases together: every hypothesis proposes the next one of each


@dataclass(frozen=True, slots=True)
class Met:
    """What a prefix has met: a flag per token of all phrases, and the place of an unfinished phrase's last
    one.
    """

    flags: tuple[bool, ...]
    last: int | None = None

    @property
    def count(self) -> int:
        """How many tokens are met, which is the number of the hypothesis's bank."""
        return sum(self.flags)


class LexicalConstraint:
    """Phrases (token sequences), flattened. `retry`: the token that breaks off a phrase may start one."""

    def __init__(self, phrases: Sequence[Sequence[int]], retry: bool = True):
        self.retry = retry
        self.tokens = [token for phrase in phrases for token in phrase]
        ends = [i == len(phrase) - 1 for phrase in phrases for i in range(len(phrase))]
        self.is_last = ends
        self.starts = [i for i in range(len(ends)) if i == 0 or ends[i - 1]]

    def start(self) -> Met:
        """The state of an empty text."""
        return Met((False,) * len(self.tokens))

    def may_end(self, met: Met) -> bool:
        """Whether every phrase is met."""
        return all(met.flags)

    def allowed(self, met: Met) -> list[int]:
        """The tokens that make progress: the next one of an unfinished phrase, else the first of each unmet
        one.
        """
        if met.last is not None:
            return [self.tokens[met.last + 1]]
        return list(dict.fromkeys(self.tokens[i] for i in self.starts if not met.flags[i]))

    def advance(self, met: Met, token: int) -> Met:
        """The state after one more token. If a token breaks off an unfinished phrase, the tokens of that
        phrase are unmet again.
        """
        if met.last is not None:
            if token == self.tokens[met.last + 1]:
                return self._met_through(met.flags, met.last + 1)
            begin = max(i for i in self.starts if i <= met.last)
            broken = Met(tuple(f and not begin <= i <= met.last for i, f in enumerate(met.flags)))
            return self.advance(broken, token) if self.retry else broken
        begun = [i for i in self.starts if not met.flags[i] and self.tokens[i] == token]
        return self._met_through(met.flags, begun[0]) if begun else met

    def _met_through(self, flags: tuple[bool, ...], i: int) -> Met:
        return Met((*flags[:i], True, *flags[i + 1 :]), None if self.is_last[i] else i)


def phrases_of(
    typed: str, cut: Cut | None, vocabulary: int, eos: frozenset[int] = frozenset()
) -> list[tuple]:
    """The token sequences of the phrases typed by a person, [] for none. A word is read as if a space stood
    before it, text in double quotes literally, and `#5` is a token id. Raises Refusal with one sentence.
    """
    if not typed.strip():
        return []
    phrases = [forms("phrases", piece, cut, vocabulary)[0] for piece in pieces("phrases", typed)]
    if any(token in eos for phrase in phrases for token in phrase):
        raise Refusal("phrases holds a token that ends the text; leave it out.")
    if (count := sum(map(len, phrases))) > MAX_TOKENS:
        raise Refusal(f"phrases has {count} tokens, and at most {MAX_TOKENS} can be asked for; type fewer.")
    return phrases


def slots_per_bank(width: int, candidates: Sequence[int]) -> list[int]:
    """How many of `width` slots each bank gets, where candidates[b] compete in bank b (b tokens are met).

    Every bank gets an equal share, the last one the remainder as well. From the last bank to the first, slots
    that a bank cannot fill pass to the bank before it, those of the first to the last, and so on until all
    are filled.
    """
    if sum(candidates) <= width:
        return list(candidates)
    banks = len(candidates)
    slots = [width // banks] * banks
    slots[-1] += width % banks
    while True:
        for bank in reversed(range(banks)):
            surplus = max(0, slots[bank] - candidates[bank])
            slots[bank] -= surplus
            slots[bank - 1] += surplus
        if all(have <= there for have, there in zip(slots, candidates, strict=True)):
            return slots
