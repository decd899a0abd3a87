"""Sentences of a trust report: what a file's numbers are, what bounds they leave, and what fails."""

from decoders.trace.number_format import many, number
from decoders.trace.trust import VOCABULARY, Fault, Finding, Trust

TRUSTED = "All checks passed."
UNTRUSTED = "Untrusted"
SCALES = {
    "log-probabilities": "The file's numbers are log-probabilities",
    "probabilities": "The file's numbers are probabilities",
    "none": "The file has no probabilities",
}
STAGES = {
    None: ", and it does not say whether before or after the processors",
    True: ", after the server's processors",
    False: ", before any processor",
}


def verdict(trust: Trust) -> str:
    """One sentence: the worst fault, or that there is none."""
    if trust.trusted:
        return TRUSTED
    more = len(trust.faults) - 1
    rest = f" And {many(more, 'more fault')}." if more else ""
    return f"{UNTRUSTED}: {fault(trust.faults[0], trust.tokens)}{rest}"


def report(trust: Trust) -> list[str]:
    """The whole report, a sentence each: faults first, then what was found to be right or left open."""
    said = [f"{UNTRUSTED}: {fault(one, trust.tokens)}" for one in trust.faults] or [TRUSTED]
    said.append(f"{SCALES[trust.scale]}{STAGES[trust.processed] if trust.scale != 'none' else ''}.")
    if None not in (trust.missing, trust.missing_at, trust.entropy_low, trust.entropy_high):
        said.append(
            f"Every token lists at least {trust.listed} likely tokens; up to {number(trust.missing)} of the "
            f"mass is left out (token {trust.missing_at:,}). So the mean entropy is between "
            f"{trust.entropy_low:.3f} nats and, with a vocabulary of {VOCABULARY:,} tokens, "
            f"{trust.entropy_high:.3f} nats."
        )
    elif trust.numbered:
        said.append("No likely tokens are listed, so entropies are unknown and masses cannot be checked.")
    if trust.numbered:
        beyond = f", and that of the others is at least {trust.surprise_beyond:.3f} nats"
        said.append(
            f"The surprise of {trust.numbered:,} of {many(trust.tokens, 'token')} is {trust.surprise:.3f} "
            f"nats{beyond if trust.numbered < trust.tokens else ''}."
        )
    return said


def fault(finding: Finding, tokens: int) -> str:
    """One fault as the rest of a sentence."""
    count, at, value, other = finding.count, finding.at, finding.value, finding.other
    places = f"{count:,} of {many(tokens, 'token')}"
    match finding.fault:
        case Fault.MASS_OVER_1:
            return (
                f"the probabilities that are listed at {places} add up to more than 1, to {value:.3g} at "
                f"token {at:,}; these are not shown."
            )
        case Fault.IMPROBABLE:
            return (
                f"the most likely token at token {at:,} has a probability of {number(value)}, and at "
                f"{places} it is below one in a million, which no softmax over a "
                "vocabulary gives: these may be logits."
            )
        case Fault.NOT_LISTED:
            return (
                f"at {places}, first at token {at:,}, the written token is not listed, though it is more "
                "probable than a listed one: its number and theirs come from different stages."
            )
        case Fault.SPELLING:
            return f"the tokens do not spell the text: they differ from its character {at:,} on."
        case Fault.TOKEN_COUNT:
            return f"the file counts {int(value):,} tokens and lists {int(other):,}."
        case Fault.DRAFT_COUNT:
            return (
                f"it counts {int(value):,} accepted tokens, more than the {int(other):,} that were drafted."
            )
        case Fault.ROUND_COUNT:
            return f"it counts {int(value):,} rounds, and its histogram of accepted tokens {int(other):,}."
        case Fault.DRAFT_PLACES:
            return (
                f"it lists the draft's probabilities at {int(value):,} places and the text's at "
                f"{int(other):,}, so it is unknown which belong together; the draft's are not shown."
            )
        case Fault.KL_BELOW_0:
            return f"a divergence is below 0, {value:.3g} at token {at:,}, at {places}."
    return finding.fault
