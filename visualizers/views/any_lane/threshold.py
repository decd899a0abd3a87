"""Threshold: a number that a method watches against its limit, and what it did while it was above or below.

A fold over Measure (those with a `limit`; `level` names what was done then, one row each), Propose, Forward
and Commit. One column per committed token. Where a model first has to read what another one wrote, the
columns that it reads in that forward are hatched in its row.
"""

import math
from collections import Counter

from decoders.trace.events import Forward, Propose
from decoders.trace.number_format import many
from decoders.trace.scores import Measure
from visualizers import scene
from visualizers.scene.layout import Columns, Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, Reads, view
from visualizers.views.any_lane.entropy import ticks

ROWS = 2  # rows for what was done
QUESTION = "When was the number above its limit? What happened then?"


def watched(event: Measure) -> bool:
    """Whether a number has a limit, and a name for what was done there."""
    return event.limit is not None and event.level is not None


@view("threshold", "Threshold", reads=Reads((Measure,), watched))
class Threshold:
    """Above, the number and its limit; below, the tokens, each in the row of what was done for it."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.rows: dict[str, int] = {}  # level -> row, in the order in which they came
        self.reached: dict[str, int] = {}  # level -> the last column that is drawn in its row
        self.written: Counter[str] = Counter()
        self.column = self.changes = self.caught_up = 0
        self.now: str | None = None  # the level of the newest token
        self.ceiling = 4  # top of the panel; only ever grows, in steps of 2
        self.before: tuple[int, float] | None = None  # column and number of the token before

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Columns(
            question=QUESTION,
            left=92,
            left_narrow=84,
            ops=[
                heading(),
                scene.Panel("number", y0=self.ceiling, y1=0, share=1, ticks=ticks(self.ceiling)),
                scene.Panel("rows", y0=-0.1, y1=ROWS + 0.1, px=34 * ROWS),
            ],
            legend=[
                ["step", "▂▃", "soft", "at this token"],
                ["path:ink", "━", "ink", "the number that decides"],
                ["path:live", "╌", "live", "its limit"],
                ["band:amber", "▒", "live", "above the limit"],
                ["cell:hatched", "▨", "soft", "reads what the other model wrote"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: a column for each token that was committed."""
        scores = {e.node: e for e in step.of(Measure) if e.limit is not None}
        given = {e.node for e in step.events if isinstance(e, Propose) and e.given}
        ops: list[Op] = []
        for event in step.events:
            if isinstance(event, Forward) and event.kind == "prefill" and self.column:
                ops += self._catch_up(event.model, event.tokens)
        _, _, commits = self.nodes.read(step)
        captions = []
        for node in commits:
            self.column += 1
            if node in scores:
                ops += self._watched(node, scores[node])
                captions.append(f"{self.nodes.text(node)}: {words(scores[node])}")
            else:
                look = {"state": "prompt" if node in given else "chosen", "fill": "tint"}
                ops.append(self._cell(node, 0, look, []))
        if not captions:
            return ops
        lead, rest, short = self._heading()
        return [
            *ops,
            scene.Change("heading", lead=lead, heading=rest, short=short),
            scene.Say(". ".join(captions) + "."),
        ]

    def _watched(self, node: int, score) -> list[Op]:
        """The column of a token with a number: the number, its limit, and the token in its row."""
        x, limit, total = self.column, score.limit, score.total
        own = next(iter(score.parts.values()), total)
        ops = self._grow(max(own, total))
        level = score.level or ""
        if level not in self.rows:
            ops.append(self._row(level))
        if self.now is not None and level != self.now:
            self.changes += 1
        self.now = level
        self.written[level] += 1
        self.reached[level] = x
        ends = [[x - 0.5, limit], [x + 0.5, limit]]
        ops.append(scene.Step(f"s{x}", panel="number", x=x, y=round(own, 4), node=node))
        limited = {"role": "live", "width": 1.4, "dash": "dash"}
        ops.append(scene.Path(f"l{x}", panel="number", points=ends, **limited))
        if self.before is not None:
            points = [[self.before[0], round(self.before[1], 4)], [x, round(total, 4)]]
            ops.append(scene.Path(f"m{x}", panel="number", points=points, role="ink", width=1.8))
        self.before = (x, total)
        hover = [f"{self.nodes.text(node)}: {words(score)}"]
        dot = {"glyph": "dot", "role": "ink", "hover": hover, "node": node}
        ops.append(scene.Symbol(f"d{x}", panel="number", x=x, y=round(total, 4), **dot))
        if total > limit:
            ops.append(scene.Band(f"b{x}", panel="number", x0=x - 0.5, x1=x + 0.5, role="amber"))
        look = {"state": "chosen", "fill": "tint" if self.rows[level] else "outline"}
        return [*ops, self._cell(node, min(self.rows[level], ROWS - 1), look, hover)]

    def _cell(self, node: int, row: int, look: dict, hover: list[str]) -> Op:
        shared = {"text": self.nodes.text(node), "hover": hover, "node": node}
        place = {"panel": "rows", "x": self.column, "y": row + 0.5, "w": 0.96, "h": 0.86}
        return scene.Cell(f"t{self.column}", **place, **look, **shared)

    def _row(self, level: str) -> Op:
        """The row of a level that occurs for the first time."""
        row = self.rows[level] = len(self.rows)
        return scene.Row(f"r{row}", panel="rows", y0=row, y1=row + 1, text=level, rule=False)

    def _catch_up(self, level: str, tokens: int) -> list[Op]:
        """A hatched box over the columns that a model reads before it writes."""
        first = max(self.column - tokens, self.reached.get(level, 0)) + 1
        wide = self.column - first + 1
        if wide < 1:
            return []
        self.caught_up += tokens
        ops = [] if level in self.rows else [self._row(level)]
        self.reached[level] = self.column
        place = {"panel": "rows", "x": first + (wide - 1) / 2, "y": self.rows[level] + 0.5, "w": wide - 0.04}
        look = {"h": 0.5, "state": "unreached", "fill": "hatched"}
        hover = [f"{level} reads {many(tokens, 'token')} in one forward"]
        return [*ops, scene.Cell(f"c{self.column}-{level}", **place, **look, hover=hover)]

    def _grow(self, number: float) -> list[Op]:
        """A change of the upper panel when a number no longer fits under its ceiling."""
        if number <= self.ceiling:
            return []
        self.ceiling = 2 * math.ceil(number / 2)
        return [scene.Change("number", y0=self.ceiling, ticks=ticks(self.ceiling))]

    def _heading(self) -> tuple[str, str, str]:
        """The bold words, the rest, and a short form of the rest."""
        shares = [f"{level} {100 * n / self.written.total():.0f} %" for level, n in self.written.items()]
        lead = ", ".join(shares)
        changes = f"{self.changes} change" + ("" if self.changes == 1 else "s")
        read = f", {many(self.caught_up, 'token')} read to catch up" if self.caught_up else ""
        return lead, f" of {many(self.written.total(), 'token')}; {changes}{read}.", f"; {changes}{read}."


def words(score) -> str:
    """`target; rolling entropy 1.20, limit 1.50`."""
    limit, name = score.limit, score.name
    text = f"{score.level}; {name} {score.total:.2f}, limit {limit:.2f}".replace("-", "−")
    own = [f"{part} {value:.2f}" for part, value in score.parts.items()]
    return ", ".join([text, *own])
