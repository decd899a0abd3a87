"""Calls of `generate`, once alone and once watched; and what must hold for every resulting trace."""

import copy
import math
from typing import Any

import pytest
import torch
import transformers

from decoders import watch
from decoders.models.loaded_model import LoadedModel
from decoders.trace import trace
from decoders.trace.events import Commit, Distribution, Forward, Propose, Verdict, event_to_json

PROMPT = "the cat sat on a mat; the cat"
MEASURED = {"start": 0.0, "seconds": 0.0}


def call(model: LoadedModel, inputs: dict, seed: int, options: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """The result of generate, and the state of the random number generator after it."""
    torch.manual_seed(seed)
    found = model.model.generate(**inputs, **options)
    return getattr(found, "sequences", found), torch.get_rng_state()


def both(model: LoadedModel, prompt: str | list[str] = PROMPT, seed: int = 3, **options: Any):
    """(the watch, the sequences): generate was called alone and watched, and nothing differed. All traces
    obey the rules of traces, and their outputs are the returned ones.
    """
    inputs = encoded(model, [prompt] if isinstance(prompt, str) else prompt)
    options = {"max_new_tokens": 16, **options}
    alone, state = call(model, inputs, seed, options)
    with watch(model.model, model.tokenizer, model.name) as run:
        watched, after = call(model, inputs, seed, options)
    assert torch.equal(alone, watched) and torch.equal(state, after)
    each = len(alone) // len(run.traces)
    for number, found in enumerate(run.traces):
        check(found, model)
        whole, length = alone[number * each].tolist(), inputs["input_ids"].shape[1]
        assert found.output() == whole[length : length + len(found.output())]
        assert set(whole[length + len(found.output()) :]) <= model.eos
    return run, alone


def encoded(model: LoadedModel, prompts: list[str]) -> dict[str, torch.Tensor]:
    """Prompts in the form that generate takes, left-padded."""
    texts = [model.encode(prompt) for prompt in prompts]
    longest, pad = max(map(len, texts)), min(model.eos)
    ids = torch.tensor([[pad] * (longest - len(text)) + text for text in texts])
    mask = torch.tensor([[0] * (longest - len(text)) + [1] * len(text) for text in texts])
    return {"input_ids": ids, "attention_mask": mask}


def check(found: trace.Trace, model: LoadedModel) -> None:
    """The rules of `tests/laws`: schema, one path, everything judged, costs, the target's own numbers."""
    trace.check_trace(found.to_json())
    assert found.ended.endswith(".")
    nodes, path = found.nodes(), [n for s in found.steps for c in s.of(Commit) for n in c.nodes]
    assert [nodes[n][0] for n in path] == [len(found.prompt) - 1, *path[:-1]]
    verdicts = [v for s in found.steps for v in s.of(Verdict)]
    status = {v.node: v.status for v in verdicts}
    tests = [v for v in verdicts if v.status in ("accepted", "rejected") and None not in (v.u, v.passes)]
    assert all((v.u <= v.passes) == (v.status == "accepted") for v in tests)
    assert not {status.get(n) for n in path} & {"pruned", "rejected", "never reached"}
    leaves = set(nodes) - {parent for parent, _ in nodes.values()} - set(range(len(found.prompt)))
    assert leaves <= status.keys() | set(path)
    seconds = [s.seconds for s in found.steps]
    assert seconds == sorted(seconds)
    costs(found)
    words = {t for s in found.steps for e in s.of(Distribution) for t, _ in e.top}
    assert words | {e.token for s in found.steps for e in s.of(Propose)} <= found.vocabulary.keys()
    text = torch.tensor([[*found.prompt, *found.output()]])
    own = model.model(text).logits[0, len(found.prompt) - 1 : -1].log_softmax(-1)
    want = own.gather(1, text[0, len(found.prompt) :, None])[:, 0].tolist()
    assert [p for s in found.steps for c in s.of(Commit) for p in c.logprobs] == pytest.approx(want, abs=1e-3)


def costs(found: trace.Trace) -> None:
    """The totals are the sums of the events."""
    totals, forwards = found.costs.totals(), [f for s in found.steps for f in s.of(Forward)]
    for role in ("target", "draft"):
        mine = [f for f in forwards if f.model == role]
        assert totals[f"{role}_forwards"] == pytest.approx(sum(f.share for f in mine))
        assert totals[f"{role}_tokens"] == pytest.approx(sum(f.share * f.tokens for f in mine))
        assert sum(f.seconds for f in mine) <= totals["seconds"]
    assert totals["new_tokens"] == len(found.output())
    logprobs = [p for s in found.steps for c in s.of(Commit) for p in c.logprobs]
    assert totals["logprob"] == pytest.approx(math.fsum(logprobs))


def told(found: trace.Trace, *kinds: type) -> list[list[dict]]:
    """The events of these kinds, step by step, with comparable numbers."""
    return [
        [
            {k: rounded(v) for k, v in (event_to_json(e) | MEASURED).items()}
            for e in step.events
            if type(e) in kinds
        ]
        for step in found.steps
    ]


def rounded(value: Any) -> Any:
    """Numbers rounded to four decimals, also in lists and objects."""
    if isinstance(value, float):
        return pytest.approx(value, abs=2e-4)
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def assistant(model: LoadedModel, noise: float = 0.03, tokens: int = 3) -> transformers.PreTrainedModel:
    """A draft that is often right: the model with noise on its weights; it drafts this many tokens."""
    draft = copy.deepcopy(model.model)
    generator = torch.Generator().manual_seed(0)
    for weight in draft.parameters():
        weight.add_(noise * torch.randn(weight.shape, generator=generator))
    draft.generation_config.num_assistant_tokens = tokens
    draft.generation_config.assistant_confidence_threshold = 0.0
    return draft
