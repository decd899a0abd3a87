"""EvoPress: which blocks a model can best do without, found by evolution over whole sets of blocks.

Sieberling et al. (2024), EvoPress, depth pruning. Every set leaves out equally many attentions and equally
many MLPs; children exchange one to three blocks of their parent and are selected in two stages, the second
with more data and with the parent. The levels of quantisation and sparsity that the paper evolves as well are
not here. Knows blocks by number and a fitness, no models.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from decoders.models.edited_names import Blocks

Fitness = Callable[[list[Blocks], int], list[float]]  # sets, stage (0 or 1) -> lower is better
INITIAL, CHILDREN, KEPT, SWAPS, TRIES = 64, 32, 2, (1, 2, 3), 20


@dataclass(frozen=True)
class Generation:
    """`parent` after selection, its fitness of stage 1, and that of the parent before it on the same data
    (None in the beginning). `scored`: sets that were looked at in stage 0.
    """

    parent: Blocks
    fitness: float
    before: float | None
    scored: int


def drawn(layers: int, drops: int, tied: bool, rng: random.Random) -> Blocks:
    """A random set of `drops` attentions and as many MLPs, of the same layers if `tied`."""
    attention = frozenset(rng.sample(range(layers), drops))
    return Blocks(attention, attention if tied else frozenset(rng.sample(range(layers), drops)))


def exchanged(chosen: frozenset[int], layers: int, rng: random.Random) -> frozenset[int]:
    """One block that was left out comes back, another goes."""
    kept = [at for at in range(layers) if at not in chosen]
    return chosen - {rng.choice(sorted(chosen))} | {rng.choice(kept)}


def mutated(parent: Blocks, layers: int, tied: bool, rng: random.Random) -> Blocks:
    """A child: the smaller of two draws says how many exchanges make it."""
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
    """Different children, none of them the parent; fewer where there are not that many."""
    children: dict[Blocks, None] = {}
    for _ in range(TRIES * count):
        if len(children) == count:
            break
        child = mutated(parent, layers, tied, rng)
        if child != parent:
            children[child] = None
    return list(children)


def generations_for(layers: int, drops: int) -> int:
    """The authors' rule of thumb."""
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
) -> list[Generation]:
    """The parents of all generations, the last the best.

    1. `initial` random sets; the one with the lowest fitness is the parent.
    2. Each generation: `children` of the parent, scored in stage 0, of which two are kept; they and the
       parent are scored in stage 1, and the best is the next parent: never worse than the last on its data.

    Raises ValueError with one sentence if this many blocks cannot be dropped.
    """
    if not 0 <= drops < layers:
        raise ValueError(f"Of {layers} layers 0 to {layers - 1} can be dropped, not {drops}.")
    rng = random.Random(f"evopress {seed}")
    if not drops:
        none = Blocks(frozenset(), frozenset())
        return [Generation(none, fitness([none], 1)[0], None, 0)]
    first = list(dict.fromkeys(drawn(layers, drops, tied, rng) for _ in range(initial)))
    parent = best(first, fitness(first, 0))[0]
    history = [Generation(parent, fitness([parent], 1)[0], None, len(first))]
    for _ in range(generations_for(layers, drops) if generations is None else generations):
        born = children_of(parent, layers, tied, children, rng)
        finalists = [*best(born, fitness(born, 0))[:KEPT], parent]
        scores = fitness(finalists, 1)
        winner = best(finalists, scores)[0]
        history.append(Generation(winner, min(scores), scores[-1], history[-1].scored + len(born)))
        parent = winner
    return history


def best(sets: list[Blocks], scores: list[float]) -> list[Blocks]:
    """The sets, the lowest score first."""
    order = sorted(range(len(sets)), key=scores.__getitem__)
    return [sets[at] for at in order]
