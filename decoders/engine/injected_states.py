"""Hidden states that are injected in the middle of a model (hidden transfer, Wu et al. 2024).

After some layers, a slot takes the state of another node, mapped linearly, and goes through the layers above
like any other slot. What it computes below is never used: only slots that are injected at the same layer or
above may attend to it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from decoders.engine.partial_forward import Blocks


@dataclass(frozen=True)
class Injection:
    """After `layer` layers a node's state becomes `weight @ s`, with s the state of node `host`; weight [d,
    d].
    """

    layer: int
    host: int
    weight: torch.Tensor


Injections = dict[int, Injection]  # node -> its injection


@dataclass
class InjectedStates:
    """The injections of one forward, grouped by layer and map: the rows of the stream that take states, and
    the rows of their hosts.
    """

    groups: list[tuple[int, torch.Tensor, list[int], list[int]]]  # layer, weight [d, d], rows, hosts

    def enter(self, layer: int, x: torch.Tensor) -> torch.Tensor:
        """The stream x [N, d] that enters `layer`, with the states of this layer injected."""
        for at, weight, rows, hosts in self.groups:
            if at == layer:
                where = torch.tensor(rows, device=x.device)
                x = x.index_copy(0, where, x[hosts] @ weight.to(x.dtype).T)
        return x


def injected_in(injections: Injections, paths: Sequence[Sequence[int]]) -> InjectedStates | None:
    """The injections of a forward that reads each of `paths` (nodes) as a row, padded to the longest; None if
    there are none. Raises ValueError if a node's host is not in the same row.
    """
    longest, groups = max(map(len, paths)), {}
    for text, path in enumerate(paths if injections else ()):
        place = {node: text * longest + at for at, node in enumerate(path)}
        for node in injections.keys() & place.keys():
            injection = injections[node]
            if injection.host not in place:
                raise ValueError("An injected state comes from a node that its forward does not read.")
            key = injection.layer, id(injection.weight)
            group = groups.setdefault(key, (injection.layer, injection.weight, [], []))
            group[2].append(place[node])
            group[3].append(place[injection.host])
    return InjectedStates(list(groups.values())) if groups else None


@contextmanager
def injecting(blocks: Blocks, injected: InjectedStates) -> Iterator[None]:
    """While this is open, forwards of a transformers model over rows [B, T] inject these states."""

    def hook_of(index: int) -> Callable:
        def hook(module, inputs, named) -> tuple[tuple, dict[str, Any]]:
            named = dict(named)
            stream = named.pop("hidden_states") if "hidden_states" in named else inputs[0]
            return (injected.enter(index, stream.flatten(0, 1)).view_as(stream), *inputs[1:]), named

        return hook

    def before_last_norm(module, inputs) -> tuple[torch.Tensor]:
        return (injected.enter(len(blocks.layers), inputs[0].flatten(0, 1)).view_as(inputs[0]),)

    hooks = [
        layer.register_forward_pre_hook(hook_of(index), with_kwargs=True)
        for index, layer in enumerate(blocks.layers)
    ]
    hooks.append(blocks.last_norm.register_forward_pre_hook(before_last_norm))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
