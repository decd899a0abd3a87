"""Lines of speculation in the logs of vLLM and llama.cpp, among any other lines. Makes no trace."""

import re

from decoders.refusal import Refusal
from decoders.trace.imports.vllm_counts import CONTRADICTION, LOG, PLACES, checked

VLLM = re.compile(
    r"SpecDecoding metrics: Mean acceptance length: ([\d.]+|nan),.*?Accepted: (\d+) tokens, "
    r"Drafted: (\d+) tokens, Per-position acceptance rate: ([\d., ]*?),? Avg Draft acceptance rate"
)
LLAMA_REQUEST = re.compile(
    r"draft acceptance(?: rate)? = [\d.]+ \(\s*(\d+) accepted /\s*(\d+) generated\)"
    r"(?:, mean len =\s*([\d.]+))?"
)
LLAMA_TOTAL = re.compile(
    r"statistics\s+(\S+?):? #calls.*?#gen drafts =\s*(\d+).*?#gen tokens =\s*(\d+), #acc tokens =\s*(\d+)"
)
PER_PLACE = re.compile(r"#acc rate/pos = \(([\d., ]+)\)")
KNOWN = re.compile(rb"SpecDecoding metrics: |draft acceptance(?: rate)? = |statistics\s+\S+ #calls")
ROUNDED = 0.006  # of a mean acceptance length with two decimals


def read(data: bytes) -> dict:
    """The counts of all lines, in the form of `vllm_counts.checked`. Raises Refusal with one sentence if they
    contradict each other, or if no line is of a known form.
    """
    text = data.decode("utf-8", "replace")
    if lines := VLLM.findall(text):
        return summed([of_vllm(*line) for line in lines])
    if totals := {match[1]: match for match in LLAMA_TOTAL.finditer(text)}:  # the last of each drafter counts
        return summed([of_llama(match, text) for match in totals.values()])
    if lines := LLAMA_REQUEST.findall(text):
        return summed([(rounds_of(int(a), mean), int(b), int(a), []) for a, b, mean in lines])
    raise Refusal(
        "This log has no line of speculation. Looked for vLLM's “SpecDecoding metrics:” and llama.cpp's "
        "“draft acceptance =” and “statistics”."
    )


Line = tuple[int | None, int, int, list[int]]  # rounds, drafted, accepted, accepted by place


def of_vllm(mean: str, accepted: str, drafted: str, rates: str) -> Line:
    """The counts of an interval. The line has no number of rounds: it follows from a draft of full length in
    each, or else from the mean.
    """
    passed, all_drafted = int(accepted), int(drafted)
    shares = [float(rate) for rate in rates.split(",") if rate.strip()]
    if mean == "nan" or not all_drafted:
        return 0, all_drafted, passed, []
    length = float(mean)
    full = all_drafted / len(shares) if shares else 0.0
    if full and full.is_integer() and abs(1 + passed / full - length) <= ROUNDED:
        rounds: int | None = int(full)
    else:
        rounds = rounds_of(passed, mean)
    if shares and abs(1 + sum(shares) - length) > ROUNDED + 0.001 * len(shares):
        raise Refusal(
            CONTRADICTION.format("the rates of the places do not add up to the mean acceptance length")
        )
    return rounds, all_drafted, passed, [round(share * rounds) for share in shares] if rounds else []


def rounds_of(accepted: int, mean: str) -> int | None:
    """The number of rounds that a mean acceptance length leaves; None if it tells nothing."""
    length = float(mean) if mean else 1.0
    return round(accepted / (length - 1)) if accepted and length > 1 else None


def of_llama(match: re.Match, text: str) -> Line:
    """The counts of a drafter since the server started."""
    rounds, drafted, accepted = int(match[2]), int(match[3]), int(match[4])
    found = PER_PLACE.search(text[match.end() :].partition("\n")[0])
    shares = [float(share) for share in found[1].split(",")] if found else []
    return rounds, drafted, accepted, [round(share * rounds) for share in shares]


def summed(lines: list[Line]) -> dict:
    """The sums over lines; what one of them does not know is unknown."""
    rounds = [line[0] for line in lines]
    longest = max(len(line[3]) for line in lines)
    by_place = [sum(line[3][at] for line in lines if at < len(line[3])) for at in range(longest)]
    known = all(line[3] or not line[1] for line in lines)
    return checked(
        {
            "over": LOG,
            "models": [],
            "num_drafts": None if None in rounds else sum(rounds),
            "num_draft_tokens": sum(line[1] for line in lines),
            "num_accepted_tokens": sum(line[2] for line in lines),
            PLACES: by_place if known else [],
        }
    )
