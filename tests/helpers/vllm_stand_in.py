"""A stand-in for vLLM's model runner with the names, shapes and calls that our recorder hooks: a table of
logits as the model, a second one as the drafter, and vLLM's rejection sampling in plain torch.

Real vLLM is tested by `make vllm`; this one runs everywhere and shows faults at once.
"""

import sys
import types
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

WORDS, DRAFTED = 40, 3


def install(monkeypatch: Any) -> types.ModuleType:
    """Puts the modules that the recorder imports into `sys.modules`; returns the rejection sampler's."""
    names = ("vllm", "vllm.v1", "vllm.v1.sample", "vllm.v1.worker", "vllm.v1.worker.gpu_model_runner")
    names += (
        "vllm.v1.sample.ops",
        "vllm.v1.sample.ops.topk_topp_sampler",
        "vllm.v1.sample.rejection_sampler",
    )
    for name in names:
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, module)
    sys.modules["vllm.v1.worker.gpu_model_runner"].apply_grammar_bitmask = mask
    sys.modules["vllm.v1.sample.ops.topk_topp_sampler"].apply_top_k_top_p = lambda logits, k, p: logits
    module = sys.modules["vllm.v1.sample.rejection_sampler"]
    module.generate_uniform_probs = lambda count: torch.rand(count, dtype=torch.float64)
    module.sample_recovered_tokens = recovered_tokens
    module.rejection_sample = rejection_sample
    return module


def mask(scheduled: Any, allowed: torch.Tensor, batch: Any, logits: torch.Tensor) -> None:
    """As vLLM's, in place: allowed [R, V]."""
    logits.masked_fill_(~allowed, -torch.inf)


def recovered_tokens(draft: torch.Tensor, q: torch.Tensor | None, p: torch.Tensor) -> torch.Tensor:
    """A token of norm(max(p - q, 0)) for each place [N]."""
    q = torch.zeros_like(p).scatter_(-1, draft[:, None], 1.0) if q is None else q
    return torch.multinomial((p - q).clamp(min=0.0) + 1e-12, 1)[:, 0]


def rejection_sample(
    draft: torch.Tensor,
    counts: list[int],
    longest: int,
    ends: torch.Tensor,
    q: torch.Tensor | None,
    logits: torch.Tensor,
    bonus: torch.Tensor,
    metadata: Any,
) -> torch.Tensor:
    """vLLM's, one place after the other: output [B, longest + 1], -1 where nothing is written."""
    own = sys.modules["vllm.v1.sample.rejection_sampler"]
    output, first = torch.full((len(counts), longest + 1), -1), 0
    p, best = logits.softmax(-1), logits.argmax(-1)
    if not metadata.all_greedy:
        u, instead = own.generate_uniform_probs(len(draft)), own.sample_recovered_tokens(draft, q, p)
    for number, count in enumerate(counts):
        for place in range(count):
            at = first + place
            token = int(draft[at])
            if metadata.all_greedy:
                passed, other = token == best[at], best[at]
            else:
                chance = 1.0 if q is None else q[at, token]
                passed, other = p[at, token] / chance >= u[at], instead[at]
            output[number, place] = token if passed else other
            if not passed:
                break
        else:
            output[number, count] = bonus[number, 0]
        first += count
    return output


class Sampler(torch.nn.Module):
    """vLLM's Sampler, as far as it is hooked."""

    def __init__(self) -> None:
        super().__init__()
        self.topk_topp_sampler = torch.nn.Module()
        self.topk_topp_sampler.forward = lambda logits, generators, k, p: torch.multinomial(
            logits.softmax(-1), 1
        )

    def sample(self, logits: torch.Tensor, metadata: Any) -> torch.Tensor:
        """Tokens [B, 1]; writes into the logits."""
        if metadata.all_greedy:
            return logits.argmax(-1, keepdim=True)
        return self.topk_topp_sampler(logits.div_(metadata.temperature), {}, None, None)


@dataclass
class Text:
    """One request."""

    params: SimpleNamespace
    prompt_token_ids: list[int]
    output_token_ids: list[int] = field(default_factory=list)
    drafted: list[int] = field(default_factory=list)

    @property
    def sampling_params(self) -> SimpleNamespace:
        """By vLLM's name."""
        return self.params


class Runner:
    """A GPUModelRunner. `step` is what vLLM's engine does: schedule, execute, sample, draft."""

    def __init__(self, texts: dict[str, Text], temperature: float = 0.0, has_q: bool = False, seed: int = 0):
        torch.manual_seed(seed)
        self.target, noise = torch.randn(WORDS, WORDS) * 2, torch.randn(WORDS, WORDS)
        self.draft, self.temperature, self.has_q = self.target + noise, temperature, has_q
        self.requests, self.sampler = texts, Sampler()
        self.q: list[torch.Tensor] = []
        greedy = temperature == 0.0
        self.metadata = SimpleNamespace(
            temperature=temperature,
            all_greedy=greedy,
            no_penalties=True,
            allowed_token_ids_mask=None,
            bad_words_token_ids={},
            logitsprocs=SimpleNamespace(non_argmax_invariant=[]),
        )
        self.input_batch = SimpleNamespace(req_ids=list(texts), sampling_metadata=self.metadata)
        self.discard_request_mask = SimpleNamespace(np=np.zeros(len(texts), bool))
        self.allowed: torch.Tensor | None = None  # [V], of a grammar

    def execute_model(self, scheduled: Any, intermediate: Any = None) -> None:
        """The forward: nothing to do for a table."""

    def propose_draft_token_ids(self) -> None:
        """Drafts below each text, greedily or at random."""
        self.q = []
        for text in self.requests.values():
            text.drafted, last = [], (text.prompt_token_ids + text.output_token_ids)[-1]
            for _ in range(DRAFTED):
                q = (self.draft[last] / (self.temperature or 1.0)).softmax(-1)
                last = int(torch.multinomial(q, 1)) if self.has_q else int(q.argmax())
                text.drafted.append(last)
                self.q.append(q)

    def _sample(self, logits: torch.Tensor, metadata: Any) -> SimpleNamespace:
        if metadata is None:
            return SimpleNamespace(sampled_token_ids=self.sampler.sample(logits, self.metadata))
        bonus = self.sampler.sample(logits[metadata.ends], self.metadata)
        own = sys.modules["vllm.v1.sample.rejection_sampler"]
        counts = metadata.num_draft_tokens
        target = logits[metadata.target_logits_indices] / (self.temperature or 1.0)
        q = torch.stack(self.q) if self.has_q else None
        drafts = metadata.draft_token_ids
        sampled = own.rejection_sample(drafts, counts, max(counts), None, q, target, bonus, self.metadata)
        return SimpleNamespace(sampled_token_ids=sampled)

    def step(self, over: set[str] = frozenset(), preempted: set[str] = frozenset()) -> None:
        """One turn of the engine."""
        counts = [len(text.drafted) for text in self.requests.values()]
        tokens = {name: count + 1 for name, count in zip(self.requests, counts, strict=True)}
        self.execute_model(
            SimpleNamespace(
                finished_req_ids=set(over), preempted_req_ids=set(preempted), num_scheduled_tokens=tokens
            )
        )
        read, drafts = [], []
        for text in self.requests.values():
            read += [(text.prompt_token_ids + text.output_token_ids)[-1], *text.drafted]
            drafts += text.drafted
        logits = self.target[torch.tensor(read)].clone()
        if self.allowed is not None:
            own = sys.modules["vllm.v1.worker.gpu_model_runner"]
            own.apply_grammar_bitmask(None, self.allowed.expand_as(logits), self.input_batch, logits)
        ends = torch.tensor(counts).cumsum(0) + torch.arange(len(counts))
        rows = torch.ones(len(read), dtype=torch.bool)
        rows[ends] = False
        metadata = SimpleNamespace(
            draft_token_ids=torch.tensor(drafts, dtype=torch.long),
            num_draft_tokens=counts,
            target_logits_indices=rows.nonzero()[:, 0],
            ends=ends,
        )
        sampled = self._sample(logits, metadata if drafts else None).sampled_token_ids.tolist()
        for text, row in zip(self.requests.values(), sampled, strict=True):
            text.output_token_ids += [token for token in row if token >= 0]
        self.propose_draft_token_ids()


def params(**given: Any) -> SimpleNamespace:
    """SamplingParams with vLLM's defaults."""
    usual = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "seed": None, "max_tokens": 30}
    usual |= {"min_tokens": 0, "stop_token_ids": [], "stop": [], "eos_token_id": None}
    usual |= {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
    return SimpleNamespace(
        **usual | {"include_stop_str_in_output": False, "structured_outputs": None} | given
    )


ENGINE = {
    "version": "0",
    "model": "a table",
    "tokenizer": "words",
    "longest": 500,
    "method": "draft_model",
    "drafter": "another",
    "num_speculative_tokens": DRAFTED,
}
