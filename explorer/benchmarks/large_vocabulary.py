"""What a step costs outside the model where the vocabulary is as large as those of 2026: 152,000 and 200,000
tokens, with random weights.

A forward of a model of Qwen3-0.6B's shape is the measure of time; sampling is compared with `generate` on one
small layer, where the forward hides nothing.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import islice, product
from statistics import median
from string import ascii_lowercase
from typing import Any

SIZES = (152_000, 200_000)
BODY = dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16)
TINY = dict(hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2)
STRATEGIES = (
    ("greedy", "greedy", {}),
    ("sampling", "sample", {}),
    ("sampling, top-p 0.9", "sample", {"top_p": 0.9}),
    ("beam search, 4 beams", "beam", {"num_beams": 4}),
    ("greedy under a regular expression", "greedy", {"constraint": "regex", "constraint_text": "[a-z ]{9,}"}),
)
TOKENS, FEW, ROUNDS, GOAL = 24, 4, 3, 0.1
SHARP = 0.6  # spread of the small model's weights: its distributions have an entropy of 2 to 7 bits
PROMPT = "once upon a time"


def vocabulary(options: argparse.Namespace) -> Iterator[dict]:
    """Time outside the model per token, relative to a forward of a 0.6 B model; sampling with top-p against
    `generate`; bytes of a trace per token.
    """
    from explorer.timing import figure

    for size in SIZES:
        large, small = random_model(size, BODY), random_model(size, TINY, SHARP)
        forward = forward_seconds(large)
        for name, strategy, parameters in STRATEGIES:
            seconds, written = outside(small, strategy, parameters)
            label = f"{size:,} tokens, {name}: outside the model, relative to a forward"
            details = {"milliseconds": 1e3 * seconds, "trace_bytes_per_token": written}
            yield figure(label, seconds / forward, "x", GOAL, at_least=False, **details)
        yield figure(f"{size:,} tokens: a forward of 0.6 B parameters", 1e3 * forward, "ms", None, False)
        label = f"{size:,} tokens, sampling with top-p 0.9: time relative to generate"
        yield figure(label, against_generate(small), "x", 1.0, at_least=False)


def random_model(size: int, shape: dict[str, int], spread: float = 0.02, device: str = "cpu") -> Any:
    """A Qwen3 of this shape with random weights and a byte-level vocabulary of `size` tokens."""
    import torch
    from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

    from decoders.models.loaded_model import LoadedModel

    tokenizer = tokenizer_of(size)
    heads = dict(num_key_value_heads=shape["num_attention_heads"] // 2, head_dim=64, tie_word_embeddings=True)
    shape = shape | dict(initializer_range=spread)
    ends = dict(bos_token_id=None, eos_token_id=size - 1, pad_token_id=None)
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=size, **shape, **heads, **ends)).eval().to(device)
    model.generation_config = GenerationConfig(eos_token_id=size - 1)
    return LoadedModel(f"random, {size:,} tokens", model.requires_grad_(False), tokenizer)


def tokenizer_of(size: int) -> Any:
    """A byte-level BPE tokenizer whose tokens are words of one letter, two letters, three ..."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words, letters = sorted(pre_tokenizers.ByteLevel.alphabet()), [*ascii_lowercase, "Ġ"]
    merges, level = [], letters
    while len(words) < size - 1:
        pairs = list(islice(product(level, letters), size - 1 - len(words)))
        merges += pairs
        level = ["".join(pair) for pair in pairs]
        words += level
    vocabulary = {word: at for at, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")


def forward_seconds(model: Any) -> float:
    """Seconds of one forward over one token, at the median."""
    from decoders.trace.events import Forward

    trace = decoded(model, "greedy", {})
    return median(forward.seconds for step in trace.steps[1:] for forward in step.of(Forward))


def outside(model: Any, strategy: str, parameters: dict) -> tuple[float, float]:
    """Seconds outside the model per token, the beginning left out, and bytes of the trace per token."""
    from decoders.trace.events import Forward

    def seconds(trace: Any) -> float:
        inside = sum(forward.seconds for step in trace.steps for forward in step.of(Forward))
        return trace.costs.totals()["seconds"] - inside

    decoded(model, strategy, parameters)  # makes the tables of a constraint
    short = [decoded(model, strategy, parameters, FEW) for _ in range(ROUNDS)]
    long = [decoded(model, strategy, parameters) for _ in range(ROUNDS)]
    tokens, few = len(long[0].output()), len(short[0].output())
    spent = min(map(seconds, long)) - min(map(seconds, short))
    return spent / (tokens - few), len(json.dumps(long[0].to_json())) / tokens


def against_generate(model: Any) -> float:
    """The time of sampling with top-p relative to that of `generate`, in turn."""
    import torch

    from explorer.timing import in_turn

    prompt = torch.tensor([model.encode(PROMPT)])
    sampling = dict(do_sample=True, top_k=0, top_p=0.9, max_new_tokens=TOKENS, min_new_tokens=TOKENS)
    mine, theirs = in_turn(
        [
            lambda: decoded(model, "sample", {"top_p": 0.9, "min_new_tokens": TOKENS}),
            lambda: model.model.generate(prompt, attention_mask=torch.ones_like(prompt), **sampling),
        ],
        times=ROUNDS,
        of=min,
    )
    return mine / theirs


def decoded(model: Any, strategy: str, parameters: dict, tokens: int = TOKENS) -> Any:
    """The trace of a short run."""
    from decoders.lane import Lane, Limits

    prompt = model.encode(PROMPT)
    return Lane(strategy, prompt, {"target": model}, parameters, limits=Limits(tokens)).run()
