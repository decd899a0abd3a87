"""Moments: the steps of a lane at which something happens that is worth a stop.

A fold over events that never looks ahead, so that a run can be followed while it decodes. Each kind of moment
is a class whose fields say what happened; decoders/explain/moments.py makes its sentence.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from decoders.trace.costs import DraftRound
from decoders.trace.events import FINAL_STATES, Cell, Commit, Distribution, Propose, Step, Verdict
from decoders.trace.node_index import NodeIndex
from decoders.trace.repetition import Repeats
from decoders.trace.scores import Measure, Rank, ScoreName

GONE = ("pruned", "rejected", "merged")  # verdicts after which a prefix waits no more
AT_FIRST = 5  # new tokens before which no entropy is called a peak
PEAK = 2 * math.log(2)  # nats: no lower entropy is a peak
NO_SEARCH = ("guess", "canvas", "stream")  # sources of nodes whose rejection is no step back of a search
LEAP = 3  # tokens that become final in one iteration, at least, for a jump
BEHIND = 2  # tokens of the old text, at least, that a new leader must leave


@dataclass(frozen=True, slots=True)
class LeadChange:
    """Another text leads a search. leaves: the last node that it shares with the old one, which had `gone`
    more tokens; old, new: the first tokens after it.
    """

    kind: ClassVar[str] = "lead change"
    node: int
    leaves: int
    position: int  # of the tokens after `leaves`
    old: int
    new: int
    gone: int

    @property
    def size(self) -> float:
        """How many tokens of the old text are left."""
        return self.gone


@dataclass(frozen=True, slots=True)
class Rejection:
    """The test that ended a round. instead: the node that stands in the place of the rejected one; discarded:
    how many drafted tokens after it were not tested.
    """

    kind: ClassVar[str] = "rejection"
    node: int
    token: int
    position: int
    p: float | None
    q: float | None
    u: float | None
    instead: int | None
    discarded: int

    @property
    def size(self) -> float:
        """By how much the draft's probability exceeded the target's; 0 where one is unknown."""
        return 0.0 if self.p is None or self.q is None else self.q - self.p


@dataclass(frozen=True, slots=True)
class Repetition:
    """The text begins to repeat itself: the tokens from `position` on stood there from `first` on."""

    kind: ClassVar[str] = "repetition"
    node: int  # with which the phrase is complete
    position: int
    first: int

    @property
    def size(self) -> float:
        """The earlier, the more of the text it spoils."""
        return -self.position


@dataclass(frozen=True, slots=True)
class EntropyPeak:
    """The target was less certain of this token than of any before it. entropy: in nats."""

    kind: ClassVar[str] = "entropy peak"
    node: int
    position: int
    entropy: float

    @property
    def size(self) -> float:
        """The entropy."""
        return self.entropy


@dataclass(frozen=True, slots=True)
class Remask:
    """Filled positions of a canvas were opened again or got another token: `count` of them, the first at
    `position`, where `token` stood.
    """

    kind: ClassVar[str] = "remask"
    node: None
    position: int
    token: int
    count: int

    @property
    def size(self) -> float:
        """How many positions."""
        return self.count


@dataclass(frozen=True, slots=True)
class Jump:
    """More tokens became final in one iteration than in any before it."""

    kind: ClassVar[str] = "jump"
    node: int  # the last of them
    position: int
    count: int

    @property
    def size(self) -> float:
        """How many tokens."""
        return self.count


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """A search drops a token that it has tried and goes back; why: the strategy's own reason."""

    kind: ClassVar[str] = "dead end"
    node: int
    token: int
    position: int
    why: str | None

    @property
    def size(self) -> float:
        """The farther, the more was in vain."""
        return self.position


@dataclass(frozen=True, slots=True)
class ConstraintBite:
    """A constraint forbade the target's most likely token, of probability p, and kept this mass in all."""

    kind: ClassVar[str] = "constraint"
    node: int  # that was written instead
    token: int
    p: float
    kept: float
    position: int

    @property
    def size(self) -> float:
        """The mass that was removed."""
        return 1.0 - self.kept


@dataclass(frozen=True, slots=True)
class ForcedEnd:
    """The budget of thinking was spent: after `spent` tokens of reasoning its end was forced."""

    kind: ClassVar[str] = "forced end"
    node: int  # the first forced token
    position: int
    spent: int

    @property
    def size(self) -> float:
        """How much had been thought."""
        return self.spent


Moment = (
    LeadChange | Rejection | Repetition | EntropyPeak | Remask | Jump | DeadEnd | ConstraintBite | ForcedEnd
)
# In the order in which a lane is about them.
KINDS: tuple[type, ...] = (
    LeadChange,
    DeadEnd,
    Rejection,
    Remask,
    Jump,
    ForcedEnd,
    ConstraintBite,
    Repetition,
    EntropyPeak,
)


class Moments:
    """`feed(step, made)` gives the moments of a step; `nodes` must have read its Propose events before, and
    `made` is its round, see `Costs.add`.
    """

    def __init__(self, nodes: NodeIndex):
        self.nodes = nodes
        self.leader: int | None = None  # the text that leads
        self.queue: list[tuple[float, int]] = []  # a heap of prefixes that wait to be opened, with priority
        self.opened: set[int] = set()  # nodes of the queue that wait no more
        self.written = Repeats()  # the output
        self.forced: int | None = None  # the node whose budget of thinking was spent last
        self.entropies: dict[int, float] = {}  # node -> entropy after it, until the next token is final
        self.highest = PEAK
        self.filled: dict[int, int] = {}  # position of a canvas -> the token that was final there
        self.canvas = False
        self.longest = LEAP - 1
        self.bites: dict[int, tuple[int, float, float]] = {}  # node -> token, p, kept mass
        self.tops: dict[int, float] = {}  # node -> log-probability of the most likely token after it
        self.tried: set[int] = set()  # nodes that a search may drop
        self.ended: int | None = None  # the position at which the step before had a dead end

    def feed(self, step: Step, made: DraftRound | None) -> list[Moment]:
        """The moments of a step, at most one of a kind."""
        if any(event.given for event in step.of(Propose)):
            for node in (node for event in step.of(Commit) for node in event.nodes):
                self.written.feed(self.nodes.token[node])
            return []
        self.tried |= {event.node for event in step.of(Propose) if event.source not in NO_SEARCH}
        for event in step.of(Distribution):
            self._distribution(event)
        committed = [node for event in step.of(Commit) for node in event.nodes]
        cells = [event for event in step.of(Cell) if event.level is None]
        found: list[Moment | None] = [
            self._lead(self._leader(step, committed)),
            self._remask(cells),
            self._jump(cells, committed),
            self._verdicts(step.of(Verdict), made, committed),
            *map(self._forced_end, step.of(Measure)),
        ]
        for node in committed:
            found += [self._bite(node), self._peak(node), self._repetition(node)]
        return one_of_a_kind(found)

    def _distribution(self, event: Distribution) -> None:
        if event.view == "target" and event.level is None:
            self.entropies[event.node] = event.entropy
            self.tops[event.node] = event.top[0][1] if event.top else -math.inf
        elif event.view == "forbidden" and event.top and event.kept is not None:
            token, logprob = event.top[0]
            if logprob >= self.tops.get(event.node, math.inf):
                self.bites[event.node] = (int(token), math.exp(logprob), math.exp(event.kept))

    def _leader(self, step: Step, committed: list[int]) -> int | None:
        """The node of rank 1, else the first in the queue of a best-first search; in the end, the output."""
        ranks = step.of(Rank)
        for rank in ranks:
            if rank.name == ScoreName.PRIORITY and rank.rank is None:
                heapq.heappush(self.queue, (-rank.total, rank.node))
        self.opened |= {event.parent for event in step.of(Propose)}
        self.opened |= {event.node for event in step.of(Verdict) if event.status in GONE}
        while self.queue and self.queue[0][1] in self.opened:
            heapq.heappop(self.queue)
        best = next((rank.node for rank in ranks if rank.rank == 1), None)
        if best is None and committed and self.leader is not None:
            return committed[-1]
        return self.queue[0][1] if best is None and self.queue else best

    def _lead(self, best: int | None) -> LeadChange | None:
        if best is None:
            return None
        before, self.leader = self.leader, best
        if before is None or before == best:
            return None
        old, new = self.nodes.path(before), self.nodes.path(best)
        same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
        if same is None or len(old) - same < BEHIND:
            return None
        token, leaves = self.nodes.token, self.nodes.parent[old[same]]
        return LeadChange(new[same], leaves, same + 1, token[old[same]], token[new[same]], len(old) - same)

    def _verdicts(
        self, verdicts: Sequence[Verdict], made: DraftRound | None, committed: list[int]
    ) -> Rejection | DeadEnd | None:
        """The rejection that ended the round; without a round, a dead end."""
        rejected = [verdict for verdict in verdicts if verdict.status == "rejected"]
        return self._dead_end(rejected) if made is None else self._rejection(rejected, made, committed)

    def _dead_end(self, rejected: list[Verdict]) -> DeadEnd | None:
        """The first of several in a row at one position."""
        last = next((verdict for verdict in rejected if verdict.node in self.tried), None)
        before, self.ended = self.ended, self.nodes.position[last.node] if last else None
        if last is None or before == self.ended:
            return None
        return DeadEnd(last.node, self.nodes.token[last.node], self.nodes.position[last.node], last.reason)

    def _rejection(self, rejected: list[Verdict], made: DraftRound, committed: list[int]) -> Rejection | None:
        last = committed[-1] if committed else None
        tested = [one for one in rejected if one.node in made.nodes]
        lost = next((one for one in tested if last is None or self._beside(one.node, last)), None)
        if lost is None:
            return None
        behind = sum(node != lost.node and lost.node in self.nodes.upwards(node) for node in made.nodes)
        token, position = self.nodes.token[lost.node], self.nodes.position[lost.node]
        return Rejection(lost.node, token, position, lost.p, lost.q, lost.u, last, behind)

    def _beside(self, node: int, other: int) -> bool:
        return self.nodes.parent.get(node) == self.nodes.parent.get(other)

    def _remask(self, cells: list[Cell]) -> Remask | None:
        """Only on a canvas: in Jacobi iterations a changed token is no step back."""
        self.canvas = self.canvas or any(cell.state == "mask" for cell in cells)
        if not self.canvas:
            return None
        undone = [(cell.position, self.filled[cell.position]) for cell in cells if self._undoes(cell)]
        for cell in cells:
            if cell.state in FINAL_STATES or cell.state == "changed":
                self.filled[cell.position] = cell.token
            elif cell.state in ("mask", "candidate", "rejected"):
                self.filled.pop(cell.position, None)
        if not undone:
            return None
        position, token = min(undone)
        return Remask(None, position - self.nodes.root, token, len(undone))

    def _undoes(self, cell: Cell) -> bool:
        if cell.position not in self.filled:
            return False
        other = cell.state == "changed" and cell.token != self.filled[cell.position]
        return other or cell.state in ("mask", "candidate", "rejected")

    def _jump(self, cells: list[Cell], committed: list[int]) -> Jump | None:
        final = sum(cell.state in FINAL_STATES for cell in cells)
        count = final if self.canvas else len(committed)
        if not cells or count <= self.longest or not committed:
            return None
        self.longest = count
        return Jump(committed[-1], self.nodes.position[committed[-1]], count)

    def _bite(self, node: int) -> ConstraintBite | None:
        bite = self.bites.pop(self.nodes.parent.get(node, -1), None)
        return bite and ConstraintBite(node, *bite, self.nodes.position[node])

    def _peak(self, node: int) -> EntropyPeak | None:
        entropy = self.entropies.pop(self.nodes.parent.get(node, -1), None)
        if entropy is None or entropy <= self.highest:
            return None
        self.highest = entropy
        if len(self.written.text) < AT_FIRST:
            return None
        return EntropyPeak(node, self.nodes.position[node], entropy)

    def _repetition(self, node: int) -> Repetition | None:
        """Where the newest phrase stands in the text already; once for each stretch that repeats."""
        repeated = self.written.feed(self.nodes.token[node])
        return repeated and Repetition(node, repeated[0] + 1, repeated[1] + 1)

    def _forced_end(self, measure: Measure) -> ForcedEnd | None:
        """The first of the tokens that spell the end."""
        if measure.name != ScoreName.THINKING_BUDGET:
            return None
        goes_on = self.forced is not None and self.nodes.parent.get(measure.node) == self.forced
        self.forced = measure.node
        position = self.nodes.position.get(measure.node, 0)
        return None if goes_on else ForcedEnd(measure.node, position, int(measure.total))


def one_of_a_kind(found: Sequence[Moment | None]) -> list[Moment]:
    """The largest of each kind, in the order of `KINDS`."""
    happened = [moment for moment in found if moment is not None]
    kinds = [[moment for moment in happened if isinstance(moment, kind)] for kind in KINDS]
    return [max(some, key=lambda moment: moment.size) for some in kinds if some]
