"""Scores nodes of token trees on a causal LM: one KV slot per node, ancestor mask, one forward per call.

The engine knows token ids and tensors, nothing of text, strategies or chance. One `Engine` belongs to one
model; each lane attaches its tree and gets a `Scorer`. Lanes with the same prompt share the prompt's slots.
Single-threaded: one thread at a time may score on one engine.
"""

from dataclasses import dataclass, field

import torch

from decoders.attention import Tap
from decoders.cache import OutOfSlots, SlotCache
from decoders.lean import lean_forward
from decoders.tree import Tree

__all__ = ["Engine", "OutOfSlots", "Scorer"]

DEFAULT_SLOT_BYTES = 2 * 2**30  # what the KV pool of one model may grow to
MAX_SLOTS = 16384


def slot_bytes(config, itemsize: int) -> int:
    """Bytes of one KV slot, keys and values of all layers, for a text config and the size of a number."""
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return 2 * config.num_hidden_layers * heads * width * itemsize


@dataclass
class Batch:
    """What one forward left behind for its nodes, row by row."""

    logits: torch.Tensor  # [N, V] of the nodes that were asked for
    hidden: torch.Tensor | None  # [N, d] last-layer states, if asked for
    queries: torch.Tensor | None  # [L, H, N, D] of all evaluated nodes


@dataclass
class Trunk:
    """The slots of a prompt that lanes share."""

    slots: list[int]
    users: int = 0
    evaluated: bool = False
    last: tuple[Batch, int, int] | None = (
        None  # the kept row of its last token, which every lane asks for first
    )


@dataclass
class Work:
    """What the last `score` call computed: for the Forward event."""

    tokens: int = 0  # evaluated now
    shared: int = 0  # prompt tokens that another lane had evaluated already
    rows: int = 0


@dataclass
class Engine:
    """A causal LM behind the tree interface. `limit` is the largest number of KV slots it may use."""

    model: torch.nn.Module
    limit: int | None = None
    trunks: dict[tuple[int, ...], Trunk] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config = self.model.config.get_text_config()
        self.device, self.dtype = self.model.device, self.model.dtype
        self.vocabulary = self.model.get_output_embeddings().weight.shape[0]
        self.context = getattr(config, "max_position_embeddings", None) or 1 << 30
        layers = config.num_hidden_layers
        if self.limit is None:
            per_slot = slot_bytes(config, self.dtype.itemsize)
            self.limit = max(256, min(MAX_SLOTS, DEFAULT_SLOT_BYTES // per_slot))
        self.cache = SlotCache(layers, self.limit)
        self.tap = Tap(self.model, layers)
        self.lean = lean_forward(self.model)
        if self.lean is not None:
            self.tap.scaling = self.lean.scaling
        self.note: str | None = None
        kinds = set(getattr(config, "layer_types", None) or ())
        self.window = getattr(config, "sliding_window", None) if kinds != {"full_attention"} else None
        self.mixed = "full_attention" in kinds and "sliding_attention" in kinds

    def attach(self, tree: Tree) -> "Scorer":
        """A scorer for `tree`. Raises OutOfSlots if the prompt does not fit."""
        return Scorer(self, tree)

    @torch.inference_mode()
    def forward(
        self,
        tokens: list[int],
        positions: list[int],
        mask: torch.Tensor | dict[str, torch.Tensor],
        keep: list[int],
        hidden: bool,
    ) -> Batch:
        """One forward over `tokens` [N] with an additive mask [1, 1, N, K]; logits of the rows `keep` only.

        A model that mixes full and sliding attention gets a dict with one mask for each. The cache's `write`
        and `read` say where the keys go and which slots the K columns are.
        """
        device = self.device
        if self.lean is not None:
            ids, places = torch.tensor(tokens, device=device), torch.tensor(positions, device=device)
            states, queries = self.lean.forward(ids, places, mask if len(tokens) > 1 else None, self.cache)
            states = states if keep == list(range(len(tokens))) else states[keep]
            return Batch(self.lean.logits(states), states, queries)
        only_last = keep == [len(tokens) - 1]
        self.tap.open()
        output = self.model(
            input_ids=torch.tensor([tokens], device=device),
            position_ids=torch.tensor([positions], device=device),
            attention_mask=mask,
            past_key_values=self.cache,
            use_cache=True,
            output_hidden_states=hidden,
            **(
                {"logits_to_keep": 1}
                if only_last and len(tokens) > 1 and self.tap.takes_logits_to_keep
                else {}
            ),
        )
        logits = output.logits[0]
        if only_last:
            logits = logits[-1:]
        elif keep != list(range(len(tokens))):
            logits = logits[keep]
        states = output.hidden_states[-1][0][keep] if hidden else None
        return Batch(logits, states, self.tap.collect())


class Scorer:
    """One lane's view of one engine. `score` evaluates nodes; what was evaluated is never evaluated again."""

    def __init__(self, engine: Engine, tree: Tree):
        self.engine, self.tree = engine, tree
        self.cache = engine.cache
        key = tuple(tree.tokens[: tree.trunk])
        self.trunk = engine.trunks.get(key)
        if self.trunk is None:
            self.trunk = engine.trunks[key] = Trunk(self.cache.take(len(key)))
        self.trunk.users += 1
        self.key = key
        self.slots: dict[int, int] = {}  # node -> slot, for nodes below the trunk
        self.kept: dict[
            int, tuple[Batch, int, int]
        ] = {}  # node -> batch, its row of logits, its row of queries
        self.work = Work()
        self.peak = len(key)  # most slots this lane held at one time
        self.started = False
        self.spine_nodes: list[int] = []  # the path that all rows of the last forward shared, root first
        self.spine_slots: list[int] = []

    @property
    def used(self) -> int:
        """Slots this lane holds, the shared prompt included."""
        return len(self.key) + len(self.slots)

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Logits [N, V] for the token after each node (float32, or the model's own float64).

        Evaluates what is not evaluated yet, ancestors included, in one forward. Raises OutOfSlots with
        nothing changed.
        """
        self.work = Work(rows=len(nodes))
        if not self.started and self.trunk.last is not None and not hidden:
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

    def hidden(self, node: int) -> torch.Tensor:
        """Last-layer state [d] of a node that was scored with hidden=True."""
        batch, row, _ = self.kept[node]
        return batch.hidden[row]

    def _evaluate(self, nodes: list[int], hidden: bool) -> None:
        tree, trunk_end = self.tree, self.tree.trunk
        new: set[int] = set()
        for node in nodes:
            new.add(node)  # asked for again without a kept row: its token runs once more on its own slot
            node = tree.parents[node]
            while node >= trunk_end and node not in self.slots and node not in new:
                new.add(node)
                node = tree.parents[node]
        first_time = not self.started
        if not self.trunk.evaluated:
            new.update(range(trunk_end))
        order = sorted(new)  # parents have smaller ids, so they come first
        fresh = [n for n in order if n >= trunk_end and n not in self.slots]
        self.slots.update(zip(fresh, self.cache.take(len(fresh)), strict=True))
        self._look_at(order)
        index = {n: i for i, n in enumerate(order)}
        batch = self.engine.forward(
            [tree.tokens[n] for n in order],
            [tree.depths[n] for n in order],
            self._masks(order),
            [index[n] for n in nodes],
            hidden,
        )
        for row, node in enumerate(nodes):
            self.kept[node] = (batch, row, index[node])
        self.work.tokens = len(order)
        if first_time and self.trunk.evaluated:
            self.work.shared = trunk_end - sum(n < trunk_end for n in order)
        self.started = self.trunk.evaluated = True
        self.trunk.last = self.trunk.last or self.kept.get(trunk_end - 1)
        self.peak = max(self.peak, self.used)

    def _look_at(self, order: list[int]) -> None:
        """Points the cache at the slots of the nodes `order` (parents first) and of all their ancestors;
        builds the mask.
        """
        tree, slot, inside = self.tree, self._slot, set(order)
        device, dtype = self.engine.device, self.engine.dtype
        top = self._common_ancestor(order)
        spine = self._spine_to(top)
        direct: list[tuple[int, int]] = []  # (row, node it sees): itself and its ancestors below `top` ...
        inherited: list[tuple[int, int]] = []  # ... up to one of `order`, whose row is then copied
        row_of = {node: row for row, node in enumerate(order)}
        for row, node in enumerate(order):
            direct.append((row, node))
            above = tree.parents[node]
            while above != top and above not in inside:
                direct.append((row, above))
                above = tree.parents[above]
            if above in inside:
                inherited.append((row, row_of[above]))
        between = dict.fromkeys(node for _, node in direct if node not in inside)
        listed = [*between, *order]  # what stands below the spine
        reads = spine + [slot(n) for n in listed]
        columns = {n: len(spine) + i for i, n in enumerate(listed)}
        self.cache.write = as_index([slot(n) for n in order], device)
        self.cache.read = as_index(reads, device)
        self.cache.read_count = len(reads)
        self.columns = [*tree.path(top), *listed] if self._reaches_past_window(order) else None
        self.mask = torch.zeros((len(order), len(reads)), dtype=dtype, device=device)
        if len(order) == 1:
            return
        seen = torch.zeros((len(order), len(reads)), dtype=torch.bool)
        seen[:, : len(spine)] = True
        seen[[row for row, _ in direct], [columns[node] for _, node in direct]] = True
        for row, source in inherited:
            seen[row] |= seen[source]
        self.mask.masked_fill_(~seen.to(device), torch.finfo(dtype).min)

    def _spine_to(self, top: int) -> list[int]:
        """The slots from the root down to `top`. Keeps the last answer: the next is often one longer."""
        nodes, slots, depths = self.spine_nodes, self.spine_slots, self.tree.depths
        new, node = [], top
        while node >= 0 and not (depths[node] < len(nodes) and nodes[depths[node]] == node):
            new.append(node)
            node = self.tree.parents[node]
        known = depths[node] + 1 if node >= 0 else 0
        nodes[known:] = new[::-1]
        slots[known:] = [self._slot(n) for n in nodes[known:]]
        return slots

    def _reaches_past_window(self, order: list[int]) -> bool:
        window = self.engine.window
        return window is not None and max(self.tree.depths[n] for n in order) >= window

    def _masks(self, order: list[int]) -> torch.Tensor | dict[str, torch.Tensor]:
        """The mask in the form that the model takes: where sliding attention forgets tokens, with those
        masked too.
        """
        full = self.mask[None, None]
        if self.columns is None:
            return full
        depths = torch.tensor(self.tree.depths)
        far = depths[order][:, None] - depths[self.columns][None] >= self.engine.window
        sliding = full.masked_fill(far.to(full.device), torch.finfo(full.dtype).min)
        return {"full_attention": full, "sliding_attention": sliding} if self.engine.mixed else sliding

    def _common_ancestor(self, order: list[int]) -> int:
        """The deepest evaluated node that is a proper ancestor of all of `order`; -1 if there is none."""
        tree, inside = self.tree, set(order)
        tops = set()
        for node in order:
            above = tree.parents[node]
            while above in inside:
                above = tree.parents[above]
            tops.add(above)
        while len(tops) > 1:  # lift the deepest; depths differ little, so this is short
            deepest = max(tops, key=lambda n: tree.depths[n] if n >= 0 else -1)
            tops.remove(deepest)
            tops.add(tree.parents[deepest])
        return tops.pop()

    def _slot(self, node: int) -> int:
        return self.trunk.slots[node] if node < self.tree.trunk else self.slots[node]

    def attention(self, nodes: list[int]) -> tuple[list[int], list[int], torch.Tensor] | None:
        """How strongly `nodes`, all on one path, looked back when each predicted the token after it.

        (those of `nodes` whose rows are kept, R of them; the path down to the last, K nodes; weights [R, K]):
        means over layers and heads, each row summing to 1. None if this model's attention cannot be read.
        Comes from the queries of the nodes' own forwards.
        """
        rows = [(n, self.kept[n]) for n in nodes if n in self.kept and self.kept[n][0].queries is not None]
        if not rows or self.cache.pool is None:
            return None
        seen, path = [n for n, _ in rows], self.tree.path(rows[-1][0])
        index = as_index([self._slot(n) for n in path], self.engine.device)
        queries = torch.stack([batch.queries[:, :, at] for _, (batch, _, at) in rows], dim=2)  # [L, H, R, D]
        reach = [self.tree.depths[n] + 1 for n in seen]
        return seen, path, self.engine.tap.weights(queries, self.cache.pool[:, 0, :, index], reach)

    def forget(self, nodes: list[int]) -> None:
        """Drops the kept rows of nodes that nobody will ask about again; their slots stay."""
        for node in nodes:
            self.kept.pop(node, None)

    def release(self, nodes: list[int]) -> None:
        """Gives the slots of dead nodes back. Nodes of the trunk and nodes without a slot are ignored."""
        self.forget(nodes)
        for node in nodes:
            depth = self.tree.depths[node]
            if self.spine_nodes[depth : depth + 1] == [node] and node in self.slots:
                del self.spine_nodes[depth:], self.spine_slots[depth:]
        self.cache.give([self.slots.pop(n) for n in nodes if n in self.slots])

    def close(self) -> None:
        """Gives everything back; the prompt's slots too, if no other lane uses them. May be called twice."""
        if self.trunk is None:
            return
        self.release(list(self.slots))
        self.kept.clear()
        self.trunk.users -= 1
        if self.trunk.users == 0:
            self.cache.give(self.trunk.slots)
            del self.engine.trunks[self.key]
        self.trunk = None


def as_index(slots: list[int], device: torch.device) -> slice | torch.Tensor:
    """A slice where `slots` are consecutive (no copy is needed then), else an index tensor."""
    if slots and slots[-1] - slots[0] == len(slots) - 1 and slots == list(range(slots[0], slots[-1] + 1)):
        return slice(slots[0], slots[-1] + 1)
    return torch.tensor(slots, device=device)
