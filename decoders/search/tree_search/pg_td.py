"""PG-TD: Monte Carlo tree search over tokens that completes and scores texts, and outputs the best.

Zhang et al. (2023), Planning with Large Language Models for Code Generation. The simulation is that of
mcts.py. Texts are scored by scorers.py.
"""

import math
from collections.abc import Iterator
from typing import Any

from decoders.lane import Lane
from decoders.logits.distributions import probabilities
from decoders.parameters import choice, integer, real, switch
from decoders.registry import strategy
from decoders.search.stepwise import scorers
from decoders.search.stepwise.scorers import SCORER, Scorer
from decoders.search.tree_search.mcts import Edge, State, TreeSearch
from decoders.strategy import Part
from decoders.trace.number_format import many, were
from decoders.trace.scores import ScoreName

RULES = {
    "p-ucb": "Likely tokens are tried first; the more visits, the more others are tried.",
    "constant": "The same, with a factor that does not grow.",
    "uct": "Every child has the same bonus, which falls with its visits; priors do not count.",
    "ucb1": "Every child is tried once, then the best one, with a bonus for those rarely tried.",
}


def bonus(rule: str, visits: int, edge: Edge, c: float, c_base: float) -> float:
    """What is added to Q when a child is chosen. N: visits of the parent, n: visits of the edge.

    p-ucb: (ln((N + c_base + 1) / c_base) + c) P sqrt(ln N) / (1 + n); constant: c P sqrt(ln N) / (1 + n);
    uct, as the paper's authors have it: c sqrt(ln N) / (1 + n); ucb1, the classic form of UCT (Kocsis and
    Szepesvari 2006): c sqrt(ln N / n), infinite for n = 0.
    """
    if rule == "ucb1":
        return c * math.sqrt(math.log(visits) / edge.visits) if edge.visits else math.inf
    beta = c + (math.log((visits + c_base + 1) / c_base) if rule == "p-ucb" else 0.0)
    prior = 1.0 if rule == "uct" else edge.prior
    return beta * prior * math.sqrt(math.log(visits)) / (1 + edge.visits)


@strategy(
    name="pg_td",
    title="Planning (PG-TD)",
    family="search",
    parameters=(
        *SCORER,
        integer("rollouts", 16, "Texts that are completed and tested.", low=1, high=512),
        integer("width", 3, "How many next tokens are tried after a prefix.", low=1, high=32),
        choice("selection", "p-ucb", "How a child is selected on the way down.", RULES),
        real("c", 4.0, "Weight of the exploration bonus.", low=0.0, high=100.0),
        real(
            "c_base", 10.0, "The larger this is, the later the weight of the bonus grows.", low=0.1, high=1e6
        ),
        integer("num_beams", 1, "Beams that complete a text; 1 is greedy.", low=1, high=8),
        switch("test_all_beams", False, "Test the texts of all beams, not only the most likely one."),
        real("temperature", 0.0, "Above 0, completions are sampled.", low=0.0, high=100.0),
        switch("cache", True, "Reuse earlier completions and scores."),
    ),
    papers=("planning-with-large-language-models-for-code",),
    view="visit_tree",
    badge=lambda parameters: "sampled" if parameters["temperature"] else "deterministic",
    together=scorers.unusable,
    suits=scorers.unscored,
    parts=lambda parameters: [
        scorers.part(parameters),
        Part("frontier", parameters["selection"], RULES[parameters["selection"]]),
        Part("expansion", "most likely tokens", "A prefix is extended by its width most likely next tokens."),
    ],
)
def pg_td(lane: Lane) -> Iterator[None]:
    """Monte Carlo tree search: completes many texts, tests each, and continues the search where tests passed.

    1. A prefix's children are its width most likely next tokens; their priors P are a softmax over these
       only. From the prompt on, the child with the largest `Q + (ln((N + c_base + 1) / c_base) + c) P sqrt(ln
       N) / (1 + n)` is taken: Q is the best result seen through it, n its visits, N the visits of its parent.
    2. The first new child on this path gets children of its own.
    3. The text after it is completed by beam search (one beam: greedily), and the scorer judges it.
    4. The result is backed up to all edges on the path. After `rollouts` rollouts the best of all completed
       texts is output; on a tie the earliest.

    Selection "constant" leaves the logarithm out of the weight, "uct" the prior as well, which
    gives the authors' `Q + c sqrt(ln N) / (1 + n)`; "ucb1" is the classic `Q + c sqrt(ln N / n)`.

    Texts and distributions are cached: no completion is computed twice. The paper's reward is the share of
    unit tests passed, here the scorer tests; any other scorer can be used as well. Beams are ranked by their
    sum of log p. The paper's baselines, which filter samples or resample prefixes, are not implemented here.
    On list programs the shipped model passes more tests this way than by filtering samples that read the same
    number of tokens. As many samples as rollouts read more tokens and do as well or better: see the
    experiment planning-or-filtering.
    """
    search = Search(lane)
    for _ in range(lane.parameters["rollouts"]):
        search.rollout()
        yield
    search.conclude()


class Search(TreeSearch):
    """The tree of one lane, all texts completed so far, and the operations of one rollout."""

    def __init__(self, lane: Lane, given: dict | None = None, scorer: Any = None):
        """given: the parameters, those of the lane if None; scorer: anything with `score` and `calls`."""
        self.lane, self.given, self.scorer = lane, given or lane.parameters, scorer or Scorer(lane)
        self.deepest = lane.tree.depths[lane.tip] + lane.left
        self.below: dict[tuple[int, int], int] = {}  # (node, token) -> that token's node, to be used again
        self.logprob: dict[int, float] = {}
        self.texts: dict[int, float] = {}  # newest node of a completed text -> its value, earliest first
        self.done = 0
        self.root = self.open(lane.tip)

    # ---- the tree ----------------------------------------------------------------------------
    def open(self, node: int) -> State:
        """A state with its edges."""
        state = State(node)
        if not self.ends(node):
            logits = self.lane.score([node])  # [1, V]
            logprobs = self.lane.distribution([node], logits)[0]
            allowed = self.lane.constrained(logits, [node])[0]
            top = allowed.topk(min(self.given["width"], int(allowed.isfinite().sum())))
            priors = top.values.double().softmax(0).tolist()
            for slot, (token, prior) in enumerate(zip(top.indices.tolist(), priors, strict=True)):
                child = self.child(node, token, float(logprobs[token]), slot)
                state.edges.append(Edge(child, prior))
                self.record(state.edges[-1])
        return state

    def child(self, node: int, token: int, logprob: float, slot: int = 0, again: bool = True) -> int:
        """The node of a token after `node`: an existing one, if it may be used again."""
        child = self.below.get((node, token)) if again else None
        if child is None:
            child = self.lane.propose(node, token, logprob, slot=slot)
            self.logprob[child] = logprob
            if again:
                self.below[node, token] = child
        return child

    def ends(self, node: int) -> bool:
        """Whether the text is finished here, by its end token or by the limit."""
        ended = node != self.lane.tip and self.lane.ends(node)
        return ended or self.lane.tree.depths[node] >= self.deepest

    def record(self, edge: Edge) -> None:
        """Records the numbers of an edge."""
        self.lane.record_rank(edge.node, ScoreName.VISITS, edge.visits, value=edge.value, prior=edge.prior)

    # ---- one rollout -------------------------------------------------------------------------
    def rollout(self) -> None:
        """Goes down the tree to a new state, completes its text, and backs up its value."""
        self.done += 1
        way, value = self.simulate(self.root)
        for edge in way:
            self.record(edge)
        best = max(self.texts.values())
        self.lane.note(
            f"Rollout {self.done}: {value:.2f} after {many(len(way), 'chosen token')}; the best of "
            f"{many(len(self.texts), 'text')} has {best:.2f}; {were(self.scorer.calls, 'text')} judged."
        )

    def back_up(self, edge: Edge, value: float) -> None:
        """Q of an edge through which a result came back: the best of all, 0 before any."""
        edge.value = max(edge.value, value)

    def choose(self, state: State) -> Edge:
        """The edge to follow; on a tie that of the most likely token."""
        given = self.given

        def urgency(edge: Edge) -> float:
            return edge.value + bonus(given["selection"], state.visits, edge, given["c"], given["c_base"])

        return max(state.edges, key=urgency)

    def evaluate(self, state: State) -> float:
        """The value of the text to which this state leads."""
        if not state.edges:
            tips = [state.node]
        elif self.given["temperature"] > 0.0:
            tips = [self.sample(state.node)]
        else:
            tips = self.complete(state.node)
            tips = tips if self.given["test_all_beams"] else tips[:1]
        return max(self.judge(tip) for tip in tips)

    def judge(self, tip: int) -> float:
        """The value of a whole text; each is scored once."""
        if tip not in self.texts:
            self.texts[tip] = value = self.scorer.score(tip, whole=True)
            self.lane.record_rank(tip, ScoreName.TEXT_VALUE, value, rollout=float(self.done))
            self.lane.verdict(tip, "finished", reason=f"rollout {self.done}: {value:.2f}")
        return self.texts[tip]

    def complete(self, node: int) -> list[int]:
        """The last nodes of num_beams completions, the most likely first."""
        width = self.given["num_beams"]
        beams = [(0.0, node)]
        while running := [beam for beam in beams if not self.ends(beam[1])]:
            logits = self.lane.score([n for _, n in running])  # [B, V]
            offers = [beam for beam in beams if self.ends(beam[1])]
            offers = [(total, n, None, 0.0) for total, n in offers]
            for (total, n), row in zip(running, logits.log_softmax(-1), strict=True):
                top = row.topk(min(width, len(row)))
                offers += [
                    (total + lp, n, token, lp)
                    for token, lp in zip(top.indices.tolist(), top.values.tolist(), strict=True)
                ]
            offers = sorted(offers, key=lambda offer: -offer[0])[:width]
            beams = [
                (total, n if token is None else self.child(n, token, lp, again=self.given["cache"]))
                for total, n, token, lp in offers
            ]
        return [n for _, n in beams]

    def sample(self, node: int) -> int:
        """The last node of a sampled completion."""
        while not self.ends(node):
            logits = self.lane.score([node])  # [1, V]
            probs = probabilities(self.lane.process(logits, [node]))[0]
            tag = ("rollout", self.lane.tree.depths[node] + 1, self.done)
            token = self.lane.chooser.categorical(probs, tag).value
            node = self.child(node, token, float(logits[0].log_softmax(-1)[token]), again=self.given["cache"])
        return node

    # ---- the end -----------------------------------------------------------------------------
    def conclude(self) -> None:
        """Outputs the best text; records what became of all others."""
        lane = self.lane
        winner = max(self.texts, key=self.texts.__getitem__)  # on a tie the earliest
        path = lane.tree.path(winner, above=lane.tip)
        inner = {lane.tree.parents[n] for n in self.logprob}
        for node in self.logprob:
            if node in self.texts and node != winner:
                reason = f"another text was better than {self.texts[node]:.2f}, or as good and earlier"
                lane.verdict(node, "pruned", reason=reason)
            elif node not in inner and node != winner:
                lane.verdict(node, "never reached", reason="no rollout came here")
        lane.record_rank(winner, ScoreName.TEXT_VALUE, self.texts[winner], rank=1)
        lane.commit(path, [self.logprob[n] for n in path])
