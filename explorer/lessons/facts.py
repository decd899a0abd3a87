"""Facts that a lesson states about a lane, all computed from its trace; no count is written by hand.

Entropies are in bits, log-probabilities in nats. A fact that the trace does not record is None.
"""

import math
from collections.abc import Callable
from itertools import islice

from decoders.trace.events import Cell, Depend, Distribution, Propose, Verdict
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.token_text import visible
from decoders.trace.trace import Trace
from visualizers.analysis.lane_stats import LaneFacts, Token

LN2 = math.log(2)
CERTAIN_BITS = 0.5  # below this entropy the model is nearly certain: its top-1 token has about .9 or more


class Reading:
    """One lane as a lesson reads it: its tokens, and for every node the step that proposed it and its
    verdicts.
    """

    def __init__(self, trace: Trace):
        self.trace = trace
        self.facts = LaneFacts(trace)
        self.tokens: list[Token] = self.facts.tokens
        self.nodes = self.facts.nodes
        self.born: dict[int, int] = {}  # node -> step
        self.offers: dict[tuple[int, str], Distribution] = {}  # (node, view) -> what was on offer after it
        self.draws: dict[int, float] = {}  # node -> the uniform number that chose it
        self.verdicts: list[tuple[int, Verdict]] = []  # (step, verdict), in order
        self.cells: list[tuple[int, Cell]] = []
        self.waits: list[tuple[int, Depend]] = []
        for step in trace.steps:
            for event in step.events:
                self._read(step.index, event)

    def _read(self, step: int, event) -> None:
        match event:
            case Propose():
                self.born[event.node] = step
            case Distribution() if event.level is None:
                self.offers.setdefault((event.node, event.view), event)
            case Measure(name=ScoreName.DRAW):
                self.draws[event.node] = event.total
            case Verdict():
                self.verdicts.append((step, event))
            case Cell():
                self.cells.append((step, event))
            case Depend(kind="causal"):
                self.waits.append((step, event))

    @property
    def last(self) -> int:
        """The index of the last step."""
        return len(self.trace.steps) - 1

    def word(self, token: int) -> str:
        """A token as it is displayed."""
        return visible(self.trace.vocabulary.get(token, b"?"))

    def text_of(self, node: int) -> str:
        """The token of a node as it is displayed."""
        return self.word(self.nodes.token[node])

    def position(self, node: int) -> int:
        """1 for the first new token after the prompt."""
        return max(0, self.nodes.position[node])

    def before(self, node: int, count: int = 4) -> str:
        """The last few tokens before a node, as plain text."""
        path = [*islice(self.nodes.upwards(self.nodes.parent[node]), count)][::-1]
        text = b"".join(self.trace.vocabulary.get(self.nodes.token[n], b"") for n in path)
        return text.decode("utf-8", "replace").strip()

    def offer(self, node: int, view: str = "target") -> Distribution | None:
        """What was on offer where `node` was chosen."""
        return self.offers.get((self.nodes.parent[node], view))


def probability_of(offer: Distribution | None, token: int) -> float | None:
    """The probability of `token` in a recorded distribution; None if that token was not recorded."""
    top = offer.top if offer else []
    return next((math.exp(min(0.0, logprob)) for t, logprob in top if int(t) == token), None)


# ---- facts of whole lanes: each takes the lanes of a run (by number, from 1) and its own arguments ---------

FACTS: dict[str, Callable] = {}


def fact(function: Callable) -> Callable:
    """Registers a fact under its name."""
    FACTS[function.__name__] = function
    return function


@fact
def logprob(lanes: dict[int, Reading], lane: int, first: int | None = None) -> float:
    """The sum of the log-probabilities of the first (or all) committed tokens."""
    return math.fsum(t.logprob for t in lanes[lane].tokens[:first] if t.logprob is not None)


@fact
def logprob_per_token(lanes: dict[int, Reading], lane: int) -> float | None:
    """The mean log-probability of the committed tokens."""
    return logprob(lanes, lane) / len(lanes[lane].tokens) if lanes[lane].tokens else None


@fact
def kept_per_token(lanes: dict[int, Reading], lane: int) -> float | None:
    """The geometric mean of the probability mass that the constraint kept per token; None without a
    constraint.
    """
    kept, tokens = lanes[lane].trace.costs.log_kept, lanes[lane].tokens
    return math.exp(kept / len(tokens)) if kept is not None and tokens else None


@fact
def total(lanes: dict[int, Reading], lane: int, name: str) -> float:
    """One of the lane's totals: target_forwards, target_tokens, draft_forwards, new_tokens, seconds ..."""
    return lanes[lane].trace.costs.totals()[name]


@fact
def tokens_per_forward(lanes: dict[int, Reading], lane: int) -> float | None:
    """Committed tokens over target forwards."""
    return ratio(total(lanes, lane, "new_tokens"), total(lanes, lane, "target_forwards"))


@fact
def positions_per_token(lanes: dict[int, Reading], lane: int) -> float | None:
    """Tokens that the target evaluated, the prompt's left out, over committed tokens."""
    own = lanes[lane]
    read = total(lanes, lane, "target_tokens") - len(own.trace.prompt)
    return ratio(read, total(lanes, lane, "new_tokens"))


@fact
def seconds_per_token(lanes: dict[int, Reading], lane: int) -> float | None:
    """The lane's own measured computing time per committed token, in milliseconds."""
    per = ratio(total(lanes, lane, "seconds"), total(lanes, lane, "new_tokens"))
    return None if per is None else 1000 * per


@fact
def acceptance(lanes: dict[int, Reading], lane: int) -> float | None:
    """Accepted over proposed drafted tokens."""
    return ratio(total(lanes, lane, "accepted"), total(lanes, lane, "proposed"))


@fact
def rounds(lanes: dict[int, Reading], lane: int) -> int:
    """Rounds that drafted something."""
    return len(lanes[lane].facts.rounds)


@fact
def mean_entropy(lanes: dict[int, Reading], lane: int) -> float | None:
    """The mean entropy of the target where the committed tokens were chosen."""
    known = [t.entropy / LN2 for t in lanes[lane].tokens if t.entropy is not None]
    return math.fsum(known) / len(known) if known else None


@fact
def count_certain(lanes: dict[int, Reading], lane: int) -> int:
    """How many positions have an entropy below CERTAIN_BITS."""
    return sum(t.entropy is not None and t.entropy / LN2 < CERTAIN_BITS for t in lanes[lane].tokens)


@fact
def count_not_top1(lanes: dict[int, Reading], lane: int) -> int:
    """How many committed tokens were not the target's most likely ones."""
    return sum(t.rank != 1 for t in lanes[lane].tokens)


@fact
def repeated_share(lanes: dict[int, Reading], lane: int, n: int = 4) -> float | None:
    """The share of the n-grams of the text that have occurred in it before."""
    text = [t.token for t in lanes[lane].tokens]
    grams = [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else None


@fact
def same_text(lanes: dict[int, Reading], lane: int, other: int) -> int:
    """1 if two lanes wrote the same tokens up to the length of the shorter text, else 0."""
    a, b = ([t.token for t in lanes[i].tokens] for i in (lane, other))
    shared = min(len(a), len(b))
    return int(shared > 0 and a[:shared] == b[:shared])


@fact
def entropy_at(lanes: dict[int, Reading], lane: int, position: int, view: str = "target") -> float | None:
    """The entropy at a position of the committed text; "processed" falls back to the target's own."""
    own = lanes[lane]
    if position > len(own.tokens):
        return None
    node = own.tokens[position - 1].node
    offer = own.offer(node, view) or own.offer(node)
    return offer.entropy / LN2 if offer else None


@fact
def draw_at(lanes: dict[int, Reading], lane: int, position: int) -> float | None:
    """The uniform number that chose the token at a position."""
    own = lanes[lane]
    return own.draws.get(own.tokens[position - 1].node) if position <= len(own.tokens) else None


@fact
def token_at(lanes: dict[int, Reading], lane: int, position: int) -> str | None:
    """The token at a position as it is displayed."""
    own = lanes[lane]
    return own.tokens[position - 1].text if position <= len(own.tokens) else None


@fact
def count_verdicts(lanes: dict[int, Reading], lane: int, status: str) -> int:
    """How many drafted or guessed tokens got this verdict."""
    return sum(verdict.status == status for _, verdict in lanes[lane].verdicts)


@fact
def count_tested(lanes: dict[int, Reading], lane: int) -> int:
    """How many drafted tokens were tested, that is, accepted or rejected."""
    return len(tested_drafts(lanes[lane]))


@fact
def expected_acceptances(lanes: dict[int, Reading], lane: int) -> float | None:
    """The sum of the acceptance probabilities of the tested tokens; None if one is not known."""
    probs = [verdict.passes for verdict in tested_drafts(lanes[lane])]
    return None if None in probs else math.fsum(probs)


@fact
def count_overrated(lanes: dict[int, Reading], lane: int, status: str) -> int:
    """How many of the tokens with this verdict had p below q."""
    known = [
        v for v in tested_drafts(lanes[lane]) if v.status == status and v.p is not None and v.q is not None
    ]
    return sum(verdict.p < verdict.q for verdict in known)


@fact
def prompt_tokens(lanes: dict[int, Reading], lane: int) -> int:
    """How many tokens the prompt has."""
    return len(lanes[lane].trace.prompt)


@fact
def min_seconds_per_token(lanes: dict[int, Reading], lane: int, other: int) -> float | None:
    """The smaller of two lanes' times per token."""
    known = [seconds_per_token(lanes, number) for number in (lane, other)]
    return None if None in known else min(known)


def tested_drafts(own: Reading) -> list[Verdict]:
    """The verdicts of drafted tokens that were tested."""
    return [verdict for _, verdict in own.verdicts if verdict.status in ("accepted", "rejected")]


@fact
def kept_slots(lanes: dict[int, Reading], lane: int) -> int:
    """KV slots in use at the end: prompt and new tokens except the last, which no forward has read."""
    return len(lanes[lane].trace.prompt) + len(lanes[lane].tokens) - 1


@fact
def dropped_slots(lanes: dict[int, Reading], lane: int) -> float:
    """KV slots that were filled and freed again: those of drafted tokens that were not accepted."""
    return total(lanes, lane, "proposed") - total(lanes, lane, "accepted")


@fact
def max_settled(lanes: dict[int, Reading], lane: int) -> int:
    """The maximum number of positions that became final in one iteration."""
    counts: dict[int, int] = {}
    for step, cell in lanes[lane].cells:
        counts[step] = counts.get(step, 0) + (cell.state == "settled")
    return max(counts.values(), default=0)


def ratio(a: float, b: float) -> float | None:
    """a / b, None where b is 0."""
    return a / b if b else None
