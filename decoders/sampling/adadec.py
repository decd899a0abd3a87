"""AdaDec: greedy while the model is confident; elsewhere the top candidates are reranked after a look-ahead.

Towards Better Code Generation: Adaptive Decoding with Uncertainty Guidance (2025), with the greedy look-ahead
of the authors' code. The entropy threshold is learned for each model: see the experiment entropy-threshold.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from decoders.constraints.settings import CONSTRAINT
from decoders.lane import Lane
from decoders.logits.distributions import entropies, log_softmax
from decoders.parameters import integer, real
from decoders.registry import strategy
from decoders.sampling.candidates import Candidate, Parts, likeliest, take_best
from decoders.sampling.next_token import processed
from decoders.sampling.sampling_parameters import MODEL_DEFAULTS
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

AT_ONCE, AHEAD = "at once", "looked ahead"


@dataclass
class Branch:
    """The greedy continuation of a candidate."""

    tip: int
    nodes: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


@strategy(
    name="adadec",
    title="AdaDec",
    family="sampling",
    papers=("towards-better-code-generation",),
    parameters=(
        real("tau", 1.0, "Entropy in nats at which the method pauses and looks ahead.", low=0.0, high=20.0),
        integer("candidates", 3, "Candidate tokens that are tried at a pause.", low=1, high=32),
        integer("lookahead", 5, "Tokens of look-ahead after each candidate; 0 is greedy.", low=0, high=64),
        MODEL_DEFAULTS,
        *CONSTRAINT,
    ),
    view="threshold",
    badge=lambda parameters: "deterministic" if parameters["lookahead"] else "equal to generate",
    parts=lambda parameters: [
        Part("trigger", "entropy", "Starts the look-ahead where the model is uncertain."),
        Part(
            "value", "mean look-ahead", "The mean log-probability of a candidate and its greedy continuation."
        ),
    ],
)
def adadec(lane: Lane) -> Iterator[None]:
    """Greedy where the model is confident; elsewhere it looks ahead and takes the best continuation.

    1. The entropy of the distribution is `H = -Σ p ln p`, in nats. Below tau the most likely token is taken
       at once.
    2. Otherwise each of the `candidates` most likely tokens is continued greedily by up to `lookahead`
       tokens, or to the end of the text, with one forward per step for all of them.
    3. The best `x = argmax_v (log p(v) + Σ log p(ahead)) / (1 + tokens ahead)` is taken. The continuations
       are then discarded; the text need not follow them.
    """
    tau, count = lane.parameters["tau"], lane.parameters["candidates"]
    while lane.more:
        logits = lane.score([lane.tip])
        target = lane.distribution([lane.tip], logits)[0]  # [V]
        left = processed(lane, logits, target)
        if left is None:
            return
        entropy = float(entropies(left[1]))
        pauses = entropy >= tau
        candidates = likeliest(lane, left[1], count if pauses else 1, target)
        if pauses:
            taken = reranked(lane, candidates).node
        else:
            taken = candidates[0].node
            lane.commit([taken], [candidates[0].target])
        lane.record_measure(taken, ScoreName.ENTROPY, entropy, level=AHEAD if pauses else AT_ONCE, limit=tau)
        yield


def reranked(lane: Lane, candidates: list[Candidate]) -> Candidate:
    """Looks ahead from all candidates and commits the one with the best mean log-probability."""
    branches = look_ahead(lane, candidates)
    scores = []
    for candidate, branch in zip(candidates, branches, strict=True):
        ahead, count = sum(branch.logprobs), len(branch.logprobs)
        parts = {"logprob": candidate.logprob, "ahead": ahead, "tokens": count}
        scores.append(((candidate.logprob + ahead) / (count + 1), parts))
    dead = [node for branch in branches for node in branch.nodes]
    for node in dead:
        lane.verdict(node, "pruned", reason="only explored, to score the candidate before it")
    lane.drop(dead)
    return take_best(lane, ScoreName.LOOKAHEAD, candidates, scores, because)


def look_ahead(lane: Lane, candidates: list[Candidate]) -> list[Branch]:
    """Continues all candidates greedily, one token of each per forward, within the model's context."""
    branches = [Branch(candidate.node) for candidate in candidates]
    room = lane.models["target"].context - 1 - lane.tree.depths[lane.tip]
    for _ in range(min(lane.parameters["lookahead"], room)):
        growing = [branch for branch in branches if lane.tree.tokens[branch.tip] not in lane.eos]
        if not growing:
            break
        tips = [branch.tip for branch in growing]
        rows = log_softmax(lane.process(lane.score(tips, "lookahead"), tips))  # [N, V]
        for branch, row in zip(growing, rows, strict=True):
            token = int(row.argmax())
            branch.logprobs.append(float(row[token]))
            branch.tip = lane.propose(branch.tip, token, branch.logprobs[-1], source="lookahead")
            branch.nodes.append(branch.tip)
    return branches


def because(rank: int, count: int, parts: Parts) -> str:
    """Why a candidate was not taken, in a sentence."""
    ahead = f"{parts['ahead']:.2f} in {parts['tokens']:.0f} tokens ahead"
    return f"rank {rank} of {count}: log p {parts['logprob']:.2f}, {ahead}".replace("-", "−")
