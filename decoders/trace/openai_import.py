"""Builds a trace from another server's answer, without a model. Knows JSON, no model and no pages.

Reads chat completions with log-probabilities in OpenAI's format (`choices[0].logprobs.content`) and, if
present, vLLM's speculative metrics of the request (`metrics.speculative_decoding`, detailed). Such answers do
not say which tokens were drafted and rejected: these are UNKNOWN.

Servers name tokens by their texts, which several tokens may share: those that are not whole characters, or,
in some tokenizers, a word with and without the space in front. In the trace such tokens have the same bytes
and different ids.
"""

import math
from typing import NamedTuple

from decoders.refusal import Refusal
from decoders.trace.endings import IMPORTED
from decoders.trace.events import Commit, Distribution, Event, Note, Propose, Step, Verdict
from decoders.trace.trace import Trace

UNKNOWN, ABSENT = "□", "…"  # stand for a rejected draft token and for the prompt
UNTOLD = "untold"  # the source of such tokens
MAX_TOKENS = 4096
MAX_LISTED = 100_000  # tokens that are listed beside those that were written, of all places together
MAX_DRAFTED = 4 * MAX_TOKENS  # tokens of all rounds together
MAX_NAME = 60  # characters of a model's name in a title
# OpenAI and vLLM write -9999 for a token that has no probability or is not among the most likely ones,
# llama.cpp the lowest number of its format.
NO_LOGPROB = -9000.0
# By which rounding may raise a probability, or a sum of them, above 1: a logarithm with two decimals, or in
# bfloat16, is off by up to half a hundredth.
SLACK = 0.01
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
NOTHING_LISTED = (
    "The file lists no likely tokens beside those that were written (top_logprobs), so no distributions are "
    "shown."
)
NO_OWN = (
    "The server gives no log-probability for {} of the {} tokens that it wrote: it writes -9999 or null for "
    "tokens outside those that it lists. They have none here either."
)
SAME_TEXT = (
    "At some places the file lists the same text several times with different log-probabilities; these count "
    "as different tokens."
)
LISTED_TWICE = (
    "At some places the file lists the same text twice with the same log-probability; the second one is left "
    "out."
)
SEVERAL = "The file holds {} answers; this is the first."
OTHER_SHAPES = {  # a key of an answer -> whose shape it is
    "completion_probabilities": "llama.cpp's own endpoint",
    "generated_text": "TGI's own endpoint",
    "meta_info": "SGLang's own endpoint",
    "output": "OpenAI's Responses",
    "candidates": "Gemini's own endpoint",
    "done": "Ollama's own endpoint",
}
NO_CHAT = (
    "This is an answer of {}, which cannot be read here; ask the server for a chat completion in OpenAI's "
    "shape, with logprobs: true and top_logprobs."
)
FAILED = "This is a server's error message, not its answer; correct the request and open the answer."
STREAMED = "This is a stream of events; ask the server with stream: false, and open the whole JSON answer."


class Listed(NamedTuple):
    """A token that the server listed: its bytes, which of the tokens with these bytes it is at its place,
    from 0, and its log-probability.
    """

    piece: bytes
    which: int
    logprob: float


class Unlisted(NamedTuple):
    """A token that the server wrote but did not list; it may have left out its log-probability."""

    piece: bytes
    which: int
    logprob: float | None


class Written(NamedTuple):
    """A token that the server wrote, the most likely tokens at its place, most likely first, and whether one
    of them was listed twice.
    """

    own: Listed | Unlisted
    top: list[Listed]
    twice: bool


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
    """The trace of the first choice. Raises Refusal with one sentence if it holds no log-probabilities, or
    numbers that are none.
    """
    try:
        content = record["choices"][0]["logprobs"]["content"]
        listed = sum(len(entry.get("top_logprobs") or ()) for entry in content)
        if not 1 <= len(content) <= MAX_TOKENS:
            count = f"{len(content):,}"
            raise Refusal(f"An answer of 1 to {MAX_TOKENS:,} tokens can be read; this one has {count}.")
        if listed > MAX_LISTED:
            raise Refusal(
                f"This answer lists {listed:,} likely tokens, and {MAX_LISTED:,} can be read; ask for fewer "
                "top_logprobs."
            )
        tokens = [read_token(entry) for entry in content]
        metrics = (record.get("metrics") or {}).get("speculative_decoding") or {}
        rounds = rounds_of(metrics)
    except Refusal:
        raise
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError) as error:
        raise unusable(record) from error
    for place, token in enumerate(tokens):
        check_token(place, token)
    named = isinstance(record.get("model"), str) and record["model"]
    model, title = (named, f"Imported: {named[:MAX_NAME]}") if named else ("unknown", "Imported")
    trace = Trace("imported", title, {}, 0, {"target": model}, [0], {0: ABSENT.encode()})
    return Writer(trace, tokens).write(
        rounds, notes_of(tokens, len(record["choices"]), bool(metrics), rounds)
    )


def unusable(record: dict) -> Refusal:
    """The error for an answer that cannot be read; it says what to do."""
    choice = next(iter(record["choices"]), None)
    logprobs = choice.get("logprobs") if isinstance(choice, dict) else None
    if isinstance(logprobs, dict) and "tokens" in logprobs:
        return Refusal(NO_CHAT.format("the endpoint /v1/completions"))
    if isinstance(choice, dict) and "delta" in choice:
        return Refusal(STREAMED)
    return Refusal(
        "This answer has no log-probabilities in OpenAI's shape; ask the server with logprobs: true and "
        "top_logprobs, and open the whole JSON answer."
    )


def other_shape(record: object) -> str | None:
    """Why an answer of another shape cannot be read, as a sentence that says what to do; None for a JSON
    value that is no answer known here.
    """
    first = record[0] if isinstance(record, list) and record else record
    if not isinstance(first, dict):
        return None
    if first.get("error") or first.get("object") == "error":
        return FAILED
    return next((NO_CHAT.format(whose) for key, whose in OTHER_SHAPES.items() if key in first), None)


def rounds_of(metrics: dict) -> list[tuple[int, int]]:
    """(tokens drafted, tokens accepted) by round; empty if the metrics do not list them."""
    if not {"per_step_drafted", "per_step_accepted"} <= set(metrics):
        return []
    drafted, accepted = whole(metrics["per_step_drafted"]), whole(metrics["per_step_accepted"])
    rounds = list(zip(drafted, accepted, strict=True))
    if any(accepted > drafted for drafted, accepted in rounds):
        raise Refusal("This answer contradicts itself: a round accepted more tokens than it drafted.")
    if sum(drafted) > MAX_DRAFTED:
        raise Refusal(
            f"The rounds of this answer drafted {sum(drafted):,} tokens, and {MAX_DRAFTED:,} can be shown; "
            "open a shorter answer."
        )
    return rounds


def read_token(entry: dict) -> Written:
    """A token with the alternatives that the server listed."""
    named = [(piece(one), nats(one)) for one in entry.get("top_logprobs") or []]
    known = [(name, value) for name, value in named if value is not None]
    top: list[Listed] = []
    count: dict[bytes, int] = {}
    for name, value in sorted(dict.fromkeys(known), key=lambda pair: -pair[1]):
        top.append(Listed(name, count.get(name, 0), value))
        count[name] = top[-1].which + 1
    return Written(own_of(piece(entry), nats(entry), top), top, len(set(known)) < len(known))


def own_of(name: bytes, value: float | None, top: list[Listed]) -> Listed | Unlisted:
    """The token that was written: the one listed with its bytes and nearly its log-probability, if any."""
    same = [one for one in top if one.piece == name]
    if value is not None and (alike := [one for one in same if near(one.logprob, value)]):
        return min(alike, key=lambda one: abs(one.logprob - value))
    return Unlisted(name, len(same), value)


def near(a: float, b: float) -> bool:
    """Whether two log-probabilities differ by rounding only."""
    return abs(math.exp(min(a, 1.0)) - math.exp(min(b, 1.0))) <= SLACK


def check_token(place: int, token: Written) -> None:
    """Raises Refusal with one sentence if the numbers of a token are no log-probabilities."""
    values = [one.logprob for one in token.top]
    if isinstance(token.own, Unlisted) and token.own.logprob is not None:
        values.append(token.own.logprob)
    if (high := max(values, default=0.0)) > SLACK:
        raise Refusal(
            f"Token {place + 1:,} of this answer has a log-probability of {high:.4g}, and none is above 0: "
            "these may be raw logits or probabilities. Open an answer with natural logarithms of "
            "probabilities."
        )
    if (mass := math.fsum(map(math.exp, values))) > 1 + SLACK:
        raise Refusal(
            f"The probabilities that this answer lists for token {place + 1:,} add up to {mass:.3g}, so they "
            "are none. Open an answer with natural logarithms of probabilities."
        )


def piece(entry: dict) -> bytes:
    """The bytes of a token; servers may leave them out."""
    given = entry.get("bytes")
    return entry["token"].encode() if given is None else bytes(given)


def nats(entry: dict) -> float | None:
    """A log-probability in nats; None if the server gives none."""
    value = entry["logprob"]
    if value is None:  # what some servers write for minus infinity
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(value)
    return float(value) if value > NO_LOGPROB else None


def whole(values: list) -> list[int]:
    """Counts of at most MAX_TOKENS each, as many as there can be tokens."""
    if len(values) > MAX_TOKENS or not all(
        type(value) is int and 0 <= value <= MAX_TOKENS for value in values
    ):
        raise TypeError(values)
    return values


def notes_of(
    tokens: list[Written], choices: int, has_metrics: bool, rounds: list[tuple[int, int]]
) -> list[Event]:
    """What a reader has to know about these tokens."""
    lead, own = outside(tokens, rounds), sum(token.own.logprob is None for token in tokens)
    inside, over = begun(rounds, len(tokens) - lead)
    says = {
        ABOUT: True,
        SEVERAL.format(choices): choices > 1,
        ROUNDS: bool(rounds),
        NO_ROUNDS: has_metrics and not rounds,
        LEAD.format(lead): rounds and lead > 1,
        CUT.format(over): over > 0,
        AFTER.format(len(rounds) - len(inside)): len(inside) < len(rounds),
        NOTHING_LISTED: not any(token.top for token in tokens),
        NO_OWN.format(own, len(tokens)): own > 0,
        SAME_TEXT: any(token.own.which or any(one.which for one in token.top) for token in tokens),
        LISTED_TWICE: any(token.twice for token in tokens),
    }
    return [Note(text) for text, holds in says.items() if holds]


def outside(tokens: list[Written], rounds: list[tuple[int, int]]) -> int:
    """How many tokens no round wrote."""
    return max(0, len(tokens) - sum(accepted + 1 for _, accepted in rounds))


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

    def __init__(self, trace: Trace, tokens: list[Written]):
        self.trace, self.tokens = trace, tokens
        self.ids = {(ABSENT.encode(), 0): 0}
        self.tip = self.newest = self.written = 0

    def write(self, rounds: list[tuple[int, int]], notes: list[Event]) -> Trace:
        """Writes all steps and ends the trace: first the tokens that no round wrote, then round by round."""
        lead = outside(self.tokens, rounds)
        inside, _ = begun(rounds, len(self.tokens) - lead)
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
        own, top, _ = self.tokens[self.written]
        parent, self.tip = self.tip, self.next_node()
        self.written += 1
        told = own.logprob if own.logprob is None else min(own.logprob, 0.0)
        logprob = told if source == "target" else None
        return [
            *([self.offer(parent, own, top)] if top else []),
            Propose(self.tip, parent, self.id_of(own.piece, own.which), logprob, source),
            Commit([self.tip], [told]),
        ]

    def offer(self, node: int, own: Listed | Unlisted, top: list[Listed]) -> Distribution:
        """The distribution after a node; the token that was written counts for itself where it is not
        listed.
        """
        pairs = [[self.id_of(one.piece, one.which), min(one.logprob, 0.0)] for one in top]
        probs = [math.exp(value) for _, value in pairs]
        rest = max(0.0, 1.0 - math.fsum(probs))
        if isinstance(own, Unlisted) and own.logprob is not None:
            probs.append(min(rest, math.exp(own.logprob)))
        others = max(0.0, 1.0 - math.fsum(probs))
        entropy = -sum(p * math.log(p) for p in (*probs, others) if p > 0)
        return Distribution(node, "target", pairs, rest, max(0.0, entropy))

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
            events.append(Propose(node, above, self.id_of(UNKNOWN.encode(), 0), None, UNTOLD))
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

    def id_of(self, name: bytes, which: int) -> int:
        """The token id of some bytes, one for each of the tokens that share them."""
        token_id = self.ids.setdefault((name, which), len(self.ids))
        self.trace.vocabulary[token_id] = name
        return token_id
