"""The engine of a lane with a memory: the model's own, whose forwards read through a policy.

Its slots are its own, one pool per scorer. No other lane reads what is compressed for this lane, and the lane
shares neither prompts nor forwards with others.
"""

import importlib
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import torch

from decoders import memory_options as options
from decoders.engine.attention_weights import reading_with
from decoders.engine.capabilities import Capability
from decoders.engine.engine import Engine, Scorer
from decoders.engine.forward_outputs import Batch
from decoders.engine.forward_request import ForwardRequest
from decoders.engine.kv_cache import SlotCache
from decoders.engine.tree import Tree
from decoders.memory.policy import Policy, Reading, Shape, Slots
from decoders.memory.rotary import Rotary, rotary_of
from decoders.refusal import Refusal

LONGEST = 16384  # tokens that a policy without a bound of its own may read
REPEATED = 8  # times that a token is read to find out how positions are built into keys


class MemoryEngine(Engine):
    """`base` with a memory. Each attached scorer gets its own pool and policy. learned: what was trained for
    the policy. Raises Refusal with one sentence if the policy cannot be used on this model.
    """

    def __init__(
        self, base: Engine, parameters: dict[str, Any], special: Collection[int] = (), learned: Any = None
    ):
        self.__dict__.update(base.__dict__)
        self.base, self.parameters, self.special = base, parameters, frozenset(special)
        self.captured = None
        self.shape = replace(shape_of(base), learned=learned)
        self.declared = options.memories()[parameters["memory"]]
        self.make = policy_of(parameters)
        if self.make.needs_rotary and self.shape.rotary is None:
            raise Refusal(
                f"{self.declared.title} rotates keys to other distances, which needs rotary positions, and "
                f"{self.kind} has none; choose another memory."
            )
        self.note = (
            f"Keys and values of the {parameters.get('memory_of', 'target')} pass through "
            f"{self.declared.title}; slots and forwards are this lane's own."
        )
        self.make(self.shape, parameters)  # errors are raised before anything is decoded
        if self.make.unbounded:
            self.context = max(self.context, LONGEST)

    def attach(self, tree: Tree) -> "MemoryScorer":
        """A scorer for `tree` with slots of its own."""
        own = MemoryEngine.__new__(MemoryEngine)
        own.__dict__.update(self.__dict__)
        own.trunks, own.cache = {}, SlotCache(self.layer_count, self.limit)
        own.fast_llama = longer(self.fast_llama, self.context) if self.make.unbounded else self.fast_llama
        return MemoryScorer(own, tree, self.make(self.shape, self.parameters))

    def gives(self, capability: Capability) -> bool:
        """As the model's engine, except for attention weights, which are computed over whole slots."""
        return capability is not Capability.ATTENTION and super().gives(capability)

    def forward(self, request: ForwardRequest, pause=None) -> Batch:
        """One forward that reads through the scorer's policy; never joined with those of other lanes."""
        cache, (scorer, policy) = self.cache, self.reader
        reading = None

        def attend(layer: int, q, k, v, mask) -> torch.Tensor:
            nonlocal reading
            if reading is None:  # the pool is there from the first layer on
                reading = scorer.reading(request)
            if policy.edit(layer, reading, cache.storage[layer]):
                k, v = cache.seen(layer)
            return policy.attend(layer, reading, q, k, v, mask)

        cache.attend = attend
        try:
            with reading_with(attend):
                return self._forward(request)
        finally:
            cache.attend = None


class MemoryScorer(Scorer):
    """`engine.Scorer` whose committed places are compressed. `commit(node)`: the text down to it is
    committed.
    """

    def __init__(self, engine: MemoryEngine, tree: Tree, policy: Policy):
        super().__init__(engine, tree)
        self.policy, self.tip = policy, tree.trunk - 1
        self.committed = list(range(tree.trunk))  # the path of committed nodes
        self.piece = engine.limit  # a policy sees all queries of the prompt at once
        self.settled = 0  # how many of them the policy has seen
        self.slots_kept: Slots | None = None
        engine.reader = (self, policy)

    def commit(self, node: int) -> None:
        """Lets the policy compress what is committed and read."""
        path = self.tree.path(node)
        if path[: len(self.committed)] == self.committed:  # else a text that is written in another order
            self.committed = path
            self._settle()

    def reading(self, request: ForwardRequest) -> Reading:
        """What one forward reads."""
        columns, device = request.columns, self.engine.device
        slots = self._slots()
        rows = torch.tensor(request.positions, device=device)
        slots.depths[columns.write] = rows
        prompt = protected = None
        if not self.trunk.evaluated:
            prompt = torch.tensor(self.trunk.slots, device=device)
            special = [token in self.engine.special for token in self.tree.tokens[: self.tree.trunk]]
            protected = torch.tensor(special, device=device)
        biased = bool(slots.bias.any())
        return Reading(slots, rows, columns.write, columns.read, prompt, protected, biased)

    def _slots(self) -> Slots:
        """The pool with the biases and depths of its slots, extended to the pool's present size."""
        pool, kept = self.cache.pool, self.slots_kept
        if pool is None:
            raise Refusal("A memory needs layers of one shape, which this model lacks; choose memory none.")
        size = pool.shape[3]
        if kept is None:
            bias = torch.zeros(len(pool), pool.shape[2], size, dtype=pool.dtype, device=pool.device)
            kept = Slots(pool, bias, torch.zeros(size, dtype=torch.long, device=pool.device))
        elif kept.bias.shape[2] < size:
            more = (0, size - kept.bias.shape[2])
            pad = torch.nn.functional.pad
            kept = Slots(pool, pad(kept.bias, more), pad(kept.depths, more))
        kept.pool = pool
        self.slots_kept = kept
        return kept

    def _forward(self, order, nodes, hidden, part=None, states=None) -> Batch:
        """As the plain one; a settled place that is read again keeps its compressed form."""
        again = [n for n in order if self.settled and self._is_settled(n)]
        if again:
            at = torch.tensor([self._slot(n) for n in again], device=self.engine.device)
            compressed = self.cache.pool[:, :, :, at].clone()
        batch = super()._forward(order, nodes, hidden, part, states)
        if again:
            self.cache.pool[:, :, :, at] = compressed
        return batch

    def _is_settled(self, node: int) -> bool:
        depth = self.tree.depths[node]
        return depth < self.settled and self.committed[depth] == node

    def _evaluate(self, nodes: list[int], hidden: bool) -> None:
        super()._evaluate(nodes, hidden)
        if not self.settled:  # the prompt is committed from the start
            self._settle()

    def _settle(self) -> None:
        """Hands the policy the committed places that the whole model has read."""
        count = self.settled
        while count < len(self.committed) and self._is_there(self.committed[count]):
            count += 1
        if count == self.settled:
            return
        at = torch.tensor([self._slot(n) for n in self.committed[:count]], device=self.engine.device)
        with torch.inference_mode():
            self.policy.settle(self._slots(), at)
        self.settled = count

    def _is_there(self, node: int) -> bool:
        return self.trunk.evaluated if node < self.tree.trunk else self._is_whole(node)

    def attention(self, nodes: list[int]) -> None:
        """Not available: weights over whole slots would not show what the policy saw."""
        return None

    def release(self, nodes: list[int]) -> None:
        """Frees the slots and resets their biases, so that they are neither hidden nor weighted."""
        freed = [self.slots[n] for n in nodes if n in self.slots]
        if freed and self.slots_kept is not None:
            with torch.inference_mode():
                self.slots_kept.bias[:, :, freed] = 0.0
        super().release(nodes)

    def states(self) -> list[list[str]]:
        """The state of each committed place that was read, see `Policy.states`."""
        return self.policy.states(self.settled)

    def kept_bytes(self) -> tuple[float, float]:
        """Bytes of the committed places that were read: in the compressed form, and in the full cache."""
        return self.policy.kept_bytes(self.settled), self.settled * self.engine.shape.slot_bytes


def policy_of(parameters: dict[str, Any]) -> type[Policy]:
    """The policy that a lane's parameters name."""
    return importlib.import_module(options.memories()[parameters["memory"]].module).make


def shape_of(base: Engine) -> Shape:
    """Reads a few tokens to see how the model's cache is built."""
    tree, cache = Tree([1] * REPEATED), SlotCache(base.cache.layer_count, base.limit)
    plain = Engine.__new__(Engine)
    plain.__dict__.update(base.__dict__)
    plain.trunks, plain.cache, plain.captured = {}, cache, None
    scorer = plain.attach(tree)
    scorer.score([REPEATED - 1])
    batch = scorer.kept[REPEATED - 1][0]
    queries, at = batch.queries, slice(0, 1)
    if queries is None or cache.keys(at, queries) is None or cache.key_widths:
        raise Refusal(
            f"A memory needs keys and values of one shape in every layer, unlike those of {base.kind}; "
            "choose memory none."
        )
    layers, _, kv_heads, _, width = cache.pool.shape
    keys = cache.pool[0, 0][:, scorer.trunk.slots]  # [Hkv, T, D] of one token at many positions
    heads, scaling = batch.queries.shape[1], base.tap.scaling
    rotary = checked(rotary_of(base.model), keys)
    return Shape(layers, heads, kv_heads, width, scaling, rotary, base.device, base.model)


def checked(rotary: Rotary | None, keys: torch.Tensor) -> Rotary | None:
    """The rotary positions if they give the keys [Hkv, T, D] that the model has for one token."""
    if rotary is None or 2 * len(rotary.frequencies) != keys.shape[-1]:
        return None
    positions = torch.arange(keys.shape[1], device=keys.device)
    turned = rotary.turn(keys[:, :1].expand_as(keys), positions)
    tolerance = 1e-3 if keys.dtype in (torch.float32, torch.float64) else 5e-2
    return rotary if (turned - keys).abs().max() <= tolerance * (1 + keys.abs().max()) else None


def longer(fast: Any, context: int) -> Any:
    """The fast forward with rotary tables for this many positions."""
    if fast is None or len(fast.cos) >= context:
        return fast
    own = type(fast).__new__(type(fast))
    own.__dict__.update(fast.__dict__)
    own.reach(context)
    return own
