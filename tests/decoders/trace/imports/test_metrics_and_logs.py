"""Metrics and lines of logs of vLLM, llama.cpp and SGLang: their sums, and what they leave unknown."""

import pytest

from decoders.refusal import Refusal
from explorer.export.run_file import counts, unpack
from tests.decoders.trace.imports import samples
from visualizers.analysis.speculation_report import counted

NAMES = ("num_drafts", "num_draft_tokens", "num_accepted_tokens", "num_accepted_tokens_per_pos")


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (samples.LLAMA_METRICS, (None, 80, 40, [])),
        (samples.VLLM_LOG, (20, 60, 17, [10, 6, 1])),
        (samples.LLAMA_LOG, (None, 20, 8, [])),
        (samples.LLAMA_STATISTICS, (10, 20, 8, [6, 2])),  # the last line counts all that went before
    ],
)
def test_counts_are_summed_and_what_is_not_counted_is_unknown(data, wanted):
    found = counts(data)
    assert tuple(found[name] for name in NAMES) == wanted
    report = counted(found)
    known = {row["name"] for row in report["metrics"]}
    assert ("mean_acceptance_length" in known) == (wanted[0] is not None)
    assert ("tokens per round are unknown" in report["sentence"]) == (wanted[0] is None)
    with pytest.raises(Refusal, match="have no tokens"):
        unpack(data)


def test_sglangs_gauges_are_rates_of_its_latest_interval():
    found = counts(samples.SGLANG_METRICS)
    assert found["mean_acceptance_length"] == 3.0 and found["draft_acceptance_rate"] == 0.5
    report = counted(found)
    assert report["depths"] == [] and "latest interval" in report["sentence"]
    assert {row["name"]: row["value"] for row in report["metrics"]}["mean_acceptance_length"] == 3.0


def test_contradictions_in_a_log_are_told():
    wrong = samples.VLLM_LOG.replace(b"0.700, 0.400, 0.100", b"0.900, 0.400, 0.100")
    with pytest.raises(Refusal, match="do not add up to the mean acceptance length"):
        counts(wrong)
    with pytest.raises(Refusal, match="more tokens were accepted than drafted"):
        counts(samples.LLAMA_LOG.replace(b"    6 accepted", b"   60 accepted"))


def test_metrics_without_speculation_name_what_was_looked_for():
    with pytest.raises(Refusal, match="llamacpp:draft_tokens_total and sglang:spec_accept_length"):
        counts(b"# HELP llamacpp:x y\n# TYPE llamacpp:x counter\nllamacpp:x 4\n")
