"""Search graph: in which order prefixes were opened, what still waits, and where two paths met.

A fold over Propose, Rank ("priority"), Verdict and Commit; it serves any strategy that keeps a queue. A node
was opened when something is proposed below it. x is the token position, y one of a few rows. There is no room
for all states: the leading ones are drawn, with the paths to them, and every node counts its undrawn
children. A drawn node keeps its place until it makes room for others; if it returns, it may get another.
"""

import math

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Rank, Score, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Tree
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

ROWS = 5
# columns that an edge goes straight on, past the note of its node, and in which it turns
TURN, BEND = 0.55, 0.25
LISTED = 8  # entries of the queue that are listed at the right
LOOKED_AT = 120  # nodes considered for a place in one step
DEAD = ("pruned", "rejected", "never reached")


@view("search_graph", "Search graph", reads=has(Rank, name=ScoreName.PRIORITY))
class SearchGraph:
    """x counts generated tokens from 1 (0: the end of the prompt), y is one of ROWS rows."""

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        root = self.nodes.root
        self.row: dict[int, int] = {root: (ROWS - 1) // 2}  # drawn node -> row
        self.mark: dict[int, str] = {root: f"n{root}"}  # drawn node -> id of its mark
        self.times: dict[int, int] = {}  # node -> how often it was drawn
        self.drawn_below: dict[int, int] = {}  # node -> drawn children
        self.below: dict[int, int] = {}  # node -> children
        self.waiting: dict[int, float] = {}  # node -> priority
        self.opened: dict[int, int] = {}  # node -> its place in the order of opening
        self.status: dict[int, str] = {}
        self.reason: dict[int, str | None] = {}
        self.total: dict[int, float] = {}  # node -> its newest score
        self.logprob: dict[int, float | None] = {}
        self.into: dict[int, int] = {}  # merged node -> the node that continues in its place
        self.ways: dict[int, int] = {}  # node that others were merged into -> paths to it
        self.committed: list[int] = []
        self.spine: set[int] = set()
        self.looks: dict[str, tuple] = {}  # mark -> its look as last sent
        self.listed = [""] * (LISTED + 2)

    def head(self) -> Layout:
        """Title, question, layout, the root and the empty lines of the queue."""
        root = self.nodes.root
        mark = scene.Node(
            f"n{root}",
            node=root,
            x=0,
            y=self.row[root],
            state="prompt",
            text=self.nodes.text(root),
            priority=3,
            hover=["end of the prompt"],
        )
        lines = [
            scene.Label(
                f"q{i}",
                side="right",
                line=i,
                text="",
                bold=i == 0,
                face="sans" if i in (0, LISTED + 1) else "mono",
                role="ink" if i == 0 else "soft",
            )
            for i in range(LISTED + 2)
        ]
        return Tree(
            question="In which order were prefixes expanded? Which still wait? Where did two paths meet?",
            ops=[mark, *lines],
            fold=True,
            patched=True,
            notes="under",
            turn=TURN,
            rows=ROWS,
            row=sizes.ROW,
            column=sizes.WORD,
            wide=76,
            right=150,
            right_narrow=24,
            legend=[
                ["node:chosen", "●", "chosen", "best path"],
                ["node:prompt", "●", "prompt", "expanded (its number; +n: children not drawn)"],
                ["node:live", "○", "live", "waits in the queue"],
                ["node:finished", "■", "finished", "finished text"],
                ["node:resampled", "◆", "resampled", "two paths meet"],
                ["node:pruned", "✕", "pruned", "never expanded"],
                ["node:forced", "⚑", "forced", "inserted by hand"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: which nodes are drawn, what became of them, and the queue."""
        fresh = self._read(step)
        leader = self._leader()
        self.spine = set(self.nodes.path(leader)) if leader is not None else set()
        wanted = self._wanted(leader, fresh)
        ops = self._hide(wanted)
        for node in wanted:  # a parent comes before its children
            if node not in self.mark:
                ops += self._draw(node)
        ops += self._restate()
        ops += self._queue()
        if fresh or self.committed:
            ops.append(scene.Front(max(self.nodes.position[n] for n in self.mark), ROWS - 1))
            ops.append(scene.Say(self._caption(step, leader)))
        return ops

    # ---- what the step says ------------------------------------------------------------------
    def _read(self, step) -> list[int]:
        """Reads the events; returns the nodes that this step is about, opened ones first."""
        opened, born = [], []
        for event in step.events:
            match event:
                case Propose():
                    self.nodes.add(event)
                    self.logprob[event.node] = event.logprob
                    self.below[event.parent] = self.below.get(event.parent, 0) + 1
                    born.append(event.node)
                    if event.parent not in self.opened and event.parent > self.nodes.root:
                        self.opened[event.parent] = len(self.opened) + 1
                        self.waiting.pop(event.parent, None)
                        opened.append(event.parent)
                case Score():
                    self.total[event.node] = event.total
                    if event.name == ScoreName.PRIORITY:
                        self.waiting[event.node] = event.total
                case Verdict():
                    self.status[event.node], self.reason[event.node] = event.status, self.nodes.reason(event)
                    if event.status == "merged" and event.into is not None:
                        self.into[event.node] = event.into
                        self.ways[event.into] = self.ways.get(event.into, 1) + 1
                    if event.status != "finished":
                        self.waiting.pop(event.node, None)
                case Commit():
                    self.committed += event.nodes
        return opened + born

    def _leader(self) -> int | None:
        """The newest output, else the first of the queue."""
        if self.committed:
            return self.committed[-1]
        return max(self.waiting, key=lambda n: (self.waiting[n], -n), default=None)

    def _first(self, count: int) -> list[int]:
        return sorted(self.waiting, key=lambda n: (-self.waiting[n], n))[:count]

    # ---- which nodes are drawn ---------------------------------------------------------------
    def _wanted(self, leader: int | None, fresh: list[int]) -> dict[int, None]:
        """The nodes that are drawn now, parents first: the path to the leader, new ones, the next in the
        queue, and those drawn already, as long as no column has more than ROWS of them.
        """
        wanted: dict[int, None] = {self.nodes.root: None}
        used: dict[int, int] = {0: 1}
        merged = [n for n in (*self.into, *self.ways) if n in self.nodes.parent]
        first = [leader] if leader is not None else []
        rest = [
            *fresh[:LOOKED_AT],
            *self._first(2 * ROWS),
            *merged[-ROWS:],
            *self.mark,
            *self._first(LOOKED_AT),
        ]
        for node in [*self.committed, *first, *rest]:
            way = [n for n in self.nodes.path(node) if n not in wanted]
            if any(used.get(self.nodes.position[n], 0) >= ROWS for n in way):
                continue
            for n in way:
                wanted[n] = None
                used[self.nodes.position[n]] = used.get(self.nodes.position[n], 0) + 1
        return wanted

    def _hide(self, wanted: dict[int, None]) -> list[Op]:
        ops: list[Op] = []
        for node in [n for n in self.mark if n not in wanted]:
            mark = self.mark.pop(node)
            del self.row[node]
            self.drawn_below[self.nodes.parent[node]] -= 1
            ops += [scene.Change(mark, gone=True), scene.Change("e" + mark, gone=True)]
            if node in self.into:
                ops.append(scene.Change("m" + mark, gone=True))
        return ops

    def _draw(self, node: int) -> list[Op]:
        """A node and its edge, in the free row of its column that is nearest to its parent's."""
        parent, column = self.nodes.parent[node], self.nodes.position[node]
        taken = {row for n, row in self.row.items() if self.nodes.position[n] == column}
        home = self.row[parent]
        self.row[node] = row = min(set(range(ROWS)) - taken, key=lambda y: (abs(y - home), -y))
        count = self.times[node] = self.times.get(node, 0) + 1
        self.mark[node] = mark = f"n{node}" if count == 1 else f"n{node}.{count}"
        self.drawn_below[parent] = self.drawn_below.get(parent, 0) + 1
        look = {"state": "live", "weight": round(self._p(node) or 0.5, 4)}
        edge = {"x0": column - 1, "y0": home, "x1": column, "y1": row, "turn": TURN, "bend": BEND}
        place = {"parent": self.mark[parent], "x": column, "y": row}
        return [
            scene.Edge("e" + mark, **edge, **look),
            scene.Node(mark, node=node, text=self.nodes.text(node), **place, **look),
        ]

    # ---- states and words --------------------------------------------------------------------
    def _state(self, node: int) -> str:
        status = self.status.get(node)
        if node == self.nodes.root:
            return "prompt"
        if status in ("finished", "forced"):
            return status
        if status == "merged" or node in self.ways:
            return "resampled"
        if node in self.spine:
            return "chosen"
        return "pruned" if status in DEAD else "prompt" if node in self.opened else "live"

    def _restate(self) -> list[Op]:
        """Colours follow from the queue and its leader, notes from what is drawn; only changes are sent."""
        ops: list[Op] = []
        for node, mark in self.mark.items():
            state, spine, agreed = self._state(node), node in self.spine, node in self.committed
            look = (state, spine, agreed, self._note(node), self._hover(node), self._more(node))
            if self.looks.get(mark) == look:
                continue
            self.looks[mark] = look
            bold = {"bold": True} if spine else {"bold": False}
            ops.append(
                scene.Change(
                    mark,
                    state=state,
                    ended=state == "pruned",
                    note=look[3],
                    note_more=look[5] or "",
                    hover=look[4],
                    **bold,
                )
            )
            if node != self.nodes.root:
                edge = "chosen" if spine else "live" if state == "live" else "pruned"
                ops.append(scene.Change("e" + mark, state=edge, agreed=agreed))
            into = self.into.get(node)
            if into in self.mark and "m" + mark not in self.looks:
                self.looks["m" + mark] = ()
                place = {"x0": self.nodes.position[node], "y0": self.row[node]}
                place |= {"x1": self.nodes.position[into], "y1": self.row[into]}
                ops.append(scene.Edge("m" + mark, state="resampled", **place))
        return ops

    def _note(self, node: int) -> str | None:
        words = [f"{self.ways[node]} ways"] if node in self.ways else []
        words += [str(self.opened[node])] if node in self.opened and node not in self.committed else []
        return " ".join(words) or self._left(node)

    def _left(self, node: int) -> str | None:
        """How many of its children are not drawn."""
        left = self.below.get(node, 0) - self.drawn_below.get(node, 0)
        return f"+{left}" if left else None

    def _more(self, node: int) -> str | None:
        """What follows the note where there is room for it."""
        left = self._left(node)
        return left if left != self._note(node) else None

    def _queue(self) -> list[Op]:
        """The lines at the right: the first of the queue, with their priorities."""
        best = [] if self.committed else self._first(LISTED)
        lines = ["next in the queue" if best else ""]
        lines += [f"{self.waiting[n]:7.2f} {self.nodes.text(n)}".replace("-", "−") for n in best]
        lines += [""] * (LISTED + 1 - len(lines))
        more = len(self.waiting) - LISTED
        lines.append(f"and {more:,} more" if best and more > 0 else "")
        before, self.listed = self.listed, lines
        return [scene.Change(f"q{i}", text=line) for i, line in enumerate(lines) if line != before[i]]

    def _p(self, node: int) -> float | None:
        logprob = self.logprob.get(node)
        return None if logprob is None else math.exp(min(0.0, logprob))

    def _hover(self, node: int) -> list[str]:
        if node == self.nodes.root:
            return ["end of the prompt"]
        lines = [f"{self.nodes.text(node)}  p {probability(self._p(node))}"]
        if node in self.nodes.total:
            lines.append(f"sum {self.nodes.total[node]:.2f}".replace("-", "−"))
        if node in self.total:
            lines.append(f"priority {self.total[node]:.2f}".replace("-", "−"))
        second = [f"expanded as number {self.opened[node]}"] if node in self.opened else []
        if status := self.status.get(node):
            second.append(status + (f": {self.reason[node]}" if self.reason[node] else ""))
        return [", ".join(lines), *([", ".join(second)] if second else [])]

    def _caption(self, step, leader: int | None) -> str:
        caption = f"Step {step.index + 1}: {len(self.opened)} expanded, {len(self.waiting)} in the queue"
        if leader is not None and leader in self.total:
            caption += f", {self.nodes.text(leader)} leads with {self.total[leader]:.2f}".replace("-", "−")
        return caption + "."
