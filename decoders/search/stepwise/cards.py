"""Cascade reward sampling: samples a text in segments that end where the model is uncertain; a segment with
too low a reward is sampled again.

Li et al. (2024), Cascade Reward Sampling for Efficient Decoding-Time Alignment, section 4.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from decoders.lane import Lane
from decoders.logits.distributions import entropies
from decoders.parameters import integer, real
from decoders.registry import strategy
from decoders.sampling.next_token import NOTHING_LEFT, pick
from decoders.sampling.sampling_parameters import PROCESSORS, SHAPING
from decoders.search.stepwise import scorers
from decoders.strategy import Part
from decoders.trace.scores import ScoreName


@dataclass
class Segment:
    """A piece of text: its nodes below the lane's tip, the target's log-probabilities, its reward."""

    nodes: list[int]
    logprobs: list[float]
    reward: float = -math.inf


def threshold(start: float, target: float, written: int, max_tokens: int) -> float:
    """tau(t): from `start` with nothing written to `target` with all `max_tokens` tokens (section 4.3)."""
    return min(target, start + written * (target - start) / max_tokens)


def acceptance(reward: float, tau: float, temperature: float) -> float:
    """min(1, exp((r - tau) / beta)); at beta 0 the reward must reach tau (equation 7)."""
    if reward >= tau:
        return 1.0
    return math.exp((reward - tau) / temperature) if temperature else 0.0


def unusable(parameters: dict) -> str | None:
    """The message to show if the segments' lengths or the scorer cannot be used."""
    shortest, longest = parameters["min_segment"], parameters["max_segment"]
    if shortest > longest:
        return f"min_segment is {shortest}, but max_segment only {longest}; make it at most that."
    return scorers.unusable(parameters)


@strategy(
    name="cards",
    title="Cascade reward sampling",
    family="search",
    parameters=(
        *scorers.SCORER,
        real(
            "entropy_threshold",
            3.0,
            "A segment ends before a token whose entropy, in nats, is at least this.",
            low=0.0,
            high=100.0,
        ),
        real(
            "target_reward", 0.8, "The reward that the whole text should have, 0 to 1.", low=-100.0, high=1.0
        ),
        real("alpha", 0.5, "Share of target_reward in the first threshold.", low=0.0, high=1.0),
        real(
            "acceptance_temperature",
            0.2,
            "Larger values accept rewards below the threshold more often; 0: never.",
            low=0.0,
            high=100.0,
        ),
        integer("min_segment", 4, "Minimum number of tokens in a segment.", low=1, high=512),
        integer("max_segment", 64, "Maximum number of tokens in a segment.", low=1, high=512),
        integer(
            "max_rejections",
            20,
            "After this many rejections the best rejected segment is taken.",
            low=0,
            high=1000,
        ),
        *SHAPING,
    ),
    together=unusable,
    suits=scorers.unscored,
    papers=("cascade-reward-sampling-for-efficient-decoding-time",),
    view="segments",
    badge=lambda parameters: "sampled" if parameters["temperature"] else "deterministic",
    parts=lambda parameters: [
        PROCESSORS,
        Part("expansion", "segment", "Tokens are drawn until the model is uncertain about the next one."),
        scorers.part(parameters),
        Part(
            "verifier",
            "rising threshold",
            "A segment is accepted with probability min(1, exp((r - threshold) / beta)), else redrawn.",
        ),
    ],
)
def cards(lane: Lane) -> Iterator[None]:
    """Samples a text segment by segment; a reward accepts each segment or has it drawn again.

    r0 = (1 - alpha) r(prompt) + alpha r*, with r* the target_reward and n the maximum number of new tokens.

    1. A segment is drawn token by token. It ends before a token at which the target's own distribution has
       entropy_threshold or more, but not before min_segment tokens; after max_segment tokens; or with the
       text.
    2. r is the reward of the text with the segment, and tau = min(r*, r0 + t (r* - r0) / n) is the threshold
       for its length of t tokens. The segment is accepted with probability min(1, exp((r - tau) / beta)).
    3. Otherwise the segment is discarded and drawn again from the same position. After max_rejections the
       best of the segments discarded there is taken.

    Rewards run from 0 to 1 here, so beta, the acceptance_temperature, is smaller by default than the paper's
    0.7. The first draw of each segment is the same as in plain sampling with the same seed. At temperature 0
    every draw of a segment is the same, so the first is taken whatever its reward.
    """
    scorer, parameters = scorers.Scorer(lane), lane.parameters
    wanted, max_tokens = parameters["target_reward"], lane.left
    start = (1 - parameters["alpha"]) * scorer.score(lane.tip, whole=False) + parameters["alpha"] * wanted
    offers: dict[int, torch.Tensor] = {}
    while lane.more:
        taken = best = None
        for attempt in range(1 + parameters["max_rejections"] if parameters["temperature"] else 1):
            segment = yield from write(lane, attempt, offers)
            if not segment.nodes:
                lane.ended_by = NOTHING_LEFT
                return
            last = segment.nodes[-1]
            ended = lane.tree.tokens[last] in lane.eos or len(segment.nodes) == lane.left
            segment.reward = scorer.score(last, whole=ended)
            tau = threshold(start, wanted, lane.written + len(segment.nodes), max_tokens)
            if judge(lane, segment, tau, attempt):
                taken = segment
                break
            best = better(lane, best, segment)
            yield
        if best and taken:
            lane.drop(best.nodes)
        if taken is None:
            taken = best
            why = f"the best of {attempt + 1} that were rejected" if attempt else "nothing else can be drawn"
            for node in taken.nodes:
                lane.verdict(node, "accepted", reason=f"{why}, reward {taken.reward:.3f}")
        lane.commit(taken.nodes, taken.logprobs)
        offers = {lane.tip: offers[lane.tip]} if lane.tip in offers else {}
        yield


def write(lane: Lane, attempt: int, offers: dict[int, torch.Tensor]) -> Iterator[None]:
    """Draws one segment below the lane's tip, one step per token but the last, and returns it: without nodes
    if the processors leave no token.

    offers: node -> the target's log-probabilities [V] after it, for what was scored since the last commit.
    """
    parameters, segment, node = lane.parameters, Segment([], []), lane.tip
    while True:
        logits = lane.score([node])
        if node not in offers:
            offers[node] = lane.distribution([node], logits)[0]
        entropy = float(entropies(offers[node]))
        if len(segment.nodes) >= parameters["min_segment"] and entropy >= parameters["entropy_threshold"]:
            return segment
        scores = lane.process(logits, [node])
        if not scores.isfinite().any():
            return segment
        token = pick(lane, scores[0], tag(lane, node, attempt))
        logprob = float(offers[node][token])
        node = lane.propose(node, token, logprob, slot=attempt)
        segment.nodes.append(node)
        segment.logprobs.append(logprob)
        written = len(segment.nodes)
        if token in lane.eos or written in (parameters["max_segment"], lane.left):
            return segment
        yield


def tag(lane: Lane, node: int, attempt: int) -> tuple:
    """The tag of the draw below `node`: that of plain sampling for the first draw at this depth. Later draws
    need others, since the first was rejected for its reward.
    """
    depth = lane.tree.depths[node] + 1
    first = attempt == 0 and depth > max(lane.tree.depths)
    return ("sample", depth) if first else ("sample", depth, lane.written, attempt)


def judge(lane: Lane, segment: Segment, tau: float, attempt: int) -> bool:
    """Whether the segment is accepted; records its reward, the threshold and the draw."""
    last, reward = segment.nodes[-1], segment.reward
    probability = acceptance(reward, tau, lane.parameters["acceptance_temperature"])
    accepted, u = lane.chooser.bernoulli(probability, ("segment", lane.written, attempt))
    drawn = {} if u is None else {"u": u}
    lane.record_rank(last, ScoreName.REWARD, reward, threshold=tau, accepted_with=probability, **drawn)
    why = (
        f"attempt {attempt + 1}: reward {reward:.3f}, threshold {tau:.3f}, accepted with p {probability:.3f}"
    )
    for node in segment.nodes:
        lane.verdict(node, "accepted" if accepted else "rejected", u=u, reason=why)
    return bool(accepted)


def better(lane: Lane, best: Segment | None, segment: Segment) -> Segment:
    """The one with the higher reward, on a tie the earlier; the other's slots are freed."""
    if best is not None and segment.reward <= best.reward:
        lane.drop(segment.nodes)
        return best
    if best is not None:
        lane.drop(best.nodes)
    return segment
