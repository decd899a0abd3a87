"""Automaton: the outputs that are possible as one graph, what its edges cost, and the paths that were found.

A fold over Propose, Rank ("path_cost", whose number is the state and whose parts are the cost of the edge and
the state's layer; "path" with a rank), Measure ("blocked"), Verdict and Commit. A state is a ring, an edge a
token with its cost; where edges meet, prefixes were merged. Places are fixed when an edge is first tried.
"""

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.number_format import many
from decoders.trace.scores import Measure, Rank, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Graph, Layout
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.spread import spread
from visualizers.scene.view import Header, has, view

LISTED = 6  # paths that are listed at the right
Edge = tuple[int, int]  # state, token


@view("automaton", "Automaton", reads=has(Rank, name=ScoreName.PATH_COST))
class Automaton:
    """x counts layers of states, an edge stands half a column after its state; y separates edges."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.state: dict[int, int] = {}  # node -> its state
        self.layer: dict[int, int] = {}  # state -> column
        self.row: dict[int, float] = {}  # state -> y
        self.edge: dict[int, Edge] = {}  # node -> the edge that it took
        self.to: dict[Edge, int] = {}
        self.cost: dict[Edge, float] = {}
        self.newest: dict[Edge, int] = {}  # the node with which an edge was last tried
        self.place: dict[Edge, float] = {}  # y of what is drawn
        self.incoming: dict[int, int] = {}
        self.paths: dict[int, tuple[int, float]] = {}  # last node -> rank, cost
        self.looks: dict[Edge, str] = {}
        self.notes: dict[Edge, str] = {}
        self.output: list[int] = []
        self.listed = [""] * (LISTED + 2)

    def head(self) -> Layout:
        """Title, question, layout and the empty list of paths."""
        lines = [
            scene.Label(
                f"p{i}",
                side="right",
                line=i,
                text="",
                bold=i == 0,
                face="sans" if i == 0 else "mono",
                role="ink" if i == 0 else "soft",
            )
            for i in range(LISTED + 2)
        ]
        return Graph(
            question="Which outputs are possible? What does each edge cost? Which paths are cheapest?",
            ops=[scene.Panel("graph", y0=-1.4, y1=5, share=1, grow=True), *lines],
            first=0,
            row=sizes.NODE,
            row_tall=60,
            notes="under",
            patched=True,
            column=132,
            column_narrow=92,
            wide=150,
            left=24,
            right=190,
            right_narrow=24,
            overview="rows",
            legend=[
                ["node:chosen", "●", "chosen", "the cheapest path so far"],
                ["node:live", "○", "live", "another of the k paths"],
                ["node:rejected", "✕", "rejected", "blocked in this search"],
                ["node:pruned", "✕", "pruned", "on no path that was found"],
                ["node:forced", "⚑", "forced", "must come first"],
                ["symbol:ring", "○", "ink", "a state"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: edges that were tried first, what is blocked, and the paths."""
        blocked, fresh, forced = set(), [], set()
        for event in step.events:
            match event:
                case Propose():
                    self.nodes.add(event)
                case Rank(name=ScoreName.PATH_COST):
                    fresh += self._tried(event)
                case Rank(name=ScoreName.PATH) if event.rank is not None:
                    self.paths[event.node] = (event.rank, event.total)
                case Measure(name=ScoreName.BLOCKED):
                    blocked.add(self.edge.get(event.node))
                case Verdict() if event.status == "forced":
                    forced.add(self.edge.get(event.node))
                case Commit():
                    self.output += event.nodes
        ops = self._draw(fresh)
        ops += self._restate(blocked, forced)
        ops += self._list()
        if self.place:
            ops.append(scene.Front(max(self.layer.values()), max(self.place.values())))
            ops.append(scene.Say(self._caption(step)))
        return ops

    # ---- what the step says ----------------------------------------------------------------------------
    def _tried(self, event) -> list[Edge]:
        """Reads an edge; returns it in a list if it is new."""
        node = event.node
        state = self.state[node] = event.number or 0
        self.layer.setdefault(state, int(event.parts["layer"]))
        parent = self.nodes.parent.get(node)
        if parent not in self.state:  # where the search starts
            return []
        edge = self.edge[node] = (self.state[parent], self.nodes.token[node])
        new = edge not in self.cost
        self.cost[edge], self.newest[edge], self.to[edge] = event.parts["edge"], node, state
        return [edge] if new else []

    # ---- places ----------------------------------------------------------------------------------------
    def _draw(self, fresh: list[Edge]) -> list[Op]:
        """New edges column by column, each near its state, none on another; states after them."""
        ops: list[Op] = []
        if fresh and not self.row:
            columns = [self.layer[state] for state, _ in fresh]
            tall = max(columns.count(column) for column in columns)
            ops.append(self._ring(next(iter(self.state.values())), (tall - 1) / 2))
        for column in sorted({self.layer[state] for state, _ in fresh}):
            here = [edge for edge in fresh if self.layer[edge[0]] == column]
            for state in sorted({edge[0] for edge in here} - self.row.keys(), key=lambda s: self._middle(s)):
                ops.append(self._ring(state, self._middle(state)))
            here.sort(key=lambda edge: (self.row[edge[0]], self.cost[edge]))
            taken = [y for edge, y in self.place.items() if self.layer[edge[0]] == column]
            for edge, y in zip(here, spread([self._wanted(edge, here) for edge in here], taken), strict=True):
                self.place[edge] = y
        last = sorted(set(self.to.values()) - self.row.keys(), key=lambda s: self._middle(s))
        ops += [self._ring(state, self._middle(state)) for state in last]
        return ops + [op for edge in fresh for op in self._birth(edge)]

    def _wanted(self, edge: Edge, here: list[Edge]) -> float:
        same = [other for other in here if other[0] == edge[0]]
        return self.row[edge[0]] + same.index(edge) - (len(same) - 1) / 2

    def _middle(self, state: int) -> float:
        """The middle of the edges that lead to a state."""
        above = [y for edge, y in self.place.items() if self.to[edge] == state]
        return sum(above) / len(above) if above else 0.0

    def _ring(self, state: int, y: float) -> Op:
        x = self.layer[state]
        taken = [row for other, row in self.row.items() if self.layer[other] == x]
        (y,) = spread([y], taken)
        self.row[state] = y
        return scene.Symbol(f"s{state}", glyph="ring", role="ink", x=x, y=y, size=9)

    def _birth(self, edge: Edge) -> list[Op]:
        (state, token), to = edge, self.to[edge]
        x, y, node = self.layer[state] + 0.5, self.place[edge], self.newest[edge]
        name, look = f"{state}.{token}", {"state": "pruned"}
        self.looks[edge] = "pruned"
        ways = {"x0": self.layer[state], "y0": self.row[state]}, {"x1": self.layer[to], "y1": self.row[to]}
        return [
            scene.Edge(f"a{name}", **ways[0], x1=x, y1=y, **look),
            scene.Edge(f"b{name}", x0=x, y0=y, **ways[1], **look),
            scene.Node(f"t{name}", x=x, y=y, node=node, text=self.nodes.text(node), **look),
        ]

    # ---- states and words ------------------------------------------------------------------------------
    def _ranks(self) -> dict[Edge, int]:
        """Edge -> the rank of the best path that takes it."""
        ranks: dict[Edge, int] = {}
        for node, (rank, _) in self.paths.items():
            for edge in (self.edge[n] for n in self.nodes.path(node) if n in self.edge):
                ranks[edge] = min(rank, ranks.get(edge, rank))
        return ranks

    def _restate(self, blocked: set, forced: set) -> list[Op]:
        """Colours follow from the paths and from what is blocked; only changes are sent."""
        ranks, ops = self._ranks(), []
        for edge in self.place:
            rank, name = ranks.get(edge), f"{edge[0]}.{edge[1]}"
            path_state = "pruned" if rank is None else "chosen" if rank == 1 else "live"
            state = "rejected" if edge in blocked else "forced" if edge in forced else path_state
            note = signed(self.cost[edge])
            if state != self.looks[edge]:
                self.looks[edge] = state
                ops += [scene.Change(f"{part}{name}", state=state) for part in "abt"]
            if note != self.notes.get(edge):
                self.notes[edge] = note
                text = self.nodes.text(self.newest[edge])
                hover = [f"{text} costs {note}", f"from state {edge[0]} to state {self.to[edge]}"]
                ops.append(scene.Change(f"t{name}", note=note, hover=hover))
        return ops

    def _list(self) -> list[Op]:
        """The lines at the right: the paths by rank, with their costs."""
        ranked = sorted(self.paths.items(), key=lambda item: item[1])
        lines = ["cheapest paths" if ranked else ""]
        for node, (rank, cost) in ranked[:LISTED]:
            text = "".join(self.nodes.text(n) for n in self.nodes.path(node)[:-1])
            lines.append(f"{rank} {signed(cost)} {text}")
        lines += [""] * (LISTED + 1 - len(lines))
        more = len(ranked) - LISTED
        lines.append(f"and {more} more" if more > 0 else "")
        before, self.listed = self.listed, lines
        return [scene.Change(f"p{i}", text=line) for i, line in enumerate(lines) if line != before[i]]

    def _caption(self, step) -> str:
        counts = ((self.row, "state"), (self.place, "edge"), (self.paths, "path"))
        caption = f"Step {step.index + 1}: " + ", ".join(many(len(what), name) for what, name in counts)
        best = min(self.paths.items(), key=lambda item: item[1], default=None)
        if best:
            text = "".join(self.nodes.text(n) for n in self.nodes.path(best[0])[:-1])
            caption += f"; the cheapest is {text} with {signed(best[1][1])}"
        return caption + "."


def signed(value: float) -> str:
    """Two decimals and a true minus sign; no minus before a zero."""
    return f"{round(value, 2) or 0.0:.2f}".replace("-", "−")
