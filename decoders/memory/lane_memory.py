"""What a lane with a memory records: the state of every slot, bytes against the full cache, and drift.

Drift is the divergence from the model with its full cache. A second, plain forward over the committed text
measures it and is counted separately.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch

from decoders import memory_options as options
from decoders.engine.engine import Engine
from decoders.engine.tree import Tree
from decoders.logits.distributions import log_softmax
from decoders.memory.engine import MemoryEngine, policy_of
from decoders.observer import Observer
from decoders.refusal import Refusal
from decoders.trace.events import Cell, Event, Forward
from decoders.trace.scores import Measure, ScoreName

SCOPE = "full cache"  # of the lens forward that measures drift
ALL = "all layers"  # level of a Cell
LOSSLESS = ("lossless", "exact in", "exact because")  # beginnings of badges of strategies that guess ahead


def misfit(parameters: dict[str, Any], models: Mapping[str, Any]) -> str | None:
    """Why a lane with these models cannot have its memory, as a sentence; None if it can, or has none."""
    if not options.has(parameters):
        return None
    role = parameters["memory_of"]
    if models.get(role) is None:
        return f"The memory is for a {role} model; name one, or choose memory_of target."
    model = models[role]
    if model.model_kind != "causal" or type(model.engine) is not Engine:
        return (
            f"A memory changes what is kept of keys and values, and the {role} {model.name!r} keeps none in "
            "slots; choose memory none, or a causal model built like Llama."
        )
    try:
        policy_of(parameters).learned(model, parameters)
    except Refusal as error:
        return str(error)
    return None


def drafts_stay_exact(parameters: dict[str, Any], promised: str) -> str | None:
    """The note for a lane whose strategy, without a memory, promises (`promised`) the text that the target
    writes token by token; None for other lanes.
    """
    if parameters.get("memory_of") != "target" or not promised.startswith(LOSSLESS):
        return None
    return (
        "Guessed tokens stay exact until they are committed, so this lane may write another text than "
        "decoding token by token with the same memory."
    )


def memory_of(parameters: dict[str, Any], models: Mapping[str, Any]) -> "LaneMemory | None":
    """The memory that a lane's parameters ask for, None for none; see `LaneMemory`."""
    return LaneMemory(parameters, models) if options.has(parameters) else None


class LaneMemory(Observer):
    """The memory of one lane. `model` stands for its model of `role`: the same one with an engine of its own.
    Raises Refusal with one sentence.
    """

    def __init__(self, parameters: dict[str, Any], models: Mapping[str, Any]):
        self.role, self.measures = parameters["memory_of"], parameters["memory_drift"]
        self.full = models[self.role]
        special = self.full.special
        learned = policy_of(parameters).learned(self.full, parameters)
        engine = MemoryEngine(self.full.engine, parameters, special, learned)
        self.model = copy.copy(self.full)
        self.model.__dict__["engine"] = engine
        self.layers, self.seen, self.plain = engine.layer_count, [], None

    def committed(self, lane: Any, nodes: list[int]) -> None:
        """Lets the policy see what is committed, and records what came of it."""
        tree, scorer = lane.tree, lane.scorers[self.role]
        if self.measures:
            lane.record(*self._drift(tree, scorer, nodes, lane.clock))
        scorer.commit(nodes[-1])
        kept, full = scorer.kept_bytes()
        lane.record(*self._cells(tree, scorer, len(lane.trace.steps)))
        lane.record(Measure(nodes[-1], ScoreName.MEMORY_BYTES, kept, {"full": float(full)}))

    def _cells(self, tree: Tree, scorer: Any, step: int) -> list[Cell]:
        """Records the slots whose state is new; one cell if a place has the same state in all layers."""
        rows, count = scorer.states(), scorer.settled
        columns = [tuple(rows[layer][at] for layer in range(len(rows))) for at in range(count)]
        cells = []
        for at, column in enumerate(columns):
            if at < len(self.seen) and self.seen[at] == column:
                continue
            token = tree.tokens[scorer.committed[at]]
            if len(set(column)) == 1:
                cells.append(Cell(at, step, token, column[0], level=ALL))
                continue
            cells += [Cell(at, step, token, state, level=f"layer {i}") for i, state in enumerate(column)]
        self.seen = columns
        return cells

    def _drift(self, tree: Tree, scorer: Any, nodes: list[int], clock: Callable) -> list[Event]:
        """KL(full || compressed) at the parents of committed nodes whose rows are kept, and the forward."""
        context = self.full.engine.context
        pairs = [(tree.parents[node], node) for node in nodes]
        pairs = [(p, n) for p, n in pairs if p in scorer.kept and tree.depths[p] < context]
        if not pairs:
            return []
        start = clock()
        if self.plain is None:
            self.plain = self.full.engine.attach(tree)
        above = [parent for parent, _ in pairs]
        full = log_softmax(self.plain.score(above))
        work = self.plain.work
        self.plain.forget(above[:-1])
        own = log_softmax(torch.stack([scorer.kept[p][0].logits[scorer.kept[p][1]] for p in above]).to(full))
        kl = (full.exp() * (full - own)).nan_to_num(0.0).sum(-1).clamp(min=0.0).tolist()
        changed = (full.argmax(-1) != own.argmax(-1)).tolist()
        events: list[Event] = [
            Measure(node, ScoreName.KL_FROM_FULL_CACHE, nats, {"changed": float(differs)})
            for (_, node), nats, differs in zip(pairs, kl, changed, strict=True)
        ]
        counts = {
            "tokens": work.tokens + work.shared,
            "rows": work.rows,
            "shared": work.shared,
            "scope": SCOPE,
        }
        if counts["tokens"]:
            events.insert(0, Forward(self.role, "lens", start=start, seconds=clock() - start, **counts))
        return events

    def close(self) -> None:
        """Gives the slots of the plain forwards back."""
        if self.plain is not None:
            self.plain.close()
            self.plain = None
