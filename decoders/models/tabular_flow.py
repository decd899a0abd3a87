"""A discrete flow model given as a table: the exact posterior of every position's final token under a known
joint distribution, for the path from uniform noise. The oracle for tests.
"""

from dataclasses import dataclass

import torch

from decoders.engine.engine import Work
from decoders.engine.tree import Tree
from decoders.models.tabular_denoiser import TabularDenoiser, TabularScorer


@dataclass(eq=False)
class TabularFlow(TabularDenoiser):
    """Answers of one length over tokens 0..vocabulary-1, independent of the source."""

    kind, remedy, model_kind = "a table", "a discrete flow model", "flow"

    @property
    def canvas(self) -> int:
        """Positions of an answer."""
        return self.answers.shape[1]

    def attach(self, tree: Tree) -> "TabularFlowScorer":
        """A scorer as `flow_engine.FlowScorer`."""
        return TabularFlowScorer(self)

    def posterior(self, state: list[int], t: float) -> torch.Tensor:
        """Probabilities [L, V] of the final tokens given a canvas at time t, on which each position holds its
        final token with probability t and a uniform draw otherwise.
        """
        same = self.answers == torch.tensor(state)  # [N, L]
        seen = torch.where(same, t + (1 - t) / self.vocabulary, (1 - t) / self.vocabulary).double()
        weights = self.weights * seen.prod(1)
        one_hot = torch.nn.functional.one_hot(self.answers, self.vocabulary).double()  # [N, L, V]
        return torch.einsum("n,nlv->lv", weights / weights.sum(), one_hot)


class TabularFlowScorer(TabularScorer):
    """Looks up canvases."""

    def read(self, source: list[int]) -> torch.Tensor:
        """Reads nothing, since the answers do not depend on the source."""
        self.work = Work(tokens=len(source), rows=1)
        return torch.zeros(0)

    def flow(self, canvases: list[list[int]], t: float) -> torch.Tensor:
        """Log-probabilities [C, L, V], as `flow_engine.FlowScorer.flow`."""
        self.work = Work(tokens=sum(map(len, canvases)), rows=len(canvases))
        return torch.stack([self.engine.posterior(canvas, t) for canvas in canvases]).log()
