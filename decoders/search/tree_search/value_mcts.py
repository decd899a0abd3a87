"""Monte Carlo tree search with a value: before each token, many prefixes are tried and scored.

Language Model Decoding as Likelihood-Utility Alignment (Josifoski et al. 2022), after AlphaZero (Silver et
al. 2018). The simulation is that of mcts.py.
"""

import math
from collections.abc import Iterator
from statistics import NormalDist

from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.registry import strategy
from decoders.search.stepwise import scorers
from decoders.search.stepwise.scorers import Scorer
from decoders.search.tree_search.mcts import Edge, State, TreeSearch
from decoders.strategy import Part
from decoders.trace.number_format import many
from decoders.trace.scores import ScoreName

MIN_SPAN = 1e-8  # values that are closer than this count as equal
RESCALED = "between siblings"
VALUES = {
    RESCALED: "Q is rescaled to run from 0 to 1 over the siblings and their parent.",
    "as scored": "Q is the mean of the scorer's values.",
}


@strategy(
    name="value_mcts",
    title="Tree search with a value",
    family="search",
    parameters=(
        *scorers.SCORER,
        scorers.NOISE,
        integer("simulations", 16, "Prefixes tried before each token (paper: 50).", low=1, high=512),
        integer(
            "width", 20, "How many of the most likely next tokens are tried after a prefix.", low=1, high=64
        ),
        real("c", 1.25, "Weight of the exploration bonus.", low=0.0, high=100.0),
        real(
            "c_base",
            19652.0,
            "The larger this is, the later the weight of the bonus grows; 0: never.",
            low=0.0,
            high=1e9,
        ),
        choice("q_values", RESCALED, "Whether Q is rescaled among siblings or used unchanged.", VALUES),
        real(
            "root_noise", 0.25, "Share of Dirichlet noise in the priors of the next token.", low=0.0, high=1.0
        ),
        real("noise_shape", 0.3, "Concentration of the Dirichlet noise.", low=0.01, high=100.0),
    ),
    together=scorers.unusable,
    suits=scorers.unscored,
    papers=("language-model-decoding-as-likelihood-utility-alignment",),
    view="visit_tree",
    badge=lambda p: "sampled" if p["root_noise"] or p["value_noise"] else "deterministic",
    parts=lambda parameters: [
        scorers.part(parameters),
        Part("frontier", "visits", "A tree of prefixes; the next token is the most visited one."),
        Part("selection", parameters["q_values"], VALUES[parameters["q_values"]]),
        Part("expansion", "most likely tokens", "A prefix is extended by its width most likely next tokens."),
    ],
)
def value_mcts(lane: Lane) -> Iterator[None]:
    """Runs Monte Carlo tree search with a value head before each token; the most visited token is taken.

    1. From the text so far, the edge with the largest `Q + (c + ln((N + c_base + 1) / c_base)) P sqrt(N) / (1
       + n)` is followed: Q is the mean value seen through it, P its prior (a softmax over the width most
       likely tokens), n its visits, N those of all siblings plus one. Q is rescaled so that the smallest
       value among the siblings and their parent is 0 and the largest 1, as in the authors' configuration;
       untried edges have 0. At the root, which is the end of the text so far, the priors contain a share of
       Dirichlet noise.
    2. The first new prefix gets edges of its own, and the scorer gives its value.
    3. The value is backed up to all edges on the path.
    4. After `simulations` simulations the token with the most visits is output, on a tie the more likely one;
       the search tree below it is kept.
    """
    search = Search(lane)
    state = search.open(lane.tip)
    while lane.more and state.edges:
        search.add_noise(state)
        for _ in range(lane.parameters["simulations"]):
            search.simulate(state)
        best = max(state.edges, key=lambda edge: (edge.visits, edge.prior))
        search.leave(state, best)
        lane.commit([best.node], [search.logprob[best.node]])
        state = best.below or search.open(best.node)
        yield


class Search(TreeSearch):
    """The tree of one lane, and the operations of a simulation."""

    def __init__(self, lane: Lane):
        self.lane, self.given, self.scorer = lane, lane.parameters, Scorer(lane)
        self.deepest = lane.tree.depths[lane.tip] + lane.left
        self.logprob: dict[int, float] = {}
        self.worth: dict[int, float] = {}  # node of an open state -> what the scorer gave it
        self.changed: dict[int, Edge] = {}  # edges whose numbers were not recorded yet, by node

    def ends(self, node: int) -> bool:
        """Whether the text is whole here, by its end token or by the limit."""
        ended = node >= self.lane.tree.trunk and self.lane.tree.tokens[node] in self.lane.eos
        return ended or self.lane.tree.depths[node] >= self.deepest

    def open(self, node: int) -> State:
        """A state with its edges, or without any if its text is whole."""
        state = State(node)
        if not self.ends(node):
            state.edges = self.edges(node)
        self.worth[node] = self.scorer.score(node, whole=not state.edges)
        return state

    def edges(self, node: int) -> list[Edge]:
        """An edge for each of the most likely next tokens."""
        lane = self.lane
        logits = lane.score([node])  # [1, V]
        logprobs = lane.distribution([node], logits)[0].tolist()
        top = logits[0].topk(min(self.given["width"], logits.shape[-1]))
        priors = top.values.double().softmax(0).tolist()
        edges = []
        for slot, (token, prior) in enumerate(zip(top.indices.tolist(), priors, strict=True)):
            edges.append(Edge(lane.propose(node, token, logprobs[token], slot=slot), prior))
            self.logprob[edges[-1].node] = logprobs[token]
        return edges

    def add_noise(self, state: State) -> None:
        """Mixes Dirichlet noise into the priors at the root."""
        share = self.given["root_noise"]
        if not share:
            return
        at = self.lane.tree.depths[state.node] + 1
        noise = [
            gamma(self.lane, self.given["noise_shape"], ("noise", at, i)) for i in range(len(state.edges))
        ]
        total = sum(noise) or 1.0
        for edge, drawn in zip(state.edges, noise, strict=True):
            edge.prior = (1 - share) * edge.prior + share * drawn / total

    def choose(self, state: State) -> Edge:
        """The edge to follow; on a tie that of the more likely token."""
        c, base = self.given["c"], self.given["c_base"]
        weight = c + (math.log((state.visits + base + 1) / base) if base else 0.0)
        low, span = 0.0, 1.0
        if self.given["q_values"] == RESCALED:
            known = [self.value(state), *(edge.value for edge in state.edges if edge.visits)]
            low, span = min(known), max(max(known) - min(known), MIN_SPAN)

        def urgency(edge: Edge) -> float:
            q = (edge.value - low) / span if edge.visits else 0.0
            return q + weight * edge.prior * math.sqrt(state.visits) / (1 + edge.visits)

        return max(state.edges, key=urgency)

    def value(self, state: State) -> float:
        """The mean of a state's own value and of all that came back through its edges."""
        return (self.worth[state.node] + sum(edge.total for edge in state.edges)) / state.visits

    def evaluate(self, state: State) -> float:
        """The scorer's value of the state, from when it was opened."""
        return self.worth[state.node]

    def simulate(self, root: State) -> tuple[list[Edge], float]:
        """As in mcts.py; remembers whose numbers changed."""
        self.lane.check_limits()  # where all texts are whole, nothing below does it
        way, value = super().simulate(root)
        self.changed.update((edge.node, edge) for edge in way)
        return way, value

    def leave(self, state: State, best: Edge) -> None:
        """Records the numbers that changed, and prunes the siblings of `best`."""
        for edge in self.changed.values():
            self.lane.record_rank(edge.node, ScoreName.VISITS, edge.visits, mean=edge.value, prior=edge.prior)
        self.changed = {}
        for edge in state.edges:
            if edge is not best:
                reason = f"tried {many(edge.visits, 'time')}, the chosen token {many(best.visits, 'time')}"
                self.lane.verdict(edge.node, "pruned", reason=reason)
                self.drop_branch(edge)

    def drop_branch(self, edge: Edge) -> None:
        """Frees the slots of the branch below an edge; its leaves get verdicts."""
        self.lane.drop([edge.node])
        for child in edge.below.edges if edge.below else ():
            if not (child.below and child.below.edges):
                status = "pruned" if child.visits else "never reached"
                self.lane.verdict(child.node, status, reason="after a token that was not chosen")
            self.drop_branch(child)


def gamma(lane: Lane, shape: float, tag: tuple) -> float:
    """A draw of the gamma distribution (Marsaglia and Tsang 2000); below shape 1, by a power of a uniform."""
    if shape < 1.0:
        u = float(lane.chooser.uniforms(1, (*tag, "power"))[0])
        return gamma(lane, shape + 1.0, tag) * u ** (1.0 / shape)
    d = shape - 1.0 / 3.0
    for attempt in range(1000):
        u, v = lane.chooser.uniforms(2, (*tag, attempt)).tolist()
        x = NormalDist().inv_cdf(u)
        cube = (1.0 + x / math.sqrt(9.0 * d)) ** 3
        if cube > 0.0 and math.log(v) < 0.5 * x * x + d - d * cube + d * math.log(cube):
            return d * cube
    return d
