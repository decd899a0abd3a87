"""phi-Decoding: samples steps, looks ahead from each, and samples the beams among them by these look-aheads.

Xu et al. (2025), phi-Decoding: Adaptive Foresight Sampling for Balanced Inference-Time Exploration and
Exploitation. The arithmetic is in lookahead_weights.py.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from decoders.lane import Lane
from decoders.logits.distributions import log_softmax, probabilities
from decoders.parameters import choice, integer, real
from decoders.registry import strategy
from decoders.search.stepwise import lookahead_weights as foresight
from decoders.search.stepwise.lookahead_weights import mean
from decoders.search.stepwise.step_boundaries import ENDS, shared, step_ends
from decoders.strategy import Part
from decoders.trace.number_format import many, were
from decoders.trace.scores import ScoreName


@dataclass(eq=False)
class Beam:
    """A live text: its newest node, whether it has ended, and the mean log-probability of the last foresight
    after it (0 before the first).
    """

    node: int
    ended: bool = False
    seen: float = 0.0


@dataclass(eq=False)
class Candidate:
    """A next step of a beam, and the foresight after it. `logprobs` are the target's, of the step's own
    tokens, `ahead` of the foresight's.
    """

    number: int
    beam: Beam
    node: int  # newest node of the step
    tip: int  # newest node of the foresight
    ended: bool
    logprobs: list[float] = field(default_factory=list)
    ahead: list[float] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Mean log-probability of the step; of a beam that has ended, that of its last foresight."""
        return mean(self.logprobs) if self.logprobs else self.beam.seen

    @property
    def foresight(self) -> float:
        """F, the mean log-probability of the foresight; a step that ends the text is its own foresight."""
        return mean(self.ahead) if self.ahead else self.score

    @property
    def advantage(self) -> float:
        """A: by how much the foresight is more likely than the last one of the beam."""
        return self.foresight - self.beam.seen


@strategy(
    name="phi_decoding",
    title="phi-Decoding",
    family="search",
    parameters=(
        integer("num_beams", 4, "Texts that continue after each step.", low=1, high=16),
        integer("num_rollouts", 4, "Next steps sampled for each text.", low=1, high=16),
        choice("step", "sentence", "What ends a step (the paper: a line).", ENDS),
        integer("max_steps", 8, "Maximum number of steps with foresight.", low=1, high=64),
        integer("min_steps", 2, "Minimum number of steps with foresight.", low=1, high=64),
        integer("foresight_tokens", 0, "Tokens of a foresight; 0: to the end of the text.", low=0),
        integer("clusters", 3, "Maximum number of clusters of similar foresights.", low=1, high=16),
        real(
            "delta",
            0.7,
            "Foresight stops once a cluster has this share of the foresights.",
            low=0.0,
            high=1.0,
        ),
        real(
            "sigma", 1.0, "Standard deviations below the mean at which a step is pruned.", low=0.0, high=10.0
        ),
        real("temperature", 0.6, "Temperature of steps; 0 is greedy.", low=0.0, high=100.0),
        real(
            "foresight_temperature",
            1.0,
            "Temperature of foresights and of the texts' ends; 0 is greedy.",
            low=0.0,
            high=100.0,
        ),
        real("tau_1", 0.6, "Temperature of the advantages.", low=0.01, high=10.0),
        real("tau_2", 0.6, "Temperature of the clusters' shares.", low=0.01, high=10.0),
        real("tau", 0.6, "Temperature of the draw.", low=0.01, high=10.0),
        choice(
            "form",
            "paper",
            "The paper's formula, or that of its code, which drops candidates without an advantage before "
            "clustering.",
            ("paper", "code"),
        ),
    ),
    papers=("phi-decoding",),
    view="foresight",
    badge=lambda parameters: "sampled",
    together=lambda parameters: (
        f"min_steps is {parameters['min_steps']}, but max_steps only {parameters['max_steps']}; "
        "choose a min_steps of at most max_steps."
        if parameters["min_steps"] > parameters["max_steps"]
        else None
    ),
    parts=lambda parameters: [
        Part(
            "expansion",
            "sampled steps",
            f"Each beam is continued in several ways, to the end of a {parameters['step']}.",
        ),
        Part(
            "value",
            "foresight",
            "How much more probable the look-ahead text became, and how many others agree with it.",
        ),
        Part("frontier", "drawn beams", "The beams that continue are drawn without replacement."),
        Part("stopper", "agreement", "The look-ahead stops once most foresights agree."),
    ],
)
def phi_decoding(lane: Lane) -> Iterator[None]:
    """Looks ahead before each step: continues with the steps whose rollouts are most probable and agree most.

    1. From each of num_beams texts num_rollouts next steps are sampled. The score of a step is its mean
       log-probability; steps more than sigma standard deviations below the mean of all are pruned, but at
       least num_beams stay.
    2. After each remaining step one foresight (look-ahead text) is sampled. Its mean log-probability F, minus
       that of the beam's last foresight, is the advantage `A`. The foresights are clustered by their words,
       and `C` is the share of all foresights that are in the cluster of this one.
    3. `R = softmax(A / tau_1) + softmax(C / tau_2)`; num_beams of the steps are drawn without replacement
       with weights `exp(R / tau)`. Foresights are discarded.
    4. After min_steps, once a cluster has the share delta or all drawn steps are the same, or after
       max_steps, the beams are sampled to their ends, and one is drawn by the same rule.

    Steps are drawn at temperature 0.6, foresights and the ends of texts at 1, as in the released code, which
    uses its library's default temperature for these. A step that ends the text has no foresight: its own mean
    is used as F. The form "code" follows the released code: candidates without an advantage are dropped
    before the clusters, `softmax(A / 0.1)` and `softmax(C)` are averaged, and the last draw is made within
    the larger of two clusters.
    """
    search = Search(lane)
    while lane.more and search.looks:
        search.advance()
        yield
    search.conclude()


class Search:
    """The beams of one lane, and the operations of one step."""

    def __init__(self, lane: Lane):
        self.lane, self.given = lane, lane.parameters
        self.width = lane.parameters["num_beams"]
        self.taus = tuple(self.given[name] for name in ("tau_1", "tau_2", "tau"))
        self.beams = [Beam(lane.tip) for _ in range(self.width)]
        self.longest = lane.tree.depths[lane.tip] + lane.left
        self.alive: dict[int, float] = {}  # node neither committed nor dead -> the target's log-probability
        self.steps = self.step_tokens = self.foresight_tokens = 0
        self.looks = True  # whether steps are still scored by lookahead

    def advance(self) -> None:
        """Takes one step with all beams."""
        self.steps += 1
        candidates = self._sample()
        kept = self._prune(candidates)
        self._look_ahead(kept)
        advantages = [c.advantage for c in kept]
        labels, probs = self._weigh(kept, advantages)
        drawn = self._draw(probs, self.width, "select")
        self._record(kept, advantages, labels, probs, drawn)
        self._settle(candidates, kept, [kept[i] for i in drawn])
        self._stop([label for label in labels if label is not None], [kept[i] for i in drawn])

    # ---- sampling ----------------------------------------------------------------------------
    def _sample(self) -> list[Candidate]:
        """The next steps of all beams, side by side; a beam that has ended is its own candidate."""
        candidates: list[Candidate] = []
        for beam in self.beams:
            for _ in range(1 if beam.ended else self.given["num_rollouts"]):
                candidates.append(Candidate(len(candidates), beam, beam.node, beam.node, beam.ended))
        running = [c for c in candidates if not c.ended]
        while running:
            ended = self._write(running, "decode", "sample", self.given["temperature"])
            for c in running:
                c.node, c.ended = c.tip, c in ended
            running = [c for c in running if not c.ended and not self._step_ends(c)]
        self.step_tokens += sum(len(c.logprobs) for c in candidates)
        return candidates

    def _look_ahead(self, kept: list[Candidate]) -> None:
        """One foresight after each candidate, to the end of the text or foresight_tokens."""
        max_tokens = self.given["foresight_tokens"] or self.longest
        running = [c for c in kept if not c.ended]
        while running:
            ended = self._write(running, "lookahead", "rollout", self.given["foresight_temperature"])
            running = [c for c in running if c not in ended and len(c.ahead) < max_tokens]
        self.foresight_tokens += sum(len(c.ahead) for c in kept)

    def _write(self, running: list[Candidate], kind: str, stream: str, temperature: float) -> list[Candidate]:
        """Appends a token to each candidate, all in one forward; returns those whose text ends with it."""
        lane, ended = self.lane, []
        tips = list(dict.fromkeys(c.tip for c in running))
        logits = lane.score(tips, kind)  # [N, V]
        logprobs = log_softmax(logits) if stream == "rollout" else lane.distribution(tips, logits)
        rows = dict(zip(tips, zip(logprobs, logits / (temperature or 1.0), strict=True), strict=True))
        for c in running:
            offered, scores = rows[c.tip]
            token = self._choose(scores, c, stream) if temperature else int(scores.argmax())
            logprob = float(offered[token])
            source = "lookahead" if stream == "rollout" else "target"
            c.tip = lane.propose(c.tip, token, logprob, source, slot=c.number)
            self.alive[c.tip] = logprob
            (c.ahead if stream == "rollout" else c.logprobs).append(logprob)
            if token in lane.eos or lane.tree.depths[c.tip] >= self.longest:
                ended.append(c)
        return ended

    def _choose(self, scores: torch.Tensor, c: Candidate, stream: str) -> int:
        """A token drawn by scores [V]. A lone candidate draws as plain sampling does."""
        alone = stream == "sample" and self.width * self.given["num_rollouts"] == 1
        tag = (stream, self.lane.tree.depths[c.tip] + 1, *([] if alone else [c.number, self.steps]))
        return self.lane.chooser.categorical(probabilities(scores[None])[0], tag).value

    def _step_ends(self, c: Candidate) -> bool:
        return step_ends(self.lane, self.lane.tree.path(c.node, above=c.beam.node), self.given["step"])

    # ---- choosing ----------------------------------------------------------------------------
    def _prune(self, candidates: list[Candidate]) -> list[Candidate]:
        """Width pruning; where it leaves too few, some of the pruned are drawn back."""
        scores = [c.score for c in candidates]
        min_score = foresight.lowest_kept(scores, self.given["sigma"])
        kept = [c for c in candidates if c.score >= min_score]
        pruned = [c for c in candidates if c.score < min_score]
        if len(kept) < self.width:
            probs = foresight.softmax([c.score for c in pruned], foresight.SHARP)
            kept += [pruned[i] for i in self._draw(probs, self.width - len(kept), "keep")]
        for c in (c for c in candidates if c not in kept):
            self.lane.record_rank(c.node, ScoreName.STEP, c.score)
            self._drop(c, f"the step's mean log p is {c.score:.2f}, below {min_score:.2f}")
        return sorted(kept, key=lambda c: c.number)

    def _weigh(self, kept: list[Candidate], advantages: list[float]) -> tuple[list[int | None], list[float]]:
        """(cluster of each candidate, None where it was not clustered; probability that each is drawn)."""
        among = list(range(len(kept)))
        if self.given["form"] == "code":
            among = [i for i in among if advantages[i] > 0 and kept[i].ahead]
            if len(among) < self.width:
                return [None] * len(kept), foresight.softmax(advantages, foresight.SHARP)
        clusters = foresight.clusters([self._ahead(kept[i]) for i in among], self.given["clusters"])
        alike, gains = foresight.shares(clusters), [advantages[i] for i in among]
        if self.given["form"] == "code":
            probs = foresight.probabilities_of_code(gains, alike)
        else:
            probs = foresight.probabilities(gains, alike, *self.taus)
        labels: list[int | None] = [None] * len(kept)
        probabilities = [0.0] * len(kept)
        for i, label, probability in zip(among, clusters, probs, strict=True):
            labels[i], probabilities[i] = label, probability
        return labels, probabilities

    def _ahead(self, c: Candidate) -> list[int]:
        """The tokens of a foresight, or of the step itself if it ends the text."""
        return self._tokens(c.tip, c.node if c.ahead else c.beam.node)

    def _draw(self, probs: list[float], count: int, purpose: str) -> list[int]:
        """Indices of `count` candidates, drawn one after another without replacement."""
        left, drawn = torch.tensor(probs, dtype=torch.float64), []
        for place in range(count):
            if not left.any():  # all others have probability 0: the first of them
                drawn += [i for i in range(len(probs)) if i not in drawn][: count - place]
                break
            drawn.append(self.lane.chooser.categorical(left, (purpose, self.steps, place)).value)
            left[drawn[-1]] = 0.0
        return drawn

    def _record(self, kept, advantages, labels, probs, drawn: list[int]) -> None:
        """Records the numbers of each candidate; those drawn are ranked by their probability."""
        clustered = [label for label in labels if label is not None]
        order = sorted(drawn, key=lambda i: (-probs[i], i))
        for i, c in enumerate(kept):
            parts = {"step": c.score, "foresight": c.foresight, "advantage": advantages[i]}
            level = number = None
            if labels[i] is not None:
                parts["share"] = clustered.count(labels[i]) / len(clustered)
                number = labels[i] + 1
                level = f"cluster {number}"
            rank = order.index(i) + 1 if i in order else None
            self.lane.record_rank(c.node, ScoreName.FORESIGHT, probs[i], rank, level, number=number, **parts)

    # ---- what becomes of them ----------------------------------------------------------------
    def _settle(self, candidates: list[Candidate], kept: list[Candidate], drawn: list[Candidate]) -> None:
        """Continues the drawn candidates as beams, prunes all others, and commits what the beams share."""
        lane, needed = self.lane, set()
        for c in drawn:
            needed.update(lane.tree.path(c.node, above=lane.tip))
        for c in kept:
            self._drop_nodes(lane.tree.path(c.tip, above=c.node), "a foresight, used only to score its step")
        for c in (c for c in kept if c not in drawn and c.node not in needed):
            self._drop(c, f"not drawn: advantage {c.advantage:.2f}")
        self._drop_nodes([n for n in self.alive if n not in needed], "no step that follows it was drawn")
        self.beams = [Beam(c.node, c.ended, c.foresight) for c in drawn]
        self._commit(shared([lane.tree.path(beam.node, above=lane.tip) for beam in self.beams]))

    def _stop(self, labels: list[int], drawn: list[Candidate]) -> None:
        """Stops looking ahead once the foresights agree enough or a limit is reached; notes how far it is."""
        largest = max(foresight.shares(labels), default=0.0)
        steps = {tuple(self._tokens(c.node, c.beam.node)) for c in drawn}
        agreed = largest >= self.given["delta"] or (len(steps) == 1 and self.width > 1)
        if all(beam.ended for beam in self.beams):
            why = "all texts have ended"
        elif self.steps >= self.given["min_steps"] and agreed:
            why = "the foresights agree" if largest >= self.given["delta"] else "all steps drawn are the same"
        elif self.steps >= self.given["max_steps"]:
            why = f"{were(self.steps, 'step')} taken"
        else:
            why = ""
        self.looks = not why
        self.lane.note(
            f"The largest cluster holds {largest:.2f} of the foresights; so far "
            f"{many(self.step_tokens, 'token')} in steps, {self.foresight_tokens:,} in foresights."
            + (f" No beam looks ahead any more: {why}." if why else "")
        )

    def conclude(self) -> None:
        """Samples the beams to their ends and draws one of them."""
        if not self.lane.more:
            return
        ends = [Candidate(i, beam, beam.node, beam.node, beam.ended) for i, beam in enumerate(self.beams)]
        self.steps += 1
        running = [c for c in ends if not c.ended]
        while running:
            ended = self._write(running, "decode", "sample", self.given["foresight_temperature"])
            running = [c for c in running if c not in ended]
        for c in ends:
            c.node, c.ahead = c.tip, list(c.logprobs)
            self.lane.verdict(c.node, "finished", reason=f"beam {c.number + 1} is complete")
        advantages = [c.advantage for c in ends]
        labels, probs = self._last_weights(ends, advantages)
        drawn = self._draw(probs, 1, "select")
        self._record(ends, advantages, labels, probs, drawn)
        path = self.lane.tree.path(ends[drawn[0]].node, above=self.lane.tip)
        self._drop_nodes([n for n in self.alive if n not in path], "another text was drawn")
        self._commit(path)

    def _last_weights(self, ends: list[Candidate], gains: list[float]) -> tuple[list[int], list[float]]:
        """As `_weigh`, for whole texts; the paper's code draws within the larger of two clusters."""
        texts = [self._tokens(c.node, c.beam.node) for c in ends]
        if self.given["form"] == "paper":
            labels = foresight.clusters(texts, self.given["clusters"])
            return labels, foresight.probabilities(gains, foresight.shares(labels), *self.taus)
        labels = foresight.clusters(texts, 2)
        large = max(sorted(set(labels)), key=labels.count)
        inside = [-math.inf if label != large else a for a, label in zip(gains, labels, strict=True)]
        return labels, foresight.softmax(inside, foresight.SHARP)

    def _tokens(self, node: int, above: int) -> list[int]:
        return [self.lane.tree.tokens[n] for n in self.lane.tree.path(node, above=above)]

    def _commit(self, nodes: list[int]) -> None:
        if nodes:
            self.lane.commit(nodes, [self.alive.pop(n) for n in nodes])

    def _drop(self, c: Candidate, reason: str) -> None:
        self._drop_nodes(self.lane.tree.path(c.node, above=c.beam.node), reason)

    def _drop_nodes(self, nodes: list[int], reason: str) -> None:
        """Prunes nodes that lead nowhere, and frees their slots."""
        dead = [n for n in nodes if n in self.alive]
        for node in dead:
            self.lane.verdict(node, "pruned", reason=reason)
            del self.alive[node]
        self.lane.drop(dead)
