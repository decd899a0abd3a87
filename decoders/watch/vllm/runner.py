"""vLLM's model runner (`vllm/v1/worker/gpu_model_runner.py`, and that of the CPU, which is derived from it):
what its samplers see and decide in each step.

Words as in vLLM's rejection sampler: accepted tokens are drafted ones that passed; a recovered token comes
from the adjusted distribution after a rejection; a bonus token follows a draft that passed as a whole.
Shapes: B requests, K drafted tokens of one, N of all, R = N + B rows of logits, V vocabulary.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from decoders.watch.vllm.measured import Rows, of_rows, residual_of
from decoders.watch.vllm.recorder import Recorder

SEAMS = ("execute_model", "_sample", "propose_draft_token_ids")


@dataclass
class Step:
    """A step while its tokens are sampled."""

    raw: torch.Tensor  # logits [R, V] before any processor
    changed: bool  # whether processors change them
    drafted: list[int]  # K of each request
    header: dict[str, Any]
    metadata: Any = None  # vLLM's of the drafts; None in a step without any
    u: torch.Tensor | None = None  # [N]: the uniform numbers of the tests
    recovered: torch.Tensor | None = None  # [N]: what would be written where each test failed
    bonus: torch.Tensor | None = None  # processed logits [B, V] of rows that end a draft, or have none
    target: tuple | None = None  # the arguments of vLLM's `rejection_sample`, by which it tests


class RunnerRecorder(Recorder):
    """Hooks on one GPUModelRunner, and on functions of two modules while it samples."""

    def __init__(self, runner: Any, *args: Any):
        super().__init__(runner, *args)
        from vllm.v1.sample import rejection_sampler
        from vllm.v1.worker import gpu_model_runner

        self.now: Step | None = None
        self.unmasked: torch.Tensor | None = None  # logits before a grammar's mask
        self.before(runner, "execute_model", self.scheduled)
        self.replace(runner, "_sample", self._sample)
        self.replace(runner, "propose_draft_token_ids", self._timed)
        self.before(gpu_model_runner, "apply_grammar_bitmask", self._masked)
        self.before(runner.sampler, "sample", self._sampled_from)
        self.before(runner.sampler.topk_topp_sampler, "forward", self._drawn_from)
        self.after(rejection_sampler, "rejection_sample", self._tested)
        self.after(rejection_sampler, "generate_uniform_probs", self._kept("u"))
        self.after(rejection_sampler, "sample_recovered_tokens", self._kept("recovered"))

    # ---- hooks ---------------------------------------------------------------------------------------

    def _timed(self, original: Any) -> Any:
        def propose(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                self.drafting = time.perf_counter() - start

        return propose

    def _masked(self, scheduled: Any, grammar: Any, batch: Any, logits: torch.Tensor) -> None:
        if batch is self.runner.input_batch:
            self.unmasked = logits.clone()

    def _sample(self, original: Any) -> Any:
        def sample(logits: torch.Tensor, metadata: Any) -> Any:
            self.now = None if logits is None else self.safely(self._begun, logits, metadata)
            try:
                output = original(logits, metadata)
            finally:
                step, self.now, self.unmasked = self.now, None, None
            if step is not None:
                self.safely(self._finished, step, output.sampled_token_ids)
            return output

        return sample

    def _begun(self, logits: torch.Tensor, metadata: Any) -> Step:
        runner, batch = self.runner, self.runner.input_batch
        requests = list(batch.req_ids)
        for request in requests:
            if request not in self.known:
                state = runner.requests[request]
                written = [token for token in state.output_token_ids if token >= 0]
                self.begin(request, list(state.prompt_token_ids or ()), written, state.sampling_params)
        changed = self.unmasked is not None or shaped(batch.sampling_metadata)
        raw = logits if self.unmasked is None else self.unmasked
        if metadata is None and changed and raw is logits:
            raw = logits.clone()  # the sampler writes into what it is given
        now = time.perf_counter()
        skipped = np.nonzero(runner.discard_request_mask.np[: len(requests)])[0].tolist()
        header = {
            "kind": "step",
            "requests": requests,
            "skipped": skipped,  # whose prompt is not read to its end
            "start": self.started,
            "forward": now - self.started,
            "drafting": self.drafting,
            "tokens": [self.tokens.get(request, 0) for request in requests],
        }
        self.drafting = 0.0
        drafted = [0] * len(requests) if metadata is None else list(metadata.num_draft_tokens)
        return Step(raw, changed, drafted, header, metadata)

    def _sampled_from(self, logits: torch.Tensor, *_: Any, **__: Any) -> None:
        """The sampler's own logits [B, V], processed but for temperature and what follows it."""
        if self.now is not None and self.now.changed:
            self.now.bonus = logits.clone()

    def _drawn_from(self, logits: torch.Tensor, generators: Any, k: Any, p: Any) -> None:
        """The logits [B, V] from which random requests draw, before top-k and top-p."""
        if self.now is not None:
            from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p

            self.now.bonus = apply_top_k_top_p(logits.clone(), k, p)

    def _tested(self, output: torch.Tensor, *args: Any, **_: Any) -> None:
        if self.now is not None:
            self.now.target = args

    def _kept(self, name: str) -> Any:
        def keep(result: torch.Tensor, *_: Any, **__: Any) -> None:
            if self.now is not None:
                setattr(self.now, name, result)

        return keep

    def _finished(self, step: Step, sampled: torch.Tensor) -> None:
        """sampled [B, K + 1] of the longest draft, -1 where nothing was written."""
        rows = Rows(step.drafted, sampled.device)
        drafts = None if step.metadata is None else step.metadata.draft_token_ids
        tensors = rows.tokens(sampled, drafts) | of_rows("raw", step.raw, rows.named, self.top)
        if step.target is not None and rows.targets.numel():
            draft_ids, _, _, _, q, logits = step.target[:6]
            if step.changed:
                tensors |= of_rows("target", logits, rows.named[rows.targets], self.top)
            if q is not None:
                tensors |= of_rows("draft", q.log(), draft_ids[:, None], self.top)
            if step.recovered is not None:
                at = rows.last_tested(sampled)
                own = None if q is None else q[at]
                tensors["residual"] = residual_of(logits[at], own, draft_ids[at], step.recovered[at])
            if step.u is not None:
                tensors["u"] = step.u
        if step.bonus is not None:
            tensors |= of_rows("bonus", step.bonus, rows.named[rows.ends], self.top)
        self.step(step.header | {"drafted": step.drafted}, tensors)


def shaped(metadata: Any) -> bool:
    """Whether a step's sampling changes any request's logits, by vLLM's SamplingMetadata."""
    own = metadata.logitsprocs
    idle = all(  # vLLM's own processors stand in the list all the time, and hold what they have to do
        not getattr(processor, "min_toks", None) and not getattr(processor, "biases", None)
        if type(processor).__module__.startswith("vllm.v1.sample.logits_processor")
        else False
        for processor in own.non_argmax_invariant
    )
    return not (
        metadata.all_greedy
        and metadata.no_penalties
        and metadata.allowed_token_ids_mask is None
        and not metadata.bad_words_token_ids
        and idle
    )
