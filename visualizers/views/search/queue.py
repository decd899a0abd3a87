"""Queue: what was first in the queue after each step, with priorities, and how many waited.

A fold over Propose, Rank ("priority"), Verdict and Commit; a state leaves the queue when something is
proposed below it, or when it gets a verdict. x is the step, y the place in the queue.
"""

from dataclasses import replace

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view

ROWS = 5  # places of the queue that are shown


@view("queue", "Queue", reads=has(Rank, name=ScoreName.PRIORITY))
class Queue:
    """x counts steps from 1; row 0 holds the highest priority, the last row how many more wait."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.priority: dict[int, float] = {}  # of all waiting nodes
        self.since: dict[int, int] = {}  # node -> step in which it joined; of all that ever waited
        self.listed: dict[int, str] = {}  # node -> id of its cell in the newest column

    def head(self) -> Layout:
        """Title, question, layout and the names of the rows."""
        names = ["priority of the first", *(f"place {i}" for i in range(1, ROWS + 1)), "others waiting"]
        short = ["best", *(str(i) for i in range(1, ROWS + 1)), "more"]
        rows = [
            scene.Row(f"row{i}", y0=i - 0.5, y1=i + 0.5, text=name, short=brief, rule=False)
            for i, (name, brief) in enumerate(zip(names, short, strict=True))
        ]
        return Rounds(
            question="What was first in the queue after each step? With what priority?",
            ops=rows,
            rows=ROWS + 2,
            column=sizes.WORD,
            wide=64,
            left=128,
            left_narrow=44,
            axis="step",
            overview="rows",
            legend=[
                ["cell:chosen", "■", "chosen", "expanded, or won, in the next step"],
                ["cell:live", "▣", "live", "new in this step"],
                ["cell:pruned", "▢", "pruned", "has waited longer"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """A column: the head of the queue after this step; marks which of the previous column were taken."""
        number, left = step.index + 1, set()
        for event in step.events:
            match event:
                case Propose():
                    self.nodes.add(event)
                    left.add(event.parent)
                case Rank(name=ScoreName.PRIORITY):
                    self.priority[event.node] = event.total
                    self.since[event.node] = number
                case Verdict() if event.status != "finished":
                    self.priority.pop(event.node, None)
                case Commit():
                    left.update(event.nodes)
        for node in left:
            self.priority.pop(node, None)
        taken = [self.listed[node] for node in left if node in self.listed]
        ops: list[Op] = [scene.Change(cell, state="chosen", fill="filled") for cell in taken]
        best = sorted(self.priority, key=lambda n: (-self.priority[n], n))
        self.listed = {}
        for place, node in enumerate(best[:ROWS], 1):
            ops.append(self._cell(node, number, place, len(best)))
        if best:
            first = self._label(f"b{number}", number, 0, signed(self.priority[best[0]]))
            more = self._label(f"m{number}", number, ROWS + 1, f"+{max(0, len(best) - ROWS):,}")
            ops += [replace(first, role="ink"), more]
        caption = f"Step {number}: {len(best):,} wait"
        caption += f", first {self.nodes.text(best[0])} with {signed(self.priority[best[0]])}" if best else ""
        front = [scene.Front(number, ROWS)] if best else []  # the columns of an empty queue are empty
        return [*ops, *front, scene.Say(caption + ".")]

    def _cell(self, node: int, number: int, place: int, count: int) -> Op:
        self.listed[node] = f"n{node}.{number}"
        new = self.since[node] == number
        text = "".join(self.nodes.text(n) for n in self.nodes.path(node))
        hover = [
            f"position {place} of {count:,} in the queue, priority {self.priority[node]:.3f}".replace(
                "-", "−"
            ),
            text,
        ]
        if not new:
            hover[0] += f", waits since step {self.since[node]}"
        look = {"state": "live" if new else "pruned", "fill": "tint", "text": self._own(node)}
        place = {"x": number, "y": place, "w": 1, "h": 0.86}
        return scene.Cell(self.listed[node], node=node, **place, **look, hover=hover)

    def _own(self, node: int) -> str:
        """What a state adds to its parent: one token, or a whole step of text."""
        path = self.nodes.path(node)
        before = [at for at, other in enumerate(path[:-1]) if other in self.since]
        text = "".join(self.nodes.text(n) for n in path[before[-1] + 1 if before else 0 :])
        return text.rstrip("↵") or text

    @staticmethod
    def _label(name: str, x: int, y: int, text: str) -> Op:
        return scene.Label(name, x=x, y=y, text=text, priority=3)


def signed(value: float) -> str:
    """Two decimals and a true minus sign; no minus before a zero."""
    return f"{round(value, 2) or 0.0:.2f}".replace("-", "−")
