"""A trace's tokens as one tree: parents, scores and verdicts."""

from itertools import takewhile

import networkx as nx

from decoders.explain.verdicts import reason_of
from decoders.trace.costs import costs_of
from decoders.trace.events import Commit, Distribution, Propose, Step, Verdict
from decoders.trace.scores import Rank, Score
from decoders.trace.trace import Trace
from visualizers.scene.view import Header

PROMPT, OPEN = "prompt", "no verdict"


def token_tree(trace: Trace, steps: int | None = None) -> nx.DiGraph:
    """Every node of the first `steps` steps (None: all), an edge from each token to the one placed after it.

    Node attributes: `token` (id), `text`, `depth` (1: the first new token, 0 and below: the prompt), `step`
    (0-based; -1: the prompt), `source`, `status` (the newest verdict, "no verdict", "prompt"), `committed`,
    `slot`, and where the trace has them `logprob` (of its proposer), `p`, `q`, `u`, `reason`, `score`,
    `rank`, `entropy` (nats, of the target after it). Values that a trace lacks are left out.
    """
    graph = trunk(trace)
    graph.graph.update(strategy=trace.strategy, title=trace.title, seed=trace.seed)
    for step in trace.steps[:steps]:
        read(graph, trace, step)
    return graph


def trunk(trace: Trace | Header) -> nx.DiGraph:
    """The tree before the first step: the prompt."""
    graph = nx.DiGraph(kind="tokens")
    for node, token in enumerate(trace.prompt):
        _add(graph, trace, node, node - 1, token, step=-1, source=PROMPT, status=PROMPT)
    return graph


def read(graph: nx.DiGraph, trace: Trace | Header, step: Step) -> None:
    """Adds the events of one step to the tree."""
    for event in step.events:
        match event:
            case Propose():
                known = {"step": step.index, "source": event.source, "status": OPEN, "slot": event.slot}
                _add(graph, trace, event.node, event.parent, event.token, logprob=event.logprob, **known)
            case Verdict():
                known = {"p": event.p, "q": event.q, "u": event.u, "into": event.into}
                known["reason"] = reason_of(event, trace.vocabulary)
                graph.add_node(event.node, status=event.status, **_set(known))
            case Rank():
                graph.add_node(event.node, score=event.total, **_set({"rank": event.rank}))
            case Score():
                graph.add_node(event.node, score=event.total)
            case Distribution(view="target", level=None):
                graph.add_node(event.node, entropy=event.entropy)
            case Commit():
                for node, logprob in zip(event.nodes, event.logprobs, strict=True):
                    graph.add_node(node, committed=True, **_set({"target_logprob": logprob}))


def _add(
    graph: nx.DiGraph, trace: Trace | Header, node: int, parent: int, token: int, **known: object
) -> None:
    depth = 1 + graph.nodes[parent]["depth"] if parent >= 0 else 1 - len(trace.prompt)
    text = trace.vocabulary.get(token, b"").decode("utf-8", "replace")
    graph.add_node(node, token=token, text=text, depth=depth, committed=False, **_set(known))
    if parent >= 0:
        graph.add_edge(parent, node)


def _set(values: dict) -> dict:
    return {name: value for name, value in values.items() if value is not None}


def drafts(trace: Trace, steps: int | None = None) -> nx.DiGraph:
    """The part of the token tree that drafters wrote, with the tokens that drafts start from. Drafted nodes,
    those that were sent to the target, have the `round` (0: the first) that verified them.
    """
    tree, costs = token_tree(trace, steps), costs_of(trace.steps[:steps])
    for number, made in enumerate(costs.rounds):
        tree.add_nodes_from(made.nodes, round=number)
    drafted = [n for n, known in tree.nodes(data=True) if "round" in known or is_draft(known)]
    roots = {parent for node in drafted for parent in tree.predecessors(node)}
    return _part(tree, "drafts", {*drafted, *roots})


def is_draft(known: dict) -> bool:
    """Whether a node with these attributes was guessed, not decoded by the target."""
    return known["source"] not in ("target", "copied", "person", PROMPT)


def beams(trace: Trace, steps: int | None = None) -> nx.DiGraph:
    """The part of the token tree that was given scores, with the paths to it from the end of the prompt."""
    tree = token_tree(trace, steps)
    scored = [n for n, known in tree.nodes(data=True) if "score" in known and known["depth"] > 0]
    index = trace.index()
    kept = {index.root} if scored else set()
    for node in scored:
        kept.update(takewhile(lambda n: n not in kept, index.upwards(node)))
    return _part(tree, "beams", kept)


def search(trace: Trace, steps: int | None = None) -> nx.DiGraph:
    """What a search has opened and what waits: the token tree below the prompt, `opened` (1: first) on nodes
    below which something was proposed, and an edge with `merge` true from each merged node to the one it was
    merged into.
    """
    tree = token_tree(trace, steps)
    kept = {n for n, known in tree.nodes(data=True) if known["depth"] >= 0}
    graph = _part(tree, "search", kept)
    opened = dict.fromkeys(e.parent for s in trace.steps[:steps] for e in s.of(Propose))
    for number, node in enumerate(opened, 1):
        graph.nodes[node]["opened"] = number
    for node, known in list(graph.nodes(data=True)):
        if known["status"] == "merged" and known.get("into") in graph:
            graph.add_edge(node, known["into"], merge=True)
    return graph


def _part(tree: nx.DiGraph, kind: str, nodes: set[int]) -> nx.DiGraph:
    part = nx.DiGraph(tree.subgraph(nodes))  # a copy: a view would still hold the whole
    part.graph["kind"] = kind
    return part
