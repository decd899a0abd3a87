"""Filter grid: every position in every iteration, how confident a filter was that it is final, and, once the
run is over, where an oracle would have filled it.

A fold over Cell, whose level "filter" has the filter's probability as its confidence. Columns are positions;
an iteration is a row of cells and a row of bars below it.
"""

from decoders.trace.events import Cell
from decoders.trace.number_format import many
from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds, heading
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability
from visualizers.views.diffusion.cell_states import FILLED, fields

LEVEL = "filter"
PITCH, BARS, TALL = 2.2, 1.5, 0.85  # rows of an iteration, the foot of its bars, the height of a bar of 1


@view("filter_grid", "Filter grid", reads=has(Cell, level=LEVEL))
class FilterGrid:
    """Columns count new positions from 1. The ghost of a position stands in the first iteration in which its
    most likely token was the one it ends with, if it was filled later.
    """

    def __init__(self, header: Header):
        self.header, self.prompt = header, len(header.prompt)
        self.theta = header.number("theta", 1.0)
        self.open: set[int] = set()  # columns that are neither filled nor after the end
        self.final: dict[int, tuple[int, int]] = {}  # column -> (token, iteration) it was filled with
        self.offered: dict[int, dict[int, int]] = {}  # column -> most likely token -> its first iteration
        self.ghosts = False

    def head(self) -> Layout:
        """Title, question and layout."""
        return Rounds(
            question="Which tokens did the filter take to be final? Which were final long before?",
            ops=[
                heading(),
                scene.Panel("grid", y0=1.2, y1=9, share=1, grow=True),
            ],
            column=sizes.SLOT,
            wide=46,
            tightest=14,
            steady=True,
            tightest_narrow=6,
            row=sizes.LINE,
            left=52,
            left_narrow=30,
            right=60,
            right_narrow=30,
            clip=True,
            overview="rows",
            axis="position",
            legend=[
                ["cell:accepted", "■", "accepted", "filled by the filter; bar above theta"],
                ["cell:forced", "⚑", "forced", "filled because some position must be"],
                ["cell:amount", "▪", "soft", "candidate, or a bar below theta"],
                ["cell:dashed", "┄", "live", "an oracle would have filled it here"],
                ["cell:pruned", "✕", "pruned", "cut off, or after the end"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: an iteration, and the ghosts once nothing is open."""
        cells = [event for event in step.events if isinstance(event, Cell)]
        self.open |= {self._column(e) for e in cells if e.state == "mask"}
        rows: dict[int, list] = {}
        for event in cells:
            if event.state != "mask":
                rows.setdefault(event.iteration, []).append(event)
        ops = [op for iteration in sorted(rows) for op in self._iteration(iteration, rows[iteration])]
        if cells and not self.open and not self.ghosts:
            ops += self._oracle()
        return ops

    def _column(self, event) -> int:
        return event.position - self.prompt + 1

    def _iteration(self, iteration: int, cells: list) -> list[Op]:
        y, ops, now, bars = iteration * PITCH, [], 0, []
        for event in cells:
            x, shown = self._column(event), visible(self.header.vocabulary.get(event.token, b"?"))
            if event.level == LEVEL:
                self.offered.setdefault(x, {}).setdefault(event.token, iteration)
                bars.append((x, event.confidence, shown))
                continue
            place = {"x": x, "y": y, "w": 1, "h": 1, "panel": "grid"}
            if event.state in FILLED:
                now += 1
                self.final[x] = event.token, iteration
                self.open.discard(x)
            elif event.state == "trimmed":
                self.open.discard(x)
                self.final.pop(x, None)
                shown = "" if event.token == self._mask(cells) else shown
            key = f"g{x}-{iteration}-{event.state == 'trimmed':d}"
            ops.append(scene.Cell(key, **place, **fields(event, shown)))
        row = {"y0": y - 0.6, "y1": y + PITCH - 0.6, "label_y": y, "rule": False, "panel": "grid"}
        says = {"text": f"iter {iteration}", "short": str(iteration), "right_bold": f"+{now}" if now else ""}
        front = max((x for x, (_, at) in self.final.items() if at == iteration), default=1)
        sentence = f"Iteration {iteration}: {many(now, 'position')} filled, {len(self.final)} in all."
        ops += self._bars(iteration, bars)
        return [
            scene.Row(f"r{iteration}", **row, **says),
            *ops,
            scene.Front(front, y + BARS),
            scene.Say(sentence),
        ]

    def _bars(self, iteration: int, bars: list[tuple[int, float, str]]) -> list[Op]:
        """The filter's probability at each open position, against a line at theta."""
        if not bars:
            return []
        base, ops = iteration * PITCH + BARS, []
        for x, sure, shown in bars:
            tall = max(0.04, TALL * sure)
            taken = {"state": "accepted", "fill": "filled"}
            left = {"state": "prompt", "fill": "amount", "weight": 0.45}
            place = {"x": x, "y": base - tall / 2, "w": 0.55, "h": tall, "panel": "grid"}
            says = [f"{shown}: the filter gives {probability(sure)}", f"theta is {self.theta:g}"]
            style = taken if sure > self.theta else left
            ops.append(scene.Cell(f"b{x}-{iteration}", **place, **style, hover=says))
        y, xs = base - TALL * self.theta, [x for x, _, _ in bars]
        line = [[min(xs) - 0.5, y], [max(xs) + 0.5, y]]
        return [
            *ops,
            scene.Path(f"t{iteration}", points=line, role="line", width=1, panel="grid"),
        ]

    def _mask(self, cells: list) -> int:
        """The mask is the one token that stands where nothing was filled."""
        return max((e.token for e in cells), default=-1)

    def _oracle(self) -> list[Op]:
        """Ghosts and, in the heading, how many iterations the filter lost against the oracle."""
        self.ghosts = True
        ops, waited, needed = [], 0, 0
        for x, (token, iteration) in sorted(self.final.items()):
            first = self.offered.get(x, {}).get(token, iteration)
            waited, needed = waited + iteration, needed + first
            if first < iteration:
                shown = visible(self.header.vocabulary.get(token, b"?"))
                says = [
                    f"{shown}: an oracle would have filled it here",
                    f"it was filled {many(iteration - first, 'iteration')} later",
                ]
                place = {"x": x, "y": first * PITCH, "w": 1, "h": 1, "panel": "grid"}
                ops.append(scene.Cell(f"o{x}", **place, state="live", fill="dashed", hover=says))
        share = f" ({(waited - needed) / waited:.0%})" if waited else ""
        short = f"waited {waited:,}, oracle {needed:,}{share}"
        text = (
            f"Iterations waited, over all positions: {waited:,}; an oracle {needed:,}; "
            f"wasted {waited - needed:,}{share}."
        )
        return [*ops, scene.Change("heading", heading=text, short=short)]
