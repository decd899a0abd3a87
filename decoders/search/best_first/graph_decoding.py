"""Graph decoding: the k cheapest outputs of a given list, as paths of a small automaton.

Richardson, Berant and Kuhn (2018), Polyglot Semantic Parsing in APIs. Their decoder with attention is a
causal model here. Automaton and path search are in k_shortest_paths.py.
"""

from collections.abc import Iterator

import torch

from decoders.constraints.trie import Trie
from decoders.lane import Lane
from decoders.logits.token_constraints import Cut, forms
from decoders.parameters import choice, free_text, integer, switch
from decoders.refusal import Refusal
from decoders.registry import strategy
from decoders.sampling.greedy import greedy
from decoders.search.best_first.k_shortest_paths import Automaton, Offer, PathSearch, Prefix, Searched
from decoders.strategy import Part
from decoders.trace.number_format import many
from decoders.trace.scores import ScoreName

SOFTMAX = {
    "local": "The outgoing tokens share all the probability: the edge of a state with only one edge costs "
    "nothing.",
    "model-wide": "The cost of a token is its -log p among all tokens of the vocabulary.",
}
GRAPH = {
    "automaton": "Outputs share equal prefixes and equal ends; a state keeps its cheapest prefix only.",
    "trie": "Outputs share equal prefixes only, so every prefix is kept.",
}


def outputs_of(typed: str, cut: Cut | None, vocabulary: int) -> list[tuple[int, ...]]:
    """The token sequences of outputs, given on lines of their own or separated by |, without duplicates. A
    text is read as if a space stood before it, text in double quotes literally, and `#5` is a token id.
    Raises Refusal with one sentence.
    """
    pieces = [piece.strip() for line in typed.splitlines() for piece in line.split("|")]
    pieces = [piece for piece in pieces if piece]
    return list(dict.fromkeys(forms("outputs", piece, cut, vocabulary)[0] for piece in pieces))


def unreadable(parameters: dict, target) -> str | None:
    """The message to show if the outputs cannot be tokens of this model, or none begins as asked."""
    cut, vocabulary = target.cut, target.engine.vocabulary
    try:
        outputs = outputs_of(parameters["outputs"], cut, vocabulary)
        begun = outputs_of(parameters["begin_with"], cut, vocabulary)
    except Refusal as error:
        return str(error)
    if begun and not any(output[: len(begun[0])] == begun[0] for output in outputs):
        return f"begin_with: no output begins with {parameters['begin_with']!r}; type the beginning of one."
    return None


class LanePaths:
    """Computes the costs of edges with a lane, and records what is tried."""

    def __init__(self, lane: Lane, automaton: Automaton):
        self.lane, self.automaton = lane, automaton
        self.local = lane.parameters["softmax"] == "local"
        self.offers: dict[int, list[Offer]] = {}  # node -> its edges; of all that were scored
        self.logprobs: dict[int, dict[int, float]] = {}  # node -> token -> the model's own log p
        self.children: dict[tuple[int, int], int] = {}
        self.judged: set[int] = set()
        self.first = True  # the search under way is the first

    def expand(self, prefixes: list[Prefix]) -> list[list[Offer]]:
        """The costs of the edges after each prefix; one forward scores those that have none yet."""
        fresh = [p for p in prefixes if p.node not in self.offers]
        if fresh:
            nodes = [p.node for p in fresh]
            logits = self.lane.score(nodes)
            logprobs = self.lane.distribution(nodes, logits)  # [N, V]
            for row, prefix in zip(logprobs, fresh, strict=True):
                self._price(prefix, row)
        return [self.offers[p.node] for p in prefixes]

    def _price(self, prefix: Prefix, row: torch.Tensor) -> None:
        """The offers of one prefix, from its log-probabilities [V]."""
        tokens = list(self.automaton.edges[prefix.state])
        own = row[tokens]
        costs = -(own.log_softmax(-1) if self.local else own)
        self.logprobs[prefix.node] = dict(zip(tokens, own.tolist(), strict=True))
        self.offers[prefix.node] = [Offer(t, c) for t, c in zip(tokens, costs.tolist(), strict=True)]

    def tried(self, prefix: Prefix, offer: Offer) -> int:
        """The node of a prefix extended by one token; proposed if it is new."""
        key = (prefix.node, offer.token)
        if key not in self.children:
            logprob, edges = self.logprobs[prefix.node][offer.token], self.automaton.edges[prefix.state]
            slot = list(edges).index(offer.token)
            node = self.children[key] = self.lane.propose(prefix.node, offer.token, logprob, slot=slot)
            self.record_state(Prefix(edges[offer.token], prefix.cost + offer.cost, node), offer.cost)
        return self.children[key]

    def record_state(self, prefix: Prefix, edge: float = 0.0) -> None:
        """Records the state of a prefix, its layer, and the costs of its last edge and of all its edges."""
        layer = next(i for i, layer in enumerate(self.automaton.layers) if prefix.state in layer)
        parts = {"edge": edge, "layer": float(layer)}
        level = f"state {prefix.state}"
        self.lane.record_rank(
            prefix.node, ScoreName.PATH_COST, prefix.cost, level=level, number=prefix.state, **parts
        )

    def lost(self, loser: Prefix, winner: Prefix) -> None:
        """Records that two prefixes met in a state, once for each loser."""
        if loser.node in self.judged:
            return
        self.judged.add(loser.node)
        ended = loser.state == self.automaton.end
        what = "a cheaper output" if ended else "a cheaper prefix at the same state"
        reason = f"cost {loser.cost:.3f}: {what} costs {winner.cost:.3f}"
        if self.first and not ended:
            self.lane.verdict(loser.node, "merged", reason=reason, into=winner.node)
        else:
            self.lane.verdict(loser.node, "pruned", reason=reason)


@strategy(
    name="graph_decoding",
    title="Graph decoding",
    family="search",
    parameters=(
        free_text(
            "outputs",
            "",
            "The possible texts, one per line or separated by |; each gets a space before it, unless it is "
            "in double quotes.",
        ),
        integer("k_best", 3, "Paths to find.", low=1, high=32),
        choice(
            "softmax", "local", "The tokens among which the probability of an edge is normalised.", SOFTMAX
        ),
        choice("graph", "automaton", "Whether equal ends are merged as well as equal prefixes.", GRAPH),
        integer("graph_beam", 0, "Number of edges that are tried from a state; 0: all.", low=0, high=64),
        switch("divide_by_length", True, "A whole path costs its sum / (tokens + 2)."),
        free_text("begin_with", "", "How the output must begin, such as its language; empty: any."),
    ),
    suits=unreadable,
    papers=("polyglot-semantic-parsing-in-apis",),
    view="automaton",
    badge=lambda parameters: "deterministic",
    parts=lambda parameters: [
        Part("constraint", parameters["graph"], GRAPH[parameters["graph"]]),
        Part("value", f"{parameters['softmax']} softmax", SOFTMAX[parameters["softmax"]]),
        Part(
            "frontier",
            "k shortest paths",
            "Yen's algorithm: it tries to leave each path at each position, once.",
        ),
    ],
)
def graph_decoding(lane: Lane) -> Iterator[None]:
    """Finds the k cheapest of the outputs that you list, as paths of one automaton.

    1. The outputs are compiled to the smallest automaton that accepts them and nothing else; each ends
       with the model's end-of-text token.
    2. States are visited from left to right. A state keeps its cheapest prefix, and the model scores the
       tokens on its outgoing edges: `-log p`, among these tokens only (local) or among all tokens
       (model-wide). One forward serves all states that wait for no other.
    3. A whole path costs the sum of its edges, divided by its number of tokens + 2 if divide_by_length is on.
    4. Yen's algorithm finds the next paths: for each prefix of the newest path, the edges that earlier
       paths take there are blocked, and the cheapest alternative is found. No search is repeated.

    A local softmax favours outputs whose early tokens have few rivals (label bias). Where prefixes merge, the
    cheapest whole path may be lost because its prefix was not the cheapest one at that state. A trie loses no
    path.

    Without outputs, or if the model has no end-of-text token, this is greedy decoding.
    """
    given, target = lane.parameters, lane.models["target"]
    cut, vocabulary = target.cut, target.engine.vocabulary
    outputs = outputs_of(given["outputs"], cut, vocabulary)
    if not outputs or not lane.eos:
        missing = "outputs are given" if lane.eos else "token ends this model's texts"
        lane.note(f"No {missing}, so this is greedy decoding.")
        yield from greedy(lane)
        return
    short = [output for output in outputs if len(output) <= lane.budget + lane.given]
    if not short:
        lane.ended_by = f"No output fits into {many(lane.budget, 'new token')}; allow more."
        return
    if len(short) < len(outputs):
        lane.note(
            f"{len(outputs) - len(short)} of {len(outputs)} outputs are longer than {lane.budget} tokens."
        )
    lane.constrain(Trie(map(list, short), vocabulary))
    automaton = Automaton.of(short, min(lane.eos), given["graph"] == "automaton")
    paths = LanePaths(lane, automaton)
    divide = (
        (lambda cost, length: cost / (length + 2)) if given["divide_by_length"] else lambda cost, length: cost
    )
    start = begin(lane, paths, outputs_of(given["begin_with"], cut, vocabulary))
    if start is None:
        lane.ended_by = (
            f"No output of at most {many(lane.budget, 'token')} begins as asked; allow more new tokens."
        )
        return
    search = PathSearch(automaton, paths.expand, paths.tried, paths.lost, divide, given["graph_beam"])
    ended: list[Prefix] = []
    for event in search.k_best(start, given["k_best"]):
        if isinstance(event, Searched):
            record_search(paths, event)
        else:
            ended.append(event)
            lane.verdict(event.node, "finished", reason=f"path {len(ended)}, cost {event.cost:.3f}")
            lane.record_rank(event.node, ScoreName.PATH, event.cost, rank=len(ended))
        if ended:
            yield
    commit_cheapest_path(lane, paths, ended)


def begin(lane: Lane, paths: LanePaths, wanted: list[tuple[int, ...]]) -> Prefix | None:
    """Where the search starts: after the tokens that the lane begins with, or else after the tokens of
    begin_with, which cost nothing; None if no output begins with these.
    """
    automaton, given = paths.automaton, tuple(lane.tree.tokens[len(lane.trace.prompt) :])
    tokens = wanted[0] if wanted and not given else ()
    state = automaton.walk((*given, *tokens))
    if state is None or state == automaton.end:
        return None
    prefix = Prefix(automaton.walk(given), 0.0, lane.tip, given)
    paths.record_state(prefix)
    for token in tokens:
        paths.expand([prefix])
        node = paths.tried(prefix, Offer(token, 0.0))
        lane.verdict(node, "forced", reason="the output must begin with this")
        prefix = Prefix(automaton.edges[prefix.state][token], 0.0, node, (*prefix.tokens, token), prefix)
    return prefix


def record_search(paths: LanePaths, searched: Searched) -> None:
    """Records which edges a search had to leave out, and what came of it."""
    lane, root, path = paths.lane, searched.root, searched.path
    if searched.blocked:
        for token in sorted(searched.blocked):
            lane.record_measure(paths.children[root.node, token], ScoreName.BLOCKED, 1.0)
        after = lane.models["target"].bytes_of(lane.tree.tokens[root.node]).decode(errors="replace")
        edges = many(len(searched.blocked), "edge")
        outcome = "there is none" if path is None else f"it costs {path.cost:.3f}"
        lane.note(f"The cheapest other way after {after!r}, with {edges} blocked: {outcome}.")
    paths.first = False


def commit_cheapest_path(lane: Lane, paths: LanePaths, ended: list[Prefix]) -> None:
    """Gives verdicts to what has none yet, and commits the cheapest path."""
    opened, ends = {parent for parent, _ in paths.children}, {path.node for path in ended}
    for node in paths.children.values():
        if node not in opened and node not in ends and node not in paths.judged:
            lane.verdict(node, "pruned", reason="no path that was asked for leads here")
    if not ended:
        lane.ended_by = "The model gives every output probability 0; list other outputs."
        return
    ranked = sorted(ended, key=lambda path: path.cost)
    if ranked[0] is not ended[0]:
        lane.note(
            f"Path {1 + ended.index(ranked[0])} is the cheapest: the first search lost its prefix where two "
            "prefixes met, or to graph_beam. A trie whose edges are all tried loses none."
        )
        for rank, path in enumerate(ranked, 1):
            lane.record_rank(path.node, ScoreName.PATH, path.cost, rank=rank)
    nodes = [prefix.node for prefix in ranked[0].chain()[1:]]
    for node in nodes:
        if node in paths.judged and node != nodes[-1]:
            lane.verdict(node, "accepted", reason="on the cheapest path")
    tokens = lane.tree.tokens
    own = [paths.logprobs[p.before.node][tokens[p.node]] for p in ranked[0].chain()[1:]]
    lane.commit(nodes, own)
