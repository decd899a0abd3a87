"""Reads a server's counts of speculative decoding in vLLM's formats, Prometheus text or JSON. Makes no trace.
The metrics of llama.cpp and SGLang are in metrics_text.py, lines of logs in log_lines.py.

vLLM's metrics endpoint counts over all requests since the server started (`vllm:spec_decode_num_drafts` and
others); its JSON answers may count over one request (`metrics.speculative_decoding`). Neither says which
tokens were drafted, so nothing can be replayed.
"""

import re
from typing import Any

from decoders.refusal import Refusal
from decoders.trace.imports.answer import MAX_NAME, Counts

# What was counted over; of LATEST only rates are known: SGLang's metrics are gauges.
SERVER, REQUEST, LOG, LATEST = "server", "request", "log", "latest"
MAX_COUNT = 2**53  # largest count that is accepted
MAX_PLACES = 64  # longest draft that is accepted
# Name of a count -> its name in the counts of one request.
NAMES = {
    "num_drafts": "num_spec_steps",
    "num_draft_tokens": "num_draft_tokens",
    "num_accepted_tokens": "num_accepted_draft_tokens",
}
PLACES, HISTOGRAM = "num_accepted_tokens_per_pos", "acceptance_histogram"
# A line of Prometheus text; a counter's name may end in _total.
LINE = re.compile(r"vllm[:_]spec_decode_(num_\w+?)(?:_total)?(\{.*\})?\s+([-+.\deE]+|\+?Inf|NaN)(?:\s+\d+)?")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
NO_COUNTS = (
    "These metrics count no speculative decoding: vllm:spec_decode_num_drafts is missing. Save the metrics "
    "of a vLLM server that drafts."
)
NOT_COUNTS = "These counts cannot be read: {} is not a whole number of at least 0."
NO_DRAFT = "This server has drafted nothing yet: its counts are all 0."
CONTRADICTION = "These counts contradict themselves: {}."


def from_prometheus(data: bytes) -> dict:
    """The counts in a metrics endpoint's text, summed over the server's engines, in the form of `checked`.

    Raises Refusal with one sentence if there are none or they contradict each other.
    """
    totals: dict = {"models": set()}
    places: dict[int, int] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        match = LINE.fullmatch(line.strip())
        if not match or match[1] not in (*NAMES, PLACES):
            continue
        name, labels, value = match[1], dict(LABEL.findall(match[2] or "")), count(match[1], match[3])
        totals["models"] |= {labels["model_name"][:MAX_NAME]} if "model_name" in labels else set()
        if name == PLACES:
            at = int(labels["position"]) if labels.get("position", "").isdecimal() else MAX_PLACES
            if at < MAX_PLACES:
                places[at] = places.get(at, 0) + value
        else:
            totals[name] = totals.get(name, 0) + value
    if not set(NAMES) <= set(totals):
        raise Refusal(NO_COUNTS)
    levels = [places.get(at, 0) for at in range(max(places, default=-1) + 1)]
    return checked(totals | {"over": SERVER, "models": sorted(totals["models"]), PLACES: levels})


def from_json(record: object) -> dict | None:
    """The counts in a JSON value, in the form of `checked`; None if it holds none.

    Reads an object with the names of vLLM's metrics, with or without `vllm:spec_decode_`, and the counts of
    one request, alone or inside the answer. Raises Refusal as `from_prometheus` does.
    """
    if not isinstance(record, dict):
        return None
    metrics = record.get("metrics")
    inner = metrics if isinstance(metrics, dict) else record
    inner = inner.get("speculative_decoding", inner)
    if not isinstance(inner, dict):
        return None
    model = [record["model"][:MAX_NAME]] if isinstance(record.get("model"), str) else []
    plain = {plain_name(key): value for key, value in inner.items() if isinstance(key, str)}
    if set(NAMES) <= set(plain):
        counts = {name: count(name, plain[name]) for name in NAMES}
        return checked({"over": SERVER, "models": model, PLACES: counts_of(plain, PLACES)} | counts)
    if set(NAMES.values()) <= set(plain):
        counts = {name: count(own, plain[own]) for name, own in NAMES.items()}
        rounds = counts_of(plain, HISTOGRAM)
        places = {HISTOGRAM: rounds, PLACES: at_least(rounds)}
        return checked({"over": REQUEST, "models": model, **counts, **places})
    return None


def of_answer(record: dict, found: Counts) -> dict | None:
    """The counts of an answer, in the form of `checked`; None if it drafted nothing that it counts."""
    if found.drafted is None or found.accepted is None:
        return None
    model = [record["model"][:MAX_NAME]] if isinstance(record.get("model"), str) else []
    numbers = (found.drafts, found.drafted, found.accepted)
    rounds = list(found.histogram or ())
    places = {PLACES: at_least(rounds)} | ({HISTOGRAM: rounds} if rounds else {})
    return checked({"over": REQUEST, "models": model, **dict(zip(NAMES, numbers, strict=True)), **places})


def plain_name(name: str) -> str:
    """A metric's name without vLLM's prefix and Prometheus's suffix."""
    return re.sub(r"^vllm[:_]spec_decode_|_total$", "", name)


def count(name: str, value: Any) -> int:
    """`value` as a count. Raises Refusal with one sentence if it is not one."""
    try:
        number = float(value) if not isinstance(value, bool) else -1.0  # Prometheus writes 12.0
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not (0 <= number <= MAX_COUNT and number.is_integer()):
        raise Refusal(NOT_COUNTS.format(name))
    return int(number)


def counts_of(record: dict, name: str) -> list[int]:
    """A list of counts, empty if there is none."""
    values = record.get(name, [])
    if not isinstance(values, list) or len(values) > MAX_PLACES:
        raise Refusal(NOT_COUNTS.format(name))
    return [count(name, value) for value in values]


def at_least(rounds: list[int]) -> list[int]:
    """From the number of rounds that accepted exactly 0, 1, ... tokens: the number that accepted place 0, 1,
    ... of their draft.

    A request's counts come from chains, where place k was accepted if more than k tokens were.
    """
    return [sum(rounds[place:]) for place in range(1, len(rounds))]


def checked(counts: dict) -> dict:
    """`{over, models, num_drafts, num_draft_tokens, num_accepted_tokens, num_accepted_tokens_per_pos}`.

    over: SERVER, REQUEST or LOG. num_drafts is None if rounds are not counted; num_accepted_tokens_per_pos is
    empty if it is not known; a request may also have acceptance_histogram. Raises Refusal with one sentence
    if the counts contradict each other.
    """
    drafts, drafted, accepted = (counts[name] for name in NAMES)
    if not (drafts or drafted):
        raise Refusal(NO_DRAFT)
    if accepted > drafted:
        raise Refusal(CONTRADICTION.format("more tokens were accepted than drafted"))
    if drafts is not None and any(place > drafts for place in counts[PLACES]):
        many = "a position of the draft was accepted in more rounds than there were"
        raise Refusal(CONTRADICTION.format(many))
    if counts.get(HISTOGRAM) and sum(counts[HISTOGRAM]) != drafts:
        raise Refusal(CONTRADICTION.format("acceptance_histogram counts other rounds than num_spec_steps"))
    return counts
