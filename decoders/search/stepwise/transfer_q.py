"""Transfer Q*: continues each of a few next tokens with an already aligned model, and takes the token whose
whole text has the best reward.

Chakraborty et al. (2024), Transfer Q Star: Principled Decoding for LLM Alignment. The aligned model is
heads/scorers/aligned.py, rewards are scorers.py.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from decoders.lane import Lane
from decoders.logits.distributions import log_softmax, one_hot, probabilities
from decoders.parameters import choice, integer, real
from decoders.registry import strategy
from decoders.sampling.candidates import Candidate, likeliest
from decoders.search.stepwise import scorers
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

DIRECT, INDIRECT, CD, ARGS, CODE = "direct", "indirect", "cd", "args", "code"
CODE_TOKENS, CODE_SHARPNESS = 5, 0.5  # of the public code's rollouts and weights
FARTHEST = 4.0  # nats: end of the scale of the distance to the target
NO_MODEL = (
    "No aligned model comes with the project for the target {!r}: its own continuations are scored, which "
    "is controlled decoding (cd)."
)


@dataclass
class Rollout:
    """What was written after a candidate: nodes, the newest last, and whether the text ended with it."""

    number: int
    tip: int
    ended: bool
    nodes: list[int] = field(default_factory=list)


def value(rewards: list[float], baselines: list[float], beta: float, probabilities: list[float]) -> float:
    """Q, estimated from an aligned model's texts with these probabilities: E[w r] / E[w], w = exp((r - r_bl)
    / beta). A model that was aligned to the reward itself has r_bl = r, so that Q is the mean.
    """
    pairs = zip(rewards, baselines, probabilities, strict=True)
    weights = [probability * math.exp((r - b) / beta) for r, b, probability in pairs]
    return sum(w * r for w, r in zip(weights, rewards, strict=True)) / sum(weights)


def value_of_code(
    rewards: list[float],
    baselines: list[float],
    probabilities: list[float],
    sharpness: float = CODE_SHARPNESS,
) -> float:
    """The estimate of the public code: E[exp(sharpness (r - r_bl)) r], which is not normalised."""
    terms = zip(rewards, baselines, probabilities, strict=True)
    return sum(probability * math.exp(sharpness * (r - b)) * r for r, b, probability in terms)


def distance(probs: list[float], reference: list[float]) -> float:
    """KL(distribution || reference) in nats."""
    return sum(p * math.log(p / q) for p, q in zip(probs, reference, strict=True) if p > 0.0)


def softmax(totals: list[float]) -> list[float]:
    """Probabilities proportional to exp(total)."""
    return torch.tensor(totals, dtype=torch.float64).softmax(0).tolist()


def unusable(parameters: dict) -> str | None:
    """The message to show if the parameters do not fit together."""
    if parameters["variant"] == INDIRECT and (
        parameters["num_rollouts"] < 2 or parameters["rollout_temperature"] == 0.0
    ):
        return (
            "The variant indirect weighs several texts against each other; choose num_rollouts of at least 2 "
            "and a rollout_temperature above 0."
        )
    return scorers.unusable(parameters)


@strategy(
    name="transfer_q",
    title="Transfer Q*",
    family="search",
    parameters=(
        *scorers.SCORER,
        choice(
            "variant",
            DIRECT,
            "Whose continuations are scored: the aligned model's (direct; indirect corrects for its other "
            "reward; code as released), the target's own (cd), or none (args).",
            (DIRECT, INDIRECT, CD, ARGS, CODE),
        ),
        integer("candidates", 10, "How many of the most likely tokens are scored.", low=1, high=64),
        real("guidance", 4.0, "1 / alpha, the weight of the value; 0 is greedy.", low=0.0, high=1e3),
        integer("rollout_tokens", 16, "Tokens of a continuation; 0: to the end.", low=0, high=512),
        integer("num_rollouts", 1, "Continuations of each candidate.", low=1, high=16),
        real(
            "rollout_temperature", 1.0, "Temperature of the continuations; 0 is greedy.", low=0.0, high=100.0
        ),
        real("beta", 1.0, "For indirect: larger values reweight texts less.", low=0.01, high=100.0),
        real(
            "temperature",
            0.0,
            "0 takes the best; otherwise the token is drawn from the softmax of the totals.",
            low=0.0,
            high=100.0,
        ),
    ),
    together=unusable,
    suits=scorers.unscored,
    papers=("transfer-q-star",),
    view="branches",
    badge=lambda parameters: (
        "deterministic"
        if parameters["temperature"] == 0.0
        and (parameters["rollout_temperature"] == 0.0 or parameters["variant"] in (ARGS, CODE))
        else "sampled"
    ),
    parts=lambda parameters: [
        Part("expansion", "most likely tokens", "The few most likely tokens are candidates."),
        Part("rollout", "aligned model", "Continues each candidate as a model aligned to the reward would."),
        scorers.part(parameters),
    ],
)
def transfer_q(lane: Lane) -> Iterator[None]:
    """Scores each candidate token by the reward of an aligned model's continuations.

    1. The target's most likely tokens z are the candidates.
    2. After each the aligned model writes rollout_tokens tokens, within the limit of new tokens. With the
       reward r of the whole text, direct: `Q(z) = mean r`.
    3. Indirect, where the model was aligned to another reward r_bl: `Q(z) = Σ w r / Σ w` over its
       continuations, with `w = exp((r - r_bl) / beta)`.
    4. The token with the largest `log p(z) + guidance Q(z)` is taken; or one is drawn from the softmax of
       these totals.

    For comparison: cd lets the target itself continue (controlled decoding), args scores the bare prefix with
    z. The variant `code` follows the public code: five greedy tokens, `Q = mean exp((r - r_bl) / 2) r`; there
    the aligned model also names the candidates, here the target does. Even exact values do not give the
    aligned model's own distribution, which would need `alpha ln E[exp(r / alpha)]` over the target's texts.

    The aligned model that comes with the project, llama-tiny-aligned, is the target with a small network
    after its last layer, trained to prefer those of its own texts that contain the most friendly words. With
    this model the reward rises far above that of greedy decoding, but no higher than with cd.
    """
    search = Search(lane)
    while lane.more:
        search.advance()
        yield


class Search:
    """The candidates at each position in turn, and their continuations."""

    def __init__(self, lane: Lane):
        self.lane, self.given = lane, lane.parameters
        self.variant = self.given["variant"]
        self.aligned = lane.models["target"].heads.get("aligned")
        if self.aligned is None and self.variant in (DIRECT, INDIRECT, CODE):
            lane.note(NO_MODEL.format(lane.models["target"].name))
        self.scorer = scorers.Scorer(lane)
        self.baseline = self._baseline()
        self.longest = lane.tree.depths[lane.tip] + lane.left

    def _baseline(self) -> scorers.Scorer | None:
        """A scorer of the reward that the model was aligned to; None if the variant does not need it."""
        if self.variant not in (INDIRECT, CODE) or self.aligned is None:
            return None
        return scorers.Scorer(self.lane, self.given | self.aligned.settings["reward"])

    def advance(self) -> None:
        """Chooses one token."""
        lane = self.lane
        logprobs = lane.distribution([lane.tip], lane.score([lane.tip]))[0]  # [V]
        candidates = likeliest(lane, logprobs, self.given["candidates"])
        rollouts = self._look_ahead(candidates)
        values = [self._value(some) for some in rollouts]
        totals = [c.logprob + self.given["guidance"] * q for c, q in zip(candidates, values, strict=True)]
        at = self._choose(totals)
        self._record(candidates, values, totals)
        dead = [node for some in rollouts for rollout in some for node in rollout.nodes]
        for node in dead:
            lane.verdict(node, "pruned", reason="only written to score the candidate before it")
        lane.drop(dead)
        self._take(candidates, values, at)
        self._record_per_token(candidates, totals, at)

    # ---- looking ahead -----------------------------------------------------------------------
    def _look_ahead(self, candidates: list[Candidate]) -> list[list[Rollout]]:
        """The continuations of each candidate, side by side."""
        count = 1 if self.variant in (ARGS, CODE) else self.given["num_rollouts"]
        rollouts = [
            [Rollout(at * count + i, c.node, self._ended(c.node)) for i in range(count)]
            for at, c in enumerate(candidates)
        ]
        if self.variant == ARGS:
            return rollouts
        max_tokens = CODE_TOKENS if self.variant == CODE else self.given["rollout_tokens"] or self.longest
        everyone = [rollout for some in rollouts for rollout in some]
        for _ in range(max_tokens):
            running = [rollout for rollout in everyone if not rollout.ended]
            if not running:
                break
            self._write(running)
        return rollouts

    def _write(self, running: list[Rollout]) -> None:
        """Appends a token to each of these, all in one forward."""
        tips = list(dict.fromkeys(rollout.tip for rollout in running))
        rows = self._rows(tips)
        logprobs, probs = log_softmax(rows), self._rollout_probs(rows)
        for rollout in running:
            at = tips.index(rollout.tip)
            token = self._draw(probs[at], rollout)
            logprob = float(logprobs[at, token])
            rollout.tip = self.lane.propose(rollout.tip, token, logprob, "lookahead", slot=rollout.number)
            rollout.nodes.append(rollout.tip)
            rollout.ended = self._ended(rollout.tip)

    def _rows(self, tips: list[int]) -> torch.Tensor:
        """Logits [N, V] after nodes: the aligned model's, or the target's own."""
        lane, aligned = self.lane, self.aligned if self.variant != CD else None
        logits = lane.score(tips, "lookahead", hidden=aligned is not None)
        if aligned is None:
            return logits
        return aligned.rows([lane.scorers["target"].hidden(node) for node in tips])

    def _rollout_probs(self, rows: torch.Tensor) -> torch.Tensor:
        """The distributions [N, V] that continuations are drawn from, of logits [N, V]."""
        temperature = 0.0 if self.variant == CODE else self.given["rollout_temperature"]
        return probabilities(rows / temperature) if temperature else one_hot(rows)

    def _draw(self, probs: torch.Tensor, rollout: Rollout) -> int:
        """A token of a distribution [V]; where only one is possible, nothing is drawn."""
        place = self.lane.tree.depths[rollout.tip] + 1
        return self.lane.chooser.categorical(
            probs, ("rollout", place, rollout.number, self.lane.written)
        ).value

    def _ended(self, node: int) -> bool:
        """Whether a text ends with this node."""
        tree = self.lane.tree
        return tree.tokens[node] in self.lane.eos or tree.depths[node] >= self.longest

    # ---- weighing ----------------------------------------------------------------------------
    def _value(self, some: list[Rollout]) -> float:
        """Q of one candidate from its continuations, which have equal weights since they were drawn."""
        probabilities = [1 / len(some)] * len(some)
        rewards = [self.scorer.score(rollout.tip, rollout.ended) for rollout in some]
        if self.baseline is None:
            return value(rewards, rewards, 1.0, probabilities)
        baselines = [self.baseline.score(rollout.tip, rollout.ended) for rollout in some]
        if self.variant == CODE:
            return value_of_code(rewards, baselines, probabilities)
        return value(rewards, baselines, self.given["beta"], probabilities)

    def _choose(self, totals: list[float]) -> int:
        """The index of the best total (ties go to the more likely candidate), or of one that is drawn."""
        if self.given["temperature"] == 0.0:
            return max(range(len(totals)), key=lambda at: totals[at])
        probs = torch.tensor(softmax([t / self.given["temperature"] for t in totals]), dtype=torch.float64)
        return self.lane.chooser.categorical(probs, ("select", self.lane.written)).value

    # ---- recording ---------------------------------------------------------------------------
    def _record(self, candidates: list[Candidate], values: list[float], totals: list[float]) -> None:
        """Records every candidate's total, and its parts."""
        order = sorted(range(len(totals)), key=lambda at: -totals[at])
        for at, (c, q, total) in enumerate(zip(candidates, values, totals, strict=True)):
            self.lane.record_rank(
                c.node, ScoreName.TOTAL, total, order.index(at) + 1, logprob=c.logprob, value=q
            )

    def _take(self, candidates: list[Candidate], values: list[float], at: int) -> None:
        """Commits one candidate; the others are pruned."""
        lane, others = self.lane, [c for i, c in enumerate(candidates) if i != at]
        for c in others:
            q = values[candidates.index(c)]
            lane.verdict(c.node, "pruned", reason=f"log p {c.logprob:.2f}, value {q:.2f}".replace("-", "−"))
        lane.drop([c.node for c in others])
        lane.commit([candidates[at].node], [candidates[at].logprob])

    def _record_per_token(self, candidates: list[Candidate], totals: list[float], at: int) -> None:
        """Records the reward of the text so far, and the KL of the distribution of the totals from the
        target's.
        """
        node = candidates[at].node
        so_far = self.scorer.score(node, whole=not self.lane.more)
        far = distance(softmax(totals), softmax([c.logprob for c in candidates]))
        self.lane.record_measure(node, ScoreName.REWARD_SO_FAR, so_far, scale=1.0)
        self.lane.record_measure(node, ScoreName.NATS_FROM_TARGET, far, scale=FARTHEST)
