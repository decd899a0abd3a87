"""Models that fill masks after a causal prefix: final tokens are read once, causally, and their keys and
values are cached; masks and tokens that may still change are read again in every forward.

The cache is exact, since what it holds was computed from final tokens alone. The caller decides the order of
the open positions and which of them see which.
"""

from dataclasses import dataclass

import torch
from transformers.cache_utils import DynamicCache

from decoders.engine.canvas_scorer import CanvasScorer
from decoders.engine.engine import Work
from decoders.engine.masked_engine import MaskedEngine
from decoders.engine.tree import Tree


@dataclass(eq=False)
class CausalMaskedEngine(MaskedEngine):
    """A causal model whose rows at masks predict the tokens at their own positions."""

    kind = "a model that fills masks after a causal past"

    def attach(self, tree: Tree) -> "CausalPast":
        """A scorer for one lane, with a cache of its own."""
        return CausalPast(self)


class CausalPast(CanvasScorer):
    """Reads tokens after a KV cache for one lane; `used` and `peak` count slots of the cache."""

    def __init__(self, engine: CausalMaskedEngine):
        super().__init__(engine)
        self.cache = DynamicCache()

    @torch.inference_mode()
    def read(self, tokens: list[int], positions: list[int], sees: torch.Tensor, keep: int) -> torch.Tensor:
        """Logits [N, V] of N tokens at `positions`, in one forward after the cache, which all of them see.

        sees [N, N]: which of the new tokens (rows) see which (columns). The keys and values of the first
        `keep` stay in the cache; these tokens may see only each other, else the cache would not be exact.
        """
        model, device, past = self.engine.model, self.engine.model.device, self.cache.get_seq_length()
        blocked = torch.zeros(len(tokens), past + len(tokens), dtype=model.dtype, device=device)
        blocked[:, past:].masked_fill_(~sees.to(device), torch.finfo(model.dtype).min)
        logits = model(
            input_ids=torch.tensor([tokens], device=device),
            attention_mask=blocked[None, None],
            position_ids=torch.tensor([positions], device=device),
            past_key_values=self.cache,
            use_cache=True,
        ).logits[0, :, : self.engine.vocabulary]
        if keep < len(tokens):
            self.cache.crop(keep - len(tokens))
        self.used, self.peak = past + keep, max(self.peak, past + len(tokens))
        self.work = Work(tokens=len(tokens), rows=1)
        return logits.float()

    def close(self) -> None:
        self.cache, self.used = DynamicCache(), 0
