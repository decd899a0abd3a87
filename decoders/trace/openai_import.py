"""Builds a trace from another server's answer, without a model. Knows JSON, no model and no pages.

Reads chat completions with log-probabilities in OpenAI's format (`choices[0].logprobs.content`) and, if
present, vLLM's speculative metrics of the request (`metrics.speculative_decoding`, detailed). Such answers do
not say which tokens were drafted and rejected: these are UNKNOWN.
"""

import math

from decoders.refusal import Refusal
from decoders.trace.endings import IMPORTED
from decoders.trace.events import Commit, Distribution, Event, Note, Propose, Step, Verdict
from decoders.trace.trace import Trace

UNKNOWN, ABSENT = "□", "…"  # stand for a rejected draft token and for the prompt
UNTOLD = "untold"  # the source of such tokens
MAX_TOKENS = 4096
MAX_NAME = 60  # characters of a model's name in a title
ABOUT = (
    "Imported: log-probabilities as the server gave them, which may be before or after its processors; "
    "entropies are lower bounds, as mass that is not named counts as one token. The file has no prompt."
)
ROUNDS = (
    "Imported: the file says how many tokens each round drafted and accepted, not which were rejected (□)."
)
NO_ROUNDS = (
    "The file has speculative metrics but no per_step_drafted and per_step_accepted: rounds are not shown."
)
CUT = (
    "The text ends inside a round. Accepted tokens that the file counts and that are not in its text (□): {}."
)
AFTER = "The text ends before the file's rounds do. Rounds that are not shown, and that no metric counts: {}."
LEAD = "{} tokens were written outside the rounds that the file lists; they stand at the front."


def is_response(record: object) -> bool:
    """Whether a JSON value looks like a server's answer."""
    return isinstance(record, dict) and isinstance(record.get("choices"), list)


def has_logprobs(record: dict) -> bool:
    """Whether an answer has log-probabilities."""
    try:
        return bool(record["choices"][0]["logprobs"])
    except (KeyError, IndexError, TypeError):
        return False


def from_response(record: dict) -> Trace:
    """The trace of the first choice. Raises ValueError with one sentence if it holds no log-probabilities."""
    try:
        content = record["choices"][0]["logprobs"]["content"]
        tokens = [read(entry) for entry in content]
        metrics = (record.get("metrics") or {}).get("speculative_decoding") or {}
        rounds = list(
            zip(*(whole(metrics[key]) for key in ("per_step_drafted", "per_step_accepted")), strict=True)
        )
    except KeyError as error:
        if error.args[0] not in ("per_step_drafted", "per_step_accepted"):
            raise unusable() from error
        rounds = []
    except (TypeError, IndexError, AttributeError, ValueError, OverflowError) as error:
        raise unusable() from error
    if not 1 <= len(tokens) <= MAX_TOKENS:
        raise Refusal(f"An answer of 1 to {MAX_TOKENS:,} tokens can be read; this one has {len(tokens):,}.")
    if any(accepted > drafted for drafted, accepted in rounds):
        raise Refusal("This answer contradicts itself: a round accepted more tokens than it drafted.")
    named = isinstance(record.get("model"), str) and record["model"]
    model, title = (named, f"Imported: {named[:MAX_NAME]}") if named else ("unknown", "Imported")
    trace = Trace("imported", title, {}, 0, {"target": model}, [0], {0: ABSENT.encode()})
    return Writer(trace, tokens).write(rounds, bool(metrics))


def unusable() -> ValueError:
    """The error for an answer that cannot be read; it says what to do."""
    return ValueError(
        "This answer has no log-probabilities in OpenAI's shape; ask the server with logprobs: true and "
        "top_logprobs, and open the whole JSON answer."
    )


def read(entry: dict) -> tuple[bytes, float, list[tuple[bytes, float]]]:
    """(a token's bytes, its log-probability, the listed alternatives, most likely first)."""
    top = [(piece(one), nats(one)) for one in entry.get("top_logprobs") or [entry]]
    if piece(entry) not in (name for name, _ in top):
        top.append((piece(entry), nats(entry)))
    return piece(entry), nats(entry), sorted(top, key=lambda pair: -pair[1])


def piece(entry: dict) -> bytes:
    """The bytes of a token; servers may leave them out."""
    given = entry.get("bytes")
    return entry["token"].encode() if given is None else bytes(given)


def nats(entry: dict) -> float:
    """A log-probability in nats; servers write -9999 for -inf."""
    value = entry["logprob"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(value)
    return min(0.0, float(value))


def whole(values: list) -> list[int]:
    """Counts of at most MOST_TOKENS each."""
    if not all(type(value) is int and 0 <= value <= MAX_TOKENS for value in values):
        raise TypeError(values)
    return values


def begun(rounds: list[tuple[int, int]], room: int) -> tuple[list[tuple[int, int]], int]:
    """The rounds (drafted, accepted) that begin within `room` tokens of text, and how many accepted tokens of
    the last one are beyond it.
    """
    inside = []
    for drafted, accepted in rounds:
        if room <= 0:
            break
        inside.append((drafted, accepted))
        room -= accepted + 1
    return inside, max(0, -room - 1)


class Writer:
    """Writes the steps of an imported trace, token by token."""

    def __init__(self, trace: Trace, tokens: list[tuple[bytes, float, list[tuple[bytes, float]]]]):
        self.trace, self.tokens = trace, tokens
        self.ids = {ABSENT.encode(): 0}
        self.tip = self.newest = self.written = 0

    def write(self, rounds: list[tuple[int, int]], has_metrics: bool) -> Trace:
        """Writes all steps and ends the trace: first the tokens that no round wrote, then round by round."""
        notes: list[Event] = [Note(ABOUT)]
        if has_metrics:
            notes.append(Note(ROUNDS if rounds else NO_ROUNDS))
        lead = max(0, len(self.tokens) - sum(accepted + 1 for _, accepted in rounds))
        if rounds and lead > 1:
            notes.append(Note(LEAD.format(lead)))
        inside, over = begun(rounds, len(self.tokens) - lead)
        notes += [Note(CUT.format(over))] if over else []
        notes += [Note(AFTER.format(len(rounds) - len(inside)))] if len(inside) < len(rounds) else []
        for _ in range(lead):
            self.step([*notes, *self.token("target")])
            notes = []
        for drafted, accepted in inside:
            self.round(drafted, accepted, notes)
            notes = []
        self.trace.ended = IMPORTED
        return self.trace

    def step(self, events: list[Event]) -> None:
        """Writes one step and commits the tokens of its events, in order."""
        self.trace.append(Step(len(self.trace.steps), events))

    def token(self, source: str) -> list[Event]:
        """The events of the next token: its distribution, its proposal, and its commit."""
        own, logprob, top = self.tokens[self.written]
        probs = [math.exp(value) for _, value in top]
        rest = max(0.0, 1.0 - sum(probs))
        entropy = -sum(p * math.log(p) for p in (*probs, rest) if p > 0)
        pairs = [[self.id_of(name), value] for name, value in top]
        parent, self.tip = self.tip, self.next_node()
        self.written += 1
        return [
            Distribution(parent, "target", pairs, rest, max(0.0, entropy)),
            Propose(self.tip, parent, self.id_of(own), logprob if source == "target" else None, source),
            Commit([self.tip], [logprob]),
        ]

    def round(self, drafted: int, accepted: int, notes: list[Event]) -> None:
        """Writes one round: the accepted tokens, the unknown rejected ones, and the target's own. Accepted
        tokens that the text has no room for are unknown, too.
        """
        events, told = list(notes), min(accepted, len(self.tokens) - self.written)
        for _ in range(told):
            events += self.token("draft")
            events.append(Verdict(self.tip, "accepted"))
        above = self.tip
        for place in range(told, drafted):
            node = self.next_node()
            events.append(Propose(node, above, self.id_of(UNKNOWN.encode()), None, UNTOLD))
            fate = "accepted" if place < accepted else "rejected" if place == accepted else "never reached"
            events.append(Verdict(node, fate))
            above = node
        if self.written < len(self.tokens):
            events += self.token("target")
            events.append(Verdict(self.tip, "resampled" if drafted > accepted else "bonus"))
        self.step(events)

    def next_node(self) -> int:
        """The id of the next node."""
        self.newest += 1
        return self.newest

    def id_of(self, name: bytes) -> int:
        """The token id of some bytes."""
        token_id = self.ids.setdefault(name, len(self.ids))
        self.trace.vocabulary[token_id] = name
        return token_id
