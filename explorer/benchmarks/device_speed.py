"""Measures one device: greedy decoding against each form of `generate`, beam search, drafting, a tree of 64
nodes, and the share of the memory bandwidth that a forward reaches. It runs the shipped target, and on a GPU
also Llamas of 1.2 and 8 billion parameters in bfloat16 with random weights, which do not change the speed.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from explorer.runs.load_pair import load_models
from explorer.timing import PROMPTS, alternate, figure, generator, in_turn, ours, plain_models

NODES = 64  # of the tree
TIMES = 15  # measurements of each forward and copy
COPIED = 1 << 28  # bytes copied to measure the bandwidth
SHARED = {
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 2048,
    "eos_token_id": None,  # so that random texts never end
}
LARGE = {  # the shapes of Llama 3.2 1B and Llama 3.1 8B
    "1.2 B": {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "tie_word_embeddings": True,
    },
    "8 B": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32},
}


def device(options: argparse.Namespace) -> Iterator[dict]:
    """The rows for `options.device`."""
    roles = ("target", "draft")
    models = load_models(options.model, options.draft, roles, options.device)
    prompts = [models["target"].encode(text) for text in PROMPTS]
    plain = plain_models(options, models)
    yield from of_pair(options.model, models, plain, prompts)
    captured = load_models(options.model, options.draft, roles, options.device)
    yield from captured_speeds(options.model, captured["target"], plain["target"], prompts)
    if options.device == "cuda":
        for name, shape in LARGE.items():
            yield from large(f"Llama of {name} parameters", shape, prompts)


def of_pair(name: str, models: dict, plain: dict, prompts: list[list[int]]) -> Iterator[dict]:
    """The rows of target and draft as loaded; plain: both as transformers runs them."""
    yield from speeds(name, models["target"], plain["target"], prompts, goal=None)
    assisted = generator(plain["target"], assistant_model=plain["draft"])
    label = f"{name}: speculative against generate(assistant_model=...)"
    yield compared(label, ours(models, "speculative"), assisted, prompts)


def large(name: str, shape: dict, prompts: list[list[int]], device: str = "cuda") -> Iterator[dict]:
    """The rows of a Llama with random weights; two prompts suffice, as its texts have no meaning."""
    prompts = prompts[:2]
    target = random_llama(name, shape, device)
    if target is None:
        yield {"name": name, "note": "left out: it does not fit in memory"}
        return
    yield from speeds(name, target, target.model, prompts, goal=3.0 if "1.2 B" in name else None)
    yield from captured_speeds(name, target, target.model, prompts)


def speeds(name: str, target, plain, prompts: list[list[int]], goal: float | None) -> Iterator[dict]:
    """The rows of one model as loaded: strategies against `generate`, and single forwards."""
    models, greedy = {"target": target}, ours({"target": target}, "greedy")
    yield compared(f"{name}: greedy against generate", greedy, generator(plain), prompts, goal)
    static = generator(plain, cache_implementation="static")  # which transformers compiles on a GPU
    yield compared(f"{name}: greedy against generate with a static cache", greedy, static, prompts)
    beams = ours(models, "beam", num_beams=4), generator(plain, num_beams=4)
    yield compared(f"{name}: beam 4 against generate(num_beams=4)", *beams, prompts)
    yield from forwards(name, target, prompts[0])


def captured_speeds(name: str, target, plain, prompts: list[list[int]]) -> Iterator[dict]:
    """The rows of the model with captured forwards (CUDA graphs on a GPU), without and with compilation."""
    warm = ours({"target": target}, "greedy")
    for how, compiler in (("captured", {}), ("captured and compiled", {"mode": "default"})):
        target.engine.capture(**compiler)
        for prompt in prompts:  # a shape is captured when it first occurs
            warm(prompt)
        yield compared(f"{name}, {how}: greedy against generate", warm, generator(plain), prompts)
        yield from forwards(f"{name}, {how}", target, prompts[0])


def compared(name: str, mine: Callable, other: Callable, prompts: list, goal: float | None = None) -> dict:
    """A row: tokens/s of `mine` divided by those of `other`."""
    first, second, ratio = alternate(mine, other, prompts)
    return figure(name, ratio, "x", goal, at_least=True, tokens_per_second=[first, second])


def forwards(name: str, target, prompt: list[int]) -> Iterator[dict]:
    """A forward over NODES nodes relative to one over one node, and the bandwidth share of the latter."""
    one, tree = in_turn([forward(target, prompt, 1), forward(target, prompt, NODES)], TIMES)
    yield figure(
        f"{name}: a forward over {NODES} nodes against one over one node", tree / one, "x", None, False
    )
    share = weights_read(target.model) / one / bandwidth(target.model.device)
    goal = 0.6 if target.model.device.type == "cuda" else None
    yield figure(f"{name}: share of the memory bandwidth in a forward", share, "", goal, at_least=True)


def forward(target, prompt: list[int], count: int) -> Callable[[], None]:
    """A function that runs one forward over `count` nodes below the prompt, warmed up."""
    from decoders.engine.tree import Tree

    tree = Tree(prompt)
    scorer = target.engine.attach(tree)
    scorer.score([tree.trunk - 1])
    nodes = [tree.add(tree.trunk - 1, token) for token in range(count)]

    def run() -> None:
        scorer.score(nodes)[0, 0].item()
        scorer.release(nodes)

    run()
    return run


def weights_read(model) -> int:
    """Bytes of weights that one forward reads: all but an embedding matrix that is not also the head."""
    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    count = sum(p.numel() * p.itemsize for p in model.parameters())
    return count if embedding is head else count - embedding.numel() * embedding.itemsize


def bandwidth(device) -> float:
    """Bytes per second that a copy in the device's memory reads and writes together."""
    import torch

    source = torch.zeros(COPIED, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)

    def copy() -> None:
        target.copy_(source)
        target[0].item()  # waits for the copy

    copy()
    return 2 * COPIED / in_turn([copy], TIMES)[0]


def random_llama(name: str, shape: dict, device: str) -> Any:
    """A Llama with random weights in bfloat16 and the shipped tokenizer; None if it does not fit in memory on
    `device`.
    """
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from decoders.engine.kv_cache import free_bytes
    from decoders.models.catalog import TARGET, with_weights
    from decoders.models.loaded_model import LoadedModel

    config = LlamaConfig(**SHARED, **shape)
    with torch.device("meta"):
        count = LlamaForCausalLM(config).num_parameters()
    if 2.5 * count > (free_bytes(device) or 0):  # two bytes each, and room for the forwards
        return None
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    tokenizer = AutoTokenizer.from_pretrained(with_weights(TARGET), trust_remote_code=False)
    return LoadedModel(name, model.eval().requires_grad_(False), tokenizer)
