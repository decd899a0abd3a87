"""The events of a lane and its steps: what happened, recorded as it happens, and their JSON form."""

from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args

from decoders.trace.reasons import Reason
from decoders.trace.scores import Placed, Scored

GIVEN = ("copied", "person")  # sources of tokens with which a lane begins
STATUSES = (
    "accepted",
    "rejected",
    "never reached",
    "resampled",
    "bonus",
    "pruned",
    "merged",
    "finished",
    "forced",
)


@dataclass(slots=True)
class Forward:
    """A model, or a part of it, ran once. `start` and `seconds` are measured, in seconds since the lane
    began.
    """

    model: str  # "target", "draft", ...
    kind: str  # "prefill", "decode", "draft", "verify", "plan" (chose what is skipped), "lens", "learn"
    tokens: int  # tokens computed
    rows: int  # sequences or tree frontiers scored in this call
    start: float
    seconds: float
    scope: str | None = None  # which layers or part of the cache, if not all
    shared: int = 0  # of `tokens`, those that another lane had computed already
    share: float = 1.0  # of the model's attention and MLP blocks that ran
    lanes: int = 1  # whose rows ran in this forward; `seconds` is this lane's share, by rows


@dataclass(slots=True)
class Propose:
    """A candidate was proposed: `node` is `token` after `parent`. `logprob`: under the proposer."""

    node: int
    parent: int
    token: int
    logprob: float | None
    # "target", "draft", "prompt", "recycled", "guess", "constraint" (which forces it); "copied" and "person":
    # see given_tokens.py
    source: str
    slot: int = 0  # rank among its siblings, in the order in which they are tried
    fill: str | None = None  # how the slot was filled: "sampled without replacement", "sampled", "fixed"

    @property
    def given(self) -> bool:
        """Whether the lane began with this token and did not decode it; see given_tokens.py."""
        return self.source in GIVEN


def acceptance(p: float, q: float) -> float:
    """The probability that a drafted token is accepted, min(1, p / q) without a division by zero: accept iff
    u * q < p (algorithm 1 of Leviathan et al., 2023).
    """
    if p <= 0.0:
        return 0.0
    return 1.0 if p >= q else p / q


@dataclass(slots=True)
class Verdict:
    """What became of a node. p, q: probabilities under target and draft at its test; u: the uniform number
    that decided; acceptance: the probability of passing the test, if it is not min(1, p / q). why: what
    decided, as codes with numbers; reason: the sentence of a strategy that records no codes.
    """

    node: int
    status: str
    p: float | None = None
    q: float | None = None
    u: float | None = None
    reason: str | None = None
    into: int | None = None
    acceptance: float | None = None
    why: tuple[Reason, ...] = ()

    @property
    def passes(self) -> float | None:
        """The probability of passing the test: as recorded, else min(1, p / q); None if p or q is unknown."""
        if self.acceptance is not None or self.p is None or self.q is None:
            return self.acceptance
        return acceptance(self.p, self.q)


@dataclass(slots=True)
class Commit:
    """These nodes became output. `logprobs`: of each under the target, before any processor."""

    nodes: list[int]
    logprobs: list[float | None]


@dataclass(slots=True)
class Distribution:
    """The distribution after `node`. `top`: [token, logprob] pairs, most likely first; `rest`: the mass of
    the other tokens.
    """

    node: int
    # "target" (before processors), "processed", "draft", "residual" (after a rejection), "unwanted" (a
    # distribution that is contrasted with the target's; level says which), "combined" (the contrast of both),
    # "forbidden" (what the lane's constraint removed; entropy is that of what it kept)
    view: str
    top: list[list[float]]
    rest: float
    entropy: float  # nats, over the whole vocabulary
    level: str | None = None  # the stage: a processor that others follow, or such as "after test 1"
    among: int | None = None  # number of tokens that no processor has removed
    kept: float | None = None  # of "forbidden": the log of the mass that the constraint kept, in nats
    unseen: float | None = None  # of a server that lists only the most likely tokens: the mass of all others


@dataclass(slots=True)
class Depend:
    """`target` waited for or came from `source` (nodes, or positions for kind "causal")."""

    source: int
    target: int
    weight: float
    # "attention" (nodes; mean over layers and heads), "causal" (positions; found by putting a token back),
    # "conflict" (positions filled together; weight is their pointwise mutual information, below 0),
    # "copy" and "match" (nodes; of a draft that was copied from the text, see docs/trace.md),
    # "declaration" (nodes; the target is a name that the source declares), "note" (nodes; ends of blocks of
    # parallel streams: the target read the note that was written after the source)
    kind: str


@dataclass(slots=True)
class Cell:
    """State of a position in an iteration of a parallel decoder. Positions count the prompt too."""

    position: int
    iteration: int
    token: int
    # of Jacobi iterations: "guess" (start value), "changed", "kept", "settled" (final in this iteration);
    # of a canvas: see docs/trace.md
    state: str
    confidence: float | None = None
    level: str | None = None
    entropy: float | None = None  # nats, of what a model put at a masked position


@dataclass(slots=True)
class Note:
    """One sentence for the reader."""

    text: str


# States of a Cell that are final. On a canvas "changed" may be final too; in Jacobi iterations it never is.
FINAL_STATES = frozenset(
    ("settled", "committed", "anchor", "fixed", "relaxed", "forced", "filtered", "verified", "lookahead")
)

Event = Forward | Propose | Verdict | Commit | Scored | Distribution | Depend | Cell | Placed | Note
EVENTS: dict[str, type] = {kind.__name__: kind for kind in get_args(Event)}
FIELDS = {c: [f.name for f in fields(c)] for c in EVENTS.values()}
REQUIRED = {  # fields without a default, unset
    c: {f.name: None for f in fields(c) if f.default is MISSING and f.default_factory is MISSING}
    for c in EVENTS.values()
}


@dataclass(slots=True)
class Step:
    """One turn of a strategy's own loop. `seconds`: the lane's own computing time from its start to the end
    of this step. `slots`: KV slots of the target's cache that the lane held then; None if unknown. `places`:
    for each event the number of the place in the strategy's code that recorded it, see code.py; None if they
    are not known.
    """

    index: int
    events: list[Event]
    seconds: float = 0.0
    slots: int | None = None
    places: list[int] | None = None

    def of(self, kind: type) -> list:
        """The events of one type, in order; `Score` stands for all of its kinds."""
        return [event for event in self.events if isinstance(event, kind)]


def event_to_json(event: Event) -> dict:
    """{"type": name, ...fields that are set}."""
    kind = type(event)
    record: dict[str, Any] = {"type": kind.__name__}
    for name in FIELDS[kind]:
        value = getattr(event, name)
        if value is not None and value != {} and value != ():
            record[name] = value
    if "why" in record:
        record["why"] = [reason.to_json() for reason in record["why"]]
    return record


def step_to_json(step: Step) -> dict:
    """{index, seconds, events, and slots if they are known}."""
    record = {"index": step.index, "seconds": step.seconds, "events": [event_to_json(e) for e in step.events]}
    return record if step.slots is None else record | {"slots": step.slots}


def event_from_json(record: dict) -> Event:
    """The inverse of `event_to_json`; a missing field without a default becomes None."""
    if record["type"] == "Score":  # of version 1
        from decoders.trace import old_scores  # few files need it

        return old_scores.event_of(record)
    kind = EVENTS[record["type"]]
    if "chance" in record:  # the name of Verdict.acceptance in older files
        record = {"acceptance": record["chance"]} | {k: v for k, v in record.items() if k != "chance"}
    if "why" in record:
        record = record | {"why": tuple(map(Reason.from_json, record["why"]))}
    return kind(**{**REQUIRED[kind], **{k: v for k, v in record.items() if k != "type"}})
