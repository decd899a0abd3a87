"""Best-first search for the most likely text, and the same search depth first with a bound: both exact.

The states are in search_state.py. The queue's order is that of uniform-cost search (Dijkstra 1959): a
negative log-probability is a cost that only grows. The depth-first form follows the exact inference with a
bound of "On NMT Search Errors and Model Errors: Cat Got Your Tongue?" (Stahlberg and Byrne 2019).
"""

import heapq
from collections.abc import Iterator

from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.registry import strategy
from decoders.sampling.greedy import greedy
from decoders.sampling.next_token import NOTHING_LEFT
from decoders.sampling.sampling_parameters import PENALTIES
from decoders.search.best_first.search_state import Space, State
from decoders.strategy import Part
from decoders.trace.number_format import many, were
from decoders.trace.scores import ScoreName


class BestFirst:
    """The state with the highest priority comes next; a finished text that comes first has won."""

    def __init__(self, space: Space):
        self.space, self.winner = space, None
        self.exact = space.order == "bound" or space.length_penalty == 0
        self.heap: list[tuple[float, int, State]] = []

    def push(self, states: list[State]) -> None:
        """Puts states into the queue; ties go to the one that was proposed earlier."""
        for state in states:
            heapq.heappush(self.heap, (-self.space.priority(state), state.node, state))

    def take(self, count: int) -> list[State]:
        """Up to `count` states to open; none once a finished text is first."""
        taken: list[State] = []
        while self.heap and not (self.heap[0][2].complete and taken):
            if self.heap[0][2].complete:
                self.winner = heapq.heappop(self.heap)[2]
                break
            if len(taken) == count:
                break
            state = heapq.heappop(self.heap)[2]
            self.push(self.space.siblings(state))
            taken.append(state)
        return taken

    @property
    def proven(self) -> bool:
        """Whether no other state can have a higher priority."""
        return self.winner is not None

    def waiting(self) -> list[State]:
        """What is left, first in the queue first."""
        return [state for _, _, state in sorted(self.heap, key=lambda entry: entry[:2])]


class DepthFirst:
    """The most likely child of the newest state comes next; what cannot beat the best whole text is cut."""

    def __init__(self, space: Space):
        self.space, self.winner, self.exact = space, None, True
        self.stack: list[State] = []

    def push(self, states: list[State]) -> None:
        """Puts siblings on the stack, the most likely on top."""
        self.stack += states[::-1]

    def take(self, count: int) -> list[State]:
        """The next state that may still win, alone; finished texts on the way are judged."""
        while self.stack:
            state = self.stack[-1]
            if self.winner is not None and self.space.bound(state) <= self.space.score(self.winner):
                self._cut(self.stack.pop())
                continue
            if not state.complete and not count:
                break
            self.stack.pop()
            self.push(self.space.siblings(state))
            if not state.complete:
                return [state]
            if self.winner is not None:
                self.space.lane.verdict(self.winner.node, "pruned", reason="a better text was found")
            self.winner = state
        return []

    @property
    def proven(self) -> bool:
        """Whether everything else was cut."""
        return self.winner is not None and not self.stack

    def _cut(self, state: State) -> None:
        best, reach = self.space.score(self.winner), self.space.bound(state)
        reason = f"it can reach {reach:.3f} at most, and {best:.3f} is finished"
        reason += "; the same holds for all its less likely siblings" if state.row else ""
        self.space.lane.verdict(state.node, "pruned", reason=reason)

    def waiting(self) -> list[State]:
        """What is left, newest first."""
        return self.stack[::-1]


FRONTIERS = {"best first": BestFirst, "depth first": DepthFirst}
FRONTIER_SUMMARIES = {
    "best first": "The state with the highest priority in the queue is expanded next.",
    "depth first": "The most likely child of the newest state is expanded next; a bound prunes what cannot "
    "win.",
}


@strategy(
    name="best_first",
    title="Best-first search",
    family="search",
    parameters=(
        choice("frontier", "best first", "Which state comes next.", FRONTIERS),
        integer("max_expansions", 200, "Maximum number of states to expand.", low=1, high=5000),
        integer("batch_size", 8, "States expanded in one forward (best first only).", low=1, high=64),
        integer("children", 4, "Children that enter the queue at a time; none is discarded.", low=1, high=64),
        real("length_penalty", 0.0, "A text's score is sum log p / length to this power.", low=0.0, high=2.0),
        choice(
            "order",
            "bound",
            "Priority: the best score that a prefix can reach (exact), or its own score (finishes texts "
            "sooner).",
            ("bound", "score"),
        ),
        *PENALTIES,
    ),
    view="search_graph",
    badge=lambda parameters: "deterministic",
    parts=lambda parameters: [
        Part("frontier", parameters["frontier"], FRONTIER_SUMMARIES[parameters["frontier"]]),
        Part("value", parameters["order"], "The sum of log p, divided by length to length_penalty."),
    ],
)
def best_first(lane: Lane) -> Iterator[None]:
    """Expands the most promising prefix until no other text can be more likely than the best one found.

    1. All prefixes wait in a queue. Log-probabilities are never positive, so the best score that a
       prefix can still reach is bounded: `bound = sum log p / max_new_tokens ** length_penalty`.
    2. The best batch_size of them are expanded in one forward. Their most likely children join the queue, and
       the next children follow as soon as the last of these is expanded: no token of the vocabulary is left
       out.
    3. A finished text at the head of the queue has won: all others can only be worse.
    4. Depth first expands the most likely child of the newest state instead and prunes whatever cannot beat
       the best finished text: the answer is the same, and a first text is found early.

    With penalties and forbidden words p is the model as these processors leave it.

    Once max_expansions are spent, the best finished text is taken; if there is none, the best prefix, and
    greedy decoding finishes it. Then nothing is proven, and a note says so.
    """
    given = lane.parameters
    space = Space(lane, given["children"], given["length_penalty"], given["order"])
    frontier = FRONTIERS[given["frontier"]](space)
    frontier.push([space.root])
    while True:
        room = given["max_expansions"] - len(space.opened)
        states = frontier.take(min(given["batch_size"], room))
        if not states:
            break
        frontier.push(space.open(states))
        yield
    if frontier.winner is None and not frontier.waiting():
        lane.ended_by = NOTHING_LEFT
        return
    winner = judged_winner(lane, space, frontier)
    space.commit(winner)
    yield
    yield from greedy(lane)  # a prefix that was not finished


def judged_winner(lane: Lane, space: Space, frontier: BestFirst | DepthFirst) -> State:
    """The state whose text is taken; records what becomes of all others, and what the search has proven."""
    waiting, winner = frontier.waiting(), frontier.winner
    if not frontier.proven:
        finished = [state for state in (winner, *waiting) if state is not None and state.complete]
        value = space.score if finished else space.priority
        winner = max(finished or waiting, key=lambda state: (value(state), -state.node))
        what = "the best finished text" if finished else "the best prefix, which greedy decoding finishes,"
        lane.note(
            f"The budget of {many(len(space.opened), 'expansion')} is spent: {what} is taken, "
            "and nothing is proven."
        )
    elif frontier.exact:
        lane.note(
            f"No text of up to {many(space.max_length, 'token')} has a higher score; "
            f"{were(len(space.opened), 'prefix', 'prefixes')} expanded."
        )
    else:
        lane.note("The first finished text of the queue is taken; one with a higher score may still wait.")
    for rank, state in enumerate(waiting, 1):
        if not state.complete and state is not winner:
            priority = f"{space.priority(state):.3f}"
            reason = f"number {rank} of {len(waiting)} still in the queue, priority {priority}"
            lane.verdict(state.node, "pruned", reason=reason)
    lane.record_rank(winner.node, ScoreName.SCORE, space.score(winner), 1)
    return winner
