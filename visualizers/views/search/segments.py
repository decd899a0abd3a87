"""Segments: a text that is made of steps, each tried, scored, and kept or not.

A fold over Propose, Rank, Verdict and Commit. x is the token position, a segment is a run of tokens in one
row that ends where it was scored; the alternatives that were tried lie in other rows.
"""

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.number_format import many
from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds, scroll_row
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view

# name of a score -> its letter, the part that it is compared with
SCORES = {ScoreName.REWARD: ("r", "threshold"), ScoreName.PRIORITY: ("f", None)}
VALUE = 1  # columns after a piece, for its score
LOST = ("rejected", "pruned")


@view("segments", "Segments", reads=has(Rank, name={ScoreName.REWARD, ScoreName.PRIORITY}))
class Segments:
    """x counts generated tokens from 1, y rows from 0; a row is used again to the right of what is in it."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.piece: dict[int, list[int]] = {}  # node -> its piece so far: one list for all of its nodes
        self.row: dict[int, int] = {}  # node -> row
        self.right: list[float] = []  # row -> the last column that is taken in it
        self.closed: set[int] = {self.nodes.root}  # nodes after which a new piece begins
        self.state: dict[int, str] = {}

    def head(self) -> Layout:
        """Title, question and layout."""
        return Rounds(
            question="Which segments were tried? What were their scores? Which ones stayed?",
            column=sizes.SHORT,
            column_narrow=34,
            wide=46,
            left=sizes.MARGIN,
            right=48,
            row=sizes.BOX,
            patched=True,
            ops=[scene.Panel("pieces", y0=-0.6, y1=1, share=1, grow=True)],
            legend=[
                ["cell:live", "▣", "live", "being written, or waiting"],
                ["cell:prompt", "▢", "prompt", "continued"],
                ["cell:chosen", "■", "chosen", "the text"],
                ["cell:accepted", "■", "accepted", "accepted: the text"],
                ["cell:rejected", "✕", "rejected", "rejected"],
                ["cell:pruned", "✕", "pruned", "not taken"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: tokens that were written, scores, and what became of pieces."""
        ops: list[Op] = []
        for event in step.events:
            match event:
                case Propose():
                    self.nodes.add(event)
                    ops += self._token(event.node, event.parent)
                case Rank() if event.name in SCORES and event.node in self.piece:
                    ops += self._value(event)
                case Verdict() if event.node in self.piece:
                    ops += self._judge(event)
                case Commit():
                    ops += self._commit(event.nodes)
        return [*ops, scene.Say(self._caption(step))] if ops else []

    def _token(self, node: int, parent: int) -> list[Op]:
        """A token's cell: in its piece's row, or in the first row that is free for a new piece."""
        ops, column = [], self.nodes.position[node]
        new = parent in self.closed or parent not in self.piece
        if new:
            self.piece[node] = [node]
            home = [self.row[parent]] if parent in self.row else []
            free = (row for row in (*home, *range(len(self.right))) if self.right[row] < column)
            self.row[node] = next(free, len(self.right))
            if self.row[node] == len(self.right):
                self.right.append(0)
                ops.append(scroll_row(self.row[node], "pieces", self.row[node] - 0.5, self.row[node] + 0.5))
            ops += self._open(node, parent)
        else:
            self.piece[node] = self.piece[parent]
            self.piece[node].append(node)
            self.row[node] = self.row[parent]
        row = self.row[node]
        self.right[row] = column
        self.state[node] = "live"
        ops.append(
            scene.Cell(
                f"n{node}",
                panel="pieces",
                x=column,
                y=row,
                w=0.96,
                h=0.72,
                state="live",
                fill="tint",
                text=self.nodes.text(node),
                node=node,
            )
        )
        return [*ops, scene.Front(column, row + 0.4)]

    def _open(self, node: int, parent: int) -> list[Op]:
        """The line to a new piece from the one before it, which it continues."""
        if parent not in self.piece:
            return []
        ops = self._look(self.piece[parent], "prompt") if self.state[parent] == "live" else []
        if self.row[parent] == self.row[node]:
            return ops
        x, y0, y1 = self.nodes.position[node] - 0.5, self.row[parent], self.row[node]
        points = [[x, y0 + 0.36], [x, y1]]
        return [*ops, scene.Path(f"w{node}", panel="pieces", points=points, role="line", width=1)]

    def _value(self, event) -> list[Op]:
        """The score after the last token of a piece, which closes the piece."""
        node, (letter, against) = event.node, SCORES[event.name]
        self.closed.add(node)
        self.right[self.row[node]] = self.nodes.position[node] + VALUE
        value = abs(event.total) if event.name == ScoreName.PRIORITY else event.total
        text = number(value)
        hover = [f"{letter} {value:.3f}"]
        hover += [f"{name.replace('_', ' ')} {part:.3f}" for name, part in event.parts.items()]
        if against in event.parts:
            text += ("≥" if value >= event.parts[against] else "<") + number(event.parts[against])
        lines = [", ".join(hover), "".join(map(self.nodes.text, self.piece[node]))]
        ops: list[Op] = [scene.Change(f"n{n}", hover=lines) for n in self.piece[node]]
        place = {"panel": "pieces", "x": self.nodes.position[node] + 0.54, "y": self.row[node]}
        look = {"align": "left", "size": sizes.SMALL, "role": "soft", "priority": 3}
        return [*ops, scene.Label(f"v{node}", **place, text=text, **look)]

    def _judge(self, event) -> list[Op]:
        """What became of a token; of a whole piece, if it is the last one of a piece that has a score."""
        if event.status not in (*LOST, "accepted"):
            return []
        nodes = self.piece[event.node] if event.node in self.closed else [event.node]
        return self._look(nodes, event.status)

    def _commit(self, nodes: list[int]) -> list[Op]:
        """The text: its cells are filled, and after its last token a new piece begins."""
        mine = [node for node in nodes if node in self.piece]
        self.closed.update(nodes[-1:])
        ops = []
        for node in mine:
            self.state[node] = "accepted" if self.state[node] == "accepted" else "chosen"
            ops.append(scene.Change(f"n{node}", state=self.state[node], fill="filled"))
        last = mine[-1:]
        return [*ops, *(scene.Front(self.nodes.position[n], self.row[n] + 0.4) for n in last)]

    def _look(self, nodes: list[int], state: str) -> list[Op]:
        """A new state for these tokens; what was dropped is only an outline."""
        fill = "outline" if state in LOST else "tint"
        self.state.update(dict.fromkeys(nodes, state))
        return [scene.Change(f"n{node}", state=state, fill=fill) for node in nodes]

    def _caption(self, step) -> str:
        scored = [e for e in step.of(Rank) if e.name in SCORES]
        if not scored:
            return f"Step {step.index + 1}: {many(len(self.piece), 'token')} written in all."
        last = scored[-1]
        words = "".join(map(self.nodes.text, self.piece.get(last.node, ())))
        return f"Step {step.index + 1}: {words!r} has {SCORES[last.name][0]} {abs(last.total):.2f}."


def number(value: float) -> str:
    """`.55`, `1`."""
    return f"{value:.2f}".rstrip("0").rstrip(".").removeprefix("0") or "0"
