"""Flow grid: every position in every step, from a random token to text, and how often each has changed.

A fold over Cell, Measure ("jump_probability") and Commit; rows are steps, columns positions, and several
candidates (a cell's level) stand below each other.
"""

from decoders.trace.events import Cell, Commit, Propose
from decoders.trace.number_format import many
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import numbered, probability

# grey of a cell whose position changed this many times or more: its text stays readable
DARKEST, MANY = 0.75, 3


@view("flow_grid", "Flow grid", reads=has(Measure, name=ScoreName.JUMP))
class FlowGrid:
    """x counts new positions from 1; y is a step of a candidate, below the noise that it began with."""

    def __init__(self, header: Header):
        self.header, self.prompt = header, len(header.prompt)
        self.nodes = Nodes(header)
        self.height = int(header.number("num_steps", 16)) + 2  # rows of a candidate, an empty one included
        self.changes: dict[tuple[int, int], int] = {}  # (candidate, column) -> changes so far
        self.last: dict[tuple[int, int], str] = {}  # (candidate, column) -> id of its newest cell
        self.slots: dict[int, int] = {}  # proposed node -> candidate
        self.time: tuple[float, float] | None = None  # t and the jump probability of the step
        self.ticks: list[float] = []  # the time t after each step

    def head(self) -> Layout:
        """Title, question and layout."""
        return Rounds(
            question="Which positions changed again? How did noise become text?",
            column=sizes.SLOT,
            wide=46,
            left=66,
            left_narrow=30,
            right=104,
            right_narrow=34,
            clip=True,
            overview="rows",
            axis="position",
            ops=[
                scene.Panel("clock", y0=0, y1=1, px=24),
                scene.Panel("flow", y0=-0.5, y1=5, share=1, grow=True),
            ],
            legend=[
                ["cell:chosen", "■", "chosen", "the text"],
                ["cell:amount", "▪", "soft", "darker: changed more often"],
                ["symbol:amber", "•", "live", "jumped in this step"],
                ["cell:dotted", "┄", "soft", "random token"],
                ["cell:pruned", "✕", "pruned", "after the end"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: a row for each candidate, and at the end which cells are the text."""
        rows: dict[tuple[int, int], list] = {}
        trimmed, committed = [], []
        for event in step.events:
            match event:
                case Propose():
                    self.nodes.add(event)
                    self.slots[event.node] = event.slot
                case Measure(name=ScoreName.JUMP):
                    self.time = event.parts["t"], event.total
                case Cell() if event.state == "trimmed":
                    trimmed.append(event)
                case Cell():
                    rows.setdefault((candidate(event), event.iteration), []).append(event)
                case Commit():
                    committed += event.nodes
        ops = [op for (number, y), cells in sorted(rows.items()) for op in self._row(number, y, cells)]
        jumped = sum(cell.state == "changed" for cells in rows.values() for cell in cells)
        if self.time and rows:
            ops += self._clock(jumped)
        if self.time and rows:
            ops.append(scene.Say(f"{many(jumped, 'position')} jumped at t {probability(self.time[0])}."))
        for event in trimmed:
            key = self.last.get((candidate(event), self._column(event.position)))
            if key:
                hover = ["after the end of the text", "not part of the output"]
                ops.append(scene.Change(key, state="pruned", fill="none", hover=hover))
        return ops + self._text(committed)

    def _clock(self, jumped: int) -> list[Op]:
        """Where t stands between noise, 0, and text, 1, over the columns of the canvas."""
        t, jump = self.time
        wide = max(x for _, x in self.changes)
        at = 0.5 + round(t * wide, 3)
        words = f"noise at 0, text at 1; a position whose token differs jumps with p {probability(jump)}"
        hover = [f"t {probability(t)}: {words}", f"{many(jumped, 'position')} jumped in this step"]
        spot = {"panel": "clock", "x": at, "y": 0.5, "glyph": "dot", "role": "ink", "hover": hover}
        past = {"panel": "clock", "points": [[self.ticks[-1], 0.5] if self.ticks else [0.5, 0.5], [at, 0.5]]}
        number = len(self.ticks)
        self.ticks.append(at)
        ops: list[Op] = [
            scene.Path(f"past{number}", **past, role="ink", width=3),
            scene.Symbol(f"now{number}", **spot),
        ]
        if number:
            return [scene.Change(f"now{number - 1}", gone=True), *ops]
        whole = {"panel": "clock", "points": [[0.5, 0.5], [wide + 0.5, 0.5]], "role": "line", "width": 3}
        name = {"panel": "clock", "y0": 0, "y1": 1, "text": "t", "short": "t", "right": "1", "rule": False}
        return [scene.Path("all", **whole), *ops, scene.Row("time", **name)]

    def _column(self, position: int) -> int:
        return position - self.prompt + 1

    def _row(self, number: int, step: int, cells: list) -> list[Op]:
        """The cells of one candidate after one step."""
        y = number * self.height + step
        jumped = sum(cell.state == "changed" for cell in cells)
        t, _ = self.time or (0.0, 0.0)
        name = f"t {probability(t)}" if step else f"noise {number + 1}" if cells[0].level else "noise"
        words = {"text": name, "short": str(step) if step else f"#{number + 1}" if cells[0].level else "0"}
        right = {"right": f"{jumped} jumped" if step else "", "right_short": "", "right_bold": ""}
        place = {"panel": "flow", "y0": y - 0.5, "y1": y + 0.5, "rule": False}
        ops: list[Op] = [scene.Row(f"r{y}", **place, **words, **right)]
        for cell in cells:
            ops += self._cell(number, y, cell)
        return [*ops, scene.Front(1, y)]

    def _cell(self, number: int, y: int, cell) -> list[Op]:
        x, shown = self._column(cell.position), visible(self.header.vocabulary.get(cell.token, b"?"))
        key, name = (number, x), f"g{x}-{y}"
        times = self.changes[key] = self.changes.get(key, 0) + (cell.state == "changed")
        self.last[key] = name
        place = {"panel": "flow", "x": x, "y": y, "w": 1, "h": 0.92}
        if cell.state == "guess":
            look = {"state": "prompt", "fill": "dotted", "hover": [f"{shown}: a random token", "at t 0"]}
            return [scene.Cell(name, **place, **look, text=shown)]
        t, jump = self.time or (0.0, 0.0)
        how = "jumped" if cell.state == "changed" else "stayed"
        sure = "" if cell.confidence is None else f"; probability of the token {probability(cell.confidence)}"
        hover = [
            f"{shown}: {how} at t {probability(t)}; changed {many(times, 'time')} so far",
            f"jump probability {probability(jump)}{sure}",
        ]
        weight = round(DARKEST * min(times, MANY) / MANY, 3)
        look = {"state": "prompt", "fill": "amount", "weight": weight, "hover": hover, "text": shown}
        ops: list[Op] = [scene.Cell(name, **place, **look)]
        if cell.state == "changed":
            spot = {"panel": "flow", "x": x + 0.4, "y": y - 0.34, "glyph": "dot", "role": "amber", "size": 4}
            ops.append(scene.Symbol(f"d{x}-{y}", **spot))
        return ops

    def _text(self, committed: list[int]) -> list[Op]:
        """The last cells of the chosen candidate are the text."""
        ops: list[Op] = []
        for node in committed:
            key = self.last.get((self.slots.get(node, 0), self.nodes.position[node]))
            if key:
                ops.append(scene.Change(key, state="chosen", fill="filled", node=node))
        if ops:
            text = "".join(map(self.nodes.text, committed))
            ops.append(scene.Say(f"The text is final: {text}"))
        return ops


def candidate(cell) -> int:
    """The number of the candidate that a cell belongs to, from 0."""
    return max(0, numbered(cell.level, 1) - 1)
