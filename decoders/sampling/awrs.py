"""AWRS: checks only the tokens that are drawn, and weights each text by the probability of its allowed
tokens.

Lipkin et al. (2025), Fast Controlled Generation from Language Models with Adaptive Weighted Rejection
Sampling. One token's draws are in adaptive_rejection.py.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from decoders.chooser import Tag
from decoders.lane import Lane
from decoders.logits.distributions import probabilities
from decoders.parameters import choice, integer
from decoders.registry import strategy
from decoders.sampling.adaptive_rejection import Outcome, first_allowed, geometric, recursive
from decoders.sampling.next_token import NOTHING_LEFT
from decoders.sampling.sampling_parameters import ENDS, PROCESSORS, SHAPING
from decoders.strategy import Part
from decoders.trace.number_format import many
from decoders.trace.scores import ScoreName

SHOWN = 32  # rejected draws per token that are recorded individually; all are counted as checks
PEAKED = 2 / 3  # top probability from which the geometric estimate is the better one
ESTIMATES = {
    "automatic": "Geometric where the model is confident (top probability of 2/3 or more) or max_accepts "
    "is above 2, else recursive.",
    "recursive": "One more token is drawn after the accepted one; its check gives one of two values of Z.",
    "geometric": "Draws continue until max_accepts were allowed; Z follows from how many were not.",
    "none": "The first allowed token alone, without an estimate: every text weighs the same.",
}
ALL_REJECTED = (
    "No text was left: the constraint rejected all draws; raise max_rejects or population, or loosen the "
    "constraint."
)


@dataclass
class Particle:
    """One text: its newest node, the log of its weight, and whether it is complete."""

    number: int
    node: int
    log_weight: float = 0.0
    over: bool = False

    @property
    def alive(self) -> bool:
        return self.log_weight > -math.inf


class Population:
    """Several texts that grow in parallel. Their common prefix is committed as it grows."""

    def __init__(self, lane: Lane):
        self.lane, self.parameters = lane, lane.parameters
        self.deepest = lane.tree.depths[lane.tip] + lane.left
        count = self.parameters["population"]
        self.particles = [Particle(number, lane.tip) for number in range(count)]
        self.logprobs: dict[int, float] = {}  # node -> log-probability under the target
        self.checks = self.tokens = 0

    @property
    def growing(self) -> list[Particle]:
        """Particles that are neither complete nor of weight 0."""
        return [p for p in self.particles if p.alive and not p.over]

    def step(self) -> None:
        """Extends each text by one token, with one forward for all, and resamples if few texts hold most
        weight.
        """
        lane, growing = self.lane, self.growing
        tips = list(dict.fromkeys(p.node for p in growing))
        logits = lane.score(tips)  # [N, V]
        logprobs = offered = lane.distribution(tips, logits)
        scores = lane.shaped(logits, tips, record=True)
        if scores is not logits and scores.isfinite().any(-1).all():
            offered = lane.distribution(tips, scores, "processed")
        rows = dict(zip(tips, zip(logprobs, offered, scores, strict=True), strict=True))
        below: dict[tuple[int, int], int] = {}  # (node, token) -> its node: equal draws share it
        for particle in growing:
            self.extend(particle, *rows[particle.node], below)
        self.resample()
        self.commit_shared()

    def extend(
        self,
        particle: Particle,
        logprobs: torch.Tensor,
        offered: torch.Tensor,
        scores: torch.Tensor,
        below: dict[tuple[int, int], int],
    ) -> None:
        """Draws a particle's next token. At its node, logprobs [V] are the target's, offered [V] those after
        the processors, and scores [V] the processed logits.
        """
        lane, parent = self.lane, particle.node
        outcome = self.drawn(particle, scores)
        self.checks, self.tokens = self.checks + len(outcome.drawn), self.tokens + 1
        for at, (token, _, allowed) in enumerate(outcome.drawn):
            if token == outcome.token and particle.node == parent:
                if (parent, token) not in below:
                    below[parent, token] = lane.propose(
                        parent, token, float(offered[token]), slot=particle.number
                    )
                    self.logprobs[below[parent, token]] = float(logprobs[token])
                particle.node = below[parent, token]
                continue
            if at >= SHOWN and not allowed:
                continue
            node = lane.propose(parent, token, float(offered[token]), slot=particle.number)
            reason = (
                "the constraint forbids it" if not allowed else "allowed, and drawn for the estimate alone"
            )
            lane.verdict(node, "pruned" if allowed else "rejected", reason=reason)
        if outcome.token is None:
            self.lose(particle, len(outcome.drawn))
        else:
            self.weigh(particle, outcome)

    def drawn(self, particle: Particle, scores: torch.Tensor) -> Outcome:
        """Draws one token from processed scores [V], with the estimate that the parameters choose."""
        lane, node, parameters = self.lane, particle.node, self.parameters
        cold = parameters["temperature"] == 0.0
        limit, accepts = parameters["max_rejects"], parameters["max_accepts"]

        def tag(tried: int, *kind: str) -> Tag:
            """The first draw of the first text uses the stream of plain sampling."""
            more = (particle.number, tried) if tried else (particle.number,) if particle.number else ()
            return (*(kind or ("sample",)), lane.tree.depths[node] + 1, *more)

        def allows(token: int) -> bool:
            lane.check_limits()
            return lane.constraint is None or lane.constraint.allows(node, token)

        def draw(weights: torch.Tensor, tried: int) -> int:
            return int(weights.argmax()) if cold else lane.chooser.categorical(weights, tag(tried)).value

        def phantoms(mass: float, tried: int) -> int:
            u = float(lane.chooser.uniforms(1, tag(tried, "phantoms"))[0])
            return int(math.log(u) / math.log1p(-min(mass, 1.0 - 1e-16)))

        if not scores.isfinite().any():
            lane.ended_by = NOTHING_LEFT
            return Outcome()
        p, estimate = probabilities(scores[None])[0].cpu(), parameters["estimate"]
        if estimate == "automatic":
            estimate = "geometric" if accepts > 2 or float(p.max()) >= PEAKED else "recursive"
        if cold or estimate == "none":
            return first_allowed(p, allows, draw, limit)
        if estimate == "recursive":
            return recursive(p, allows, draw, limit)
        return geometric(p, allows, draw, phantoms, accepts, limit)

    def weigh(self, particle: Particle, outcome: Outcome) -> None:
        """Updates a particle's weight by the estimate, and whether its text is complete."""
        lane, node, estimate = self.lane, particle.node, outcome.estimate
        particle.log_weight += math.log(estimate) if estimate else -math.inf
        parts = {"estimate": estimate, "checks": float(len(outcome.drawn)), "text": particle.number + 1.0}
        if particle.alive:
            lane.record_measure(node, ScoreName.LOG_WEIGHT, particle.log_weight, **parts)
        else:
            lane.record_measure(node, ScoreName.WEIGHT, 0.0, **parts)
        particle.over = lane.ends(node) or lane.tree.depths[node] >= self.deepest
        if particle.over and len(self.particles) > 1:
            how = "ends" if lane.ends(node) else "reaches the limit"
            lane.verdict(node, "finished", reason=f"text {particle.number + 1} {how}")

    def lose(self, particle: Particle, checks: int) -> None:
        """Sets a particle's weight to 0, since no allowed token was drawn."""
        particle.log_weight = -math.inf
        self.lane.note(
            f"Text {particle.number + 1} is lost: {many(checks, 'token')} drawn after it, and none of them "
            "is allowed."
        )

    def weights(self) -> torch.Tensor:
        """Weights [N] of all texts, the largest 1."""
        logs = torch.tensor([p.log_weight for p in self.particles], dtype=torch.float64)
        return (logs - logs.max()).exp()

    def resample(self) -> None:
        """Resamples the particles by weight if the effective sample size is below half their number."""
        particles, lane = self.particles, self.lane
        if len(particles) == 1 or not any(p.alive for p in particles):
            return
        weights = self.weights()
        size = float(weights.sum() ** 2 / (weights**2).sum())
        if size >= len(particles) / 2 or not self.growing:
            return
        depth = max(lane.tree.depths[p.node] for p in particles)
        chosen = [
            particles[lane.chooser.categorical(weights, ("resample", depth, p.number)).value]
            for p in particles
        ]
        logs = torch.tensor([p.log_weight for p in particles], dtype=torch.float64)
        mean = float(logs.logsumexp(0)) - math.log(len(particles))
        self.judge({p.node for p in particles} - {p.node for p in chosen}, "its weight was too small to stay")
        self.particles = [
            Particle(number, other.node, mean, other.over) for number, other in enumerate(chosen)
        ]
        lane.note(
            f"The effective sample size is {size:.1f} of {len(particles)} texts: they are resampled, "
            f"which leaves {many(len({p.node for p in chosen}), 'text')}."
        )

    def judge(self, nodes: set[int], reason: str) -> None:
        """Prunes the texts that end at these nodes and are not a prefix of another one."""
        tree, lane = self.lane.tree, self.lane
        for node in sorted(nodes):
            kept = any(node in tree.path(p.node, above=lane.tip) for p in self.particles if p.node != node)
            if node != lane.tip and not kept:
                lane.verdict(node, "pruned", reason=reason)

    def commit_shared(self) -> None:
        """Commits the common prefix of all texts of non-zero weight."""
        lane = self.lane
        paths = [lane.tree.path(p.node, above=lane.tip) for p in self.particles if p.alive]
        shared = []
        for column in zip(*paths, strict=False):
            if len(set(column)) > 1:
                break
            shared.append(column[0])
        if shared:
            lane.commit(shared, [self.logprobs[node] for node in shared])

    def conclude(self) -> None:
        """Commits a text drawn by weight, and notes what checking cost."""
        lane, particles = self.lane, self.particles
        if not any(p.alive for p in particles):
            lane.ended_by = lane.ended_by or ALL_REJECTED
            chosen = max(particles, key=lambda p: lane.tree.depths[p.node])
        elif len(particles) == 1:
            (chosen,) = particles
        else:
            lane.ended_by = None  # other texts were lost, but this one is complete
            weights = self.weights()
            place = lane.chooser.categorical(weights, ("select", lane.tree.depths[lane.tip])).value
            chosen = particles[place]
            shares = (weights / weights.sum()).tolist()
            for rank, at in enumerate(sorted(range(len(shares)), key=lambda i: -shares[i]), 1):
                node, number = particles[at].node, particles[at].number + 1.0
                lane.record_rank(node, ScoreName.SHARE_OF_WEIGHT, shares[at], rank, text=number)
            self.particles = [chosen]
            self.judge({p.node for p in particles} - {chosen.node}, "another text was drawn by weight")
        path = lane.tree.path(chosen.node, above=lane.tip)
        if path:
            lane.commit(path, [self.logprobs[node] for node in path])
        if lane.constraint is not None:
            lane.note(
                f"{many(self.checks, 'check')} of the constraint for {many(self.tokens, 'token')}; masks "
                f"would have checked {lane.constraint.constraint.vocabulary * self.tokens:,}."
            )


def together(parameters: dict) -> str | None:
    """Refuses several texts at temperature 0, which would all be the same."""
    if parameters["temperature"] == 0.0 and parameters["population"] > 1:
        return "At temperature 0 all texts are the same; choose population 1, or a higher temperature."
    return None


@strategy(
    name="awrs",
    title="Adaptive weighted rejection sampling",
    family="sampling",
    parameters=(
        integer(
            "population",
            1,
            "Number of texts side by side (particles); one of them is drawn by weight.",
            low=1,
            high=64,
        ),
        choice("estimate", "automatic", "How a token's draws estimate the allowed mass Z.", ESTIMATES),
        integer("max_accepts", 2, "For geometric: number of allowed draws per token.", low=2, high=64),
        integer(
            "max_rejects",
            0,
            "Rejected draws per token after which the text is given up, which makes weights too low; 0: no "
            "limit.",
            low=0,
            high=100_000,
        ),
        *SHAPING,
        *ENDS,
    ),
    papers=("fast-controlled-generation-from-language-models-with",),
    together=together,
    view="draws",
    badge=lambda parameters: "sampled" if parameters["temperature"] else "deterministic",
    parts=lambda parameters: [
        PROCESSORS,
        Part("estimate", parameters["estimate"], ESTIMATES[parameters["estimate"]]),
    ],
)
def awrs(lane: Lane) -> Iterator[None]:
    """Draws a token, and draws again if the constraint forbids it: only what was drawn is ever checked.

    1. A token is drawn from the model's distribution `p`. A forbidden one is removed, and another is drawn
       from what is left. The first allowed one has the probability `p(x) / Z`, as under a mask; `Z` is the
       mass of all allowed tokens.
    2. A few more draws give an unbiased estimate of Z: one more token (recursive), or draws until
       `max_accepts` tokens were allowed (geometric).
    3. The weight of a text is the product of its estimates. A text that the constraint had to change a lot
       has a low weight.
    4. With several texts side by side (population), they are resampled by weight whenever the effective
       sample size `(sum w)^2 / sum w^2` falls below half their number, and the output is drawn by weight.
       With many texts it follows the model's distribution among allowed ones.

    The first draw is that of plain sampling, so with the same seed both write the same text until something
    is forbidden. At temperature 0 nothing is drawn: tokens are checked from the most likely on, and the first
    allowed one is taken. The forbidden mass at each position is recorded for the picture; the method itself
    checks the drawn tokens only. The first 32 rejected draws per token are recorded; all of them are counted.
    """
    population = Population(lane)
    while population.growing:
        population.step()
        if population.growing:
            yield
    population.conclude()
