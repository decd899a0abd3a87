"""Scores nodes of token trees on a causal LM: one KV slot per node, ancestor mask, one forward per call.

The engine knows token ids and tensors, nothing of text, strategies or randomness. One `Engine` belongs to one
model; each lane attaches its tree and gets a `Scorer`. Lanes with the same prompt share the prompt's slots.
Single-threaded: one thread at a time may score on one engine.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch

from decoders.engine.attention_weights import Tap
from decoders.engine.capabilities import Capability
from decoders.engine.deeper_layers import deepen
from decoders.engine.fast_llama import fast_llama_of
from decoders.engine.forward_outputs import Batch, Early, Trunk, in_sequence
from decoders.engine.forward_request import ForwardRequest
from decoders.engine.injected_states import Injections, injected_in
from decoders.engine.input_embeddings import Mixed, read_at
from decoders.engine.joint_forwards import JointForwards, Pause
from decoders.engine.kv_cache import (
    OutOfSlots,
    ReadOnly,
    SlotCache,
    context_of,
    layers_with_keys,
    pool_bytes,
    slot_bytes,
)
from decoders.engine.layers import Layers
from decoders.engine.model_forwards import ModelForwards
from decoders.engine.partial_forward import trial
from decoders.engine.sparse_kv import View
from decoders.engine.tree import Tree
from decoders.engine.tree_attention import TreeMask, as_index, horizons_of, layer_kinds
from decoders.engine.trimmed_head import TrimmedHead

__all__ = ["Engine", "OutOfSlots", "Scorer"]

MIN_SLOTS = 256  # that a model may use, however little memory is free
PIECE = {"cpu": 256, "cuda": 2048}  # nodes in one forward; between two, other lanes compute and Stop is heard


@dataclass
class Work:
    """What the last call of `score` computed, for the event `Forward`."""

    tokens: int = 0  # computed now
    shared: int = 0  # prompt tokens that another lane had computed already
    rows: int = 0
    share: float = 1.0  # of the model's blocks that ran
    lanes: int = 1  # whose rows ran in the same forward
    for_others: float = 0.0  # see `Batch`
    scope: str | None = None  # which layers, if not all


@dataclass(eq=False)  # hashed by identity
class Engine(ModelForwards):
    """A causal LM behind the tree interface. `limit` is the largest number of KV slots it may use."""

    model: torch.nn.Module
    limit: int | None = None
    trunks: dict[tuple[int, ...], Trunk] = field(default_factory=dict)
    remedy = "a model built like Llama, Qwen2, Mistral or GPT-2"  # what to use if a capability is missing

    def __post_init__(self) -> None:
        config = self.model.config.get_text_config()
        self.device, self.dtype = self.model.device, self.model.dtype
        self.vocabulary = self.model.get_output_embeddings().weight.shape[0]
        self.context, note = context_of(config)
        self.layer_count = self.attention_count = config.num_hidden_layers
        self.layer_kinds, self.horizons = layer_kinds(config), horizons_of(config)
        sizes = [horizon.size for horizon in self.horizons.values() if horizon is not None]
        self.nearest = min(sizes, default=None)
        if self.limit is None:
            fitting = pool_bytes(self.device.type) // max(1, slot_bytes(config, self.dtype.itemsize))
            self.limit = max(MIN_SLOTS, fitting)
        self.cache = SlotCache(layers_with_keys(config), self.limit)
        parts, size = lambda: self.attends_in_parts, self.model.num_parameters()
        self.joint = JointForwards(self._forward, self.device, self.dtype, parts, size)
        self.tap = Tap(self.model)
        self.kind, self.note = type(self.model).__name__, note
        if (fast := fast_llama_of(self.model)) is not None:
            self.tap.scaling = fast.scaling
        self.fast_llama, self.captured = fast, None

    def attach(self, tree: Tree) -> "Scorer":
        """A scorer for `tree`. Raises OutOfSlots if the prompt does not fit."""
        return Scorer(self, tree)

    def gives(self, capability: Capability) -> bool:
        """Whether it has this capability; whether layers can be run in part is found out by one trial."""
        if capability is Capability.LAYERS:
            return self.runs_in_part
        return capability is not Capability.ATTENTION or (self.tap.listens and self.shows_attention)

    @cached_property
    def shows_attention(self) -> bool:
        """Whether attention weights can be computed from the queries and keys that are kept; found out by
        reading two tokens. Latents are no keys, and layers of several shapes have no common mean.
        """
        scorer = self.attach(Tree([1 % self.vocabulary, 2 % self.vocabulary]))
        try:
            scorer.score([1])
            return scorer.attention([1]) is not None
        finally:
            scorer.close()

    @property
    def attends_in_parts(self) -> bool:
        """Whether the rows of a joint forward can attend apart, see `Columns.parts`."""
        return self.fast_llama is not None and self.captured is None and self.device.type == "cpu"

    @cached_property
    def runs_in_part(self) -> bool:
        """Whether some of the model's layers can be run alone."""
        return trial(self)

    def forward(self, request: ForwardRequest, pause: Pause | None = None) -> Batch:
        """Runs one forward. With `pause`, forwards that other lanes request meanwhile join it."""
        if pause is None or not request.is_plain:
            return self._forward(request)
        return self.joint.forward(request, pause)


class Scorer:
    """One lane's view of one engine: `score` computes each node once and keeps its row until `forget`."""

    def __init__(self, engine: Engine, tree: Tree):
        self.engine, self.tree = engine, tree
        self.cache = engine.cache
        key = tuple(tree.tokens[: tree.trunk])
        self.trunk = engine.trunks.get(key)
        if self.trunk is None:
            self.trunk = engine.trunks[key] = Trunk(self.cache.take(len(key)))
        self.key, self.trunk.users = key, self.trunk.users + 1
        self.slots: dict[int, int] = {}  # node -> slot, for nodes below the trunk
        self.kept: dict[int, tuple[Batch, int, int]] = {}  # node -> batch, row of logits, row of queries
        # nodes whose slots lack the whole model's keys: they hold the first layers' or (None) other layers'
        self.early: dict[int, Early | None] = {}
        self.taps = False  # whether the residual stream after each layer is kept
        self.head: TrimmedHead | None = (
            None  # computes this lane's logits in place of the whole output matrix
        )
        self.mixed: Mixed = {}
        self.injections: Injections = {}
        self.work = Work()
        self.peak, self.started = len(key), False  # peak: most slots that this lane has held at once
        self.pause: Pause | None = None  # lets other lanes add requests to the same forward
        # called between two pieces of a long forward with the nodes read and those to be read
        self.between: Callable[[int, int], None] = lambda read, of: None
        self.piece = PIECE.get(engine.device.type, PIECE["cuda"])
        self.tree_mask = TreeMask(tree, self._slot)

    @property
    def used(self) -> int:
        """Slots that this lane holds, including the shared prompt's."""
        return len(self.key) + len(self.slots)

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Logits [N, V] for the token after each node (float32, or float64 if the model is).

        Nodes and ancestors that were not computed before are computed in one forward. Raises OutOfSlots,
        changing nothing.
        """
        self.work = Work(rows=len(nodes))
        while self.trunk.under_way and self.pause and self.pause():  # another lane reads the prompt
            pass
        if not self.started and self.trunk.last is not None and not (hidden or self.taps or self.injections):
            self.kept[self.tree.trunk - 1] = self.trunk.last
            self.work.shared, self.started = self.tree.trunk, True
        missing = [n for n in nodes if n not in self.kept or (hidden and self.kept[n][0].hidden is None)]
        if missing:
            self._evaluate(missing, hidden)
        rows = [self.kept[n] for n in nodes]
        batch = rows[0][0]
        if all(b is batch for b, _, _ in rows):
            indices = [i for _, i, _ in rows]
            logits = batch.logits if indices == list(range(len(batch.logits))) else batch.logits[indices]
        else:
            logits = torch.stack([b.logits[i] for b, i, _ in rows])
        return logits if logits.dtype == torch.float64 else logits.float()

    def score_part(self, nodes: list[int], part: Layers) -> torch.Tensor:
        """Logits [N, V] after each node with only `part` of the model run there and at unread ancestors.
        Ancestors that the whole model has read keep their keys and values.

        Where `part` is the first layers, its keys are exact and `score` continues from them; after any other
        part, `score` computes the nodes again. Raises OutOfSlots, changing nothing, and ValueError for a node
        that the whole model has read.
        """
        if not self.trunk.evaluated or any(self._is_whole(n) for n in nodes):
            raise ValueError(
                "A part of the layers can only read what follows a text that all of them have read."
            )
        order = sorted(self._with_unread(nodes, self.slots.__contains__))
        batch = self._forward(order, nodes, False, part)
        for row, node in enumerate(order):
            queries = None if batch.queries is None else batch.queries[:, :, row]
            exact = part.exit is not None
            self.early[node] = Early(part.exit, batch.stream[row], queries) if exact else None
        self.work = Work(len(order), rows=len(nodes), share=part.share, scope=str(part))
        return batch.logits if batch.logits.dtype == torch.float64 else batch.logits.float()

    def layers_read(self, node: int) -> int | None:
        """How many of the first layers have read a node (all if the whole model has); None if other parts
        have.
        """
        if self._is_whole(node):
            return self.engine.layer_count
        early = self.early.get(node)
        return early.exit if early is not None else None if node in self.slots else 0

    def deepen(self, nodes: list[int], count: int) -> torch.Tensor:
        """See `deeper_layers.deepen`."""
        return deepen(self, nodes, count)

    def score_seeing(self, nodes: list[int], view: View) -> torch.Tensor:
        """Logits [N, V] after each node, all below the text of `view`. Of that text the nodes attend only to
        the tokens that `view` keeps. `score` computes these nodes again. Raises OutOfSlots, changing nothing.
        """
        order = sorted(self._with_unread(nodes, self.slots.__contains__))
        self.tree_mask.view = view
        try:
            batch = self._forward(order, nodes, False)
        finally:
            self.tree_mask.view = None
        self.early.update(dict.fromkeys(order))
        scope = f"{self.cache.read_count} of {self.tree.depths[order[-1]] + 1} places"
        self.work = Work(len(order), rows=len(nodes), scope=scope)
        return batch.logits if batch.logits.dtype == torch.float64 else batch.logits.float()

    def early_state(self, node: int) -> torch.Tensor:
        """The residual stream [d] after the first layers, at a node that only these have read."""
        return self.early[node].stream

    def seen_from(self, node: int) -> ReadOnly:
        """The keys and values on the path to a node, in the layers that have read it; valid until the next
        call.
        """
        self.cache.read = as_index([self._slot(n) for n in self.tree.path(node)], self.engine.device)
        return ReadOnly(self.cache.seen)

    def streams(self, node: int) -> torch.Tensor | None:
        """The residual stream [L + 1, d] at a scored node after 0 to L layers; None if `taps` was off
        then.
        """
        batch, _, at = self.kept[node]
        return None if batch.streams is None else batch.streams[:, at]

    def hidden_rows(self, nodes: list[int]) -> torch.Tensor:
        """Last-layer states [N, d] of nodes that were scored with hidden=True."""
        rows = [self.kept[n] for n in nodes]
        batch = rows[0][0]
        if all(b is batch for b, _, _ in rows):
            return batch.hidden[[row for _, row, _ in rows]]
        return torch.stack([b.hidden[row] for b, row, _ in rows])

    def prompt_streams(self) -> torch.Tensor | None:
        """The residual stream at the prompt's T tokens: [L + 1, T, d] after 0 to L layers if `taps` was on,
        else [1, T, d] after the last layer. None if the prompt's forward kept none.
        """
        if self.trunk.last is None:
            return None
        batch, _, at = self.trunk.last
        streams = batch.streams if batch.streams is not None or batch.stream is None else batch.stream[None]
        if streams is None or at + 1 != self.tree.trunk:  # the last token was read in a forward of its own
            return None
        return streams[:, : at + 1]

    def through(self, nodes: list[int], layer: int, states: torch.Tensor) -> torch.Tensor:
        """States [N, d] after one layer that `states` [N, d] enter at `nodes`; their ancestors must have been
        read by the whole model.
        """
        part = Layers.only([layer], self.engine.layer_count)
        stream = self._forward(nodes, [], False, part, states).stream
        self.early.update(dict.fromkeys(nodes))
        self.work = Work(len(nodes), share=part.share, scope=str(part))
        return stream

    def _is_whole(self, node: int) -> bool:
        """Whether the node's slot holds the keys and values of the whole model."""
        return node < self.tree.trunk or (node in self.slots and node not in self.early)

    def hidden(self, node: int) -> torch.Tensor:
        """Last-layer state [d] of a node that was scored with hidden=True."""
        batch, row, _ = self.kept[node]
        return batch.hidden[row]

    def _evaluate(self, nodes: list[int], hidden: bool) -> None:
        trunk_end = self.tree.trunk
        new = self._with_unread(nodes, self._is_whole)
        first_time = not self.started
        if not self.trunk.evaluated:
            new.update(range(trunk_end))
        order = sorted(new)  # parents have smaller ids, so they come first
        index = {n: i for i, n in enumerate(order)}
        part, states, queries = self._entered(order)
        self.trunk.under_way = not self.trunk.evaluated
        try:
            batch = self._forward(order, nodes, hidden, part, states)
        finally:
            self.trunk.under_way = False
        if queries is not None:
            batch.queries = queries if batch.queries is None else torch.cat([queries, batch.queries])
        self.early = {node: early for node, early in self.early.items() if node not in new}
        for row, node in enumerate(nodes):
            self.kept[node] = (batch, row, index[node])
        self.work.tokens = len(order)
        self.work.lanes, self.work.for_others = batch.lanes, batch.for_others
        if part is not None:
            self.work.share, self.work.scope = part.share, str(part)
        elif self.head is not None:
            self.work.scope = str(self.head)
        if first_time and self.trunk.evaluated:
            self.work.shared = trunk_end - sum(n < trunk_end for n in order)
        self.started = self.trunk.evaluated = True
        if self.head is None:  # else lanes with the whole vocabulary would reuse these trimmed logits
            self.trunk.last = self.trunk.last or self.kept.get(trunk_end - 1)

    def _with_unread(self, nodes: list[int], is_read: Callable[[int], bool]) -> set[int]:
        """These nodes and their unread ancestors below the trunk."""
        new: set[int] = set()
        for node in nodes:
            new.add(node)  # even if read: without a kept row its token runs again on its own slot
            node = self.tree.parents[node]
            while node >= self.tree.trunk and not is_read(node) and node not in new:
                new.add(node)
                node = self.tree.parents[node]
        return new

    def _entered(self, order: list[int]) -> tuple[Layers | None, torch.Tensor | None, torch.Tensor | None]:
        """If the first layers have read all of `order`: (the layers that remain, the stream [N, d] that
        enters them, the queries [E, H, N, D] of the first E layers). Otherwise (None, None, None).
        """
        early = [self.early.get(n) for n in order]
        if not all(early) or len({e.exit for e in early}) != 1:
            return None, None, None
        queries = None
        if all(e.queries is not None for e in early):
            queries = torch.stack([e.queries for e in early], dim=2)
        rest = Layers.after(early[0].exit, self.engine.layer_count)
        return rest, torch.stack([e.stream for e in early]), queries

    def _forward(
        self,
        order: list[int],
        nodes: list[int],
        hidden: bool,
        part: Layers | None = None,
        states: torch.Tensor | None = None,
    ) -> Batch:
        """Computes the nodes `order` (parents first), each in a slot, with logits of `nodes`; many, such as a
        long prompt, in several forwards.
        """
        tree = self.tree
        fresh = [n for n in order if n >= tree.trunk and n not in self.slots]
        self.slots.update(zip(fresh, self.cache.take(len(fresh)), strict=True))
        self.peak = max(self.peak, self.used)
        if len(order) > self.piece and part is None:
            return self._forward_in_pieces(order, nodes, hidden)
        index = {n: i for i, n in enumerate(order)}
        request = ForwardRequest(
            tokens=[tree.tokens[n] for n in order],
            positions=[tree.depths[n] for n in order],
            columns=self.tree_mask.look_at(order, self.engine),
            rows=[index[n] for n in nodes],
            hidden=hidden,
            streams=self.taps and part is None,
            part=part,
            states=states,
            embeddings=read_at(self.engine.model, self.mixed, order, tree.tokens),
            head=self.head,
            injected=injected_in(self.injections, [order]),
        )
        return self.engine.forward(request, self.pause)

    def _forward_in_pieces(self, order: list[int], nodes: list[int], hidden: bool) -> Batch:
        """As `_forward`; between two pieces, `between` is called."""
        batches, counts, asked = [], [], []
        for first in range(0, len(order), self.piece):
            if first:
                self.between(first, len(order))
            some = order[first : first + self.piece]
            here = sorted(set(nodes).intersection(some))
            batches.append(self._forward(some, here, hidden))
            counts.append(len(some))
            asked += here
        row = {node: at for at, node in enumerate(asked)}
        return in_sequence(batches, counts, [row[node] for node in nodes])

    def _slot(self, node: int) -> int:
        return self.trunk.slots[node] if node < self.tree.trunk else self.slots[node]

    def attention(self, nodes: list[int]) -> tuple[list[int], list[int], torch.Tensor] | None:
        """The attention of `nodes`, all on one path, when each predicted the token after it: (the R of
        `nodes` whose rows are kept, the K nodes of the path to the last one, weights [R, K]).

        Weights are means over layers and heads; each row sums to 1. They are computed from the queries of the
        nodes' own forwards. None if this model's attention cannot be read.
        """
        rows = [(n, self.kept[n]) for n in nodes if n in self.kept and self.kept[n][0].queries is not None]
        if not rows:
            return None
        seen, path = [n for n, _ in rows], self.tree.path(rows[-1][0])
        slots = as_index([self._slot(n) for n in path], self.engine.device)
        own = [batch.queries[:, :, at - batch.without_queries] for _, (batch, _, at) in rows]
        queries = torch.stack(own, dim=2)  # [L, H, R, D]
        depths = [self.tree.depths[n] for n in seen]
        if (keys := self.cache.keys(slots, queries)) is None:
            return None
        hidden = None if self.engine.nearest is None else self._beyond_horizons(depths, len(path))
        return seen, path, self.engine.tap.weights(queries, keys, depths, hidden)

    def _beyond_horizons(self, depths: list[int], count: int) -> torch.Tensor | None:
        """Which of the first `count` places of a text the layers do not see from these depths, [L, R, K];
        None if they see all.
        """
        engine = self.engine
        if max(depths) < engine.nearest:
            return None
        rows, columns = torch.tensor(depths, device=engine.device), torch.arange(count, device=engine.device)
        nothing = torch.zeros(len(depths), count, dtype=torch.bool, device=engine.device)
        hidden = {
            kind: nothing if horizon is None else horizon.hides(rows, columns)
            for kind, horizon in engine.horizons.items()
        }
        return torch.stack([hidden[kind] for kind in engine.layer_kinds])

    def forget(self, nodes: list[int]) -> None:
        """Drops the kept rows of nodes that will not be scored again; their slots stay."""
        for node in nodes:
            self.kept.pop(node, None)

    def release(self, nodes: list[int]) -> None:
        """Frees the slots of these nodes. Nodes of the trunk and nodes without a slot are ignored."""
        self.forget(nodes)
        for node in nodes:
            if node in self.slots:
                self.tree_mask.forget(node)
            self.early.pop(node, None)
        self.cache.give([self.slots.pop(n) for n in nodes if n in self.slots])

    def close(self) -> None:
        """Frees all slots, the prompt's too if no other lane uses them. May be called twice."""
        if self.trunk is None:
            return
        self.release(list(self.slots))
        self.kept.clear()
        self.trunk.users -= 1
        if self.trunk.users == 0:
            self.cache.give(self.trunk.slots)
            del self.engine.trunks[self.key]
        self.trunk = None
