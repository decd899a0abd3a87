"""A*-decoding: best-first search over steps. A scorer estimates how far a prefix is from a good text, and
drops of its score add to the cost.

Chatziveroglou (2025), A*-Decoding: Token-Efficient Inference Scaling. The tie rule, the test of the goal when
a state is opened, dropping equal steps, and what happens at the end of the budget are our choices: the paper
leaves them open.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from decoders.lane import Lane
from decoders.parameters import choice, integer
from decoders.registry import strategy
from decoders.sampling.greedy import greedy
from decoders.sampling.next_token import NOTHING_LEFT, pick
from decoders.sampling.sampling_parameters import PROCESSORS, SHAPING
from decoders.search.stepwise import scorers
from decoders.search.stepwise.step_boundaries import ENDS, step_ends
from decoders.strategy import Part
from decoders.trace.number_format import were
from decoders.trace.scores import ScoreName


@dataclass(eq=False)
class State:
    """A prefix of whole steps. g: how much the reward fell on the way, h: 1 - reward. turns: which sample was
    taken at each step, none for the lane's beginning.
    """

    node: int
    turns: tuple[int, ...] = ()
    nodes: list[int] = field(default_factory=list)  # of its own step
    logprobs: list[float] = field(default_factory=list)  # of all tokens since the lane's beginning
    ended: bool = False
    g: float = 0.0
    h: float = 0.0

    @property
    def f(self) -> float:
        return self.g + self.h

    def key(self, order: int) -> tuple[float, int, int]:
        """The order of opening: the smallest f, then the deepest, then the oldest."""
        return round(self.f, 9), -len(self.turns), order


@strategy(
    name="a_star",
    title="A*-decoding",
    family="search",
    parameters=(
        *scorers.SCORER,
        integer("num_samples", 4, "Next steps sampled from each state that is expanded.", low=1, high=32),
        integer("max_calls", 64, "Texts that may be scored in all.", low=1, high=10_000),
        choice("step", "line", "What ends a step.", ENDS),
        replace(SHAPING[0], default=0.8),
        *SHAPING[1:],
    ),
    together=scorers.unusable,
    suits=scorers.unscored,
    papers=("a-star-decoding",),
    view="segments",
    badge=lambda parameters: "sampled" if parameters["temperature"] else "deterministic",
    parts=lambda parameters: [
        PROCESSORS,
        Part("expansion", "sampled steps", "An expanded state is continued in several sampled ways."),
        scorers.part(parameters),
        Part(
            "frontier",
            "smallest g + h",
            "g: how much the reward fell along the path; h: how far it is below 1.",
        ),
    ],
)
def a_star(lane: Lane) -> Iterator[None]:
    """Expands the state closest to a good text; every step that lowered its score adds to its cost.

    r(s) is the reward of a prefix, h(s) = 1 - r(s), g(root) = 0.

    1. The open state with the smallest f = g + h is expanded; ties go to the deepest, then to the oldest. If
       its text is complete, it is the answer.
    2. num_samples next steps are sampled from it in parallel, one token of each per forward. Equal ones
       count once.
    3. Each gives a state with g(s') = g(s) + max(0, h(s') - h(s)).
    4. Once max_calls texts have been scored, the complete text with the smallest f is taken; if there is
       none, greedy decoding finishes the open state with the smallest f.

    f may fall along a path, so the first complete text that is opened need not be the best of all. A text
    that reaches the limit of new tokens counts as complete. With one sample this is plain sampling, step by
    step.
    """
    scorer, root = scorers.Scorer(lane), State(lane.tip)
    root.h = 1 - scorer.score(root.node, whole=False)
    heap, made = [(root.key(0), root)], 1
    best = root
    while scorer.calls < lane.parameters["max_calls"] or heap[0][1].ended:
        best = heapq.heappop(heap)[1]
        if best.ended:
            break
        children = yield from expand(lane, best)
        if not children:
            lane.ended_by = NOTHING_LEFT
            return
        for child in children:
            child.h = 1 - scorer.score(child.node, whole=child.ended)
            child.g = best.g + max(0.0, child.h - best.h)
            lane.record_rank(child.node, ScoreName.PRIORITY, -child.f, g=child.g, h=child.h)
            heapq.heappush(heap, (child.key(made), child))
            made += 1
        yield
    yield from take_best_text(lane, best, heap, scorer.calls)


def expand(lane: Lane, state: State) -> Iterator[None]:
    """Samples the next steps of a state, one step of the lane per token but the last; returns the new states
    without duplicates; none if the processors leave no token.
    """
    count, room = lane.parameters["num_samples"], lane.left - len(state.logprobs)
    if lane.parameters["temperature"] == 0.0:
        count = 1  # all samples would be the same
    children = [State(state.node, (*state.turns, i), logprobs=list(state.logprobs)) for i in range(count)]
    writing = children
    while writing:
        if not append_tokens(lane, writing):
            return []
        for child in writing:
            child.ended = lane.tree.tokens[child.node] in lane.eos or len(child.nodes) == room
        writing = [
            c for c in writing if not c.ended and not step_ends(lane, c.nodes, lane.parameters["step"])
        ]
        if writing:
            yield
    return distinct(lane, children)


def append_tokens(lane: Lane, writing: list[State]) -> bool:
    """Appends a token to each sample, all in one forward; False if the processors leave no token. The first
    sample of a step draws as plain sampling does, if the first sample was also taken at every step before it.
    """
    tips = list(dict.fromkeys(child.node for child in writing))  # at first they share one node
    logits = lane.score(tips)
    offers, scores = lane.distribution(tips, logits), lane.process(logits, tips)
    if not scores.isfinite().any(-1).all():
        return False
    for child in writing:
        row = tips.index(child.node)
        stream = ("sample", lane.tree.depths[child.node] + 1, *(child.turns if any(child.turns) else ()))
        token = pick(lane, scores[row], stream)
        logprob = float(offers[row][token])
        child.node = lane.propose(child.node, token, logprob, slot=child.turns[-1])
        child.nodes.append(child.node)
        child.logprobs.append(logprob)
    return True


def distinct(lane: Lane, children: list[State]) -> list[State]:
    """The states whose text no earlier state has; the others are pruned."""
    first_with: dict[tuple[int, ...], State] = {}
    for child in children:
        first = first_with.setdefault(tuple(lane.tree.tokens[node] for node in child.nodes), child)
        if first is not child:
            for node in child.nodes:
                lane.verdict(node, "pruned", reason=f"the same step as sample {first.turns[-1] + 1}")
            lane.drop(child.nodes)
    return list(first_with.values())


def take_best_text(lane: Lane, best: State, heap: list, calls: int) -> Iterator[None]:
    """Takes `best` if its text is whole, else the whole text in the queue with the smallest f. If there is
    none, greedy decoding finishes the first text of the queue. Gives verdicts to the rest of the queue.
    """
    waiting = sorted(heap, key=lambda pair: pair[0])
    why = f"{were(calls, 'text')} scored"
    if not best.ended:
        whole = [pair for pair in waiting if pair[1].ended]
        pair = (whole or waiting)[0]
        waiting.remove(pair)
        best = pair[1]
        lane.note(
            f"{why}, the budget: the complete text with the smallest f is taken."
            if whole
            else f"{why}, the budget, and no text is complete: greedy decoding finishes the best prefix."
        )
    else:
        lane.note(f"The first text of the queue is complete: f {best.f:.3f}; {why}.")
    for rank, (_, state) in enumerate(waiting, 1):
        lane.verdict(
            state.node, "pruned", reason=f"number {rank} of {len(waiting)} in the queue, f {state.f:.3f}"
        )
    if best.logprobs:
        lane.commit(lane.tree.path(best.node, above=lane.tip), best.logprobs)
    yield
    yield from greedy(lane)
