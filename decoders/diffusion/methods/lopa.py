"""LoPA: the order of filling is searched; the canvas that leaves the model surest of its other masks wins.

"LoPA: Scaling dLLM Inference via Lookahead Parallel Decoding" (Xu et al. 2025).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from decoders.diffusion.canvas import Canvas, Guess, blocks, fill, guess_each, guess_from_rows
from decoders.diffusion.denoising_loop import BLOCK, SUFFIX, TAU, canvas_of, schedule
from decoders.diffusion.unmask_policies import surest_first, threshold
from decoders.lane import Lane
from decoders.logits.distributions import MIN_LOGPROB
from decoders.parameters import integer
from decoders.registry import strategy
from decoders.strategy import Part
from decoders.trace.number_format import number
from decoders.trace.scores import ScoreName

SOURCE = "lookahead"
ANCHOR, BRANCH = "canvas anchor", "canvas {}"  # levels of their cells, a branch by its node


@dataclass
class Branch:
    """A canvas to be scored: the current canvas, with one more token at `filled` unless it is the anchor. The
    token had this `confidence` when it was guessed.
    """

    filled: dict[int, int] = field(default_factory=dict)
    confidence: float = 1.0
    node: int = -1  # in the trace


def lopa_parts(parameters: dict[str, Any]) -> list[Part]:
    """Region, policy and look-ahead."""
    count = parameters["branches"]
    return [
        *schedule(parameters),
        Part(
            "policy",
            "threshold",
            "Each forward fills all masks with at least tau, or else the most confident one.",
        ),
        Part(
            "look-ahead",
            "branches",
            f"A forward scores the canvas and {count} branches with one more token each.",
        ),
    ]


@strategy(
    name="lopa",
    title="LoPA",
    family="diffusion",
    papers=("lopa",),
    writes_with="diffusion",
    badge=lambda parameters: "deterministic",
    parameters=(
        TAU,
        integer(
            "branches",
            3,
            "Number of canvases per forward in addition to the anchor; 0: no look-ahead.",
            low=0,
            high=63,
        ),
        BLOCK,
        SUFFIX,
    ),
    view="canvas_branches",
    parts=lopa_parts,
)
def lopa(lane: Lane) -> Iterator[None]:
    """Tries several next tokens at once and keeps the one that makes the model most confident of the rest.

    1. A forward gives every mask its most likely token and that token's probability c. All masks with `c >=
       tau` are filled, or else the most confident one. This canvas is the anchor.
    2. Each of the `branches` most confident remaining masks gives a branch: the anchor plus that token.
    3. One forward over the anchor and all branches. The score C of a canvas is the mean probability of the
       most likely tokens at its masks, or 1 if it has none.
    4. The canvas with the largest C stays, and step 1 follows with its logits. On a tie the anchor stays.

    This saves forwards, not computation: each evaluates branches + 1 canvases, which the authors distribute
    over as many devices. A winning branch keeps its token however uncertain it was, so the text is different
    and usually less probable. In the authors' code branches win ties, and C may be mixed with c or computed
    over the least confident masks only; this is the rule of the paper.
    """
    canvas, tau, count = canvas_of(lane), lane.parameters["tau"], lane.parameters["branches"]
    if lane.ended_by:
        return
    for low, high in blocks(canvas, lane.parameters["block_length"]):
        branches, last = [Branch()], None
        while canvas.masks(low, high):
            last = look_ahead(lane, canvas, low, high, branches, last, tau)
            branches = [Branch(), *next_branches(last, tau, count)]
            yield
            if not lane.more:
                return


def next_branches(guessed: Guess, tau: float, count: int) -> list[Branch]:
    """The branches of the anchor that a guess leads to, the surest first."""
    taken = threshold(guessed.confidence, tau)
    left = [i for i in surest_first(guessed.confidence) if i not in taken]
    return [Branch(guessed.at([i]), float(guessed.confidence[i])) for i in left[:count]]


def look_ahead(
    lane: Lane, canvas: Canvas, low: int, high: int, branches: list[Branch], last: Guess | None, tau: float
) -> Guess:
    """One forward over the branches, of which the first is the anchor, the canvas as it stands. Fills the
    token of the winner, guessed in `last`, and the masks that are sure on its canvas; returns the winner's
    guess.
    """
    for slot, branch in enumerate(branches[1:]):
        ((position, token),) = branch.filled.items()
        logprob = max(float(last.logprobs[last.positions.index(position), token]), MIN_LOGPROB)
        branch.node = lane.propose(lane.tip, token, logprob, SOURCE, slot, "fixed")
    guesses = guess_each(lane, canvas, [branch.filled for branch in branches], low, high)
    scores = [float(one.confidence.mean()) if one.positions else 1.0 for one in guesses]
    winner = scores.index(max(scores))  # the first of equal ones: the anchor, then the surest
    if branches[1:]:
        record_branches(lane, canvas, branches, guesses, scores, winner)
    best, extra = guesses[winner], branches[winner].filled
    sure = threshold(best.confidence, tau)
    states = {best.positions[i]: "committed" if best.confidence[i] >= tau else "forced" for i in sure}
    states |= dict.fromkeys(extra, "lookahead")
    positions = canvas.masks(low, high)
    whole = guess_from_rows([last if p in extra else best for p in positions], positions)
    fill(lane, canvas, whole, {i: states[p] for i, p in enumerate(positions) if p in states})
    return best


def record_branches(
    lane: Lane,
    canvas: Canvas,
    branches: list[Branch],
    guesses: list[Guess],
    scores: list[float],
    winner: int,
) -> None:
    """Score and verdict of each branch, and how sure the model is of every mask of each canvas."""
    tie = scores.count(scores[winner]) > 1
    lane.record_rank(
        lane.tip, ScoreName.MEAN_CONFIDENCE, scores[0], level=ANCHOR, tie=float(tie and winner == 0)
    )
    for k, (branch, guessed, score) in enumerate(zip(branches, guesses, scores, strict=True)):
        level = BRANCH.format(branch.node) if k else ANCHOR
        for position, token, confidence in zip(
            guessed.positions, guessed.tokens, guessed.confidence.tolist(), strict=True
        ):
            lane.cell(position, canvas.iteration + 1, token, "candidate", confidence, level)
        for position, token in branch.filled.items():
            lane.cell(position, canvas.iteration + 1, token, "lookahead", branch.confidence, level)
        if not k:
            continue
        at_tie = float(tie and score == scores[winner])
        lane.record_rank(
            branch.node,
            ScoreName.MEAN_CONFIDENCE,
            score,
            level=level,
            confidence=branch.confidence,
            tie=at_tie,
        )
        reason = f"mean confidence {number(score)}, the anchor's {number(scores[0])}"
        reason += f"; the branch's own token had p {number(branch.confidence)} when it was guessed"
        lane.verdict(branch.node, "accepted" if k == winner else "pruned", p=branch.confidence, reason=reason)
