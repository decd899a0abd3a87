"""Runs one request through a model: by its own forward, by the fast one of small Llamas, or by a captured
one.
"""

import warnings
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import torch

from decoders.engine.attention_kernels import any_length
from decoders.engine.attention_weights import Tap
from decoders.engine.fast_llama import FastLlama
from decoders.engine.forward_outputs import Batch
from decoders.engine.forward_request import ForwardRequest
from decoders.engine.injected_states import injecting
from decoders.engine.kv_cache import Columns, SlotCache
from decoders.engine.layers import Layers
from decoders.engine.partial_forward import Blocks
from decoders.engine.static_shapes import Captured
from decoders.refusal import Refusal

# Since 5.24 transformers says at each call that 5.40 will rename it; older versions know no other name.
warnings.filterwarnings("ignore", "`past_key_values` is deprecated", FutureWarning)


class ModelForwards:
    """The part of an engine that runs requests, with its model and slots."""

    model: torch.nn.Module
    device: torch.device
    dtype: torch.dtype
    layer_count: int
    attention_count: int  # of layers that attend
    cache: SlotCache
    tap: Tap
    fast_llama: FastLlama | None
    captured: Captured | None
    shows_attention: bool

    @cached_property
    def blocks(self) -> Blocks:
        """The model's blocks, to be run in part."""
        return Blocks(self.model)

    def capture(self, **compiler: Any) -> None:
        """Makes forwards use few shapes from now on; on a GPU, each shape is recorded once as a CUDA graph,
        see `static_shapes`.

        `compiler`: options of `torch.compile`, such as mode="default". With any, each shape is compiled
        first, which takes a quarter of a minute. The queries of models without `FastLlama` are no longer
        captured, so their attention cannot be shown. Raises Refusal, changing nothing, if the model cannot be
        recorded.
        """
        if not self.cache.storage:
            self._read_a_token()
        if self.fast_llama is None or not self.shows_attention:  # found out before shapes are recorded
            self.tap.leave(self.model)
        self.captured = captured = Captured(self._step, self.cache, self.dtype, **compiler)
        try:
            self._read_a_token()
        except RuntimeError as error:  # such as a value that the forward reads back from the GPU
            self.captured = None
            self.cache.give([captured.spare])
            reason = str(error).strip().partition("\n")[0]
            raise Refusal(
                f"{type(self.model).__name__} cannot be recorded as CUDA graphs; start without --capture. "
                f"The GPU's library says: {reason}"
            ) from error

    def _read_a_token(self) -> None:
        """Runs a forward over one token, after which the cache knows the shapes of keys and values."""
        slots = self.cache.take(1)
        at = slice(slots[0], slots[0] + 1)
        request = ForwardRequest(tokens=[0], positions=[0], columns=Columns(at, at, 1, None), rows=[0])
        try:
            self._forward(request)
        finally:
            self.cache.give(slots)

    def _step(self, tokens: torch.Tensor, positions: torch.Tensor, mask: Any, hidden: bool) -> tuple:
        """See `Captured`."""
        if self.fast_llama is not None:
            states, queries, _ = self.fast_llama.forward(tokens, positions, mask, self.cache)
            return self.fast_llama.logits(states), states, queries
        inputs = {"input_ids": tokens[None], "position_ids": positions[None], "attention_mask": mask}
        cached = {"past_key_values": self.cache, "use_cache": True, "output_hidden_states": hidden}
        output = self.model(**inputs, **cached)
        return output.logits[0], output.hidden_states[-1][0] if hidden else None, None

    def _forward(self, request: ForwardRequest) -> Batch:
        if self.captured is not None and self.captured.takes(request):
            return self.captured.forward(request)
        self.cache.point(request.columns)
        with any_length(self.device):
            return (
                self._transformers_forward(request)
                if self.fast_llama is None
                else self._fast_forward(request)
            )

    @torch.inference_mode()
    def _fast_forward(self, request: ForwardRequest) -> Batch:
        """The model's numbers from `FastLlama`."""
        tokens = torch.tensor(request.tokens, device=self.device)
        positions = torch.tensor(request.positions, device=self.device)
        states = request.embeddings if request.states is None else request.states
        taps = [] if request.streams else None
        states, queries, stream = self.fast_llama.forward(
            tokens, positions, request.columns.mask, self.cache, request.part, states, taps, request.injected
        )
        states = states if request.wants_all_rows else states[request.rows]
        streams = torch.stack([*taps, stream]) if request.streams else None
        logits = (request.head or self.fast_llama).logits(states)
        return Batch(logits, states, queries, stream, streams)

    @torch.inference_mode()
    def _transformers_forward(self, request: ForwardRequest) -> Batch:
        """The model's own forward; hooks read what it does not return and leave layers out."""
        part = request.part
        if request.streams and part is None:
            part = Layers.first(self.layer_count, self.layer_count)  # all layers, whose streams are then kept
        only_last = request.rows == [len(request.tokens) - 1]
        states = None if request.states is None else request.states[None]
        injected = nullcontext() if request.injected is None else injecting(self.blocks, request.injected)
        self.tap.open(self.model)
        trimmed = nullcontext() if request.head is None else request.head.in_place()
        running = nullcontext() if part is None else self.blocks.running(part, states)
        with injected, trimmed, running as stream:
            # for streams too: unless states are asked for, Gemma 4's upper layers read the last token alone
            wanted = request.hidden or request.streams
            output = self.model(**self._inputs(request), output_hidden_states=wanted)
        logits = output.logits[0] if request.head is None else request.head.spread(output.logits[0])
        if not request.rows:
            logits = logits[:0]
        elif only_last:
            logits = logits[-1:]
        elif not request.wants_all_rows:
            logits = logits[request.rows]
        states = output.hidden_states[-1][0][request.rows] if request.hidden else None
        queries = self.tap.collect(self.attention_count if part is None else len(part.attention))
        streams = torch.cat(stream) if request.streams else None
        return Batch(logits, states, queries, stream[-1][0] if stream else None, streams)

    def _inputs(self, request: ForwardRequest) -> dict[str, Any]:
        """The keyword arguments of the model's own forward."""
        count, mask = len(request.tokens), request.columns.mask
        if mask is None:  # else transformers would build a causal one
            mask = torch.zeros((1, 1, count, self.cache.read_count), dtype=self.dtype, device=self.device)
        inputs = {"attention_mask": mask, "past_key_values": self.cache, "use_cache": True}
        inputs["position_ids"] = torch.tensor([request.positions], device=self.device)
        if request.embeddings is None:
            inputs["input_ids"] = torch.tensor([request.tokens], device=self.device)
        else:
            inputs["inputs_embeds"] = request.embeddings[None]
        if request.rows in ([], [count - 1]) and count > 1 and self.tap.takes_logits_to_keep:
            inputs["logits_to_keep"] = 1
        return inputs
