"""Scores tree nodes by continuing from the state after an ancestor: for architectures without keys and values
per token (retention, flow attention, byte patches), where a tree mask has nothing to mask.

Each branch of a draft tree has its own state, behind the interface of `Engine` and `Scorer`. Knows a model's
methods `read` and `logits_of`, and not what a state holds.
"""

from collections import OrderedDict
from typing import Any

import torch

from decoders.engine.capabilities import Capability
from decoders.engine.engine import Engine, Work
from decoders.engine.sequence_engine import SequenceEngine, SequenceScorer, engine_for
from decoders.engine.tree import Tree

NOTE = (
    "This model keeps a state instead of keys and values of every token: each branch of a draft has its own "
    "copy, and no attention is shown."
)
KEPT_STATES = 48  # per lane; nodes below a dropped one are read from their nearest ancestor that has one
GIVEN = {
    Capability.FULL_DISTRIBUTION,
    Capability.HIDDEN_STATES,
    Capability.OUTPUT_EMBEDDING,
    Capability.WEIGHTS,
}


class StateEngine(SequenceEngine):
    """A small architecture (`decoders.models.architectures`) that can continue from a state."""

    def __init__(self, model: torch.nn.Module):
        super().__init__(model)
        self.note = NOTE

    def gives(self, capability: Capability) -> bool:
        """Whether it can give this."""
        return capability in GIVEN

    def attach(self, tree: Tree) -> "StateScorer":
        """A scorer for `tree`."""
        return StateScorer(self, tree)


class StateScorer(SequenceScorer):
    """One lane's view of a StateEngine; see `engine.Scorer` for the contract."""

    def __init__(self, engine: StateEngine, tree: Tree):
        super().__init__(engine, tree)
        self.states: OrderedDict[int, Any] = OrderedDict()  # node -> state, least recently used first

    @torch.inference_mode()
    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Logits [N, V] for the token after each node."""
        model, tokens = self.engine.model, 0
        missing = [n for n in nodes if n not in self.kept]
        for node in sorted(missing, key=lambda n: self.tree.depths[n]):  # parents before children
            state, unread = self._nearest(node)
            ids = torch.tensor([[self.tree.tokens[n] for n in unread]], device=self.engine.device)
            states, state = model.read(ids, state, last_only=True)
            self._keep(node, state)
            self.kept[node] = (model.logits_of(states)[0, -1], model.norm(states)[0, -1], None)
            self.whole.update(unread)
            tokens += len(unread)
        self.work = Work(tokens=tokens, rows=len(nodes))
        logits = torch.stack([self.kept[n][0] for n in nodes])
        return logits if logits.dtype == torch.float64 else logits.float()

    def _nearest(self, node: int) -> tuple[Any, list[int]]:
        """The state after the nearest ancestor that has one, and the nodes from there down to `node`."""
        unread = []
        while node >= 0 and node not in self.states:
            unread.append(node)
            node = self.tree.parents[node]
        if node < 0:
            return None, unread[::-1]
        self.states.move_to_end(node)
        return self.states[node], unread[::-1]

    def _keep(self, node: int, state: Any) -> None:
        """Keeps the state after a node; the least recently used one is dropped."""
        self.states[node] = state
        if len(self.states) > KEPT_STATES:
            self.states.popitem(last=False)

    def forget(self, nodes: list[int]) -> None:
        """Drops the rows and states of these nodes."""
        super().forget(nodes)
        for node in nodes:
            self.states.pop(node, None)

    def close(self) -> None:
        """Drops everything."""
        super().close()
        self.states.clear()


def engine_of(model: torch.nn.Module) -> Engine | SequenceEngine:
    """The engine of a causal model: a state engine if it can continue from a state, else that of
    `engine_for`.
    """
    return StateEngine(model) if hasattr(model, "logits_of") else engine_for(model)
