"""Checks the numbers of an answer: what cannot be log-probabilities at all is refused, and whatever else
fails stands in the report.
"""

import math
from collections.abc import Iterator

from decoders.refusal import Refusal
from decoders.trace.imports.answer import NO_SCALE, PROBABILITIES, SLACK, Answer, Unlisted, Written
from decoders.trace.scores import ScoreName
from decoders.trace.trust import VOCABULARY, Fault, Finding, Trust

LARGEST_VOCABULARY = 10**6  # tokens: the most likely one of a softmax has at least one part of these
UNKNOWN_CHARACTER = "\N{REPLACEMENT CHARACTER}"
ENDING = range(1, 5)  # tokens that may have ended a text and that it lacks
ONE_MORE = 1  # token that a server may count and not list: the end of the text


def judged(answer: Answer) -> Trust:
    """The report on an answer. Raises Refusal with one sentence if its numbers are no log-probabilities."""
    check_scale(answer)
    tokens = answer.tokens
    masses = {place: mass_of(token) for place, token in enumerate(tokens) if token.top}
    gaps = {place: max(0.0, 1.0 - mass) for place, mass in masses.items()}
    worst = max(gaps, key=lambda place: gaps[place], default=None)
    lows = [entropy_of(tokens[place]) for place in masses]
    highs = [low + spread(gap) for low, gap in zip(lows, gaps.values(), strict=True)]
    own = [token.own.logprob for token in tokens]
    scale = answer.scale if answer.options or any(value is not None for value in own) or masses else NO_SCALE
    return Trust(
        dialect=answer.dialect,
        scale=scale,
        processed=answer.processed,
        tokens=len(tokens),
        numbered=sum(value is not None for value in own),
        listed=min((len(token.top) for token in tokens), default=0),
        missing=None if worst is None else gaps[worst],
        missing_at=None if worst is None else worst + 1,
        entropy_low=math.fsum(lows) / len(lows) if lows else None,
        entropy_high=math.fsum(highs) / len(highs) if highs else None,
        surprise=-math.fsum(min(value, 0.0) for value in own if value is not None),
        surprise_beyond=math.fsum(at_least(token) for token in tokens if token.own.logprob is None),
        faults=tuple(faults_of(answer, masses)),
    )


def check_scale(answer: Answer) -> None:
    """Raises Refusal with one sentence if a number of an answer is above what a probability can be."""
    for place, token in enumerate(answer.tokens, 1):
        values = [one.logprob for one in (*token.top, *(token.draft or ()))]
        if isinstance(token.own, Unlisted) and token.own.logprob is not None:
            values.append(token.own.logprob)
        high = max(values, default=0.0)
        if high > SLACK and answer.scale == PROBABILITIES:
            raise Refusal(
                f"Token {place:,} of this answer has a probability of {math.exp(high):.4g}, which is "
                "above 1: these are not probabilities."
            )
        if high > SLACK:
            raise Refusal(
                f"Token {place:,} of this answer has a log-probability of {high:.4g}, which is above 0: "
                "these may be raw logits or probabilities. Open an answer with natural logarithms of "
                "probabilities."
            )
    for option in answer.options:
        if option.logprob > SLACK:
            raise Refusal(
                f"An option of this record has a log-probability of {option.logprob:.4g}, which is above "
                "0: these may be raw logits or probabilities."
            )


def mass_of(token: Written) -> float:
    """The mass of all tokens that a place names: those that are listed, and the written one."""
    own = token.own.logprob if isinstance(token.own, Unlisted) else None
    return math.fsum(math.exp(one.logprob) for one in token.top) + (0.0 if own is None else math.exp(own))


def entropy_of(token: Written) -> float:
    """The entropy of a place if all mass that it does not name were one token: a lower bound."""
    probs = [math.exp(min(one.logprob, 0.0)) for one in token.top]
    if isinstance(token.own, Unlisted) and token.own.logprob is not None:
        probs.append(min(max(0.0, 1.0 - math.fsum(probs)), math.exp(token.own.logprob)))
    others = max(0.0, 1.0 - math.fsum(probs))
    return max(0.0, -sum(p * math.log(p) for p in (*probs, others) if p > 0))


def spread(gap: float) -> float:
    """By how much the entropy is larger if the mass that is left out is spread over a vocabulary."""
    return gap * math.log(VOCABULARY)


def at_least(token: Written) -> float:
    """The least surprise of a token that has no number: it is no more likely than the least likely listed
    token, and no more likely than all unlisted tokens together.
    """
    if not token.top:
        return 0.0
    gap = max(1.0 - mass_of(token), 0.0)
    return max(-token.top[-1].logprob, -math.log(gap) if gap > 0 else 0.0, 0.0)


def faults_of(answer: Answer, masses: dict[int, float]) -> Iterator[Finding]:
    """All that fails. masses: of the places that list tokens."""
    tokens, counts = answer.tokens, answer.counts
    if over := {place: mass for place, mass in masses.items() if mass > 1 + SLACK}:
        most = max(over, key=lambda place: over[place])
        yield Finding(Fault.MASS_OVER_1, len(over), most + 1, over[most])
    best = {place: tokens[place].top[0].logprob for place in masses if place not in over}
    if dim := {place: value for place, value in best.items() if value < -math.log(LARGEST_VOCABULARY)}:
        least = min(dim, key=lambda place: dim[place])
        yield Finding(Fault.IMPROBABLE, len(dim), least + 1, math.exp(dim[least]))
    if left_out := [place for place in masses if place not in over and outdoes(tokens[place])]:
        yield Finding(Fault.NOT_LISTED, len(left_out), left_out[0] + 1)
    if (apart := parting(answer)) is not None:
        yield Finding(Fault.SPELLING, at=apart + 1)
    if counts.tokens is not None and tokens and abs(counts.tokens - len(tokens)) > ONE_MORE:
        yield Finding(Fault.TOKEN_COUNT, value=counts.tokens, other=len(tokens))
    accepted, drafted = counts.accepted, counts.drafted
    if accepted is not None and drafted is not None and accepted > drafted:
        yield Finding(Fault.DRAFT_COUNT, value=accepted, other=drafted)
    if counts.histogram and counts.drafts is not None and sum(counts.histogram) != counts.drafts:
        yield Finding(Fault.ROUND_COUNT, value=counts.drafts, other=sum(counts.histogram))
    if answer.draft_places not in (None, len(tokens)):
        yield Finding(Fault.DRAFT_PLACES, value=answer.draft_places, other=len(tokens))
    kl = [(value, at) for at, value in enumerate(answer.measures.get(ScoreName.DIVERGENCE, ()), 1) if value]
    if kl and min(kl)[0] < -SLACK:
        yield Finding(Fault.KL_BELOW_0, sum(value < -SLACK for value, _ in kl), min(kl)[1], min(kl)[0])


def outdoes(token: Written) -> bool:
    """Whether a written token that is not listed is more likely than one that is."""
    own = token.own
    if not isinstance(own, Unlisted) or own.logprob is None:
        return False
    return math.exp(own.logprob) > math.exp(token.top[-1].logprob) + SLACK


def parting(answer: Answer) -> int | None:
    """The first character of the text, counted from 0, at which the tokens spell something else. None if they
    spell this text, or if that cannot be known: some servers write one character for all bytes that are not a
    whole character.

    Space around the text may be cut, and so may what ended it: a stop string, or a token of its own.
    """
    if answer.text is None or not answer.tokens:
        return None
    pieces = [token.own.piece for token in answer.tokens]
    wanted, spelt = answer.text.strip(), b"".join(pieces).decode("utf-8", "replace").strip()
    if UNKNOWN_CHARACTER in spelt or wanted == spelt or answer.spells_more and wanted in spelt:
        return None
    if any(b"".join(pieces[:-cut]).decode("utf-8", "replace").strip() == wanted for cut in ENDING):
        return None
    pairs = enumerate(zip(wanted, spelt, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(wanted), len(spelt)))
