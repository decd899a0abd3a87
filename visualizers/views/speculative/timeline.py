"""Timeline: which model was busy, which waited, which drafts were wasted; x is milliseconds of the lane's
clock.

A fold over Forward, Propose, Verdict and Commit: one bar per forward, from its measured start to its end.
Draft bars carry what became of their tokens. A strategy whose parameters hold `concurrent` says that the
forwards of a step need not wait for each other, and gets two more rows, derived from this run's own costs:
each round, from where it began, as it would run with one device per model.
"""

from dataclasses import replace

from decoders.roles import DRAFT_ROLES
from decoders.trace.events import Cell, Commit, Forward, Propose, Verdict
from decoders.trace.number_format import many
from visualizers import scene
from visualizers.analysis.overlap import Bar, Schedule, milliseconds
from visualizers.scene.layout import Layout
from visualizers.scene.marks import Op
from visualizers.scene.verdict_marks import STATES
from visualizers.scene.view import Header, Reads, view

TOPS = {"measured": {"draft": 0.0, "target": 1.1}, "derived": {"draft": 2.4, "target": 3.25}}  # in rows
HEIGHTS = {"measured": 1.0, "derived": 0.75}
TOTAL = 0.5  # y of the whole run's time, at the right of the draft row
# The look of a draft bar whose tokens had different verdicts, and the fill of each state.
FIRST = ("accepted", "rejected", "unreached", "pruned", "live")
FILLS = {"accepted": "filled", "rejected": "tint", "pruned": "tint", "unreached": "dotted", "live": "dashed"}
OWN = {"resampled": "◆", "bonus": "★"}
COLUMNS = 12  # about how many the forwards of the first round take
IDLE = 0.5  # columns: shorter gaps are not drawn


def not_only_the_target(event: Forward | Cell) -> bool:
    """Whether another model ran, a draft was verified, or positions were written together."""
    if isinstance(event, Forward):
        return event.model != "target" or event.kind == "verify"
    return True


@view("timeline", "Timeline", reads=Reads((Forward, Cell), not_only_the_target))
class Timeline:
    """Two rows of bars, a dotted line after each round, and below them the tokens that it brought."""

    def __init__(self, header: Header):
        self.overlapped = "concurrent" in header.parameters
        self.asked = bool(header.parameters.get("concurrent"))
        self.schedule = Schedule()
        self.unit: float | None = None  # milliseconds of a column
        self.bars: dict[str, Bar] = {}  # id -> draft bars with tokens that have no verdict yet
        self.bar_of: dict[int, str] = {}  # drafted node -> id
        self.busy_until = dict.fromkeys(TOPS["measured"], 0.0)  # seconds, row by row
        self.wall = 0.0  # when the last round ended
        self.drawn = 0.0  # when the last derived round ended
        self.count = 0

    def head(self) -> Layout:
        """Title, question, the panels and the legend."""
        return Layout(
            question="Which model was busy? Which one waited? Which drafts were wasted?",
            first=0,
            column=10,
            column_narrow=6,
            left=92,
            left_narrow=62,
            right=72,
            right_narrow=64,
            span=True,
            axis="milliseconds of the lane's own time",
            ops=panels(self._names()),
            legend=[
                ["cell:accepted", "■", "accepted", "drafted, accepted"],
                ["cell:rejected", "□", "rejected", "rejected"],
                ["cell:unreached", "◌", "unreached", "never reached"],
                ["cell:live", "○", "live", "not verified"],
                ["cell:chosen", "□", "ink", "target busy"],
                ["cell:hatched", "▨", "soft", "waits"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The bars of a step, the gaps before them, and what became of earlier ones."""
        bars, verdicts, committed = self._read(step)
        if not bars and not committed:
            return []
        ops: list[Op] = []
        if self.unit is None:
            self.unit = scale(bars, step.seconds)
            ops.append(scene.Change("lanes", x_unit=self.unit))
        self.count += 1
        judged = self._judge(verdicts)
        began, self.wall = self.wall, step.seconds
        derived = self.schedule.read(bars, step.seconds, committed)
        ops += self._measured(bars)
        if self.overlapped:
            ops += self._derived(derived, began)
        own = next((OWN[v.status] for v in verdicts if v.status in OWN), "")
        ops += self._end(bars, step.seconds, f"+{committed}{own}" if committed else "")
        ops += [op for op in judged if op.id.split(".")[1] not in {bar.key for bar in bars}]
        ops += self._legend_text()
        caption = f"Round {self.count}: {many(committed, 'token')}, {milliseconds(step.seconds)} so far."
        if self.count > 1:
            ops.append(scene.Change(f"total{self.count - 1}", gone=True))
        total = {"panel": "lanes", "x": self._x(step.seconds), "y": TOTAL, "text": milliseconds(step.seconds)}
        look = {"align": "left", "dx": 5, "role": "ink", "bold": True, "priority": 0}
        ops.append(scene.Label(f"total{self.count}", **total, **look))
        return [*ops, scene.Front(step.seconds * 1e3 / self.unit, 0), scene.Say(caption)]

    # ---- reading -------------------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        return ["measured", "derived"] if self.overlapped else ["measured"]

    def _read(self, step) -> tuple[list[Bar], list, int]:
        """(bars of the step, its verdicts, tokens committed)."""
        bars, verdicts, committed, drafting = [], [], 0, None
        for event in step.events:
            match event:
                case Forward() if event.kind != "lens":
                    drafts = event.model in DRAFT_ROLES or event.kind in ("draft", "plan")
                    row = "draft" if drafts else "target"
                    key = f"{self.count}-{len(bars)}"
                    shared = event.shared == event.tokens
                    measured = (event.start, event.seconds, event.tokens, event.kind)
                    bars.append(Bar(key, row, *measured, shared, event.lanes - 1))
                    drafting = bars[-1] if row == "draft" else None
                    if drafting:
                        self.bars[key] = drafting
                case Propose() if event.source != "target" and not event.given and drafting:
                    drafting.nodes[event.node] = "live"
                    self.bar_of[event.node] = drafting.key
                case Verdict():
                    verdicts.append(event)
                case Commit():
                    committed += len(event.nodes)
        return bars, verdicts, committed

    def _judge(self, verdicts) -> list[Op]:
        """Reads verdicts; returns the changes of bars that were drawn before."""
        changed = {}
        for verdict in verdicts:
            bar = self.bars.get(self.bar_of.pop(verdict.node, ""))
            if bar is not None:
                bar.nodes[verdict.node] = STATES.get(verdict.status, "live")
                changed[bar.key] = bar
        ops = []
        for key, bar in changed.items():
            ops += [scene.Change(f"{name}.{key}", **self._look(bar)) for name in self._names()]
            if "live" not in bar.nodes.values():
                del self.bars[key]
        return ops

    # ---- drawing -------------------------------------------------------------------------------------------

    def _measured(self, bars: list[Bar]) -> list[Op]:
        """Bars where they were measured, and the gaps before them."""
        ops = []
        for bar in bars:
            ops += self._gap("measured", bar, self.busy_until[bar.row], bar.start)
            self.busy_until[bar.row] = bar.start + bar.seconds
            hover = [f"{bar.row}: {bar.kind}, {milliseconds(bar.seconds)}, {many(bar.tokens, 'token')} read"]
            if bar.others:
                hover.append(f"its share of a forward with {many(bar.others, 'other lane')}")
            ops.append(self._bar("measured", bar, hover))
        return ops

    def _derived(self, bars: list[Bar], began: float) -> list[Op]:
        """The same round with two devices, from where it began or the last one ends; `bars` begin at 0."""
        began = max(began, self.drawn)
        bars = [replace(bar, start=bar.start + began) for bar in bars]
        ops, ends = [], {bar.row: bar for bar in bars}
        for bar in bars:
            lines = [f"{bar.row}: {milliseconds(bar.seconds)}, derived", "the median of this run so far"]
            ops.append(self._bar("derived", bar, lines))
        self.drawn = last = max((bar.end for bar in bars), default=began)
        for bar in ends.values():
            ops += self._gap("derived", bar, bar.end, last)
        return ops

    def _bar(self, name: str, bar: Bar, hover: list[str]) -> Op:
        box = self._box(name, bar, bar.start, bar.end)
        return scene.Cell(f"{name}.{bar.key}", **box, hover=hover, **self._look(bar))

    def _gap(self, name: str, bar: Bar, start: float, end: float) -> list[Op]:
        """A hatched box where the model of `bar` waits; none if it would be barely visible."""
        if self._x(end) - self._x(start) <= IDLE:
            return []
        hover = [f"{bar.row}: no forward for {milliseconds(end - start)}"]
        look = {"state": "unreached", "fill": "hatched", "hover": hover}
        return [scene.Cell(f"{name}.{bar.key}-gap", **self._box(name, bar, start, end), **look)]

    def _box(self, name: str, bar: Bar, start: float, end: float) -> dict:
        low, high, tall = self._x(start), self._x(end), HEIGHTS[name]
        place = {"x": round((low + high) / 2, 3), "y": TOPS[name][bar.row] + tall / 2}
        return {"panel": "lanes", **place, "w": round(high - low, 3), "h": tall}

    def _end(self, bars: list[Bar], end: float, brought: str) -> list[Op]:
        """The end of a round, and what it brought."""
        key = f"end{self.count}"
        ops = [scene.Guide(key, panel="lanes", x=self._x(end), y=0)]
        if brought and bars:
            look = {"align": "right", "role": "ink", "priority": 3, "text": brought}
            at = {"panel": "brought", "x": self._x(max(bar.end for bar in bars)), "y": 0.5}
            ops.append(scene.Label(f"{key}-words", **at, **look))
        return ops

    def _look(self, bar: Bar) -> dict:
        """State and fill of a bar, from what became of its tokens."""
        if bar.row == "target":
            return {"state": "chosen", "fill": "tint"}
        state = next((s for s in FIRST if s in bar.nodes.values()), "pruned")
        return {"state": state, "fill": FILLS[state]}

    def _x(self, seconds: float) -> float:
        return round(seconds * 1e3 / self.unit, 3)

    def _legend_text(self) -> list[Op]:
        """The current text of the headings."""
        heading, short = self.schedule.measured(), self.schedule.brief()
        if self.overlapped:
            paid = self.schedule.verdict() if self.asked else " One after the other: concurrent is off."
            heading = f"{heading}{paid}\n{self.schedule.derived()}"
            paid = self.schedule.verdict_brief() if self.asked else ", in turn"
            short = f"{short}{paid}\n{self.schedule.derived_brief()}"
        return [scene.Change("heading", heading=heading, short=short)]


def panels(names: list[str]) -> list[Op]:
    """A heading, below it two rows for each name, and a line for the tokens of the rounds, whose words no bar
    or dotted line crosses.
    """
    rows = [
        scene.Row(
            f"{name}-{row}",
            panel="lanes",
            y0=top,
            y1=top + HEIGHTS[name],
            text=row if name == "measured" else f"derived {row}",
            short=row if name == "measured" else f"≈ {row}",
            rule=False,
        )
        for name in names
        for row, top in TOPS[name].items()
    ]
    bottom = max(row.y1 for row in rows)
    return [
        scene.Panel(
            "heading",
            panel="heading",
            y0=0,
            y1=1,
            px=18 + 17 * (len(names) - 1),
            lead="Measured",
            heading=".",
        ),
        scene.Panel("lanes", panel="lanes", y0=-0.1, y1=bottom + 0.05, share=1),
        scene.Panel("brought", panel="brought", y0=0, y1=1, px=18),
        *rows,
    ]


def scale(bars: list[Bar], seconds: float) -> float:
    """Milliseconds of a column, a round number: the first round, which took `seconds` in all, takes about
    COLUMNS of them.
    """
    draft = sum(bar.seconds for bar in bars if bar.row == "draft")
    known = all(bar.shared for bar in bars if bar.row == "target")  # another lane had read the prompt
    wanted = 1e3 / COLUMNS * (4 * draft if known else sum(bar.seconds for bar in bars))
    if all(bar.shared for bar in bars):  # nothing was computed: only the round itself took time
        wanted = 1e3 / COLUMNS * 4 * seconds
    steps = [m * 10.0**e for e in range(-3, 5) for m in (1, 2, 5)]
    return max((s for s in steps if s <= wanted), default=steps[0])
