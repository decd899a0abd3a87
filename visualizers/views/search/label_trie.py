"""Label trie: a list of labels as the trie that a search walks, with where the text stands in it.

A fold over Distribution ("processed"), Propose and Commit; the labels are the lane's parameters. What labels
share is one edge; a leaf is crossed out once its label is used.
"""

import math
from dataclasses import replace

import networkx as nx

from decoders.constraints.labels import SEPARATOR, labels_of
from decoders.trace.events import Distribution
from decoders.trace.number_format import many
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Tree
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, view
from visualizers.scene.words import probability

ROOT = ""
LOOKS = {"used": "pruned", "passed": "chosen", "open": "live", "closed": "prompt"}
WORDS = {
    "used": "every label below is used",
    "passed": "the text has come this way",
    "open": "the text may continue here",
    "closed": "the text cannot come here now",
}


def trie_graph(labels: list[str]) -> nx.DiGraph:
    """The labels as a trie whose places are the prefixes where labels branch or end. A place has a `depth` in
    edges and a `row`, an edge its `text`.
    """
    ordered = sorted(labels)
    places = {ROOT, *labels}
    for one, other in zip(ordered, ordered[1:], strict=False):
        shared = [a == b for a, b in zip(one, other, strict=False)] + [False]
        places.add(one[: shared.index(False)])
    graph, stack = nx.DiGraph(), []
    for place in sorted(places):
        while stack and not place.startswith(stack[-1]):
            stack.pop()
        graph.add_node(place, depth=len(stack))
        if stack:
            graph.add_edge(stack[-1], place, text=place[len(stack[-1]) :])
        stack.append(place)
    rows = {label: row for row, label in enumerate(ordered)}
    for place in sorted(graph, key=len, reverse=True):  # children before their parents
        below = [graph.nodes[child]["row"] for child in graph[place]]
        graph.nodes[place]["row"] = rows.get(place, sum(below) / len(below) if below else 0.0)
    return graph


@view("label_trie", "Label trie")
class LabelTrie:
    """x counts edges from the root, a label has a row; where the text stands is strong."""

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        labels_text = header.word("labels") or header.word("constraint_text")
        self.labels = labels_of(labels_text) if labels_text.strip() else []
        self.separator = header.word("separator") or SEPARATOR
        self.graph = trie_graph(self.labels)
        self.key = {place: f"n{at}" for at, place in enumerate(sorted(self.graph))}
        self.text = ""
        self.looks = dict.fromkeys(self.graph, "open")
        self.noted: set[str] = set()  # places with a probability
        self.count = 0  # of labels that were used

    def head(self) -> Layout:
        """Title, question, the whole trie, and the legend."""
        return Tree(
            question="Which labels are left? Where in the trie is the text, and what is likely there?",
            ops=[op for place in sorted(self.graph) for op in self._birth(place)],
            columns=1 + max(depth for _, depth in self.graph.nodes(data="depth")),
            row=sizes.NODE,
            row_tall=54,
            rows=len(self.labels) + 0.4,
            notes="under",
            patched=True,
            column=120,
            column_narrow=84,
            wide=170,
            left=30,
            right=60,
            axis=None,
            legend=[
                ["node:chosen", "●", "chosen", "the text is here, or has passed"],
                ["node:live", "○", "live", "it may continue here; a number: the probability after the mask"],
                ["node:prompt", "○", "soft", "it cannot come here now"],
                ["node:pruned", "✕", "pruned", "the label is used"],
            ],
        )

    def _birth(self, place: str) -> list[Op]:
        """The mark of a place, and of the edge that leads to it."""
        at, key = self.graph.nodes[place], self.key[place]
        here = {"x": at["depth"], "y": round(at["row"] + 0.6, 4)}
        above = next(self.graph.predecessors(place), None)
        text = "start" if above is None else self._edge(place)
        node = scene.Node(key, **here, state="live", text=text, priority=1)
        if above is None:
            return [replace(node, hover=["where each label begins"])]
        over = self.graph.nodes[above]
        ends = {"x0": over["depth"], "y0": round(over["row"] + 0.6, 4), "x1": here["x"], "y1": here["y"]}
        edge = scene.Edge(f"e{key}", **ends, state="live")
        return [edge, replace(node, hover=[place])]

    def _edge(self, place: str) -> str:
        """What the edge to a place adds, as text."""
        above = next(self.graph.predecessors(place))
        return self.graph.edges[above, place]["text"].replace(" ", "␣")

    def feed(self, step) -> list[Op]:
        """Where the text stands after a step."""
        offers = {e.node: e for e in step.events if isinstance(e, Distribution) and e.view == "processed"}
        _, _, commits = self.nodes.read(step)
        ops: list[Op] = []
        for node in commits:
            if (offer := offers.get(self.nodes.parent[node])) is not None:
                ops += self._offered(offer)
            self.text += self.header.vocabulary.get(self.nodes.token[node], b"").decode("utf-8", "replace")
        used, begun = self._parsed()
        if len(used) > self.count:  # the next label begins: remove the numbers of the last one
            self.count = len(used)
            ops += [scene.Change(self.key[place], note="") for place in self.noted]
            self.noted = set()
        ops += [op for place in sorted(self.graph) for op in self._restate(place, used, begun)]
        say = (
            f"{many(len(used), 'label')} written: {', '.join(used) or 'none'}; the next one begins {begun!r}."
        )
        return [*ops, scene.Front(self._deepest(begun), 0), scene.Say(say)]

    def _parsed(self) -> tuple[list[str], str]:
        """Labels that are complete, and the beginning of the next one."""
        *used, begun = self.text.removeprefix(" ").split(self.separator)
        if not any(label.startswith(begun) for label in self.labels):  # a label is followed by an end of text
            whole = max((label for label in self.labels if begun.startswith(label)), key=len, default=None)
            return [*used, *([whole] if whole else [])], ROOT
        return used, begun

    def _deepest(self, begun: str) -> int:
        passed = [place for place in self.graph if begun.startswith(place)]
        return max(self.graph.nodes[place]["depth"] for place in passed)

    def _offered(self, offer) -> list[Op]:
        """The mass after the mask of each edge that leaves the place where the text stood."""
        used, begun = self._parsed()
        place = max((p for p in self.graph if begun.startswith(p)), key=len)
        mass = dict.fromkeys(self.graph[place], 0.0)
        for token, logprob in offer.top:
            word = self.header.vocabulary.get(token, b"").decode("utf-8", "replace")
            further = begun[len(place) :] + (word if begun or used else word.removeprefix(" "))
            for child in mass:
                edge = self.graph.edges[place, child]["text"]
                if further and (edge.startswith(further) or further.startswith(edge)):
                    mass[child] += math.exp(logprob)
        changed = {c: probability(min(1.0, p)) for c, p in mass.items() if p and c not in used}
        self.noted |= changed.keys()
        return [scene.Change(self.key[child], note=note) for child, note in changed.items()]

    def _restate(self, place: str, used: list[str], begun: str) -> list[Op]:
        """The look of a place, if it has changed."""
        left = [label for label in self.labels if label.startswith(place) and label not in used]
        if not left:
            look = "used"
        elif begun.startswith(place):
            look = "passed"
        else:
            look = "open" if any(label.startswith(begun) for label in left) else "closed"
        if look == self.looks[place]:
            return []
        self.looks[place] = look
        key, state = self.key[place], LOOKS[look]
        change = {"state": state, "hover": [place or "start", WORDS[look]]}
        if look == "used" and place != ROOT:
            change["text"] = f"✕{self._edge(place)}"
        ops: list[Op] = [scene.Change(key, **change)]
        if place != ROOT:
            ops.append(scene.Change(f"e{key}", state=state))
        return ops
