"""EvoPress: evolutionary search for the set of blocks whose removal harms a model least.

Sieberling et al. (2024), EvoPress, depth pruning. Every set drops the same number of attentions and of MLPs;
children exchange one to three blocks of their parent and are selected in two stages, the second with more
data and against the parent. The paper's search over quantisation and sparsity levels is not implemented.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from decoders.models.edited_names import Blocks
from decoders.refusal import Refusal

Fitness = Callable[[list[Blocks], int], list[float]]  # (sets, stage 0 or 1) -> scores, lower is better
INITIAL, CHILDREN, KEPT, SWAPS, TRIES = 64, 32, 2, (1, 2, 3), 20


@dataclass(frozen=True)
class Generation:
    """The `parent` after selection, its stage-1 fitness, and that of the previous parent on the same data
    (None at the start). `scored`: number of sets scored in stage 0 so far.
    """

    parent: Blocks
    fitness: float
    before: float | None
    scored: int


def random_blocks(layers: int, drops: int, tied: bool, rng: random.Random) -> Blocks:
    """A random set of `drops` attentions and as many MLPs, of the same layers if `tied`."""
    attention = frozenset(rng.sample(range(layers), drops))
    return Blocks(attention, attention if tied else frozenset(rng.sample(range(layers), drops)))


def exchanged(chosen: frozenset[int], layers: int, rng: random.Random) -> frozenset[int]:
    """Restores one dropped block and drops another."""
    kept = [at for at in range(layers) if at not in chosen]
    return chosen - {rng.choice(sorted(chosen))} | {rng.choice(kept)}


def mutated(parent: Blocks, layers: int, tied: bool, rng: random.Random) -> Blocks:
    """A child of `parent`; the smaller of two draws is the number of exchanges."""
    attention, mlp = parent.attention, parent.mlp
    for _ in range(min(rng.choice(SWAPS), rng.choice(SWAPS))):
        if tied:
            attention = mlp = exchanged(attention, layers, rng)
        elif rng.random() < 0.5:
            attention = exchanged(attention, layers, rng)
        else:
            mlp = exchanged(mlp, layers, rng)
    return Blocks(attention, mlp)


def children_of(parent: Blocks, layers: int, tied: bool, count: int, rng: random.Random) -> list[Blocks]:
    """`count` distinct children other than the parent; fewer if there are not that many."""
    children: dict[Blocks, None] = {}
    for _ in range(TRIES * count):
        if len(children) == count:
            break
        child = mutated(parent, layers, tied, rng)
        if child != parent:
            children[child] = None
    return list(children)


def generations_for(layers: int, drops: int) -> int:
    """The number of generations by the authors' rule of thumb."""
    return max(1, round(drops * (layers - drops) / 1.5))


def evolve(
    fitness: Fitness,
    layers: int,
    drops: int,
    generations: int | None = None,
    tied: bool = False,
    seed: int = 0,
    initial: int = INITIAL,
    children: int = CHILDREN,
    inherits: bool = True,
) -> list[Generation]:
    """The generations in order; the last parent is the result.

    1. Of `initial` random sets, the one with the lowest fitness is the parent.
    2. In each generation, `children` of the parent are scored in stage 0. The best two and the parent are
       scored in stage 1, and the best of these is the next parent, so it is never worse than the last one on
       the same data.

    Raises Refusal with one sentence if this many blocks cannot be dropped.
    """
    if not 0 <= drops < layers:
        raise Refusal(f"Of {layers} layers 0 to {layers - 1} can be dropped, not {drops}.")
    rng = random.Random(f"evopress {seed}")
    if not drops:
        none = Blocks(frozenset(), frozenset())
        return [Generation(none, fitness([none], 1)[0], None, 0)]
    first = list(dict.fromkeys(random_blocks(layers, drops, tied, rng) for _ in range(initial)))
    parent = best(first, fitness(first, 0))[0]
    history = [Generation(parent, fitness([parent], 1)[0], None, len(first))]
    for _ in range(generations_for(layers, drops) if generations is None else generations):
        if inherits:
            born = children_of(parent, layers, tied, children, rng)
        else:
            born = [random_blocks(layers, drops, tied, rng) for _ in range(children)]
        finalists = [*best(born, fitness(born, 0))[:KEPT], parent]
        scores = fitness(finalists, 1)
        winner = best(finalists, scores)[0]
        history.append(Generation(winner, min(scores), scores[-1], history[-1].scored + len(born)))
        parent = winner
    return history


def best(sets: list[Blocks], scores: list[float]) -> list[Blocks]:
    """The sets by ascending score."""
    order = sorted(range(len(sets)), key=scores.__getitem__)
    return [sets[at] for at in order]
