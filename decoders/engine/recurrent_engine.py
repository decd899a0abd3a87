"""The tree engine for models with recurrent layers: state-space models, gated delta nets, short convolutions,
and hybrids of these with attention (Qwen3-Next, Granite 4, Falcon-H1, LFM2, Mamba 2 ...).

One forward reads all nodes. What works token by token on its own (projections, experts, the output matrix)
and attention read them together; a recurrent layer reads them level by level, the nodes of a level side by
side, each from the states after its parent. One state per branch is what STree (2025, section 3) compares its
tree scan with; it needs nothing from a layer but the layer's own step. A prompt is read in one stretch, since
no state inside it is needed.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from decoders.engine.engine import MIN_SLOTS, Engine, Scorer
from decoders.engine.forward_outputs import Batch
from decoders.engine.forward_request import ForwardRequest
from decoders.engine.joint_forwards import Pause
from decoders.engine.kv_cache import is_recurrent, pool_bytes
from decoders.engine.layers import Layers
from decoders.engine.state_cache import BEGINNING, StateCache, Stretch
from decoders.engine.state_engine import CACHES
from decoders.engine.tree import Tree

NOTE = (
    "This model has layers with a state in place of keys and values: each branch of a draft has its own copy "
    "of it."
)
MOST_SLOTS = 1 << 20  # they take no memory where no layer attends
LOUD = 100.0  # so that a state that is passed over is missed, however fast it decays
SAME = 0.05  # relative difference of two states that may be rounding, in half precision too
ATTENDING = ("full_attention", "sliding_attention", "indexed_attention")  # kinds of layers


class MaskOfKind(dict):
    """Kind of layer -> attention mask, None for kinds without attention, however a model calls them."""

    def __missing__(self, kind: str) -> None:
        return None


@dataclass(eq=False)
class RecurrentEngine(Engine):
    """A causal LM with recurrent layers behind the tree interface. Raises ValueError if it has none."""

    def __post_init__(self) -> None:
        self.recurrent = [m for m in self.model.modules() if is_recurrent(m)]
        if not self.recurrent:
            raise ValueError("The model has no recurrent layer that transformers' cache serves.")
        takes = inspect.signature(self.model.forward).parameters
        self.cache_name = next(name for name in CACHES if name in takes)
        self.takes_positions = "position_ids" in takes  # as all models with layers that attend do
        memory = pool_bytes(self.model.device.type) // 2  # for slots and for states
        given, self.limit = self.limit, 1
        super().__post_init__()
        # the stretches of the next forward, once all of its nodes have slots
        self.plan: Callable[[], list[Stretch]] = list
        self.note, self.place = " ".join(filter(None, (NOTE, self.note))), {}
        self.cache = StateCache(1, memory, self.place)
        self._read_a_token()  # tells which layers have attention
        per_slot = sum(store[:, :, 0].nbytes for store in self.cache.storage)
        self.limit = given or max(MIN_SLOTS, min(MOST_SLOTS, memory // max(1, per_slot)))
        self.cache = StateCache(self.limit, memory, self.place)
        self.attention_count = len(self.place)
        # whether its layers read several tokens from a state, or only one (Mamba 1 in transformers)
        self.continues = self._layers_continue()

    def _layers_continue(self) -> bool:
        """Whether tokens that are read from a state at once leave the states that they leave one by one."""
        left: list[list[torch.Tensor]] = []
        for self.continues in (False, True):
            tree, node = Tree([1]), 0
            scorer = self.attach(tree)
            scorer.score([node])
            for state in self.cache.states[scorer.trunk.slots[0]].values():
                state.recurrent = {key: LOUD * tensor for key, tensor in state.recurrent.items()}
            for token in (2, 3):
                node = tree.add(node, token % self.vocabulary)
            scorer.score([node])
            states = self.cache.states[scorer.slots[node]].values()
            left.append([tensor for state in states for tensor in state.recurrent.values()])
            scorer.close()
        return all((a - b).abs().max() <= SAME * a.abs().max() for a, b in zip(*left, strict=True))

    def attach(self, tree: Tree) -> "RecurrentScorer":
        """A scorer for `tree`. Raises OutOfSlots if the prompt does not fit."""
        return RecurrentScorer(self, tree)

    def capture(self, **compiler: Any) -> None:
        """Does nothing: a captured forward could not choose its states."""

    def forward(self, request: ForwardRequest, pause: Pause | None = None) -> Batch:
        """Runs one forward, which is never joined with those of other lanes."""
        return self._forward(request)

    def _forward(self, request: ForwardRequest) -> Batch:
        self.cache.stretches = self.plan()
        try:
            with self._reading_the_tree():
                batch = super()._forward(request)
        except BaseException:  # some layers' states are new and others are not
            self.cache.drop([slot for stretch in self.cache.stretches for slot in stretch.kept])
            raise
        self.cache.shrink()
        return batch

    def _read_a_token(self) -> None:
        self.plan = lambda: [Stretch([0], [BEGINNING], [])]
        super()._read_a_token()

    def _inputs(self, request: ForwardRequest) -> dict[str, Any]:
        """The keyword arguments of the model; a recurrent layer gets no mask."""
        inputs = super()._inputs(request)
        mask = inputs.pop("attention_mask")
        inputs[self.cache_name] = inputs.pop("past_key_values")
        if not self.takes_positions:
            return {name: given for name, given in inputs.items() if name != "position_ids"}
        masks = mask if isinstance(mask, dict) else dict.fromkeys(ATTENDING, mask)
        return inputs | {"attention_mask": MaskOfKind(masks)}

    @contextmanager
    def _reading_the_tree(self) -> Iterator[None]:
        """While this is open, the recurrent layers read the stretches of the cache."""
        for layer in self.recurrent:
            layer.forward = self.cache.reading(layer.forward)
        try:
            yield
        finally:
            for layer in self.recurrent:
                del layer.forward  # the one of its class is left


class RecurrentScorer(Scorer):
    """One lane's view of a `RecurrentEngine`; see `Scorer`. Nodes whose states were dropped are read again
    from the nearest ancestor that has some.
    """

    engine: RecurrentEngine
    cache: StateCache

    def __init__(self, engine: RecurrentEngine, tree: Tree):
        super().__init__(engine, tree)
        if not engine.continues:  # what is not read at once is read token by token
            self.piece = engine.limit

    def _with_unread(self, nodes: list[int], is_read: Callable[[int], bool]) -> set[int]:
        """These nodes and their ancestors up to one that is read and has states, in the prompt too."""
        new: set[int] = set()
        for node in nodes:
            new.add(node)
            node = self.tree.parents[node]
            while node >= 0 and node not in new and not self._continues(node, is_read):
                new.add(node)
                node = self.tree.parents[node]
        return new

    def _continues(self, node: int, is_read: Callable[[int], bool]) -> bool:
        return (node < self.tree.trunk or is_read(node)) and self.cache.has_state(self._slot(node))

    def _forward(
        self,
        order: list[int],
        nodes: list[int],
        hidden: bool,
        part: Layers | None = None,
        states: torch.Tensor | None = None,
    ) -> Batch:
        self.engine.plan = lambda: self._stretches(order, nodes)
        return super()._forward(order, nodes, hidden, part, states)

    def _stretches(self, order: list[int], nodes: list[int]) -> list[Stretch]:
        """How recurrent layers read the nodes `order`, which have slots; states are kept at `nodes`."""
        tree = self.tree
        ends = {tree.trunk - 1, *(n for n in nodes if n >= tree.trunk)}
        runs = runs_of(order, tree.parents, ends, self.engine.continues)
        row = {node: at for at, node in enumerate(order)}

        def stretch(some: list[list[int]]) -> Stretch:
            above = [tree.parents[run[0]] for run in some]
            return Stretch(
                [row[node] for run in some for node in run],
                [BEGINNING if node < 0 else self._slot(node) for node in above],
                [self._slot(run[-1]) for run in some],
            )

        return [stretch(some) for some in side_by_side(runs, tree.parents)]


def runs_of(order: list[int], parents: list[int], ends: set[int], continues: bool) -> list[list[int]]:
    """Cuts the nodes `order` (parents first) into runs along which no state is needed but the last: where a
    node has one child among them and is none of `ends`, the child goes on with its run. Unless `continues`,
    a run of several nodes starts at the beginning of a text.
    """
    children = Counter(parents[node] for node in order)
    runs: dict[int, list[int]] = {}  # last node -> run
    for node in order:
        above = parents[node]
        goes_on = above in runs and children[above] == 1 and above not in ends
        if goes_on and (continues or parents[runs[above][0]] < 0):
            runs[node] = runs.pop(above)
        runs.setdefault(node, []).append(node)
    return list(runs.values())


def side_by_side(runs: list[list[int]], parents: list[int]) -> list[list[list[int]]]:
    """Groups runs that can be read together: of one length and level, where a run is one level below the run
    that it continues. Groups are in the order of levels.
    """
    level: dict[int, int] = {}  # last node of a run -> level
    groups: dict[tuple[int, int], list[list[int]]] = {}
    for run in sorted(runs, key=lambda run: run[0]):
        level[run[-1]] = level.get(parents[run[0]], -1) + 1
        groups.setdefault((level[run[-1]], len(run)), []).append(run)
    return [groups[key] for key in sorted(groups)]
