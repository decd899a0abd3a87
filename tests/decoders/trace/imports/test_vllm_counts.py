"""A server's counts: Prometheus text as vLLM writes it, the same as JSON, and those of one request."""

import json

import pytest

from decoders.trace.imports.vllm_counts import from_json, from_prometheus
from explorer.export import run_file

TEXT = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="some/model"} 1.0
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="some/model"} 60.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="some/model"} 40.0
vllm:spec_decode_num_drafts_created{engine="0",model_name="some/model"} 1.7e+09
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="some/model"} 300.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="some/model"} 150.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="some/model",position="0"} 50.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",model_name="some/model",position="0"} 30.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="some/model",position="1"} 45.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="some/model",position="2"} 25.0
"""
COUNTS = {
    "over": "server",
    "models": ["some/model"],
    "num_drafts": 100,
    "num_draft_tokens": 300,
    "num_accepted_tokens": 150,
    "num_accepted_tokens_per_pos": [80, 45, 25],
}
REQUEST = {  # as a vLLM server answers with --per-request-spec-decode-metrics summary
    "mean_acceptance_length": 2.0,
    "draft_acceptance_rate": 1 / 3,
    "acceptance_histogram": [1, 0, 1, 0],
    "num_spec_steps": 2,
    "num_accepted_draft_tokens": 2,
    "num_draft_tokens": 6,
    "num_spec_tokens": 3,
}


def test_prometheus_text_is_summed_over_engines_and_its_other_metrics_are_left_alone():
    assert from_prometheus(TEXT.encode()) == COUNTS
    bare = TEXT.replace("_total", "")  # as llm.get_metrics() names them
    assert from_prometheus(bare.encode()) == COUNTS
    assert run_file.counts(TEXT.encode()) == COUNTS


@pytest.mark.parametrize("prefix", ["", "vllm:spec_decode_"])
def test_the_same_counts_as_json(prefix):
    names = [name for name in COUNTS if name.startswith("num")]
    record = {prefix + name: COUNTS[name] for name in names} | {"model": "some/model"}
    assert from_json(record) == COUNTS
    assert run_file.counts(json.dumps(record).encode()) == COUNTS


def test_the_counts_of_one_request_alone_or_in_its_answer():
    alone = from_json(REQUEST)
    assert (alone["over"], alone["num_drafts"], alone["num_accepted_tokens"]) == ("request", 2, 2)
    assert alone["num_accepted_tokens_per_pos"] == [1, 1, 0]
    answer = {"model": "m", "choices": [{"logprobs": None}], "metrics": {"speculative_decoding": REQUEST}}
    assert from_json(answer) == alone | {"models": ["m"]}
    assert run_file.counts(json.dumps(answer).encode()) == alone | {"models": ["m"]}


def test_an_answer_with_log_probabilities_is_a_lane_and_no_counts():
    content = [{"token": "a", "logprob": -1.0}]
    answer = {"choices": [{"logprobs": {"content": content}}], "metrics": {"speculative_decoding": REQUEST}}
    assert run_file.counts(json.dumps(answer).encode()) is None
    assert run_file.counts(b'{"version": 1, "steps": [], "num_drafts": 1}') is None
    assert from_json([REQUEST]) is None and from_json({"num_drafts": 3}) is None
    assert from_json({"metrics": {"speculative_decoding": None}}) is None


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("num_drafts_total", "num_requests", "count no speculative decoding"),
        ("} 150.0", "} 400.0", "more tokens were accepted than drafted"),
        ("} 50.0", "} 90.0", "accepted in more rounds than there were"),
        ("} 300.0", "} 300.5", "num_draft_tokens is not a whole number"),
        ("} 300.0", "} NaN", "num_draft_tokens is not a whole number"),
        ("} 300.0", "} -1", "num_draft_tokens is not a whole number"),
        ("} 300.0", "} 1e300", "num_draft_tokens is not a whole number"),
    ],
)
def test_what_cannot_be_believed_is_refused_in_a_sentence(old, new, sentence):
    with pytest.raises(ValueError, match=sentence):
        from_prometheus(TEXT.replace(old, new).encode())


def test_a_server_that_has_drafted_nothing_says_so_and_odd_json_is_refused():
    nothing = {"num_drafts": 0, "num_draft_tokens": 0, "num_accepted_tokens": 0}
    with pytest.raises(ValueError, match="drafted nothing yet"):
        from_json(nothing)
    for odd in ("x", None, [], True, 10**400, {"path": "x"}):
        with pytest.raises(ValueError, match="num_draft_tokens is not a whole number"):
            from_json(nothing | {"num_drafts": 1, "num_draft_tokens": odd})
    for odd in ("x", {}, [1] * 65, [None], 3):
        with pytest.raises(ValueError, match="num_accepted_tokens_per_pos is not a whole number"):
            from_json(nothing | {"num_drafts": 1, "num_accepted_tokens_per_pos": odd})
    with pytest.raises(ValueError, match="other rounds than num_spec_steps"):
        from_json(REQUEST | {"num_spec_steps": 3})
