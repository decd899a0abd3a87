"""vLLM's newer model runner (`vllm/v1/worker/gpu/model_runner.py`): the same story as runner.py tells.

Its tests run inside a kernel that draws its own numbers, so u and the residual's probability are not known.
vLLM's CPU build has no Triton to run it with: it was read, and tested with a stand-in.
Shapes: B requests, N drafted tokens, R = N + B rows of logits, V vocabulary.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import torch

from decoders.watch.vllm.measured import Rows, of_rows
from decoders.watch.vllm.recorder import Recorder


@dataclass
class Seen:
    """What the samplers were given and made of it, in one part or several."""

    raw: list[torch.Tensor] = field(default_factory=list)
    processed: list[torch.Tensor] = field(default_factory=list)
    drafted: list[torch.Tensor] = field(default_factory=list)  # what each row reads, -1 for padding
    draft_logits: torch.Tensor | None = None  # [requests at most, K, V], before the temperature


class NewerRunnerRecorder(Recorder):
    """Hooks on one GPUModelRunner of the newer kind and its samplers."""

    def __init__(self, runner: Any, *args: Any):
        super().__init__(runner, *args)
        self.now: Seen | None = None
        self.unmasked: torch.Tensor | None = None
        self.before(runner, "execute_model", self._scheduled)
        self.replace(runner, "sample", self._sample)
        self.after(runner.sampler, "sample", self._drawn)
        if runner.rejection_sampler is not None:
            self.after(runner.rejection_sampler, "_verify", self._tested)
        if runner.structured_outputs_worker is not None:
            self.before(runner.structured_outputs_worker, "apply_grammar_bitmask", self._masked)

    def _scheduled(self, output: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("dummy_run"):
            return
        self.scheduled(output)
        for new in output.scheduled_new_reqs:
            if new.req_id not in self.known and new.sampling_params is not None:
                self.begin(new.req_id, list(new.prompt_token_ids or ()), [], new.sampling_params)

    def _masked(self, logits: torch.Tensor, *_: Any) -> None:
        self.unmasked = logits.clone()

    def _sample(self, original: Any) -> Any:
        def sample(hidden: torch.Tensor, batch: Any, grammar: Any) -> Any:
            self.now, start = Seen(), time.perf_counter()
            try:
                output = original(hidden, batch, grammar)
            finally:
                seen, self.now, unmasked, self.unmasked = self.now, None, self.unmasked, None
            if output[0] is not None and seen.raw:
                self.safely(self._finished, seen, unmasked, batch, output[0], start)
            return output

        return sample

    def _drawn(self, result: tuple, logits: torch.Tensor, *_: Any, **__: Any) -> None:
        if self.now is not None:
            self.now.raw.append(logits)
            self.now.processed.append(result[1])

    def _tested(self, result: tuple, logits: torch.Tensor, draft_logits: Any, *args: Any) -> None:
        if self.now is not None:
            self.now.raw.append(logits)
            self.now.processed.append(result[0])
            self.now.drafted.append(args[-1])
            self.now.draft_logits = draft_logits

    def _finished(self, seen: Seen, unmasked: Any, batch: Any, output: Any, start: float) -> None:
        changed = unmasked is not None or any(
            after is not before for before, after in zip(seen.raw, seen.processed, strict=True)
        )
        raw = torch.cat(seen.raw) if unmasked is None else unmasked
        ends = batch.cu_num_logits_np
        counts = (ends[1 : batch.num_reqs + 1] - ends[: batch.num_reqs] - 1).tolist()
        rows = Rows(counts, raw.device)
        places = torch.arange(output.sampled_token_ids.shape[1], device=raw.device)
        sampled = output.sampled_token_ids.masked_fill(places >= output.num_sampled[:, None], -1)
        drafts = torch.cat(seen.drafted)[rows.targets + 1] if seen.drafted else None
        tensors = rows.tokens(sampled, drafts) | of_rows("raw", raw, rows.named, self.top)
        if changed:
            processed = torch.cat(seen.processed)
            tensors |= of_rows("bonus", processed[rows.ends], rows.named[rows.ends], self.top)
            if drafts is not None:
                tensors |= of_rows("target", processed[rows.targets], rows.named[rows.targets], self.top)
        if seen.draft_logits is not None and drafts is not None:
            own = batch.expanded_idx_mapping[rows.targets]
            at = batch.expanded_local_pos[rows.targets]
            warmth = self.runner.sampler.sampling_states.temperature.gpu[own].clamp(min=1e-5)
            scores = seen.draft_logits[own, at] / warmth[:, None]
            tensors |= of_rows("draft", scores, drafts[:, None], self.top)
        header = {
            "kind": "step",
            "requests": list(batch.req_ids[: batch.num_reqs]),
            "skipped": [],
            "start": self.started,
            "forward": start - self.started,
            "drafting": 0.0,
            "tokens": batch.num_scheduled_tokens[: batch.num_reqs].tolist(),
            "drafted": counts,
        }
        self.step(header, tensors)
