"""States that are born in the middle of a model: after some layers a slot gets the state of another node,
through a linear map, and goes through the layers above like any other (hidden transfer, Wu et al. 2024).

Below its birth a slot computes something that is thrown away. Only slots that are born there or above may
attend to it, so nothing ever reads that. Knows nodes, layers and tensors, nothing of what such states are
for.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from decoders.engine.partial_forward import Blocks


@dataclass(frozen=True)
class Birth:
    """After `layer` layers a node's state is `weight @ s`, s being that of node `host`. weight [d, d]."""

    layer: int
    host: int
    weight: torch.Tensor


Births = dict[int, Birth]  # node -> its birth


@dataclass
class Born:
    """The births of one forward: for each layer and map the rows of the stream where states are born, and
    those of their hosts.
    """

    groups: list[tuple[int, torch.Tensor, list[int], list[int]]]  # layer, weight [d, d], rows, hosts

    def enter(self, layer: int, x: torch.Tensor) -> torch.Tensor:
        """The stream [N, d] that enters `layer`, with the states that are born there."""
        for at, weight, rows, hosts in self.groups:
            if at == layer:
                where = torch.tensor(rows, device=x.device)
                x = x.index_copy(0, where, x[hosts] @ weight.to(x.dtype).T)
        return x


def born_in(births: Births, paths: Sequence[Sequence[int]]) -> Born | None:
    """What is born in a forward over rows of nodes, padded to the longest of `paths`; None for nothing.
    Raises ValueError if a host does not stand in the row of what is born of it.
    """
    longest, groups = max(map(len, paths)), {}
    for text, path in enumerate(paths if births else ()):
        place = {node: text * longest + at for at, node in enumerate(path)}
        for node in births.keys() & place.keys():
            birth = births[node]
            if birth.host not in place:
                raise ValueError("A state is born of a node that its forward does not read.")
            key = birth.layer, id(birth.weight)
            group = groups.setdefault(key, (birth.layer, birth.weight, [], []))
            group[2].append(place[node])
            group[3].append(place[birth.host])
    return Born(list(groups.values())) if groups else None


@contextmanager
def entering(blocks: Blocks, born: Born) -> Iterator[None]:
    """While this is open, forwards of a transformers model over rows [B, T] have these states born in
    them.
    """

    def hook_of(index: int):
        def hook(module, inputs, named):
            named = dict(named)
            stream = named.pop("hidden_states") if "hidden_states" in named else inputs[0]
            return (born.enter(index, stream.flatten(0, 1)).view_as(stream), *inputs[1:]), named

        return hook

    def at_the_top(module, inputs):
        return (born.enter(len(blocks.layers), inputs[0].flatten(0, 1)).view_as(inputs[0]),)

    hooks = [
        layer.register_forward_pre_hook(hook_of(index), with_kwargs=True)
        for index, layer in enumerate(blocks.layers)
    ]
    hooks.append(blocks.last_norm.register_forward_pre_hook(at_the_top))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
