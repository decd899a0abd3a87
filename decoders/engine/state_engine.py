"""Scores tree nodes by continuing from the state after an ancestor: for architectures without keys and values
per token (retention, flow attention, byte patches), where a tree mask has nothing to mask, and for models of
transformers that take no tree mask but have a cache of their own (GPT-Neo, BLOOM, RWKV ...).

Each branch of a draft tree has its own state, behind the interface of `Engine` and `Scorer`. Uses a model's
methods `read` and `logits_of`, or its cache.
"""

import copy
import inspect
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

from decoders.engine.capabilities import Capability
from decoders.engine.engine import Work
from decoders.engine.kv_cache import pool_bytes
from decoders.engine.sequence_engine import SequenceEngine, SequenceScorer
from decoders.engine.tree import Tree

NOTE = (
    "This model keeps a state instead of keys and values of every token: each branch of a draft has its own "
    "copy, and no attention is shown."
)
CACHE_NOTE = (
    "This model cannot take a tree mask: each branch of a draft continues from its own copy of the model's "
    "cache, one token at a time, and no attention is shown."
)
KEPT_STATES = 48  # per lane; nodes below a dropped one are read from their nearest ancestor that has one
# How models name their cache, given and returned: `cache` since transformers 5.24.
CACHES = ("cache", "cache_params", "past_key_values", "state")
GIVEN = {
    Capability.FULL_DISTRIBUTION,
    Capability.HIDDEN_STATES,
    Capability.OUTPUT_EMBEDDING,
    Capability.WEIGHTS,
}


class StateEngine(SequenceEngine):
    """A small architecture (`decoders.models.architectures`) that can continue from a state."""

    engine_note = NOTE

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
        tokens = 0
        missing = [n for n in nodes if n not in self.kept or (hidden and self.kept[n][1] is None)]
        for node in sorted(missing, key=lambda n: self.tree.depths[n]):  # parents before children
            state, unread = self._nearest(node)
            logits, last, state = self._read([self.tree.tokens[n] for n in unread], state, hidden)
            self._keep(node, state)
            self.kept[node] = (logits, last, None)
            self.whole.update(unread)
            tokens += len(unread)
        self.work = Work(tokens=tokens, rows=len(nodes))
        logits = torch.stack([self.kept[n][0] for n in nodes])
        return logits if logits.dtype == torch.float64 else logits.float()

    def _read(
        self, tokens: list[int], state: Any, hidden: bool
    ) -> tuple[torch.Tensor, torch.Tensor | None, Any]:
        """Reads tokens from a state: logits [V] and last-layer state [d] after them, the state after them."""
        model = self.engine.model
        states, state = model.read(torch.tensor([tokens], device=self.engine.device), state, last_only=True)
        return model.logits_of(states)[0, -1], model.norm(states)[0, -1], state

    def _nearest(self, node: int) -> tuple[Any, list[int]]:
        """The state after the nearest ancestor that has one, and the nodes from there down to `node`."""
        unread = [node]
        node = self.tree.parents[node]
        while node >= 0 and node not in self.states:
            unread.append(node)
            node = self.tree.parents[node]
        if node < 0:
            return None, unread[::-1]
        self.states.move_to_end(node)
        return self.states[node], unread[::-1]

    def _keep(self, node: int, state: Any) -> None:
        """Keeps the state after a node; the least recently used ones beyond what fits are dropped."""
        self.states[node] = state
        fitting = self._fitting(state)
        while len(self.states) > fitting:
            self.states.popitem(last=False)

    def _fitting(self, state: Any) -> int:
        """How many states like this one are kept."""
        return KEPT_STATES

    def release(self, nodes: list[int]) -> None:
        """Drops the rows and states of these nodes. States of nodes whose rows are forgotten stay, since what
        follows is read from them.
        """
        super().release(nodes)
        for node in nodes:
            self.states.pop(node, None)

    def close(self) -> None:
        """Drops everything."""
        super().close()
        self.states.clear()


class OwnCacheEngine(SequenceEngine):
    """A causal LM of transformers that continues from copies of its own cache."""

    engine_note = CACHE_NOTE

    def __init__(self, model: torch.nn.Module):
        super().__init__(model)
        takes = inspect.signature(model.forward).parameters
        self.cache_name = next(name for name in CACHES if name in takes)
        self.budget = pool_bytes(self.device.type)  # bytes that the caches of one lane may take

    def attach(self, tree: Tree) -> "OwnCacheScorer":
        """A scorer for `tree`."""
        return OwnCacheScorer(self, tree)


class OwnCacheScorer(StateScorer):
    """One lane's view of an `OwnCacheEngine`. Forwards that read more than tokens start at the first one."""

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Logits [N, V] for the token after each node."""
        whole = self.taps or self.mixed or self.injections
        return SequenceScorer.score(self, nodes, hidden) if whole else super().score(nodes, hidden)

    def _read(
        self, tokens: list[int], state: Any, hidden: bool
    ) -> tuple[torch.Tensor, torch.Tensor | None, Any]:
        """As `StateScorer._read`; after the beginning one token at a time, as `generate` does."""
        engine, at_once = self.engine, [tokens] if state is None else [[token] for token in tokens]
        state = None if state is None else copied(state)
        for some in at_once:
            output = engine.model(
                input_ids=torch.tensor([some], device=engine.device),
                use_cache=True,
                output_hidden_states=hidden,
                **({} if state is None else {engine.cache_name: state}),
            )
            state = output[engine.cache_name]
        last = output.hidden_states[-1][0, -1] if hidden else None
        return output.logits[0, -1], last, state

    def _fitting(self, state: Any) -> int:
        """How many caches like this one fit into the budget."""
        size = sum(tensor.nbytes for tensor in tensors_in(state))
        return max(2, min(KEPT_STATES, self.engine.budget // max(1, size)))


def copied(cache: Any) -> Any:
    """A copy of a model's cache that can be continued without changing it."""
    if type(cache) is DynamicCache and all(type(layer) is DynamicLayer for layer in cache.layers):
        twin = copy.copy(cache)  # such layers join tensors into new ones
        twin.layers = [copy.copy(layer) for layer in cache.layers]
        return twin
    return copy.deepcopy(cache)


def tensors_in(cache: Any) -> Iterator[torch.Tensor]:
    """All tensors of a cache, which is a list of tensors, or of transformers' kind."""
    if isinstance(cache, torch.Tensor):
        yield cache
    elif isinstance(cache, Cache):
        for layer in cache.layers:
            yield from tensors_in(list(vars(layer).values()))
    elif isinstance(cache, list | tuple | dict):
        for part in cache.values() if isinstance(cache, dict) else cache:
            yield from tensors_in(part)
