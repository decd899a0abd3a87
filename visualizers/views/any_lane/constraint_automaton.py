"""Constraint automaton: what a lane's constraint allows, as a graph that lights up where the output stands.

A fold over Commit, AutomatonEdge (what it reads has spaces between the characters) and AutomatonState. All
places are fixed when the first token is committed.
"""

from dataclasses import dataclass
from statistics import fmean

import networkx as nx

from decoders.trace.events import Commit
from decoders.trace.scores import AutomatonEdge, AutomatonState
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Graph, Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.spread import spread
from visualizers.scene.view import Header, has, view

SIZE = 12
CHARACTER = 0.602 * SIZE  # pixels
BESIDE = 4  # characters between a state and the text of its edges
LONGEST = 26  # characters of an edge's words that are shown
LIFT = 0.36  # rows by which a text stands above its edge
QUOTED = 5  # words of edges that the heading quotes
ENDED = ": the text has ended"
NONE = "no automaton is drawn: rules call themselves, there are too many edges, or the text is not followed"


@dataclass
class Edge:
    """`words`: its text, a piece for each character that it reads."""

    source: int
    target: int
    words: list[str]

    @property
    def label(self) -> str:
        whole = "".join(self.words)
        return whole if len(whole) <= LONGEST else whole[: LONGEST - 1] + "…"


@view("constraint_automaton", "Constraint automaton", reads=has(AutomatonState))
class ConstraintAutomaton:
    """x counts characters from 1, y rows of edges; a state stands in a column of its own distance from the
    start.
    """

    def __init__(self, header: Header):
        self.edges: dict[int, Edge] = {}
        self.ends: set[int] = set()
        self.column: dict[int, float] = {}  # state -> x
        self.row: dict[int, float] = {}  # state -> y
        self.lane: dict[int, float] = {}  # edge -> y of its words
        self.start_of_words: dict[int, float] = {}  # edge -> x of the first character
        self.state, self.edge, self.along = 0, None, 0  # where the output stands
        self.taken: set[int] = set()
        self.dots = 0  # marks of where the output stood

    def head(self) -> Layout:
        """Title, question and layout."""
        return Graph(
            question="Which state is the output in? What may come next? Where may it end?",
            first=1,
            column=CHARACTER,
            widest=1.25 * CHARACTER,
            columns="seen",
            row=sizes.ROW,
            row_min=22,
            row_tall=44,
            patched=True,
            ops=[
                heading(),
                scene.Panel("graph", y0=-1.3, y1=4, share=1, grow=True),
            ],
            legend=[
                ["symbol:live", "●", "live", "the output is here"],
                ["path:ink", "━", "ink", "taken"],
                ["symbol:ring", "○", "ink", "a state"],
                ["symbol:finished", "◎", "finished", "the output may end here"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: the graph at first, then what was taken and where the output stands."""
        for event in step.of(AutomatonEdge):
            self.edges[event.number] = Edge(event.source, event.target, event.reads.split(" "))
            self.ends |= {event.source} if event.source_ends else set()
            self.ends |= {event.target} if event.target_ends else set()
        commits = [event for event in step.events if isinstance(event, Commit)]
        committed = [node for event in commits for node in event.nodes]
        if not committed:
            return []
        if not self.edges:
            return [scene.Change("heading", lead="", heading=NONE, short=NONE)]
        ops = self._drawn() if not self.row else []
        places = {event.node: event for event in step.of(AutomatonState)}
        for node in committed:
            if node in places:
                ops += self._moved(places[node])
        if committed[-1] not in places:
            over = {"lead": "over", "heading": ENDED, "short": ENDED}
            return [*ops, scene.Change("heading", **over)]
        return ops + self._here(step)

    # ---- what moves --------------------------------------------------------------------------------------

    def _moved(self, event) -> list[Op]:
        """The edges that a token took, and where the output stands after it."""
        self.edge, self.along = event.edge, event.along or 0
        self.state = event.state if event.edge is None else self.edges[event.edge].source
        fresh = [number for number in event.took if number not in self.taken and number != self.edge]
        self.taken.update(fresh)
        return [scene.Change(f"e{number}", role="ink", width=2.4) for number in fresh]

    def _here(self, step) -> list[Op]:
        """The mark of the current place, and in words what may come next."""
        if self.edge is None:
            x, y = self.column[self.state], self.row[self.state]
            onward = ["".join(edge.words) for edge in self.edges.values() if edge.source == self.state]
        else:
            edge = self.edges[self.edge]
            before = len("".join(edge.words[: self.along]))
            x = self.start_of_words[self.edge] + min(before, LONGEST - 1) - 0.5
            y = self.lane[self.edge]
            onward = ["".join(edge.words[self.along :])]
        ends = self.edge is None and self.state in self.ends
        quoted = " · ".join(onward[:QUOTED])
        quoted += f" · and {len(onward) - QUOTED} more" if len(onward) > QUOTED else ""
        heading = ": " + "; ".join(filter(None, (quoted, "may end here" * ends)))
        lead = "next" if onward else "over"
        words = {"lead": lead, "heading": heading, "short": heading}
        where = (round(x, 3), round(y, 4))
        return [
            *self._dot(where),
            scene.Change("heading", **words),
            scene.Front(where[0], y + 1),
            scene.Say(f"Step {step.index + 1}: {lead}{heading}."),
        ]

    def _dot(self, where: tuple[float, float]) -> list[Op]:
        """The mark of the current place, a new one at each step: no mark moves."""
        before = [scene.Change(f"here{self.dots}", gone=True)] if self.dots else []
        self.dots += 1
        spot = {"x": where[0], "y": where[1], "glyph": "dot", "role": "live", "size": sizes.SENTENCE}
        return [*before, scene.Symbol(f"here{self.dots}", panel="graph", **spot)]

    # ---- places ------------------------------------------------------------------------------------------

    def _drawn(self) -> list[Op]:
        """The whole graph: columns by distance from the start, rows so that no edge lies on another."""
        layer = layers(self.edges.values())
        forward = {n: e for n, e in self.edges.items() if layer[e.target] > layer[e.source]}
        depth = max(layer.values())
        x = 1.0
        at_layer = []
        for number in range(depth + 1):
            at_layer.append(x)
            short = [len(e.label) for e in forward.values() if layer[e.source] == number]
            x += 2 * BESIDE + max(short, default=0)
        self.column = {state: at_layer[number] for state, number in layer.items()}
        over: dict[int, list[float]] = {}  # gap after a layer -> rows of the edges that pass it
        taken: dict[int, list[float]] = {}  # layer -> rows of its states and of edges that pass them
        for number in range(depth + 1):
            here = sorted((s for s in layer if layer[s] == number), key=self._middle)
            for state, y in zip(
                here, spread(list(map(self._middle, here)), taken.get(number, [])), strict=True
            ):
                self.row[state] = y
            taken.setdefault(number, []).extend(self.row[state] for state in here)
            ways = sorted(
                (n for n, e in forward.items() if layer[e.source] == number),
                key=lambda n: (self.row[forward[n].source], layer[forward[n].target], n),
            )
            for way in ways:
                edge = forward[way]
                same = [other for other in ways if forward[other].source == edge.source]
                wanted = self.row[edge.source] + same.index(way) - (len(same) - 1) / 2
                passed = range(layer[edge.source], layer[edge.target])
                busy = [y for gap in passed for y in over.get(gap, [])]
                busy += [y for inner in passed[1:] for y in taken.get(inner, [])]
                (self.lane[way],) = spread([wanted], busy)
                for gap in passed:
                    over.setdefault(gap, []).append(self.lane[way])
                for inner in passed[1:]:
                    taken.setdefault(inner, []).append(self.lane[way])
        lowest = min([*self.row.values(), *self.lane.values()])
        self.row = {state: y - lowest for state, y in self.row.items()}
        self.lane = {way: y - lowest for way, y in self.lane.items()}
        below = max([*self.row.values(), *self.lane.values()])
        for way, edge in self.edges.items():
            if way not in forward and edge.source != edge.target:
                below += 1
                self.lane[way] = below
        ops = [op for way in self.edges for op in self._edge(way)]
        ops += [op for state in self.row for op in self._state(state)]
        whole = {"y0": -1.3, "y1": below + 0.5, "text": "", "rule": False}  # all of it is shown where it fits
        ops.append(scene.Row("whole", panel="graph", **whole))
        return ops

    def _middle(self, state: int) -> float:
        """The middle of the edges that lead to a state."""
        rows = [y for way, y in self.lane.items() if self.edges[way].target == state]
        return fmean(rows) if rows else 0.0

    def _edge(self, way: int) -> list[Op]:
        """The line of an edge and its words."""
        edge = self.edges[way]
        label, whole = edge.label, "".join(edge.words)
        line = self._loop(way) if edge.source == edge.target else self._route(way)
        points, middle, height = line
        self.start_of_words[way] = middle - len(label) / 2 + 0.5
        words = {"face": "mono", "size": SIZE, "align": "center", "role": "ink", "priority": 1}
        hover = [f"reads {whole}", f"from state {edge.source} to state {edge.target}"]
        points = [[round(x, 3), round(y, 3)] for x, y in points]
        place = {"panel": "graph", "x": middle, "y": height, "text": label}
        return [
            scene.Path(f"e{way}", panel="graph", points=points, role="soft", width=1, head=True),
            scene.Label(f"t{way}", **place, hover=hover, **words),
        ]

    def _route(self, way: int) -> tuple[list, float, float]:
        """Points of an edge from one state to another, and where its text stands: in its row, above it."""
        edge, y = self.edges[way], self.lane[way]
        x0, y0, x1, y1 = *self._at(edge.source), *self._at(edge.target)
        if x1 > x0:
            middle = (x0 + min(x1, x0 + 2 * BESIDE + len(edge.label))) / 2
            bend = min(BESIDE - 1, (x1 - x0) / 3)
            points = [(x0 + 0.6, y0), (x0 + bend, y), (x1 - bend, y), (x1 - 0.9, y1)]
        else:  # it leads back, below all others
            middle = (x0 + x1) / 2
            points = [(x0, y0 + 0.15), (x0 - 1, y), (x1 + 1, y), (x1, y1 + 0.2)]
        return points, middle, y - LIFT

    def _loop(self, way: int) -> tuple[list, float, float]:
        """The same of an edge from a state to itself: the first above it, the second below, and so on."""
        state = self.edges[way].source
        x, y0 = self._at(state)
        nth = [n for n, edge in self.edges.items() if edge.source == edge.target == state].index(way)
        side = -1 if nth % 2 == 0 else 1
        y = self.lane[way] = y0 + side * (0.62 + 0.4 * (nth // 2))
        near, far = y0 + 0.12 * side, y - 0.1 * side
        return [(x - 0.3, near), (x - 1.6, far), (x + 1.6, far), (x + 0.3, near)], x, y + 0.16 * side

    def _state(self, state: int) -> list[Op]:
        """A ring, and a second one where the output may end."""
        x, y = self._at(state)
        where = {"panel": "graph", "x": x, "y": y, "glyph": "ring"}
        hover = [f"state {state}", "the output may end here" if state in self.ends else "more must come"]
        ring = scene.Symbol(f"s{state}", **where, role="ink", size=9, hover=hover)
        more = [scene.Symbol(f"o{state}", **where, role="finished", size=16)] if state in self.ends else []
        return [*more, ring]

    def _at(self, state: int) -> tuple[float, float]:
        return self.column[state], self.row[state]


def layers(edges) -> dict[int, int]:
    """State -> number of edges on the longest path from state 0, back edges left out."""
    graph = nx.DiGraph((edge.source, edge.target) for edge in edges)
    order = {state: n for n, state in enumerate(nx.dfs_postorder_nodes(graph, 0))}
    onward = nx.DiGraph((a, b) for a, b in graph.edges if order[a] > order[b])
    onward.add_nodes_from(graph.nodes)
    depths: dict[int, int] = {}
    for state in nx.topological_sort(onward):
        depths[state] = max((depths[before] + 1 for before in onward.predecessors(state)), default=0)
    return depths
