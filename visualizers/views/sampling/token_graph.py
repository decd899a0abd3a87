"""Token graph: the text as a walk over its tokens. Where did it return, and which transitions did it repeat?

A fold over Propose, Rank, Distribution and Commit; the prompt is the beginning of the walk. Any text is a
walk, and candidates are shown where they were given scores. Each token has one fixed place, in order of first
occurrence, twelve to a row.
"""

from dataclasses import replace

import networkx as nx

from decoders.trace.events import Distribution, Forward
from decoders.trace.number_format import many
from decoders.trace.scores import Rank
from visualizers import scene
from visualizers.graphs.walk import go, loop_of
from visualizers.scene import sizes
from visualizers.scene.layout import Graph, Layout, heading, scroll_row
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view

ACROSS = 12  # tokens in a row
WIDE, TALL = 0.84, 0.58  # of a token's box, in columns and rows
SIDE = 0.1  # distance from the middle of a box, in columns, at which edges leave and arrive
GAP = 1 - TALL  # rows between the boxes of one row and those of the next
LANE = 0.04  # columns between edges that pass between the same two boxes
PIECES = 12  # straight pieces of a curved edge
CANDIDATES = 5  # listed below the graph
LOOP = 6  # tokens of a loop that are named
HEAVIEST = 5  # an edge that was taken this many times is as thick as edges get


@view("token_graph", "Token graph", reads=has(Forward, kind="decode", rows=1))
class TokenGraph:
    """Boxes are tokens, arrows the steps from one to the next; edges that were taken again are coloured."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.places: dict[int, int] = {}  # token -> its place, in order of first occurrence
        self.walk = nx.DiGraph()  # as visualizers.graphs.walk has it
        self.here: int | None = None  # the token where the walk stands
        self.newest: tuple[int, int] | None = None  # the edge of the newest step, drawn strong
        self.shown: list[str] = []  # marks that go with the next step
        self.length = 0  # tokens of the walk so far
        self.steps = self.returns = self.again = self.likeliest = self.known = self.turned = 0
        self.tops: dict[int, int] = {}  # node -> the most likely token after it

    def head(self) -> Layout:
        """Title, question, layout, and the walk over the prompt."""
        ops = [op for token in self.nodes.header.prompt for op in self._visit(token, None)]
        return Graph(
            question="Which tokens did the text return to? Which transitions did it repeat?",
            first=1,
            columns=ACROSS,
            column=28,
            column_narrow=26,
            widest=140,
            row=sizes.TALL,
            row_tall=84,
            ops=[*panels(), *at_rest(ops)],
            legend=[
                ["cell:filled", "■", "ink", "here"],
                ["path:link", "━", "link", "a repeated transition"],
                ["path:soft", "─", "soft", "a step"],
                ["path:rejected", "╌", "rejected", "the most likely token, avoided"],
                ["cell:prompt", "□", "soft", "only in the prompt"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: the edge to each committed token, and what else could have come."""
        scores = {e.node: e for e in step.of(Rank) if e.rank is not None}
        for event in step.events:
            if isinstance(event, Distribution) and event.view == "target" and event.top:
                self.tops[event.node] = int(event.top[0][0])
        born, _, commits = self.nodes.read(step)
        if not commits:
            return []
        ops: list[Op] = [scene.Change(key, gone=True) for key in self.shown]
        self.shown = []
        for node in commits:
            ops += self._step(node)
        offered = [e for e in born if e.parent == self.nodes.parent[commits[-1]] and e.node in scores]
        if len(commits) == 1 and len(offered) > 1:
            ops += self._candidates(commits[0], offered, scores)
        words = self._words()
        ops.append(scene.Change("heading", lead=words[0], heading=words[1], short=words[2]))
        ops.append(
            scene.Front(ACROSS, self._row(len(self.places) - 1) + 0.3)
        )  # the newest row is fully visible
        return [*ops, scene.Say(f"{self.nodes.text(commits[-1])}: {words[0]}{words[1]}")]

    # ---- the walk ----------------------------------------------------------------------------
    def _step(self, node: int) -> list[Op]:
        """One step of the walk, and its counts."""
        token, top = self.nodes.token[node], self.tops.pop(self.nodes.parent[node], None)
        self.steps += 1
        self.returns += token in self.places
        self.again += self.walk.has_edge(self.here, token)
        if top is not None:
            self.known += 1
            self.likeliest += top == token
            self.turned += top != token and token not in self.places and top in self.places
        return self._visit(token, node)

    def _visit(self, token: int, node: int | None) -> list[Op]:
        """The walk comes to `token`: its box if it is new, the edge to it, and the looks of the boxes."""
        ops, before = [], self.here
        if self.newest is not None:
            ops.append(scene.Change(key(self.newest), **look(self.walk.edges[self.newest]["times"])))
        if token not in self.places:
            if len(self.places) % ACROSS == 0:
                row = len(self.places) // ACROSS
                ops.append(scroll_row(row, "graph", row - 0.1, row + 0.9))
            self.places[token] = len(self.places)
            ops.append(self._box(token, node))
        go(self.walk, before, token, self.length, self.nodes.header.vocabulary)
        self.here, self.length = token, self.length + 1
        if before is not None:
            self.newest = way = (before, token)
            known = self.walk.edges[way]["times"] - 1
            ops.append(self._restate(before, here=False))
            strong = {**look(known + 1), "width": 2.6} | ({} if known else {"role": "ink"})
            if known:
                ops.append(scene.Change(key(way), **strong))
            else:
                points = self._curve(*way)
                ops.append(scene.Path(key(way), panel="graph", points=points, head=True, **strong))
        ops.append(self._restate(token, here=True, node=node))
        return ops

    def _box(self, token: int, node: int | None) -> Op:
        x, y = self._at(token)
        text = self.nodes.word(token)
        place = {"panel": "graph", "x": x, "y": y, "w": WIDE, "h": TALL}
        return scene.Cell(f"t{token}", **place, state="prompt", fill="tint", text=text, node=node)

    def _restate(self, token: int, here: bool, node: int | None = None) -> Op:
        """How a box looks now. `node`: the newest node there, which a click asks for."""
        looks = {"fill": "filled" if here else "tint", "hover": self._hover(token)}
        return scene.Change(
            f"t{token}", **(looks | ({} if node is None else {"state": "chosen", "node": node}))
        )

    def _hover(self, token: int) -> list[str]:
        """How often the walk was here, and where it went next."""
        count = self.walk.nodes[token]["visits"]
        times = "once" if count == 1 else many(count, "time")
        ways = sorted(self.walk[token].items(), key=lambda item: -item[1]["times"])[:6]
        ways = [(after, known["times"]) for after, known in ways]
        text = " · ".join(self.nodes.word(b) + (f" {n} times" if n > 1 else "") for b, n in ways)
        return [f"{self.nodes.word(token)}: {times} in the text", *([f"then {text}"] if text else [])]

    # ---- what could have come ----------------------------------------------------------------
    def _candidates(self, taken: int, offered: list, scores: dict) -> list[Op]:
        """The candidates of the newest step below the graph, and the edge to the top-1 token if another was
        chosen.
        """
        ops: list[Op] = []
        for i, event in enumerate(offered[:CANDIDATES]):
            score, chosen = scores[event.node], event.node == taken
            place = {"panel": "offers", "align": "left", "x": 0.6 + 2.4 * i, "w": 2.3}
            text = ("● " if chosen else "") + self.nodes.text(event.node)
            bold = {"bold": chosen, "role": "ink" if chosen else "soft"}
            token = {"y": 9, "text": text, "face": "mono", "priority": 1}
            ops.append(scene.Label(f"c{event.node}", **place, **token, **bold))
            numbers = {"y": 26, "text": formula(score), "stack": True, "dy": 0, "priority": 2}
            ops.append(scene.Label(f"s{event.node}", **place, **numbers))
        first = offered[0]
        if first.node != taken and first.token in self.places:
            way = (self.nodes.token[self.nodes.parent[taken]], first.token)
            look = {"role": "rejected", "width": 1.6, "dash": "dash", "head": True}
            ops.append(scene.Path(f"x{first.node}", panel="graph", points=self._curve(*way), **look))
        self.shown = [op.id for op in ops]
        return ops

    def _words(self) -> tuple[str, str, str]:
        """Heading: its bold words, the rest, and a short form of the rest."""
        lead = f"{many(self.steps, 'step')}, {many(len(self.places), 'token')}"
        short = f": {self.returns} back, {self.again} by a repeated transition."
        returned = f"{many(self.returns, 'step')} returned to an earlier token"
        rest = f": {returned}, {self.again} by a repeated transition."
        if self.known:
            rest += f" The top-1 token was taken in {100 * self.likeliest / self.known:.0f} %"
            rest += (
                f", {many(self.turned, 'time')} a new token instead of a repetition." if self.turned else "."
            )
        return lead, rest + self._loop(), short

    def _loop(self) -> str:
        """The loop in which the walk is now, if any."""
        loop = self.newest and loop_of(self.walk, *self.newest)
        if not loop:
            return ""
        cycle, times = loop
        words = " ".join(self.nodes.word(token) for token in cycle[:LOOP])
        return f" Loop: {words}{' …' * (len(cycle) > LOOP)}, {many(times, 'time')}."

    # ---- places ------------------------------------------------------------------------------
    @staticmethod
    def _row(place: int) -> float:
        return place // ACROSS + 0.5

    def _at(self, token: int) -> tuple[float, float]:
        place = self.places[token]
        return place % ACROSS + 1, self._row(place)

    def _curve(self, token: int, after: int) -> list[list[float]]:
        """A curve from the border of one box to that of the other; edges there and back bend apart."""
        (x0, y0), (x1, y1) = self._at(token), self._at(after)
        if token == after:
            return loop(x0, y0)
        if self.places[after] == self.places[token] + 1:
            return to_next(x0, y0, x1, y1)
        return bent(x0, y0, x1, y1)


def key(way: tuple[int, int]) -> str:
    """The id of an edge's mark."""
    return f"w{way[0]}-{way[1]}"


def look(count: int) -> dict:
    """The look of an edge that was taken so often, while the walk is elsewhere."""
    if count == 1:
        return {"role": "soft", "width": 0.7}
    return {"role": "link", "width": 0.9 + 0.5 * min(count, HEAVIEST)}


def formula(score) -> str:
    """`p .55  run 3  = −.05`: a candidate's score, and the first two parts of it."""
    parts = [
        f"{name} {value:g}" if value == round(value) else f"{name} {signed(value)}"
        for name, value in list(score.parts.items())[:2]
    ]
    return "  ".join([*parts, f"= {signed(score.total)}"])


def signed(value: float) -> str:
    """`.55`, `−.05`."""
    return ("−" if value < 0 else "") + f"{abs(value):.2f}".removeprefix("0")


def panels() -> list[Op]:
    """From top to bottom: what is counted, the graph, the candidates of the newest step."""
    return [
        heading(),
        scene.Panel("graph", y0=-0.2, y1=1, share=1, grow=True),
        scene.Panel("offers", y0=0, y1=34, px=34, px_narrow=62),
    ]


def at_rest(ops: list[Op]) -> list[Op]:
    """The births alone, each with its final look: a head may hold no changes."""
    marks: dict[str, Op] = {}
    for op in ops:
        if isinstance(op, scene.Change):
            op = replace(marks[op.id], **op.fields)
        marks[op.id] = op
    return list(marks.values())


def bent(x0: float, y0: float, x1: float, y1: float) -> list[list[float]]:
    """A curve that leaves one box and enters the other vertically. Within a row, edges back run above it,
    others below. Rows between the two are crossed between two of their boxes, next to the column where the
    edge began.
    """
    down = y1 > y0 or (y1 == y0 and x1 > x0)
    out, into = (1 if down else -1), (-1 if y1 > y0 else 1 if y1 < y0 else 1 if down else -1)
    start = (x0 + SIDE, y0 + out * TALL / 2)
    end = (x1 - SIDE, y1 + into * (TALL / 2 + 0.03))
    if abs(y1 - y0) <= 1:
        reach = 0.4 if y1 != y0 else 0.26 + 0.02 * abs(x1 - x0)
        return between(start, end, out * reach, into * reach)
    lane_x = x0 + (0.5 if x1 > x0 or x0 == 1 else -0.5) + LANE * ((x1 + y1) % 3 - 1)
    first, last = (lane_x, y0 + out * (1 - TALL / 2)), (lane_x, y1 - out * (1 - TALL / 2))
    return between(start, first, out * GAP, -out * GAP) + between(last, end, out * GAP, into * GAP)


def between(
    start: tuple[float, float], end: tuple[float, float], leaves: float, arrives: float
) -> list[list[float]]:
    """A curve that leaves its start and arrives at its end vertically, by this many rows each."""
    controls = (start[0], start[1] + leaves), (end[0], end[1] + arrives)
    points = []
    for i in range(PIECES + 1):
        t, s = i / PIECES, 1 - i / PIECES
        weights = (s**3, 3 * s * s * t, 3 * s * t * t, t**3)
        corners = (start, *controls, end)
        points.append(
            [round(sum(w * c[k] for w, c in zip(weights, corners, strict=True)), 3) for k in (0, 1)]
        )
    return points


def to_next(x0: float, y0: float, x1: float, y1: float) -> list[list[float]]:
    """From a box to the next in order: straight on, or along the gap to the start of the next row."""
    if y0 == y1:
        return [[x0 + WIDE / 2, y0], [x1 - WIDE / 2 - 0.02, y1]]
    gap = (y0 + y1) / 2
    return [[x0, y0 + TALL / 2], [x0, gap], [x1, gap], [x1, y1 - TALL / 2 - 0.02]]


def loop(x: float, y: float) -> list[list[float]]:
    """From a box to itself, over its upper right corner."""
    right, top = x + WIDE / 2, y - TALL / 2
    over = top - 0.16
    return [
        [right - 0.2, top],
        [right - 0.2, over],
        [right + 0.08, over],
        [right + 0.08, y - 0.1],
        [right + 0.01, y - 0.1],
    ]
