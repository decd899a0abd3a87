"""Discrete flow models behind an engine's interface: the source is encoded once; canvases hold some token at
every position at any time.
"""

from dataclasses import dataclass

import torch

from decoders.engine.canvas_scorer import CanvasScorer
from decoders.engine.capabilities import Capability
from decoders.engine.engine import Work
from decoders.engine.tree import Tree


@dataclass(eq=False)
class FlowEngine:
    """Runs a `models.flow.FlowModel`, whose config gives the length of a canvas."""

    model: torch.nn.Module
    kind = "a discrete flow model"
    remedy = "a causal language model"

    def __post_init__(self) -> None:
        config = self.model.config
        self.vocabulary: int = config.vocab_size
        self.canvas: int = config.canvas
        self.context: int = config.max_position_embeddings

    @property
    def note(self) -> str:
        """A sentence on the sources that it was trained to read."""
        form = getattr(self.model.config, "source_form", "SOURCE")
        return (
            f"The prompt is the source of an encoder: it learned to read {form!r}, and its answer has at "
            f"most {self.canvas} tokens."
        )

    def gives(self, capability: Capability) -> bool:
        """Whether it can give this."""
        return capability is Capability.FULL_DISTRIBUTION

    def attach(self, tree: Tree) -> "FlowScorer":
        """A scorer for one lane."""
        return FlowScorer(self)


class FlowScorer(CanvasScorer):
    """Scores canvases for one lane."""

    def __init__(self, engine: FlowEngine):
        super().__init__(engine)
        self._memory: torch.Tensor | None = None

    @torch.inference_mode()
    def read(self, source: list[int]) -> torch.Tensor:
        """Encodes the source, to which later forwards attend; returns its states [1, S, D]."""
        ids = torch.tensor([source], device=self.engine.model.device)
        self.work = Work(tokens=len(source), rows=1)
        self._memory = self.engine.model.read(ids, torch.ones_like(ids, dtype=torch.bool))
        return self._memory

    @torch.inference_mode()
    def flow(self, canvases: list[list[int]], t: float) -> torch.Tensor:
        """Logits [C, L, V] of the final tokens of C canvases at time t in [0, 1], in one forward."""
        model, device = self.engine.model, self.engine.model.device
        ids = torch.tensor(canvases, device=device)
        memory = self._memory.expand(len(canvases), -1, -1)
        seen = torch.ones(memory.shape[:2], dtype=torch.bool, device=device)
        times = torch.full((len(canvases),), t, device=device)
        self.work = Work(tokens=ids.numel(), rows=len(canvases))
        return model.write(ids, times, memory, seen).float()

    def close(self) -> None:
        self._memory = None
