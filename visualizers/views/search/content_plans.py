"""Content plans: the units of the prompt, the search over plans of them, and the summary that each became.

A fold over Span ("unit": a clause of the prompt), Rank ("plan": a plan so far, with its units; "reranker" of
a summary, whose level is its plan's), Measure ("adherence" of a summary), Propose and Commit.
"""

from decoders.trace.events import Propose
from decoders.trace.number_format import many
from decoders.trace.scores import Measure, Rank, ScoreName, Span
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view

LINE = 14  # tokens in a line, unless a sentence ends before
ENDS = (".", "!", "?")
APART = 0.24  # rows between plans at one place
QUESTION = "Which clauses did each plan choose? What became of the plan?"


def minus(value: float, places: int = 2) -> str:
    """A number with a true minus sign."""
    return f"{value:.{places}f}".replace("-", "−")


@view("content_plans", "Content plans", reads=has(Rank, name=ScoreName.PLAN))
class ContentPlans:
    """Above, one row per unit: x counts units of a plan. Below, one block per summary: x counts tokens of a
    line.
    """

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.units: list[str] = []
        self.plans: dict[str, list[int]] = {}  # name of a plan -> its units
        self.paths: dict[str, tuple[float, float]] = {}  # plan -> where its last unit is drawn
        self.there: dict[tuple[int, int], int] = {}  # column and unit -> plans drawn there
        self.state: dict[str, str] = {}
        self.whole: dict[str, float] = {}  # plan -> log-probability
        self.last: set[str] = set()  # whole plans that are kept
        self.adherence: dict[str, float] = {}
        self.summarised: list[str] = []  # plans whose summaries are drawn, the best first
        self.lines = 0

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Rounds(
            question=QUESTION,
            column=sizes.MARKED,
            first=0,
            wide=62,
            left=190,
            left_narrow=96,
            right=112,
            right_narrow=56,
            row_tall=36,
            axis="units of a plan, tokens of a line",
            patched=True,
            clip=True,
            ops=[
                heading(),
                scene.Panel("units", y0=-0.7, y1=1, share=0.5, grow=True),
            ],
            legend=[
                ["node:live", "○", "live", "continues"],
                ["node:finished", "■", "finished", "a whole plan, with its log p"],
                ["node:pruned", "✕", "pruned", "given up"],
                ["node:chosen", "●", "chosen", "the plan of the output"],
                ["cell:chosen", "■", "chosen", "the output"],
                ["cell:live", "▣", "live", "another plan's summary"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: units, plans, or the summaries."""
        self.nodes.read(step)
        ops: list[Op] = []
        plans = []
        for event in step.events:
            match event:
                case Span(name=ScoreName.UNIT):
                    ops += self._unit(event)
                case Rank(name=ScoreName.PLAN):
                    plans.append(event)
                case Measure(name=ScoreName.ADHERENCE):
                    self.adherence[event.level] = event.total
                case Rank(name=ScoreName.RERANKER):
                    ops += self._summary(event)
        ops += self._plans(plans) if plans else self._over(step)
        if not (caption := self._caption(step)):
            return ops
        lead, rest = caption
        ops.append(scene.Change("heading", lead=lead, heading=rest, short=rest))
        return [*ops, scene.Say(f"Step {step.index + 1}: {lead}{rest}")]

    # ---- plans

    def _unit(self, event) -> list[Op]:
        """A row with the words of a unit; its salience after it."""
        bytes_of = self.nodes.header.vocabulary
        words = b"".join(bytes_of.get(self.nodes.token[n], b"?") for n in range(event.first, event.last + 1))
        text, at = words.decode("utf-8", "replace").strip(), len(self.units)
        self.units.append(text)
        place = {"panel": "units", "y0": at - 0.5, "y1": at + 0.5, "rule": False}
        return [
            scene.Row(
                f"u{at}",
                **place,
                text=f"{at + 1}  {text}",
                short=f"{at + 1} {text}",
                right=f"{100 * event.total:.0f} %",
                right_short=f"{100 * event.total:.0f} %",
            ),
        ]

    def _plans(self, plans: list) -> list[Op]:
        """Plans that got another unit, and which plans continue."""
        ops: list[Op] = []
        plans = [event for event in plans if event.units and event.units[-1] > 0]  # others name no unit
        for event in plans:
            if event.level not in self.paths:
                ops += self._grown(event)
            if event.parts["whole"]:
                self.whole[event.level] = event.total
        self.last = {e.level for e in plans if e.parts["whole"]}
        return ops + self._continuing({e.level for e in plans})

    def _over(self, step) -> list[Op]:
        """The search over plans is over once words are written: what is not whole is dropped."""
        writes = any(isinstance(event, Propose) for event in step.events)
        return self._continuing(self.last) if writes and not self.summarised else []

    def _continuing(self, kept: set[str]) -> list[Op]:
        """Whole plans, prefixes of plans that are kept, and all others, which are not."""
        alive = {level for one in kept for level in self._prefixes(one)}
        ops = []
        for level in self.paths:
            state = "finished" if level in self.last else "live" if level in alive else "pruned"
            ops += self._look(level, state)
        return ops

    def _prefixes(self, plan: str) -> list[str]:
        """All prefixes of a plan, itself included."""
        units = self.plans.get(plan, [])
        return [name_of(units[: count + 1]) for count in range(len(units))]

    def _grown(self, event) -> list[Op]:
        """A plan's newest unit, in the row of this unit, and the line to it."""
        level, units = event.level, event.units
        x, row = len(units), units[-1] - 1
        self.plans[level] = units
        many = self.there[x, row] = self.there.get((x, row), -1) + 1
        y = row + APART * ((many + 1) // 2) * (1 if many % 2 else -1)
        self.paths[level], self.state[level] = (x, y), "live"
        hover = [f"plan {level}: log p {minus(event.total)}", *self.units[row : row + 1]]
        place = {"panel": "units", "x": x, "y": round(y, 3)}
        ops = [
            scene.Node(f"p{level}", **place, state="live", weight=0.5, quiet=True, hover=hover),
        ]
        if (before := name_of(units[:-1])) in self.paths:
            x0, y0 = self.paths[before]
            line = {"panel": "units", "x0": x0, "y0": round(y0, 3), "x1": x, "y1": round(y, 3)}
            ops.insert(0, scene.Edge(f"e{level}", **line, state="live", weight=0.4))
        return [*ops, scene.Front(x, row)]

    def _look(self, level: str, state: str) -> list[Op]:
        """A new state of a plan; whole ones that are kept have their log p beside them."""
        if self.state[level] == state:
            return []
        self.state[level] = state
        note = minus(self.whole[level]) if level in self.last else None
        ops = [scene.Change(f"p{level}", state=state, note=note, note_priority=4)]
        if len(self.plans[level]) > 1:
            ops.append(scene.Change(f"e{level}", state=state if state != "finished" else "live"))
        return ops

    # ---- summaries

    def _summary(self, event) -> list[Op]:
        """The summary of a plan, line by line, with its scores."""
        level, best = event.level, event.rank == 1
        ops = [op for one in self._prefixes(level) for op in self._look(one, "chosen")] if best else []
        y = len(self.units) + 0.4 + self.lines + 0.6 * len(self.summarised)
        self.summarised.append(level)
        lines = self._lines(event.node)
        self.lines += len(lines)
        row = {"panel": "units", "y0": y - 0.5, "y1": y + len(lines) - 0.5, "label_y": y, "rule": True}
        score = f"{minus(event.total)}"
        right = {"right": f"{score}  F1 {self.adherence.get(level, 0.0):.2f}", "right_short": score}
        name = {"text": f"plan {level}", **({"bold": "output"} if best else {})}
        ops.append(scene.Row(f"s{level}", **row, **name, **right))
        for down, line in enumerate(lines):
            for x, node in enumerate(line, 1):
                look = {"state": "chosen" if best else "live", "fill": "filled" if best else "tint"}
                place = {"panel": "units", "x": x, "y": y + down, "w": 0.96, "h": 0.82, "node": node}
                ops.append(scene.Cell(f"t{node}", **place, **look, text=self.nodes.text(node)))
        return ops

    def _lines(self, node: int) -> list[list[int]]:
        """A summary's tokens, one sentence per line."""
        lines: list[list[int]] = [[]]
        for one in self.nodes.path(node):
            ended = lines[-1] and self.nodes.text(lines[-1][-1]).endswith(ENDS)
            if len(lines[-1]) == LINE or (ended and one != node):  # an end of text needs no line
                lines.append([])
            lines[-1].append(one)
        return lines

    def _caption(self, step) -> tuple[str, str] | None:
        """What happened: a few bold words, and the rest."""
        scores = step.of(Rank)
        if ranked := [e for e in scores if e.name == ScoreName.RERANKER]:
            best = min(ranked, key=lambda e: e.rank)
            return f"plan {best.level} is output", f": its summary has {minus(best.total)} per token."
        if plans := [e for e in scores if e.name == ScoreName.PLAN]:
            whole = sum(bool(e.parts["whole"]) for e in plans)
            return (
                f"{many(whole, 'whole plan')}",
                f", {len(plans) - whole} still growing; plan {plans[0].level} leads.",
            )
        count = sum(node > self.nodes.root for node in self.nodes.position)
        return (
            (f"{many(len(self.whole), 'plan')}", f": {many(count, 'token')} written under them.")
            if count
            else None
        )


def name_of(units: list[int]) -> str:
    """A plan's name: its units in order."""
    return " ".join(map(str, units))
