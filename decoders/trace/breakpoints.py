"""Breakpoints: conditions at which a run stops to be looked at, such as `entropy > 4`.

`parse` reads what was typed; `Watch` says of each step which conditions hold, from the events alone, so a
live lane and a stored trace stop at the same steps. Whether lanes differ is a question about their texts,
which `differ` answers.
"""

import math
import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from decoders.refusal import Refusal
from decoders.trace.costs import Costs, DraftRound
from decoders.trace.events import Commit, Distribution, Propose, Step, Verdict
from decoders.trace.moments import LeadChange, Moment, Moments, Repetition
from decoders.trace.node_index import NodeIndex
from decoders.trace.number_format import number
from decoders.trace.token_text import visible
from decoders.trace.trace import Trace

MOST = 8  # conditions of a run
LONGEST = 100  # characters of one
ROUNDS = 10  # whose acceptance is averaged


class Kind(StrEnum):
    """What a condition asks of a step; the value is how it is typed."""

    ENTROPY = "entropy >"  # in bits, of the target's distribution of a token
    REJECTION = "rejection at depth"
    END = "p(end) >"  # the target's probability that the text ends
    LEAD = "the lead changes"
    DIFFER = "lanes differ"
    TOKEN = "token ="
    ACCEPTANCE = "acceptance <"  # share of the drafted tokens of the last ROUNDS rounds that were accepted
    REPEATS = "a phrase repeats"


WITHOUT = (Kind.LEAD, Kind.DIFFER, Kind.REPEATS)  # have no value
EXAMPLES = {
    Kind.ENTROPY: "4",
    Kind.REJECTION: "1",
    Kind.END: ".5",
    Kind.TOKEN: "dog",
    Kind.ACCEPTANCE: ".5",
}
FORMS = ", ".join(" ".join(filter(None, (kind, EXAMPLES.get(kind)))) for kind in Kind)


@dataclass(frozen=True)
class Condition:
    """A condition. value: its number; token: the text of a token, without white space around it."""

    kind: Kind
    value: float = 0.0
    token: str = ""

    def __str__(self) -> str:
        """As it is typed."""
        shown = self.token or ("" if self.kind in WITHOUT else f"{self.value:g}")
        return f"{self.kind} {shown}".strip()


@dataclass(frozen=True)
class Stop:
    """A condition that holds at a step (counted from 0). node: where; sentence: with its numbers."""

    step: int
    condition: Condition
    node: int | None
    position: int
    sentence: str


def parse(typed: str) -> Condition:
    """A condition as it was typed. Raises Refusal with one sentence that lists all forms."""
    text = " ".join(str(typed)[: LONGEST + 1].split())
    kind = next((kind for kind in Kind if text.lower().startswith(kind)), None)
    rest = text[len(kind) :].strip() if kind else ""
    if kind in WITHOUT and not rest:
        return Condition(kind)
    if kind is Kind.TOKEN and rest and len(text) <= LONGEST:
        return Condition(kind, token=rest)
    if kind and kind not in WITHOUT and re.fullmatch(r"\d*\.?\d+", rest):
        return Condition(kind, float(rest))
    raise Refusal(f"A run cannot stop when {text[:LONGEST]!r}; it can when: {FORMS}.")


def parse_all(typed: Sequence[str]) -> tuple[Condition, ...]:
    """Several conditions, each once. Raises Refusal with one sentence if one cannot be read or there are too
    many.
    """
    if len(typed) > MOST:
        raise Refusal(f"A run stops at {MOST} conditions at most, not {len(typed)}.")
    return tuple(dict.fromkeys(map(parse, typed)))


class Watch:
    """Asks a lane's steps, in order, whether conditions hold. prompt: its token ids; vocabulary: token id ->
    bytes, which may grow; ends: tokens that end a text, as far as they are known.
    """

    def __init__(
        self,
        conditions: Iterable[Condition],
        prompt: Sequence[int],
        vocabulary: Mapping[int, bytes],
        ends: Collection[int] = (),
    ):
        self.conditions, self.vocabulary, self.ends = tuple(conditions), vocabulary, ends
        self.nodes, self.costs = NodeIndex(prompt), Costs()
        self.moments = Moments(self.nodes)
        self.entropies: dict[int, float] = {}  # node -> bits, until a token after it is final
        self.ending: dict[int, float] = {}  # node -> probability that the text ends after it
        self.recent: deque[tuple[int, int]] = deque(maxlen=ROUNDS)  # drafted and accepted tokens
        self.text: list[int] = []  # nodes that are final

    def feed(self, step: Step) -> list[Stop]:
        """The conditions that hold at the step, each once, in their order."""
        for event in step.of(Propose):
            self.nodes.add(event)
        given = any(event.given for event in step.of(Propose))
        made = self.costs.add(step)
        happened = self.moments.feed(step, made)
        self._distributions(step.of(Distribution))
        final = [node for event in step.of(Commit) for node in event.nodes]
        self.text += final
        if made:
            self.recent.append((len(made.nodes), made.accepted))
        if given:
            return []
        found = []
        for condition in self.conditions:
            node, says = self._holds(condition, step, made, happened, final)
            if node is not None:
                position = self.nodes.position.get(node, 0)
                found.append(Stop(step.index, condition, node, position, f"{says}, at token {position}"))
        return found

    def _holds(
        self,
        condition: Condition,
        step: Step,
        made: DraftRound | None,
        happened: list[Moment],
        final: list[int],
    ) -> tuple[int | None, str]:
        """The node at which a condition holds, None if it does not, and what holds."""
        match condition.kind:
            case Kind.LEAD | Kind.REPEATS:
                kind = LeadChange if condition.kind is Kind.LEAD else Repetition
                return next((one.node for one in happened if isinstance(one, kind)), None), str(condition)
            case Kind.REJECTION:
                return self._rejected(step, made.nodes if made else (), condition.value), str(condition)
            case Kind.ACCEPTANCE:
                return self._acceptance(made, condition.value)
        return self._of_tokens(condition, final)

    def _acceptance(self, made: DraftRound | None, least: float) -> tuple[int | None, str]:
        if made is None or len(self.recent) < ROUNDS:
            return None, ""
        drafted, accepted = map(sum, zip(*self.recent, strict=True))
        says = f"acceptance of the last {ROUNDS} rounds {number(accepted / drafted, 2)}"
        return made.nodes[0] if accepted < least * drafted else None, says

    def _distributions(self, events: list[Distribution]) -> None:
        for event in events:
            if event.view == "target" and event.level is None:
                self.entropies[event.node] = event.entropy / math.log(2)
                ends = [math.exp(logprob) for token, logprob in event.top if token in self.ends]
                self.ending[event.node] = math.fsum(ends)

    def _rejected(self, step: Step, drafted: Sequence[int], depth: float) -> int | None:
        """A drafted token that was rejected at this depth: 1 follows the text."""
        inside = set(drafted)
        for event in step.of(Verdict):
            if event.status == "rejected" and event.node in inside:
                above = sum(node in inside for node in self.nodes.upwards(event.node))
                if above == depth:
                    return event.node
        return None

    def _of_tokens(self, condition: Condition, final: list[int]) -> tuple[int | None, str]:
        """The first of the tokens that have become final for which a condition holds, and what holds."""
        for node in final:
            before = self.nodes.parent.get(node, -1)
            text = visible(self.vocabulary.get(self.nodes.token[node], b"?"))
            if condition.kind is Kind.TOKEN and text.strip("␣↵⇥") == condition.token:
                return node, f"token “{text}”"
            entropy, ending = self.entropies.get(before, 0.0), self.ending.get(before, 0.0)
            if condition.kind is Kind.ENTROPY and entropy > condition.value:
                return node, f"entropy {entropy:.1f} bits before “{text}”"
            if condition.kind is Kind.END and ending > condition.value:
                return node, f"p(end) {number(ending, 2)} before “{text}”"
        return None, ""

    def tokens(self) -> list[int]:
        """The tokens that are final."""
        return [self.nodes.token[node] for node in self.text]


def differ(texts: Sequence[Sequence[int]]) -> int | None:
    """The first place, counted from 0, at which texts differ as far as they have come; None if nowhere."""
    for place in range(max(map(len, texts), default=0)):
        if len({text[place] for text in texts if len(text) > place}) > 1:
            return place
    return None


def stops(
    traces: Sequence[Trace], conditions: Sequence[Condition], ends: Collection[int] = ()
) -> list[list[Stop]]:
    """The stops of finished traces, lane by lane; where lanes differ is a stop of each of them."""
    watches = [Watch(conditions, trace.prompt, trace.vocabulary, ends) for trace in traces]
    found = [
        [stop for step in trace.steps for stop in watch.feed(step)]
        for watch, trace in zip(watches, traces, strict=True)
    ]
    apart = differ([watch.tokens() for watch in watches])
    condition = Condition(Kind.DIFFER)
    if condition in conditions and apart is not None:
        for made, watch, trace in zip(found, watches, traces, strict=True):
            if len(watch.text) > apart:
                made.append(parted(trace, watch.text[apart], apart + 1))
    return found


def parted(trace: Trace, node: int, position: int) -> Stop:
    """That lanes differ, at the step in which a lane's token there became final."""
    step = next(step.index for step in trace.steps if any(node in event.nodes for event in step.of(Commit)))
    return Stop(step, Condition(Kind.DIFFER), node, position, f"lanes differ, at token {position}")
