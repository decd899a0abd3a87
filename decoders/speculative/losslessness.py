"""The losslessness test: does a strategy sample from exactly the target's distribution? Many seeds, one short
continuation each.

Continuations are counted in cells whose probabilities are computed exactly from the target; a strategy that
keeps the distribution keeps the probability of every cell. The verifier that is wrong on purpose exists only
here: no strategy can use it.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch

from decoders import model_defaults
from decoders.callbacks import Callbacks
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits, Model
from decoders.logits.distributions import probabilities, processors
from decoders.refusal import Refusal
from decoders.registry import get
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.interfaces import TokenTest
from decoders.speculative.verifiers.recursive_rejection import ratio_test
from decoders.speculative.verifiers.walk import Place, Rule, by_rule
from decoders.trace.reasons import Code

OTHER = -1  # in the place of a token: any but those that have cells of their own
# tokens with cells of their own at a place; prefixes of one length that are counted apart
WIDTH, MAX_BEGINNINGS = 4, 8
SIMULATED, OUTSIDE = 500, 0.99  # exact samplers that the band is made of; the share of them below its edge
BROKEN = "speculative"  # the strategy whose lanes run with the broken verifier


@dataclass
class Cells:
    """A partition of all continuations: `index` maps a prefix, perhaps ending in OTHER, to its cell, and
    `probabilities` has the exact one of each. `inner`: prefixes that are divided further.
    """

    index: dict[tuple[int, ...], int] = field(default_factory=dict)
    probabilities: list[float] = field(default_factory=list)
    inner: set[tuple[int, ...]] = field(default_factory=lambda: {()})

    def add(self, beginning: tuple[int, ...], probability: float) -> None:
        """Adds a cell."""
        self.index[beginning] = len(self.probabilities)
        self.probabilities.append(probability)

    def of(self, tokens: list[int]) -> int:
        """The cell of a continuation."""
        beginning: tuple[int, ...] = ()
        for token in tokens:
            longer = (*beginning, token)
            if longer in self.index:
                return self.index[longer]
            if longer not in self.inner:
                return self.index[(*beginning, OTHER)]
            beginning = longer
        raise Refusal(f"The continuation {tokens} is shorter than the cells are deep.")


def cells(target: Model, prompt: list[int], parameters: dict, length: int) -> Cells:
    """The cells of continuations of `length` tokens: the top tokens after the most likely prefixes."""
    tree, cells_so_far = Tree(list(prompt)), Cells()
    frontier = {(): (tree.trunk - 1, 1.0)}  # prefix -> its node and probability
    scorer = target.engine.attach(tree)
    try:
        for depth in range(1, length + 1):
            nodes = [node for node, _ in frontier.values()]
            # [N, V]
            probs = distributions(scorer.score(nodes), [tree.text(node) for node in nodes], parameters)
            grown: dict[tuple[int, ...], float] = {}
            for (beginning, (_, probability)), row in zip(frontier.items(), probs, strict=True):
                likeliest = row.topk(min(WIDTH, len(row)))
                pairs = list(zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True))
                grown.update({(*beginning, token): probability * p for token, p in pairs})
                cells_so_far.add((*beginning, OTHER), probability * max(0.0, 1.0 - sum(p for _, p in pairs)))
            going = [one for one in sorted(grown, key=grown.get, reverse=True) if one[-1] not in target.eos]
            going = going[:MAX_BEGINNINGS] if depth < length else []
            for beginning in grown.keys() - set(going):
                cells_so_far.add(beginning, grown[beginning])
            cells_so_far.inner.update(going)
            frontier = {one: (tree.add(frontier[one[:-1]][0], one[-1]), grown[one]) for one in going}
            if not frontier:
                break
    finally:
        scorer.close()
    return cells_so_far


def distributions(logits: torch.Tensor, texts: list[list[int]], parameters: dict) -> torch.Tensor:
    """The distributions [N, V] (float64) from which a lane with these parameters (temperature above 0) draws,
    given logits [N, V].
    """
    stack = processors(parameters, logits.shape[-1])
    scores = logits if stack is None else stack(logits, texts)
    return probabilities(scores)


def distance(counts: torch.Tensor, probabilities: torch.Tensor) -> torch.Tensor:
    """Total variation distance [...] of counts [..., C] to probabilities [C]: half the sum of |share -
    probability|.
    """
    return (counts / counts.sum(-1, keepdim=True) - probabilities).abs().sum(-1) / 2


def simulate(probabilities: list[float], checkpoints: list[int], seed: int = 0) -> torch.Tensor:
    """Distances [S, checkpoints] of S samplers that draw from the exact distribution, after each number of
    draws each.
    """
    exact = torch.tensor(probabilities, dtype=torch.float64)
    luck = torch.Generator().manual_seed(seed)
    counts, distances, before = torch.zeros(SIMULATED, len(exact), dtype=torch.float64), [], 0
    places = torch.arange(SIMULATED)[:, None] * len(exact)
    for now in checkpoints:
        drawn = torch.multinomial(exact, SIMULATED * (now - before), replacement=True, generator=luck)
        flat = (drawn.reshape(SIMULATED, -1) + places).flatten()
        counts += torch.bincount(flat, minlength=counts.numel()).reshape(counts.shape)
        distances.append(distance(counts, exact))
        before = now
    return torch.stack(distances, dim=1)


# ---- a verifier that is wrong on purpose -----------------------------------------------------------------


class Broken(Rule):
    """Token rejection with one mistake: after a rejection it draws from p itself, not from norm(max(p - q,
    0)).
    """

    greedy = False

    def test(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        return replace(ratio_test(p, q, token, place), reasons=())

    def own_code(self, whole: bool) -> Code:
        return Code.ALL_ACCEPTED if whole else Code.TARGET_BY_MISTAKE


WRONG = by_rule(Broken(), name="broken on purpose", says="")


def broken(lane: Lane) -> Iterator[None]:
    """Speculative decoding with the broken verifier."""
    yield from rounds(lane, draft_chain(lane.parameters), WRONG)


# ---- counting --------------------------------------------------------------------------------------------


@dataclass
class Counted:
    """A way of decoding, and the counts of what it wrote: `curve` is [samples, distance] at each checkpoint
    so far.
    """

    name: str
    write: Callable[[int], list[int]]  # seed -> tokens
    counts: torch.Tensor
    curve: list[list[float]] = field(default_factory=list)


class Proof:
    """Counts a lane's continuations, and with `with_broken` the broken verifier's, seed by seed.

    Raises Refusal with one sentence for parameters or models that cannot be used.
    """

    def __init__(
        self,
        strategy: str,
        prompt: list[int],
        models: dict[str, Model],
        parameters: dict,
        length: int,
        samples: int,
        with_broken: bool,
        callbacks: Callbacks | None = None,
    ):
        declared = get(strategy)
        checked = declared.check(parameters)
        if not checked.get("temperature"):
            raise Refusal("At temperature 0 every seed writes the same text; choose a higher one.")
        self.samples, self.done, self.callbacks = samples, 0, callbacks
        self.checkpoints = checkpoints(samples)
        taken = model_defaults.used(checked, models["target"].generation)
        self.cells = cells(models["target"], prompt, {**checked, **taken}, length)
        self.probabilities = torch.tensor(self.cells.probabilities, dtype=torch.float64)
        self.simulated = simulate(self.cells.probabilities, self.checkpoints)
        self.ways = [self._counted(declared.title, strategy, prompt, models, checked, length)]
        if with_broken:
            known = {parameter.name for parameter in get(BROKEN).parameters}
            shared = {name: value for name, value in checked.items() if name in known}
            name = "broken verifier"
            self.ways.append(self._counted(name, BROKEN, prompt, models, shared, length, run=broken))

    def _counted(self, name, strategy, prompt, models, parameters, length, run=None) -> Counted:
        def write(seed: int) -> list[int]:
            lane = Lane(strategy, prompt, models, parameters, seed, Limits(length), callbacks=self.callbacks)
            lane.records_offers = False
            if run is not None:
                lane.strategy = replace(lane.strategy, run=run)
            return lane.run().output()

        return Counted(name, write, torch.zeros(len(self.probabilities), dtype=torch.float64))

    def advance(self, seconds: float) -> None:
        """Continues for this many seconds, with at least one seed."""
        until = time.monotonic() + seconds
        while self.done < self.samples:
            for way in self.ways:
                way.counts[self.cells.of(way.write(self.done))] += 1
            self.done += 1
            if self.done in self.checkpoints:
                for way in self.ways:
                    way.curve.append([self.done, float(distance(way.counts, self.probabilities))])
            if time.monotonic() >= until:
                return

    def state(self) -> dict:
        """Progress and results so far: `{samples, done, cells, band, ways}`.

        band: [samples, median, edge] at each checkpoint, of samplers that draw from the exact distribution;
        99 of 100 lie below the edge. ways: {name, curve, distance, edge, inside, beyond}; beyond is the share
        of exact samplers that are as far off or farther. Before the first checkpoint all of these but the
        curve are None.
        """
        edges = self.simulated.quantile(OUTSIDE, dim=0).tolist()
        middle = self.simulated.median(dim=0).values.tolist()
        band = [list(row) for row in zip(self.checkpoints, middle, edges, strict=True)]
        return {
            "samples": self.samples,
            "done": self.done,
            "cells": len(self.probabilities),
            "band": band,
            "ways": [self._result(way, edges) for way in self.ways],
        }

    def _result(self, way: Counted, edges: list[float]) -> dict:
        result = {"name": way.name, "curve": way.curve, "distance": None, "edge": None, "inside": None}
        if not way.curve:
            return result | {"beyond": None}
        at, far = len(way.curve) - 1, way.curve[-1][1]
        beyond = float((self.simulated[:, at] >= far - 1e-12).double().mean())
        return result | {"distance": far, "edge": edges[at], "inside": far <= edges[at], "beyond": beyond}


def checkpoints(samples: int) -> list[int]:
    """Numbers of samples at which the distance is taken: 25 evenly spaced ones, the last one `samples`."""
    return sorted({max(1, round(samples * place / 25)) for place in range(1, 26)})
