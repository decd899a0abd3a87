"""A small answer or record of each dialect, shaped as its program writes it; texts and numbers are ours."""

import json
import math

WORDS = ["The", " cat", " sat", "."]
OTHERS = [" dog", " ran", "!", " mat"]
P, REST = 0.6, 0.3  # of the written token and of one other at each place
OWN, OTHER = math.log(P), math.log(REST)


def likely(at: int) -> list[tuple[str, float]]:
    return [(WORDS[at], OWN), (OTHERS[at], OTHER)]


def entry(at: int) -> dict:
    """A token in OpenAI's chat shape."""
    tops = [{"token": t, "logprob": p, "bytes": list(t.encode())} for t, p in likely(at)]
    return {"token": WORDS[at], "logprob": OWN, "bytes": list(WORDS[at].encode()), "top_logprobs": tops}


TEXT = "".join(WORDS)
ENTRIES = [entry(at) for at in range(4)]
DRAFT = [
    {"token": t, "logprob": math.log(0.5), "top_logprobs": [{"token": t, "logprob": math.log(0.5)}]}
    for t in WORDS
]
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "some/model",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": TEXT}, "logprobs": {"content": ENTRIES}}
    ],
    "usage": USAGE,
}
FASTDEPLOY = CHAT | {
    "choices": [{**CHAT["choices"][0], "draft_logprobs": {"content": DRAFT}}],
}
PREDICTED = CHAT | {
    "usage": USAGE
    | {
        "completion_tokens": 6,
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "accepted_prediction_tokens": 3,
            "rejected_prediction_tokens": 2,
        },
    }
}
COMPLETION = {
    "object": "text_completion",
    "model": "some/model",
    "choices": [
        {
            "index": 0,
            "text": TEXT,
            "logprobs": {
                "tokens": WORDS,
                "token_logprobs": [OWN] * 4,
                "top_logprobs": [dict(likely(at)) for at in range(4)],
                "text_offset": [0, 3, 7, 11],
            },
        }
    ],
    "usage": USAGE,
}
RESPONSES = {
    "object": "response",
    "model": "some/model",
    "output": [
        {"type": "reasoning", "summary": []},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": TEXT, "logprobs": ENTRIES, "annotations": []}],
        },
    ],
    "usage": {"input_tokens": 3, "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 0}},
}
LLAMA = {
    "index": 0,
    "content": TEXT,
    "model": "model.gguf",
    "tokens_predicted": 4,
    "prompt": "Once",
    "completion_probabilities": [{"id": at, **ENTRIES[at]} for at in range(4)],
    "timings": {"predicted_n": 4, "draft_n": 3, "draft_n_accepted": 2},
}
LLAMA_POST = LLAMA | {
    "completion_probabilities": [
        {
            "id": at,
            "token": WORDS[at],
            "prob": P,
            "bytes": list(WORDS[at].encode()),
            "top_probs": [{"id": n, "token": t, "prob": math.exp(p)} for n, (t, p) in enumerate(likely(at))],
        }
        for at in range(4)
    ]
}
LLAMA_OLD = {
    "content": TEXT,
    "model": "model.gguf",
    "tokens_predicted": 4,
    "completion_probabilities": [
        {"content": WORDS[at], "probs": [{"prob": math.exp(p), "tok_str": t} for t, p in likely(at)]}
        for at in range(4)
    ],
}
SGLANG = {
    "text": TEXT,
    "meta_info": {
        "id": "a",
        "finish_reason": {"type": "stop"},
        "completion_tokens": 4,
        "output_token_logprobs": [[OWN, 10 + at, WORDS[at]] for at in range(4)],
        "output_top_logprobs": [[[p, n, t] for n, (t, p) in enumerate(likely(at))] for at in range(4)],
        "spec_verify_ct": 2,
        "spec_accept_token_num": 2,
        "spec_draft_token_num": 6,
        "spec_accept_histogram": [1, 0, 1],
    },
}
OLLAMA = {"model": "small", "response": TEXT, "done": True, "eval_count": 4, "logprobs": ENTRIES}
OLLAMA_STREAM = [
    *({"model": "small", "response": WORDS[at], "done": False, "logprobs": [ENTRIES[at]]} for at in range(4)),
    {"model": "small", "response": "", "done": True, "eval_count": 4},
]
HARNESS = {
    "doc_id": 3,
    "doc": {"question": "Which pet purrs?"},
    "target": "0",
    "arguments": {
        "gen_args_0": {"arg_0": "Q: Which pet purrs? A:", "arg_1": " A cat"},
        "gen_args_1": {"arg_0": "Q: Which pet purrs? A:", "arg_1": " A fish"},
    },
    "resps": [[["-2.5", "True"]], [["-7.25", "False"]]],
    "filtered_resps": [["-2.5", "True"], ["-7.25", "False"]],
    "acc": 1.0,
}
GENERATED = {
    "doc_id": 4,
    "target": "18",
    "arguments": [["Q: 9 + 9? A:", {"until": ["\n"]}]],
    "resps": [[" 18 apples"]],
    "filtered_resps": ["18"],
    "exact_match": 0.0,
}
PRIME = {
    "schema_version": 1,
    "step": 12,
    "rank": 0,
    "export_sequence_idx": 5,
    "env_name": "sums",
    "token_ids": [7, 8, 9, 10],
    "position_ids": [0, 1, 2, 3],
    "loss_mask": [False, True, True, True],
    "advantages": [None, 0.5, 0.5, 0.5],
    "rewards": [0.0, 0.25, 0.25, 0.25],
    "inference_logprobs": [0.0, -0.5, -1.0, -2.0],
    "trainer_logprobs": [-0.1, -0.5, -1.1, -1.0],
    "entropy": [2.0, 0.7, 1.5, 1.0],
    "mismatch_kl": [None, 0.0, 0.005, None],
}
SLIME = {
    "group_index": 0,
    "index": 4,
    "prompt": "Add one and one.",
    "tokens": [1, 2, 3, 40, 41],
    "response": "Two.",
    "response_length": 2,
    "reward": 1,
    "rollout_log_probs": [-0.25, -0.75],
    "loss_mask": [1, 1],
    "status": "completed",
}
VERL = {"input": "Add two and two.", "output": "Five.", "gts": "4", "score": 0.0, "step": 7}

LLAMA_METRICS = b"""# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 120
llamacpp:draft_tokens_total{type="mtp"} 60
llamacpp:draft_tokens_total{type="ngram"} 20
llamacpp:draft_tokens_accepted_total{type="mtp"} 30
llamacpp:draft_tokens_accepted_total{type="ngram"} 10
"""
SGLANG_METRICS = b"""# HELP sglang:gen_throughput The generation throughput
# TYPE sglang:gen_throughput gauge
sglang:gen_throughput{model_name="some/model",tp_rank="0"} 86.5
sglang:spec_accept_length{model_name="some/model",tp_rank="0"} 2.5
sglang:spec_accept_length{model_name="some/model",tp_rank="1"} 3.5
sglang:spec_accept_rate{model_name="some/model",tp_rank="0"} 0.5
sglang:spec_accept_rate{model_name="some/model",tp_rank="1"} 0.5
"""
VLLM_LOG = b"""INFO 02-28 04:23:41 [loggers.py:100] Engine 000: Running: 1 reqs
INFO 02-28 04:23:51 [metrics.py:100] SpecDecoding metrics: Mean acceptance length: 2.20, Accepted \
throughput: 1.20 tokens/s, Drafted throughput: 3.00 tokens/s, Accepted: 12 tokens, Drafted: 30 tokens, \
Per-position acceptance rate: 0.700, 0.400, 0.100, Avg Draft acceptance rate: 40.0%
INFO 02-28 04:24:01 [metrics.py:100] SpecDecoding metrics: Mean acceptance length: 1.50, Accepted \
throughput: 0.50 tokens/s, Drafted throughput: 3.00 tokens/s, Accepted: 5 tokens, Drafted: 30 tokens, \
Per-position acceptance rate: 0.300, 0.200, 0.000, Avg Draft acceptance rate: 16.7%
"""
LLAMA_LOG = b"""\
slot print_timing: id 0 | task 0 | draft acceptance = 0.60000 (    6 accepted /    10 generated)
slot print_timing: id  0 | task 9 | draft acceptance rate = 0.20000 (    2 accepted /    10 generated)
"""
LLAMA_STATISTICS = (
    LLAMA_LOG
    + b"""spec common_specu: statistics draft-mtp: #calls(b,g,a) =    1    4    4, \
#gen drafts =      4, #acc drafts =     2, #gen tokens =      8, #acc tokens =     3, #mean acc len = 1.75, \
#acc rate/pos = (0.500, 0.250), dur(b,g,a) = 0.003, 13.291, 0.467 ms
spec common_specu: statistics draft-mtp: #calls(b,g,a) =    1   10   10, #gen drafts =     10, \
#acc drafts =     6, #gen tokens =     20, #acc tokens =     8, #mean acc len = 1.80, \
#acc rate/pos = (0.600, 0.200), dur(b,g,a) = 0.003, 33.291, 0.967 ms
"""
)


def lines(*records: dict) -> bytes:
    """A file of one record a line."""
    return "\n".join(map(json.dumps, records)).encode() + b"\n"
