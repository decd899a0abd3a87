"""Writes the trace of an answer, token by token, and notes for the reader. Makes nothing up: what a file does
not say, such as which tokens were rejected, is UNKNOWN.
"""

import math

from decoders.trace.endings import IMPORTED
from decoders.trace.events import Commit, Distribution, Event, Note, Propose, Step, Verdict
from decoders.trace.imports.answer import MAX_NAME, MAX_PROMPT, SLACK, Answer, Unlisted, Written, check_size
from decoders.trace.imports.checks import entropy_of, judged, mass_of
from decoders.trace.scores import Measure, Rank, ScoreName
from decoders.trace.trace import Trace

UNKNOWN, ABSENT = "□", "…"  # stand for a rejected draft token and for the prompt
LISTED_OPTIONS, LISTED_CHARACTERS = 8, 60  # of the note that lists them
UNTOLD = "untold"  # the source of such tokens
ABOUT = "Imported: {}; entropies are lower bounds, as mass that is not named counts as one token."
STAGES = {
    None: "log-probabilities as the file gives them, which may be before or after its processors",
    True: "probabilities after the server's processors",
    False: "log-probabilities before the server's processors",
}
OPTIONS = "Imported: each option is one node, with the log-probability of its whole text."
TEXT_ALONE = "Imported: the file has a text without log-probabilities; it is shown in one piece."
NO_PROMPT = "The file has no prompt (…)."
ROUNDS = (
    "Imported: the file says how many tokens each round drafted and accepted, not which were rejected (□)."
)
NO_ROUNDS = "The file counts speculation but not round by round: rounds are not shown."
COUNTED = "It counts {} drafted and {} accepted tokens."
CUT = (
    "The text ends inside a round. Accepted tokens that the file counts and that are not in its text (□): {}."
)
AFTER = "The text ends before the file's rounds do. Rounds that are not shown, and that no metric counts: {}."
LEAD = "{} tokens were written outside the rounds that the file lists; they are shown at the front."
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
DRAFT = "The draft's likely tokens at each place are those that the file lists."


def trace_of(answer: Answer) -> Trace:
    """The trace of an answer, with the report on its numbers. Raises Refusal with one sentence if it has too
    few or too many tokens, or numbers that are no log-probabilities.
    """
    if not answer.options:
        check_size(len(answer.tokens), sum(len(token.top) for token in answer.tokens))
    trust = judged(answer)
    title = f"Imported: {answer.model[:MAX_NAME]}" if answer.model else "Imported"
    before = answer.prompt[-MAX_PROMPT:] if answer.prompt else ABSENT
    models = {"target": answer.model or "unknown"}
    trace = Trace("imported", title, {}, 0, models, [0], {0: before.encode()}, trust=trust.to_json())
    writer = Writer(trace, answer)
    return writer.write_options() if answer.options else writer.write()


def notes_of(answer: Answer) -> list[Event]:
    """What a reader has to know about these tokens."""
    tokens, rounds, counts = answer.tokens, answer.rounds, answer.counts
    lead, own = outside(tokens, rounds), sum(token.own.logprob is None for token in tokens)
    inside, over = begun(rounds, len(tokens) - lead)
    bare = own == len(tokens) and not any(token.top for token in tokens)
    says = {
        ABOUT.format(STAGES[answer.processed]): not bare,
        TEXT_ALONE: bare and len(tokens) == 1,
        NO_PROMPT: not answer.prompt,
        **dict.fromkeys(answer.notes, True),
        ROUNDS: bool(rounds),
        NO_ROUNDS: (counts.drafted or counts.drafts) and not rounds,
        COUNTED.format(counts.drafted, counts.accepted): counts.drafted and not rounds,
        LEAD.format(lead): rounds and lead > 1,
        CUT.format(over): over > 0,
        AFTER.format(len(rounds) - len(inside)): len(inside) < len(rounds),
        NOTHING_LISTED: not bare and not any(token.top for token in tokens),
        NO_OWN.format(own, len(tokens)): own > 0 and not bare,
        SAME_TEXT: any(token.own.which or any(one.which for one in token.top) for token in tokens),
        LISTED_TWICE: any(token.twice for token in tokens),
        DRAFT: any(token.draft for token in tokens),
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

    def __init__(self, trace: Trace, answer: Answer):
        self.trace, self.answer, self.tokens = trace, answer, answer.tokens
        self.ids = {(trace.vocabulary[0], 0): 0}
        self.tip = self.newest = self.written = 0
        self.scales = {  # the largest value of each measure
            name: max((value for value in values if value is not None), default=0.0) or 1.0
            for name, values in answer.measures.items()
        }

    def write(self) -> Trace:
        """Writes all steps and ends the trace: first the tokens that no round wrote, then round by round."""
        rounds, notes = self.answer.rounds, notes_of(self.answer)
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

    def write_options(self) -> Trace:
        """Writes the options as siblings, ranked by their log-probabilities, and commits the best one."""
        options = self.answer.options
        order = sorted(range(len(options)), key=lambda at: -options[at].logprob)
        best_first = "; ".join(
            f"{options[at].text[:LISTED_CHARACTERS]!r} {options[at].logprob:.2f}"
            for at in order[:LISTED_OPTIONS]
        )
        notes = [OPTIONS, f"Best first: {best_first}.", *self.answer.notes]
        events: list[Event] = [Note(text) for text in notes]
        for at, option in enumerate(options):
            node, token = self.next_node(), self.id_of(option.text.encode(), at)
            events.append(Propose(node, 0, token, min(option.logprob, 0.0), "target", slot=at))
        for rank, at in enumerate(order, 1):
            logprob = min(options[at].logprob, 0.0)
            events.append(Rank(at + 1, ScoreName.SUM_LOGPROB, logprob, rank=rank))
            events.append(Verdict(at + 1, "finished"))
        best = order[0]
        events.append(Commit([best + 1], [min(options[best].logprob, 0.0)]))
        self.step(events)
        self.trace.ended = IMPORTED
        return self.trace

    def step(self, events: list[Event]) -> None:
        """Writes one step."""
        self.trace.append(Step(len(self.trace.steps), events))

    def token(self, source: str) -> list[Event]:
        """The events of the next token: its distributions, its proposal, its commit, and what the file
        measured there.
        """
        token = self.tokens[self.written]
        own = token.own
        parent, self.tip = self.tip, self.next_node()
        given = own.logprob if own.logprob is None else min(own.logprob, 0.0)
        logprob = given if source == "target" else None
        measures = [
            Measure(self.tip, name, value, scale=self.scales[name])
            for name, values in self.answer.measures.items()
            if (value := values[self.written]) is not None
        ]
        self.written += 1
        offers = []
        if token.top and mass_of(token) <= 1 + SLACK:  # more than 1 is no distribution
            offers.append(self.offer(parent, token, "target"))
            if token.draft:
                offers.append(self.offer(parent, Written(Unlisted(b"", 0, None), token.draft), "draft"))
        return [
            *offers,
            Propose(self.tip, parent, self.id_of(own.piece, own.which), logprob, source),
            Commit([self.tip], [given]),
            *measures,
        ]

    def offer(self, node: int, token: Written, view: str) -> Distribution:
        """The distribution after a node, as far as the file lists it. A written token that is not listed
        counts separately in the entropy.
        """
        pairs = [[self.id_of(one.piece, one.which), min(one.logprob, 0.0)] for one in token.top]
        rest = max(0.0, 1.0 - math.fsum(math.exp(value) for _, value in pairs))
        return Distribution(node, view, pairs, rest, entropy_of(token))

    def round(self, drafted: int, accepted: int, notes: list[Event]) -> None:
        """Writes one round: the accepted tokens, the unknown rejected ones, and the target's own. Accepted
        tokens that the text has no room for are unknown, too.
        """
        events, in_text = list(notes), min(accepted, len(self.tokens) - self.written)
        for _ in range(in_text):
            events += self.token("draft")
            events.append(Verdict(self.tip, "accepted"))
        above = self.tip
        for place in range(in_text, drafted):
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
