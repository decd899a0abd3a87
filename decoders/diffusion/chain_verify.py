"""Drafted canvases: one forward checks several steps of masked diffusion at once, and changes none of them.

The current canvas needs a forward anyway; canvases that may follow it join its batch. If the model's own next
step leads to one of them, that step is verified, and the logits of the next canvas are known already. The
tokens filled are those that masked diffusion fills with one forward per step. Shared by FreeDave and SSD.
"""

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from decoders.diffusion.canvas import Canvas, Guess, blocks, fill, guess_each, guess_from_rows
from decoders.diffusion.denoising_loop import canvas_of
from decoders.diffusion.unmask_policies import quotas, surest_first, threshold
from decoders.lane import Lane
from decoders.logits.distributions import MIN_LOGPROB
from decoders.trace.number_format import number
from decoders.trace.token_text import visible

SOURCE = "canvas"  # of drafted tokens: the target's own guess of a canvas before
LEVEL = "canvas {}"  # of the cells that a drafted canvas adds, by its node
LOSSLESS = "lossless: equal to stepwise"

Steps = list[list[int]]  # indices into a guess, step by step


@dataclass(frozen=True)
class Stepwise:
    """Masked diffusion with one forward per step: in blocks of `block_length` positions from `start` on, each
    step fills its quota of the surest masks. With `tau`, the next step fills all masks of at least that
    probability.
    """

    start: int
    stop: int
    block_length: int
    tokens_per_forward: int
    tau: float | None = None

    def plan(self, guessed: Guess) -> Iterator[list[int]]:
        """The indices that the next step fills, then those that the following steps would fill if no guess
        changed.
        """
        left, first = surest_first(guessed.confidence), True
        while left:
            low, high = self._block(min(guessed.positions[i] for i in left))
            inside = [i for i in left if guessed.positions[i] < high]
            if first and self.tau is not None:
                now = [inside[i] for i in threshold(guessed.confidence[inside], self.tau)]
            else:
                now = inside[: self._quota(high - low, len(inside))]
            yield now
            left, first = [i for i in left if i not in now], False

    def _block(self, position: int) -> tuple[int, int]:
        length = self.block_length or self.stop - self.start
        low = position - (position - self.start) % length
        return low, min(low + length, self.stop)

    def _quota(self, masks: int, left: int) -> int:
        """The share of the step that begins with `left` of a block's masks."""
        for count in quotas(masks, self.tokens_per_forward):
            if masks <= left:
                return count
            masks -= count
        return self.tokens_per_forward


@dataclass
class Draft:
    """A canvas that may follow. `filled` holds all tokens that it adds to the current canvas, `added` those
    that it adds to its parent (position -> token, the surest first), and `confidence` the probability of the
    surest added token in the guess that it was drafted from. The current canvas is the draft that adds
    nothing.
    """

    filled: dict[int, int] = field(default_factory=dict)
    added: dict[int, int] = field(default_factory=dict)
    confidence: float = 1.0
    parent: int = -1  # index among the drafts
    slot: int = 0  # rank among its siblings
    node: int = -1  # in the trace

    @property
    def surest(self) -> tuple[int, int]:
        """Position and token of the surest that it adds."""
        return next(iter(self.added.items()))


def drafted_canvases(guessed: Guess, steps: Steps, branches: int, canvases: int) -> list[Draft]:
    """At most `canvases` drafts, the current canvas first. The children of a draft take one of the first
    `branches` steps that it lacks, since the model may take the steps in another order. The order of the
    guess comes first, then the orders that differ least from it. A canvas that two orders lead to is one
    draft.
    """
    drafts: list[Draft] = []
    index: dict[frozenset[int], int] = {}
    waiting: list[tuple[int, tuple[int, ...], int]] = [(0, (), 0)]  # (ranks in all, steps taken, rank)
    while waiting and len(drafts) < canvases:
        cost, order, slot = heapq.heappop(waiting)
        taken = frozenset(order)
        if taken in index:
            continue
        index[taken] = len(drafts)
        drafts.append(
            _below(drafts, index[frozenset(order[:-1])], guessed, steps[order[-1]], slot)
            if order
            else Draft()
        )
        lacking = [step for step in range(len(steps)) if step not in taken]
        for rank, step in enumerate(lacking[:branches]):
            heapq.heappush(waiting, (cost + rank, (*order, step), rank))
    return drafts


def _below(drafts: list[Draft], parent: int, guessed: Guess, step: list[int], slot: int) -> Draft:
    added = guessed.at(step)
    return Draft(drafts[parent].filled | added, added, float(guessed.confidence[step[0]]), parent, slot)


def verified_filling(
    lane: Lane, draft: Callable[[Guess, Steps], list[Draft]], tau: float | None = None, eager: bool = False
) -> Iterator[None]:
    """Fills the lane's canvas as `Stepwise` does. `draft(guess, steps)` gives the current canvas and the
    canvases that may follow it if the model takes the steps that the guess suggests. eager: the steps may
    continue into the next block.
    """
    canvas, length = canvas_of(lane), lane.parameters["block_length"]
    if lane.ended_by:
        return
    per_forward = lane.parameters.get("tokens_per_forward", 1)
    stepwise = Stepwise(canvas.start, canvas.stop, length, per_forward, tau)
    for low, high in blocks(canvas, 0 if eager else length):
        drafts = [Draft()]
        while canvas.masks(low, high):
            last = verify(lane, canvas, low, high, stepwise, drafts)
            steps = list(stepwise.plan(last))[1:]  # the first one is filled
            drafts = draft(last, steps[:-1])  # after the last step there is nothing to ask
            yield
            if not lane.more:
                return


def verify(lane: Lane, canvas: Canvas, low: int, high: int, stepwise: Stepwise, drafts: list[Draft]) -> Guess:
    """One forward over the drafts, of which the first is the canvas as it stands. Fills every step that it
    verifies and the one after them; returns the guess that this last step came from.
    """
    _propose(lane, drafts)
    guesses = guess_each(lane, canvas, [draft.filled for draft in drafts], low, high)
    path, source = _walk(guesses, stepwise, drafts)
    last = guesses[path[-1]]
    own = last.at(next(stepwise.plan(last)))
    _judge(lane, canvas, guesses, stepwise, drafts, path)
    positions = guesses[0].positions
    whole = guess_from_rows([guesses[source.get(p, path[-1])] for p in positions], positions)
    states = {
        i: "verified" if p in source else "committed"
        for i, p in enumerate(positions)
        if p in source or p in own
    }
    fill(lane, canvas, whole, states)
    return last


def _walk(guesses: list[Guess], stepwise: Stepwise, drafts: list[Draft]) -> tuple[list[int], dict[int, int]]:
    """(path, source): the drafts that stepwise decoding passes through, and for every position that it fills
    on the way the draft whose logits filled it.
    """
    path, source = [0], {}
    while True:
        here = drafts[path[-1]].filled
        last = guesses[path[-1]]
        after = here | last.at(next(stepwise.plan(last)))
        reached = [
            k
            for k, draft in enumerate(drafts)
            if len(draft.filled) > len(here) and here.items() <= draft.filled.items() <= after.items()
        ]
        if not reached:
            return path, source
        furthest = max(reached, key=lambda k: len(drafts[k].filled))
        source |= {p: path[-1] for p in drafts[furthest].filled if p not in here}
        path.append(furthest)


# ---- what is recorded --------------------------------------------------------------------------------------


def _propose(lane: Lane, drafts: list[Draft]) -> None:
    """A node for each drafted canvas, named by the surest token that it adds."""
    drafts[0].node = lane.tip
    for draft in drafts[1:]:
        logprob = max(math.log(draft.confidence), MIN_LOGPROB) if draft.confidence else MIN_LOGPROB
        parent, (_, token) = drafts[draft.parent].node, draft.surest
        draft.node = lane.propose(parent, token, logprob, SOURCE, draft.slot, "fixed")


def _judge(
    lane: Lane,
    canvas: Canvas,
    guesses: list[Guess],
    stepwise: Stepwise,
    drafts: list[Draft],
    path: list[int],
) -> None:
    """The verdicts: accepted along the path, rejected where it went another way, never reached below that."""
    accepted = {0}
    for before, here in pairwise(path):
        between = _between(drafts, before, here)
        if not between:
            _move(lane, canvas, drafts, before, here)
            between = [here]
        for k in between:
            p = _now(guesses[before], *drafts[k].surest)
            lane.verdict(drafts[k].node, "accepted", p=p, q=drafts[k].confidence)
        accepted |= set(between)
    for k, draft in enumerate(drafts[1:], 1):
        state = "verified" if k in accepted else "rejected" if draft.parent in accepted else "candidate"
        if state == "rejected":
            at = guesses[draft.parent]
            p, reason = _now(at, *draft.surest), _why(lane, canvas, at, stepwise, draft)
            lane.verdict(draft.node, "rejected", p=p, q=draft.confidence, reason=reason)
        elif state == "candidate":
            lane.verdict(draft.node, "never reached")
        _record_cells(lane, canvas, draft, state)


def _record_cells(lane: Lane, canvas: Canvas, draft: Draft, state: str) -> None:
    """Records the positions of the tokens that a draft adds to its parent."""
    level = LEVEL.format(draft.node)
    for position, token in draft.added.items():
        lane.cell(position, canvas.iteration + 1, token, state, draft.confidence, level)


def _between(drafts: list[Draft], before: int, here: int) -> list[int]:
    """The drafts below `before` down to `here`; none if `here` is not below `before`."""
    between, k = [], here
    while k > 0 and k != before:
        between.append(k)
        k = drafts[k].parent
    return between[::-1] if k == before else []


def _move(lane: Lane, canvas: Canvas, drafts: list[Draft], before: int, here: int) -> None:
    """Moves the draft `here` below `before`, which led to it: the same canvas, filled in another order."""
    draft, above, old = drafts[here], drafts[before], drafts[here].node
    _record_cells(lane, canvas, draft, "candidate")
    draft.parent, draft.added = before, {p: t for p, t in draft.filled.items() if p not in above.filled}
    draft.node = lane.propose(above.node, draft.surest[1], None, SOURCE, draft.slot, "fixed")
    lane.verdict(old, "merged", into=draft.node)


def _now(guessed: Guess, position: int, token: int) -> float:
    """The probability of a token at a masked position."""
    return float(guessed.logprobs[guessed.positions.index(position), token].double().exp())


def _why(lane: Lane, canvas: Canvas, at: Guess, stepwise: Stepwise, draft: Draft) -> str:
    """The sentence that says where a draft differs from the model's own step."""

    def name(position: int, token: int) -> str:
        shown = visible(lane.models["target"].bytes_of(token))
        return f"position {position - canvas.start + 1} “{shown}”"

    own = next(stepwise.plan(at))
    first = next((i for i in own if draft.added.get(at.positions[i]) != at.tokens[i]), own[0])
    now = name(at.positions[first], at.tokens[first])
    return (
        f"Drafted {name(*draft.surest)}; the model now fills {now}, p {number(float(at.confidence[first]))}."
    )
