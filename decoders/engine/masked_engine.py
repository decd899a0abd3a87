"""Masked-diffusion models behind an engine's interface: predictions for every position of a canvas, with
bidirectional attention.

A canvas is a row of token ids in which masks stand for what is not written yet.
"""

from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import DynamicCache

from decoders.engine.canvas_scorer import CanvasScorer
from decoders.engine.capabilities import Capability
from decoders.engine.engine import Work
from decoders.engine.tree import Tree


@dataclass(eq=False)
class MaskedEngine:
    """A model whose config names its mask (`mask_token_id`). `vocabulary` excludes the mask if it is the last
    token; otherwise its logit is -inf. Models adapted from causal ones (Dream, Ye et al. 2025) predict each
    token one row early; their config has `"predicts_next": true`.
    """

    model: torch.nn.Module
    kind = "a masked-diffusion model"
    remedy = "a causal language model"
    note: str | None = None

    def __post_init__(self) -> None:
        config = self.model.config
        self.mask: int = config.mask_token_id
        self.vocabulary = config.vocab_size - (self.mask == config.vocab_size - 1)
        self.context: int = config.max_position_embeddings
        self.shift = bool(getattr(config, "predicts_next", False))

    def gives(self, capability: Capability) -> bool:
        """Whether it can give this."""
        if (
            capability is Capability.CANVAS_PARTS
        ):  # a cached row that predicts the next position would be stale
            return not self.shift
        return capability is Capability.FULL_DISTRIBUTION

    def attach(self, tree: Tree) -> "Denoiser":
        """A scorer for one lane."""
        return Denoiser(self)


class Denoiser(CanvasScorer):
    """Scores canvases for one lane."""

    def __init__(self, engine: MaskedEngine):
        super().__init__(engine)
        self._kept: tuple[list[tuple[torch.Tensor, torch.Tensor]], int, int] | None = None

    @torch.inference_mode()
    def denoise(self, canvases: list[list[int]], start: int, stop: int) -> torch.Tensor:
        """Logits [K, stop - start, V] at positions start..stop-1 of K canvases of equal length, in one
        forward.
        """
        logits = self._run(canvases, list(range(len(canvases[0]))), None).logits
        return self._rows(logits, start, stop)

    @torch.inference_mode()
    def keep(self, canvas: list[int], start: int, stop: int, suffix: bool) -> torch.Tensor:
        """As `denoise` for one canvas, and caches the keys and values before `start` for `denoise_part`; with
        `suffix`, those from `stop` on too. These are the prefix cache and the dual cache of Fast-dLLM (Wu et
        al. 2025).
        """
        out = self._run([canvas], list(range(len(canvas))), DynamicCache())
        outside = [*range(start), *(range(stop, len(canvas)) if suffix else ())]
        layers = [
            (layer.keys[:, :, outside], layer.values[:, :, outside]) for layer in out.past_key_values.layers
        ]
        self._kept = layers, start, stop if suffix else len(canvas)
        return self._rows(out.logits, start, stop)

    @torch.inference_mode()
    def denoise_part(self, canvas: list[int], stop: int) -> torch.Tensor:
        """Logits [1, stop - start, V] from the `start` of the last `keep`, with the keys and values that it
        cached. Those belong to the canvas as it was then, so these logits are approximate. Not for engines
        with `shift`, where the row for `start` comes before it.
        """
        layers, start, end = self._kept
        cache = DynamicCache()
        for index, (keys, values) in enumerate(layers):
            cache.update(keys, values, index)
        logits = self._run([canvas[start:end]], list(range(start, end)), cache).logits
        return self._rows(logits, 0, stop - start)

    def guess(self, tokens: list[int], count: int) -> torch.Tensor:
        """Logits [count, V] for the `count` tokens after a text, in one forward; a text that is too long is
        cut on the left.
        """
        behind = [*tokens[max(0, len(tokens) + count - self.engine.context) :], *[self.engine.mask] * count]
        return self.denoise([behind], len(behind) - count, len(behind))[0]

    def _run(self, rows: list[list[int]], positions: list[int], cache: DynamicCache | None) -> Any:
        model, device = self.engine.model, self.engine.model.device
        ids = torch.tensor(rows, device=device)
        seen = (cache.get_seq_length() if cache is not None else 0) + ids.shape[1]
        everywhere = torch.zeros(1, 1, ids.shape[1], seen, dtype=model.dtype, device=device)
        self.work = Work(tokens=ids.numel(), rows=len(rows))
        return model(
            input_ids=ids,
            attention_mask=everywhere,
            position_ids=torch.tensor([positions], device=device),
            past_key_values=cache,
            use_cache=cache is not None,
        )

    def _rows(self, logits: torch.Tensor, start: int, stop: int) -> torch.Tensor:
        """The rows that predict positions start..stop-1, with the mask token excluded."""
        if self.engine.shift:
            logits = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
        rows = logits[:, start:stop, : self.engine.vocabulary].float()
        if self.engine.mask < self.engine.vocabulary:
            rows[..., self.engine.mask] = -torch.inf
        return rows

    def close(self) -> None:
        self._kept = None
