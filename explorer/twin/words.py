"""What a comparison of two engines found, in sentences, as a table and as JSON."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict

from decoders.trace.number_format import many
from visualizers.analysis.twin import Place, Reading, Twin, could_flip, largest_first, too_large

SHOWN = 8  # places that a sentence names
COLUMNS = (
    *("position", "token", "text", "logprob_a", "logprob_b", "difference", "rank_a", "rank_b"),
    *("most_likely_a", "most_likely_b", "other_most_likely", "kl", "mass_a", "mass_b", "verdict"),
)


def verdict_sentences(found: Twin) -> list[str]:
    """What explains the differences, the most important sentence first."""
    counts, all_tokens = found.counts, many(len(found.places), "token")
    said = []
    if found.factor != 1.0:
        said.append(
            f"B's log-probabilities are A's times {found.factor:.3f} plus a constant at "
            f"{counts.get('temperature', 0)} of {all_tokens}, as at a temperature of "
            f"{1 / found.factor:.3f} over A's. Compare both before temperature."
        )
    if count := counts.get("renormalised"):
        shifts = [abs(one.difference) for one in found.places if one.verdict == "renormalised"]
        kept = f"{math.exp(-max(shifts)):.2f} to {math.exp(-min(shifts)):.2f}"
        said.append(
            f"At {count} of {all_tokens} B's log-probabilities are A's plus a constant: one of the "
            f"two was renormalised after a truncation that kept {kept} of the mass. Compare both before it."
        )
    if count := counts.get("other"):
        first = next(one for one in found.places if one.verdict == "other")
        said.append(
            f"Another computation: at {count} of {all_tokens} the engines differ by more than "
            f"rounding in {found.precision} explains ({found.rounding.place:g} nats); the first is "
            f"{numbers(first)}."
        )
    elif not said and too_large(found):
        said.append(
            "Another computation: no token differs by more than rounding explains, but the median difference "
            f"is above rounding's {found.rounding.median:g} nats."
        )
    elif not said and counts.keys() <= {"rounding", "tie", "unknown"} and counts.keys() != {"unknown"}:
        largest = largest_first(found.places)[0]
        said.append(
            f"The same computation up to rounding in {found.precision}, over {all_tokens}: the "
            f"largest difference is {abs(largest.difference):.2g} nats, at token {largest.position} "
            f"“{largest.text}”."
        )
    if count := counts.get("unknown"):
        said.append(f"At {count} of {all_tokens} one of the engines gives no log-probability.")
    return [*said, *flip_sentences(found)]


def flip_sentences(found: Twin) -> list[str]:
    """Where greedy decoding takes different tokens, and where it could."""
    flips, near = [one for one in found.places if one.flips], could_flip(found)
    differing, close = many(len(flips), "token"), many(len(near), "token")
    said = []
    if flips:
        ties = sum(one.verdict == "tie" for one in flips)
        within = f", {'all' if ties == len(flips) else ties} within rounding" if ties else ""
        said.append(
            f"The most likely token differs at {differing}{within}: {positions(flips)}. Greedy "
            "decoding takes another token there."
        )
    if near:
        said.append(
            f"At {close} the two most likely ones are so close that rounding could swap them: "
            f"{positions(near)}."
        )
    return said


def positions(places: Sequence[Place]) -> str:
    """The first of some places by their positions."""
    return ", ".join(str(one.position) for one in places[:SHOWN]) + (" …" if len(places) > SHOWN else "")


def numbers(place: Place) -> str:
    """A place with its numbers."""
    return f"token {place.position} “{place.text}”, {logprob(place.a)} in A and {logprob(place.b)} in B"


def logprob(reading: Reading) -> str:
    """A log-probability with its rank."""
    if reading.logprob is None:
        return "not named"
    return f"{reading.logprob:.4f} (rank {reading.rank})" if reading.rank else f"{reading.logprob:.4f}"


def summary(found: Twin) -> str:
    """What the command line prints."""
    sides = zip("AB", found.names, found.formats, strict=True)
    heads = [f"{side}: {name} ({dtype or 'format not known'})" for side, name, dtype in sides]
    largest = largest_first(found.places)[:5]
    worst = [f"  {numbers(one)}: {one.difference:+.2g}, {one.verdict}" for one in largest]
    return "\n".join([*heads, *verdict_sentences(found), "Largest differences:", *worst])


def table(found: Twin) -> str:
    """One row per token, as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in found.places:
        best = [found.texts[side.top[0][0]] if side.top else None for side in (one.a, one.b)]
        writer.writerow(
            [one.position, one.token, one.text, one.a.logprob, one.b.logprob, one.difference, one.a.rank]
            + [one.b.rank, *best, one.flips, one.kl, one.a.mass, one.b.mass, one.verdict]
        )
    return out.getvalue()


def as_json(found: Twin) -> dict:
    """Everything that was found, with the sentences."""
    record = asdict(found)
    for place, one in zip(record["places"], found.places, strict=True):
        place |= {"difference": one.difference, "flips": one.flips}
    return record | {"counts": found.counts, "sentences": verdict_sentences(found)}
