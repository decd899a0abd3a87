"""Several constraints at once: a token may follow if all of them allow it."""

from typing import Any

import torch

from decoders.constraints.constraint import Constraint


class Intersection(Constraint):
    """States are tuples of the states of its members."""

    def __init__(self, members: list[Constraint]):
        self.members, self.vocabulary = members, members[0].vocabulary

    def start(self) -> tuple:
        return tuple(member.start() for member in self.members)

    def allowed(self, state: tuple) -> torch.Tensor:
        masks = [member.allowed(own) for member, own in zip(self.members, state, strict=True)]
        return torch.stack(masks).all(0)

    def advance(self, state: tuple, token: int) -> tuple | None:
        below: list[Any] = []
        for member, own in zip(self.members, state, strict=True):
            if (after := member.advance(own, token)) is None:
                return None
            below.append(after)
        return tuple(below)

    def accepts(self, state: tuple, token: int) -> bool:
        return all(member.accepts(own, token) for member, own in zip(self.members, state, strict=True))

    def may_end(self, state: tuple) -> bool:
        return all(member.may_end(own) for member, own in zip(self.members, state, strict=True))

    def forced(self, state: tuple) -> list[int]:
        return []  # what one of them forces, another may forbid
