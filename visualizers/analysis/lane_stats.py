"""The numbers of one lane, computed from its trace, for comparisons and reports.

All numbers are measured (recorded in the trace) or derived from such by the formula in the docstring that
names them.
"""

import math
from dataclasses import dataclass

from decoders.trace.costs import Costs
from decoders.trace.events import Commit, Distribution, Propose, Step, Verdict
from decoders.trace.node_index import NodeIndex
from decoders.trace.scores import Measure, Rank
from decoders.trace.token_text import visible
from decoders.trace.trace import Trace
from visualizers.analysis.token_classes import CLASSES, token_class


@dataclass
class Token:
    """One committed token. `top`: the target's most likely tokens there, [token, log-probability], best
    first.
    """

    node: int
    token: int
    text: str
    logprob: float | None  # natural, under the target before any processor
    entropy: float | None  # nats, of the target's distribution there
    top: list[list[float]]
    forced: bool

    @property
    def rank(self) -> int | None:
        """1 is the most likely; equally likely tokens share the better rank; None if it is not in `top`."""
        own = self.offered(self.token)
        return None if own is None else 1 + sum(logprob > own for _, logprob in self.top)

    def offered(self, token: int) -> float | None:
        """The log-probability of `token` as recorded at this place, None if it is not in `top`."""
        return next((logprob for t, logprob in self.top if t == token), None)


OPEN, UNSENT, CUT = "no verdict", "not sent", "cut"
ACCEPTED, REJECTED = "accepted", "rejected"
BEHIND, BESIDE = "after a rejection", "beside an accepted one"  # the two reasons for never being reached


@dataclass
class Drafted:
    """A candidate of a drafter; once it was sent to the target, a drafted token. `depth`: in its round (1:
    right after the text); `rank`: among its siblings (1: the first that is tried); `name`: its class; `fate`:
    one of the names above; `probability`: what the drafter gave it; `predicted`: its probability of
    acceptance by the method's predictor, if there is one; `path`, once it was sent: the product of the
    probabilities from its round's first token down to it; `verdict`: the last one that the trace has of it.
    """

    depth: int
    rank: int
    name: str
    parent: int
    node: int
    token: int
    fate: str = OPEN
    probability: float | None = None
    predicted: float | None = None
    path: float | None = None
    verdict: Verdict | None = None

    @property
    def accepted(self) -> bool:
        """Whether it passed its test."""
        return self.fate == ACCEPTED


@dataclass
class Round:
    """One step that sent a draft to the target, counted from 1: what it sent, which of that was tested, in
    order, and the status of the target's own token, "resampled" or "bonus" (None: there is none).
    """

    step: int
    drafted: list[Drafted]
    tests: list[Drafted]
    own: str | None = None


class LaneFacts:
    """The first `count` steps of a trace (all, if None): tokens, rounds, costs and totals step by step."""

    def __init__(self, trace: Trace, count: int | None = None):
        self.trace = trace
        self.costs = Costs()
        self.tokens: list[Token] = []
        self.rounds: list[Round] = []  # of the steps that sent a draft to the target
        self.candidates: dict[int, Drafted] = {}  # by node: all that drafters wrote
        self.given = 0  # tokens that the lane began with and did not decode
        self.nodes = NodeIndex(trace.prompt)
        self._offers: dict[int, Distribution] = {}  # node -> the target's Distribution after it
        self._forced: set[int] = set()
        self._best = 0  # length of the text up to the best candidate
        self.totals = [self._total()]  # before the first step, and after each
        for step in trace.steps[:count]:
            self._read(step)

    @property
    def ended(self) -> str | None:
        """Why the lane ended, if all its steps are counted."""
        return self.trace.ended if len(self.totals) == 1 + len(self.trace.steps) else None

    @property
    def whole_rounds(self) -> list:
        """The rounds that the end of the lane did not cut short: see `Costs.whole_rounds`."""
        return self.costs.whole_rounds(self.ended)

    def best(self, node: int) -> float | None:
        """The highest probability that the target gives to a token after `node`, None where not recorded."""
        offer = self._offers.get(node)
        return math.exp(offer.top[0][1]) if offer is not None and offer.top else None

    def entropy(self, node: int) -> float | None:
        """The entropy of the target's distribution after `node`, in nats, None where not recorded."""
        offer = self._offers.get(node)
        return None if offer is None else offer.entropy

    def text_before(self, node: int) -> str:
        """The text that leads to `node`, prompt and white space included."""
        before = list(self.nodes.upwards(self.nodes.parent[node]))[::-1]
        pieces = (self.trace.vocabulary.get(self.nodes.token[one], b"?") for one in before)
        return b"".join(pieces).decode("utf-8", "replace")

    def _read(self, step: Step) -> None:
        made = Round(step.index + 1, [], [])
        commits: list[tuple[int, float | None]] = []
        drafted_round = self.costs.add(step)
        born = step.of(Propose)
        for event in born:
            self.nodes.add(event)
            self.given += event.given
        self.candidates |= {event.node: self._candidate(event) for event in born if self._drafts(event.node)}
        if drafted_round is not None:
            made.drafted = self._sent(drafted_round.nodes)
        for event in step.events:
            match event:
                case Distribution(view="target", level=None):
                    self._offers[event.node] = event
                case Verdict():
                    self._verdict(event, made)
                case Measure() if "acceptance" in event.parts and event.node in self.candidates:
                    self.candidates[event.node].predicted = event.parts["acceptance"]
                case Rank(rank=1):
                    self._best = self.nodes.position.get(event.node, self._best)
                case Commit():
                    commits += list(zip(event.nodes, event.logprobs, strict=True))
        self.tokens += [self._token(node, logprob) for node, logprob in commits]
        if made.drafted:
            self.rounds.append(made)
        self.totals.append(self._total())
        if self.given and self.given == len(self.tokens):
            self.totals[0] = self.totals[-1]  # given tokens cost nothing: the race begins after them

    def _verdict(self, verdict: Verdict, made: Round) -> None:
        node = verdict.node
        match verdict.status:
            case "forced":
                self._forced.add(node)
            case "resampled" | "bonus":
                made.own = verdict.status
            case "merged":
                self.candidates.pop(node, None)  # another node stands for it
            case _ if node in self.candidates:
                self._judge(self.candidates[node], verdict, made)

    def _drafts(self, node: int) -> bool:
        """Whether a node is a candidate, sent or not."""
        return node in self.costs.unsent or node in self.costs.drafted_nodes

    def _candidate(self, event: Propose) -> Drafted:
        name = token_class(self.trace.vocabulary.get(event.token, b""))
        depth = self._depth(event.node)
        drafted = Drafted(depth, event.slot + 1, name, event.parent, event.node, event.token)
        drafted.probability = None if event.logprob is None else math.exp(min(0.0, event.logprob))
        return drafted

    def _depth(self, node: int) -> int:
        """How many tokens after the newest committed one a node stands."""
        tip = self.tokens[-1].node if self.tokens else -1
        return self.nodes.position[node] - self.nodes.position.get(tip, 0)

    def _sent(self, nodes: tuple[int, ...]) -> list[Drafted]:
        """What a round sent to the target, parents first. Some of it may have been written a round before: it
        stands after the text of now.
        """
        here = {node: self.candidates[node] for node in sorted(nodes)}
        for drafted in here.values():
            drafted.depth = self._depth(drafted.node)
            above = here.get(drafted.parent)
            before = above.path if above else 1.0
            drafted.path = None if None in (drafted.probability, before) else before * drafted.probability
        return list(here.values())

    def _judge(self, drafted: Drafted, verdict: Verdict, made: Round) -> None:
        """Sets its fate, from the status of its verdict."""
        drafted.verdict, status = verdict, verdict.status
        if drafted.node not in self.costs.drafted_nodes:
            drafted.fate = UNSENT
        elif status in (ACCEPTED, REJECTED):
            drafted.fate = status
            made.tests.append(drafted)
        elif status == "never reached":
            above = self.candidates.get(drafted.parent) if drafted.depth > 1 else None
            drafted.fate = BESIDE if above is None or above.accepted else BEHIND
        elif status == "pruned":
            drafted.fate = CUT

    def _token(self, node: int, logprob: float | None) -> Token:
        token, offer = self.nodes.token[node], self._offers.get(self.nodes.parent[node])
        forced = node in self._forced
        text = visible(self.trace.vocabulary.get(token, b"?"))
        return Token(
            node, token, text, logprob, offer.entropy if offer else None, offer.top if offer else [], forced
        )

    def _total(self) -> dict:
        """Running totals. `reached`: length of the final text or, where longer, of the best candidate's;
        `positions`: tokens that both models evaluated, drafted and verified.
        """
        costs, committed = self.costs, len(self.tokens)
        return {
            "committed": committed,
            "reached": max(committed, self._best),
            "logprob": costs.logprob,
            "forwards": costs.target_forwards,
            "seconds": costs.seconds,
            "target_tokens": costs.target_tokens,
            "positions": costs.target_tokens + costs.draft_tokens,
        }


def by_depth(rounds: list[Round]) -> tuple[list[dict], float | None]:
    """Acceptance by draft depth, and alpha (None if nothing was tested).

    At depth k: `rounds` that drafted at least as deep, `tried`: those that tested a token there, `reached`:
    those that accepted one. `share` = reached / rounds, measured. `theory` = alpha^k, derived: the share if
    every acceptance had the same probability alpha = all reached / all tried.
    """
    depths: dict[int, dict] = {}
    for made in rounds:
        for depth in {drafted.depth for drafted in made.drafted}:
            row = depths.setdefault(depth, {"depth": depth, "rounds": 0, "tried": 0, "reached": 0})
            here = [test.accepted for test in made.tests if test.depth == depth]
            row["rounds"] += 1
            row["tried"] += bool(here)
            row["reached"] += any(here)
    rows = [depths[depth] for depth in sorted(depths)]
    tried = sum(row["tried"] for row in rows)
    alpha = sum(row["reached"] for row in rows) / tried if tried else None
    for row in rows:
        row["share"] = row["reached"] / row["rounds"]
        row["theory"] = None if alpha is None else alpha ** row["depth"]
    return rows, alpha


def by_class(rounds: list[Round]) -> list[dict]:
    """Acceptance by class of the drafted token: `tested`, `accepted` and their quotient `share`, measured."""
    rows = []
    for name in CLASSES:
        here = [test.accepted for made in rounds for test in made.tests if test.name == name]
        if here:
            share = sum(here) / len(here)
            rows.append({"name": name, "tested": len(here), "accepted": sum(here), "share": share})
    return rows
