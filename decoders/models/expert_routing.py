"""Mixtures of experts: which experts each layer routes a token to, and the same weights with a different
routing.

Only for routers of the Mixtral kind: a linear layer, a softmax, top k.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import torch
from torch.nn import functional as F


@dataclass(frozen=True)
class Routing:
    """Which experts of a layer read a token. `ranks`: ranks in the router's own order, 0 the most likely.
    `mass`: if above 0, the fewest most likely experts with this total probability instead.
    """

    ranks: tuple[int, ...]
    mass: float = 0.0

    def choose(self, probs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(weights, experts), both [N, K], from a router's probabilities `probs` [N, E]; most likely
        first. An expert of weight 0 adds nothing.
        """
        shares, order = probs.sort(dim=-1, descending=True, stable=True)
        if self.mass > 0.0:
            before = shares.cumsum(-1) - shares
            return shares * (before < self.mass), order
        return shares[:, list(self.ranks)], order[:, list(self.ranks)]

    def __str__(self) -> str:
        if self.mass > 0.0:
            return f"the most likely experts with {self.mass:g} of the mass"
        return f"experts of rank {', '.join(map(str, self.ranks))}"


@dataclass
class Seen:
    """One router's decision on one token: its probabilities [E], and the chosen experts with their
    weights.
    """

    probs: torch.Tensor
    weights: dict[int, float]


def routers(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The routers of a model, layer by layer: modules whose only weight has one row per expert."""
    return [m for m in model.modules() if hasattr(m, "top_k") and _has_a_row_for_each_expert(m)]


def _has_a_row_for_each_expert(module: torch.nn.Module) -> bool:
    shapes = {name: tuple(weight.shape) for name, weight in module.named_parameters()}
    return shapes == {"weight": (getattr(module, "num_experts", 0), getattr(module, "hidden_dim", 0))}


def can_be_rerouted(model: torch.nn.Module) -> bool:
    """Whether a model has experts and can be rerouted. Found out by a trial: each router must reproduce its
    own numbers when rerouted to its own ranks.
    """
    gates = routers(model)
    return bool(gates) and all(map(_agrees, gates))


@torch.inference_mode()
def _agrees(router: torch.nn.Module) -> bool:
    some = torch.linspace(-1, 1, 3 * router.hidden_dim).reshape(3, -1).to(router.weight)
    theirs, ours = router(some), _route(router, Routing(tuple(range(router.top_k))), some)
    return len(theirs) == 3 and torch.equal(theirs[2], ours[2]) and torch.allclose(theirs[1], ours[1])


def _route(router: torch.nn.Module, routing: Routing, states: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """(logits [N, E], weights [N, K], experts [N, K]), as a router returns them."""
    logits = F.linear(states.reshape(-1, router.hidden_dim), router.weight)
    weights, experts = routing.choose(logits.float().softmax(-1))
    if getattr(router, "norm_topk_prob", True):
        weights = weights / weights.sum(-1, keepdim=True)
    return logits, weights.to(states.dtype) if hasattr(router, "norm_topk_prob") else weights, experts


def rerouted(model: torch.nn.Module, routing: Routing) -> torch.nn.Module:
    """A model that shares this model's weights, without copying them, and routes tokens differently."""
    shared = {id(t): t for t in chain(model.parameters(), model.buffers())}
    twin = copy.deepcopy(model, shared)
    for router in routers(twin):
        router.forward = lambda states, router=router: _route(router, routing, states)
    return twin


@contextmanager
def watched(gates: list[torch.nn.Module]) -> Iterator[list[Seen]]:
    """While this is open, collects each router's decision on the last token that it reads, in the list it
    yields.
    """
    seen: list[Seen] = []

    def see(router, inputs, output) -> None:
        logits, weights, experts = (t[-1] for t in output)
        chosen = {e: w for e, w in zip(experts.tolist(), weights.tolist(), strict=True) if w > 0.0}
        seen.append(Seen(logits.float().softmax(-1), chosen))

    hooks = [router.register_forward_hook(see) for router in gates]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
