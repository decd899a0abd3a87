"""Metrics of servers in Prometheus' text format: vLLM's and llama.cpp's counters of speculation, and SGLang's
gauges, which are rates of its latest interval.
"""

import re

from decoders.refusal import Refusal
from decoders.trace.imports import vllm_counts
from decoders.trace.imports.answer import MAX_NAME
from decoders.trace.imports.vllm_counts import LABEL, LATEST, PLACES, SERVER, checked, count

METRICS = re.compile(rb"# (HELP|TYPE) \w|[A-Za-z_]\w*:\w+(\{[^}\n]*\})? [-+0-9]")  # how such a text begins
SAMPLE = re.compile(r"(\w+[:_]\w+)(\{.*\})?\s+([-+.\deE]+)(?:\s+\d+)?")
# llama.cpp's counters; several builds have names of their own.
DRAFTED = ("draft_tokens_total", "draft_tokens", "draft_n_total")
ACCEPTED = ("draft_tokens_accepted_total", "accepted_draft_tokens", "draft_n_accepted_total", "accept_tokens")
ROUNDS = ("draft_verify_steps_total",)
LENGTH, RATE = "spec_accept_length", "spec_accept_rate"
NO_COUNTS = (
    "These metrics count no speculative decoding. Looked for vllm:spec_decode_num_drafts, "
    "llamacpp:draft_tokens_total and sglang:spec_accept_length; save the metrics of a server that drafts."
)


def read(data: bytes) -> dict:
    """The counts or rates in a text, in the form of `vllm_counts.checked`. Raises Refusal with one sentence
    if there are none, or if they contradict each other.
    """
    text = data.decode("utf-8", "replace")
    if "llamacpp:" in text and (counts := of_llama(values_of(text, "llamacpp"))):
        return counts
    if "sglang" in text and (rates := of_sglang(values_of(text, "sglang"))):
        return rates
    if "spec_decode_" in text:
        return vllm_counts.from_prometheus(data)
    raise Refusal(NO_COUNTS)


def values_of(text: str, engine: str) -> dict[str, list[tuple[dict, str]]]:
    """Name -> (labels, value) of each sample of an engine's metrics."""
    found: dict[str, list[tuple[dict, str]]] = {}
    for line in text.splitlines():
        match = SAMPLE.fullmatch(line.strip())
        if match and match[1].startswith((f"{engine}:", f"{engine}_")):
            labels = dict(LABEL.findall(match[2] or ""))
            found.setdefault(match[1][len(engine) + 1 :], []).append((labels, match[3]))
    return found


def of_llama(values: dict[str, list[tuple[dict, str]]]) -> dict | None:
    """llama.cpp's counters, summed over drafters; None if there are none."""

    def total(names: tuple[str, ...]) -> int | None:
        name = next((name for name in names if name in values), None)
        return None if name is None else sum(count(name, value) for _, value in values[name])

    drafted, accepted = total(DRAFTED), total(ACCEPTED)
    if drafted is None or accepted is None:
        return None
    numbers = {"num_drafts": total(ROUNDS), "num_draft_tokens": drafted, "num_accepted_tokens": accepted}
    return checked({"over": SERVER, "models": models_of(values), PLACES: [], **numbers})


def of_sglang(values: dict[str, list[tuple[dict, str]]]) -> dict | None:
    """SGLang's gauges: `{over, models, mean_acceptance_length, draft_acceptance_rate}`, means over its ranks;
    None if there are none.
    """
    means = {}
    for name, known in ((LENGTH, "mean_acceptance_length"), (RATE, "draft_acceptance_rate")):
        numbers = [float(value) for _, value in values.get(name, ())]
        if numbers:
            means[known] = sum(numbers) / len(numbers)
    if not means:
        return None
    if not 0 <= means.get("draft_acceptance_rate", 0.0) <= 1:
        raise Refusal("These rates cannot be read: sglang:spec_accept_rate is not between 0 and 1.")
    return {"over": LATEST, "models": models_of(values), **means}


def models_of(values: dict[str, list[tuple[dict, str]]]) -> list[str]:
    """The models that the samples' labels name."""
    names = {
        labels[key][:MAX_NAME]
        for samples in values.values()
        for labels, _ in samples
        for key in ("model_name", "model")
        if key in labels
    }
    return sorted(names)
