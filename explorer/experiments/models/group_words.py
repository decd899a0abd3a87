"""Words over a finite group and what a model may write down before it states their product: the word problem,
with a scratchpad of t running products (Merrill and Sabharwal 2023, "The Expressive Power of Transformers
with Chain of Thought").

Elements are numbers; a table gives the product of two of them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import torch

from decoders.refusal import Refusal

IGNORED = -100  # a label without loss
Permutation = tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """`table[a, b]` [G, G]: the element a b; element 0 is the identity. `letters`: the elements of which
    words are made; all others are products of them.
    """

    name: str
    table: torch.Tensor
    letters: torch.Tensor

    @property
    def order(self) -> int:
        """The number of elements."""
        return len(self.table)


def of_permutations(name: str, elements: list[Permutation], letters: list[Permutation]) -> Group:
    """The group of these permutations, the identity first; a b is a, then b. ValueError if they do not form a
    group.
    """
    number = {one: at for at, one in enumerate(elements)}
    made = [[tuple(b[i] for i in a) for b in elements] for a in elements]
    if any(one not in number for row in made for one in row):
        raise Refusal(f"The permutations of {name} do not form a group; add the missing products.")
    table = torch.tensor([[number[one] for one in row] for row in made])
    return Group(name, table, torch.tensor([number[one] for one in letters]))


def even(permutation: Permutation) -> bool:
    """Whether a permutation is even."""
    pairs = [(a, b) for a in range(len(permutation)) for b in range(a)]
    return sum(permutation[a] < permutation[b] for a, b in pairs) % 2 == 0


def groups() -> list[Group]:
    """Z2 (parity), S3, which is solvable, and A5, the smallest group that is not."""
    swap, turn = (1, 0, 2), (1, 2, 0)
    five, three = (1, 2, 3, 4, 0), (1, 2, 0, 3, 4)
    evens = [p for p in permutations(range(5)) if even(p)]
    return [
        of_permutations("Z2", list(permutations(range(2))), [(0, 1), (1, 0)]),
        of_permutations("S3", list(permutations(range(3))), [swap, turn, inverse(turn)]),
        of_permutations("A5", evens, [five, inverse(five), three, inverse(three)]),
    ]


def inverse(permutation: Permutation) -> Permutation:
    """The inverse element."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def running(group: Group, words: torch.Tensor) -> torch.Tensor:
    """The products of the first 1, 2, ... letters of words [B, N]."""
    products = [words[:, 0]]
    for letter in words[:, 1:].unbind(1):
        products.append(group.table[products[-1], letter])
    return torch.stack(products, 1)


BUDGETS: dict[str, Callable[[int], int]] = {  # word length n -> number of products that are written down
    "none": lambda n: 0,
    "log n": lambda n: math.ceil(math.log2(n)),
    "n": lambda n: n,
}


def points(length: int, budget: int) -> list[int]:
    """The letter counts after which products are written: `budget` equally spaced ones, then the last."""
    return [math.ceil(length * j / (budget + 1)) for j in range(1, budget + 2)]


@dataclass(frozen=True)
class Batch:
    """ids [B, 1 + longest + S]: a word, blanks, the mark, the written tokens; labels [B, S] of the positions
    from the mark on; `written` [B]: how many tokens are written, the answer last.
    """

    ids: torch.Tensor
    labels: torch.Tensor
    written: torch.Tensor


def batch(
    group: Group, budget: Callable[[int], int], lengths: list[int], longest: int, draw: torch.Generator
) -> Batch:
    """A fresh word for each of `lengths`; letters are drawn uniformly. Shorter words are padded with blanks,
    so that the j-th letter and the j-th product have fixed positions.
    """
    blank, mark = group.order, group.order + 1
    words = group.letters[torch.randint(len(group.letters), (len(lengths), longest), generator=draw)]
    products = running(group, words)
    room = max(budget(n) for n in range(1, longest + 1)) + 1
    labels = torch.full((len(lengths), room), IGNORED)
    for row, length in enumerate(lengths):
        at = torch.tensor(points(length, budget(length))) - 1
        labels[row, : len(at)] = products[row, at]
    words[torch.arange(longest)[None] >= torch.tensor(lengths)[:, None]] = blank
    marks = torch.full((len(lengths), 1), mark)
    scratch = labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, blank)
    written = (labels != IGNORED).sum(1)
    return Batch(torch.cat([words, marks, scratch], 1), labels, written)
