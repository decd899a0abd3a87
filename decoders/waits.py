"""Which earlier positions each position of a parallel decoder waited for, found by counterfactual forwards.

Position i waited for j < i if i's last change was caused by a change at j: with the earlier token put back at
j, the model gives the earlier token at i again. Only dependencies that this test confirms are recorded.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch

from decoders.engine.tree import Tree
from decoders.lane import Lane
from decoders.parameters import switch
from decoders.strategy import Part

DEPENDENCIES = switch(
    "dependencies",
    True,
    "Find out what each position waited for, by extra lens forwards that put earlier tokens back.",
)
LENS = Part(
    "lens", "dependencies", "Puts earlier tokens back, one by one, to find which positions waited for them."
)

Redo = Callable[[torch.Tensor, int], int]  # logits [1, V] and the node that they follow -> a token


@dataclass
class Standing:
    """The token at a position. `node`: the node whose forward predicted it, None for a guess that no forward
    made. `redo`: the token that other logits, after another node, would have given. `drawn`: whether it was
    sampled, by a uniform number that `redo` uses again.
    """

    token: int
    node: int | None = None
    redo: Redo | None = None
    drawn: bool = False

    def fell_back(self, redone: int, before: "Standing") -> bool:
        """Whether the token depended on what was put back: the earlier token returns. For a sampled token,
        the earlier one came from another uniform number, so it is enough that the same number gives another
        token.
        """
        return redone != self.token if self.drawn else redone == before.token


@dataclass
class Waits:
    """The tokens at all positions and what each waited for. Positions count from the prompt's first token."""

    stands: dict[int, Standing] = field(default_factory=dict)  # position -> its present token
    waited: dict[int, list[int]] = field(default_factory=dict)  # position -> the positions it waited for

    def guess(self, position: int, token: int) -> None:
        """Puts a token into a position without a forward."""
        before = self.stands.get(position)
        self.stands[position] = Standing(token)
        if before is None or before.token != token:
            self._change([position])

    def read(self, lane: Lane, given: dict[int, Standing]) -> None:
        """Takes in the tokens that a forward of `lane` gave at some positions. For each that changed, every
        earlier token that changed as well is put back in turn, and one lens forward reads all these variants.
        """
        new = [at for at, now in given.items() if at not in self.stands or self.stands[at].token != now.token]
        tests = [test for position in new for test in self._tests(lane.tree, position, given[position])]
        branches = Branches(lane.tree)
        rows = [branches.grow(base, tokens) for _, _, base, tokens in tests]
        hinges: dict[int, list[int]] = {}
        if rows:
            for (position, source, *_), row, logits in zip(
                tests, rows, lane.score(rows, kind="lens"), strict=True
            ):
                now = given[position]
                if now.fell_back(now.redo(logits[None], row), self.stands[position]):
                    hinges.setdefault(position, []).append(source)
            lane.drop(branches.nodes)
        self.stands |= given
        self._change(new, hinges)

    def settle(self, lane: Lane, positions: Iterable[int]) -> None:
        """Records what the positions that are now final had waited for."""
        for position in positions:
            for source in sorted(self.waited.pop(position, [])):
                lane.depend(source, position, 1.0, "causal")

    def _change(self, positions: list[int], hinges: dict[int, list[int]] | None = None) -> None:
        """Notes that these positions have new tokens. Positions that waited for the old ones kept their
        token, so they did not wait for them after all.
        """
        for position in positions:
            self.waited[position] = (hinges or {}).get(position, [])
        gone = set(positions)
        self.waited = {at: [s for s in sources if s not in gone] for at, sources in self.waited.items()}

    def _tests(self, tree: Tree, position: int, now: Standing) -> list[tuple[int, int, int, list[int]]]:
        """(position, source, node, tokens) for each earlier token to be put back: `tokens` below `node` are
        what the forward read, but with the token at `source` from when `position` was predicted before.
        """
        before = self.stands.get(position)
        if before is None or before.node is None or now.node is None:
            return []
        base, then, here = parted(tree, before.node, now.node)
        first, tests = tree.depths[base] + 1, []
        for i, (old, new) in enumerate(zip(then, here, strict=True)):
            stands = self.stands.get(first + i)
            if old != new and stands is not None and stands.token == new:
                tests.append((position, first + i, base, [*here[:i], old, *here[i + 1 :]]))
        return tests


def parted(tree: Tree, a: int, b: int) -> tuple[int, list[int], list[int]]:
    """The lowest common ancestor of two nodes of equal depth, and the tokens of the two paths below it."""
    ways: tuple[list[int], list[int]] = ([], [])
    while a != b:
        ways[0].append(tree.tokens[a])
        ways[1].append(tree.tokens[b])
        a, b = tree.parents[a], tree.parents[b]
    return a, ways[0][::-1], ways[1][::-1]


class Branches:
    """Nodes for texts that are scored but not proposed; common prefixes share nodes."""

    def __init__(self, tree: Tree):
        self.tree = tree
        self.below: dict[tuple[int, int], int] = {}

    @property
    def nodes(self) -> list[int]:
        """All of them."""
        return list(self.below.values())

    def grow(self, node: int, tokens: list[int]) -> int:
        """The last node of the path `tokens` below `node`, adding nodes that are missing."""
        for token in tokens:
            place = node, token
            if place not in self.below:
                self.below[place] = self.tree.add(node, token)
            node = self.below[place]
        return node
