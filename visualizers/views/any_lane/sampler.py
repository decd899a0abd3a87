"""Sampler: what each processor left of the model's distribution, and where the random number fell.

A fold over Distribution, Propose, Measure, Commit. Each step shows the position of its newest token: columns
are the processors in the order in which they ran, rows are tokens in the order of the model, one scale for
all. Marks stand in panels of their own step, which go with the next step.
"""

import math
from typing import Any

from decoders.trace.events import Commit, Distribution, Propose
from decoders.trace.scores import Measure, ScoreName
from visualizers import scene
from visualizers.analysis import distribution_stages
from visualizers.scene import sizes
from visualizers.scene.layout import Layout
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, Reads, view
from visualizers.scene.words import fit, probability

ACROSS = 60  # columns of the picture; a stage takes an equal share of them
LEFT = 0.5  # where the first column begins
BAR, SHORT = 0.44, 0.2  # longest bar as a share of its stage's width, with few and with many stages
ROWS = 8  # tokens, one fewer where the sum of what was removed takes a row; the rest is one row more
FEW_ROWS, LOW = (
    4,
    215,
)  # as many in a picture less high than that, where the rows of all would be too low to read
SIDE_BY_SIDE = 2  # most stages whose titles fit into one line on a phone
FEW, MANY = 4, 6  # stages with long bars; stages that fit: with more, those that changed nothing go first
HALF = 0.5  # a token's longest bar means this probability, or 1 where a token has more
NUMBER, CUT = 7.0, 0.7  # columns: of a number beside its bar; of the gap in a bar that is cut
GUTTER = 84  # pixels for the tokens' names
DRAW_TOP, DRAW_BOTTOM = 22, 40  # pixels from the top of the lowest panel: the bar of running sums


def drawn_or_listed(event: Measure | Distribution) -> bool:
    """Whether a number was drawn, processors changed a distribution, or another program lists the likeliest
    tokens, which does not say among how many.
    """
    if isinstance(event, Measure):
        return event.name == ScoreName.DRAW
    listed = event.view == "target" and event.level is None and event.among is None
    return event.view == "processed" or listed


@view("sampler", "Sampler", reads=Reads((Measure, Distribution), drawn_or_listed))
class Sampler:
    """Columns: processors; rows: tokens; below: the draw on the running sum of the last column."""

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        self.offers: dict[int, distribution_stages.Offers] = {}  # node -> what was on offer after it
        self.proposed: dict[int, float | None] = {}
        self.draws: dict[int, object] = {}  # node -> its draw
        self.sampled: set[int] = set()  # nodes recorded as drawn, whether with a known number or not
        self.shown = 0  # steps drawn so far

    def head(self) -> Layout:
        """Title, question, layout and legend; every step brings its own panels."""
        return Layout(
            question="What did each processor remove? Where did the random number fall?",
            first=1,
            columns="panel",
            column=4,
            column_narrow=3,
            left=GUTTER,
            right=sizes.MARGIN,
            axis=None,
            legend=[
                ["cell:amount", "▬", "soft", "probability"],
                ["cell:filled", "▬", "ink", "the token that was taken"],
                ["cell:dotted", "▭", "rejected", "removed here"],
                ["symbol:amber", "▼", "live", "the random number u"],
                ["label:unreached", "//", "unreached", "a bar that is cut"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """Hides the step before and draws the newest token of this one."""
        for event in step.events:
            match event:
                case Distribution():
                    self.offers.setdefault(event.node, {})[event.view, event.level] = event
                case Propose():
                    self.proposed[event.node] = event.logprob
                    if event.fill == "sampled":
                        self.sampled.add(event.node)
                case Measure(name=ScoreName.DRAW):
                    self.draws[event.node] = event
        self.nodes.read(step)
        committed = {
            node: logprob
            for event in step.events
            if isinstance(event, Commit)
            for node, logprob in zip(event.nodes, event.logprobs, strict=True)
        }
        known = [n for n in committed if ("target", None) in self.offers.get(self.nodes.parent[n], {})]
        if not known:
            return []
        hidden = [
            scene.Change(f"{name}{self.shown}", gone=True)
            for name in ("titles", "rows", "few", "draw")
            if self.shown
        ]
        self.shown += 1
        picture = Picture(self, known[-1], committed[known[-1]])
        for node in committed:  # earlier places are not needed again
            self.offers.pop(self.nodes.parent[node], None)
        return [*hidden, *picture.ops(), scene.Front(1, 0), scene.Say(picture.sentence())]


class Picture:
    """One place: its stages, the tokens that are shown of them, and the marks."""

    def __init__(self, sampler: Sampler, node: int, logprob: float | None):
        self.node, self.number, self.nodes = node, sampler.shown, sampler.nodes
        self.token = self.nodes.token[node]
        self.draw, self.sampled = sampler.draws.get(node), node in sampler.sampled
        recorded = [
            offer
            for offer in distribution_stages.in_order(sampler.offers[self.nodes.parent[node]])
            if offer.view not in ("draft", "unwanted")  # no processor works on these
        ]
        each = any(offer.level is not None for offer in recorded)
        self.titles = [
            distribution_stages.title(offer, sampler.header.parameters, each) for offer in recorded
        ]
        self.tables = [{int(t): math.exp(lp) for t, lp in offer.top} for offer in recorded]
        if logprob is not None:
            self.tables[0].setdefault(self.token, math.exp(logprob))
        last = sampler.proposed.get(node)
        if last is not None and len(recorded) > 1:
            self.tables[-1].setdefault(self.token, math.exp(last))
        pairs = list(zip(recorded, recorded[1:], strict=False))
        self.removed, self.gone = [0.0], [set()]
        for before, after in pairs:
            cuts = after.view == "processed"  # a combination of several views keeps no order
            self.removed.append(distribution_stages.removed(before, after) if cuts else 0.0)
            gone = {
                int(t) for t, _ in before.top if cuts and distribution_stages.is_gone(int(t), before, after)
            }
            self.gone.append(gone)
        self.recorded = recorded
        first = [token for table in self.tables for token in table]
        order = [*dict.fromkeys(first)]
        self.cuts = any(mass != 0.0 for mass in self.removed)
        self.order, self.few = (self._likeliest(order, rows - self.cuts) for rows in (ROWS, FEW_ROWS))
        self.columns = self._fitting()
        self.made = 0  # marks so far

    def _likeliest(self, order: list[int], rows: int) -> list[int]:
        """The first tokens, and in any case the one that was taken."""
        return order[:rows] if self.token in order[:rows] else [*order[: rows - 1], self.token]

    def _fitting(self) -> list[int]:
        """The stages that are drawn: all, or the model's and the newest of those that changed something."""
        columns = list(range(len(self.recorded)))
        if len(columns) <= MANY:
            return columns
        same = [i for i in columns[1:-1] if self.tables[i] == self.tables[i - 1]]
        columns = [i for i in columns if i not in same]
        return [columns[0], *columns[1:][-(MANY - 1) :]]

    # ---- marks -------------------------------------------------------------------------------
    def ops(self) -> list[Op]:
        """All marks of the place, panels first."""
        n = self.number
        high = 16 if len(self.columns) <= SIDE_BY_SIDE else 30
        panels = [
            scene.Panel(f"titles{n}", y0=0, y1=16, px=16, px_narrow=high),
            scene.Panel(f"rows{n}", y0=-0.5, y1=ROWS + 0.5, share=1, columns=ACROSS, from_px=LOW),
            scene.Panel(f"few{n}", y0=-0.5, y1=FEW_ROWS + 0.5, share=1, columns=ACROSS, below_px=LOW),
            scene.Panel(f"draw{n}", y0=0, y1=42, px=42),
        ]
        wide = ACROSS / max(2, len(self.columns))
        titles = [self._title(LEFT + wide * place, wide, i) for place, i in enumerate(self.columns)]
        rows = [*self._rows("rows", self.order, wide), *self._rows("few", self.few, wide)]
        return [*panels, *titles, *rows, *self._draw()]

    def _rows(self, panel: str, order: list[int], wide: float) -> list[Op]:
        """The rows of these tokens, of all others, and of what was removed."""
        chosen, rows = order.index(self.token), len(order)
        band = {"x0": LEFT, "x1": LEFT + ACROSS, "y0": chosen - 0.5, "y1": chosen + 0.5, "role": "amber"}
        marks = [self._mark(scene.Band, panel, **band, parts=self.node), *self._names(panel, order)]
        largest = max(max(table.values()) for table in self.tables)
        # one scale for all places and lanes with flat distributions
        largest = HALF if largest <= HALF else 1.0
        scale = wide * (BAR if len(self.columns) <= FEW else SHORT) / largest
        for place, i in enumerate(self.columns):
            x = LEFT + wide * place
            for y, token in enumerate(order):
                marks += self._cell(panel, x, scale, y, token, i)
            marks += self._rest(panel, x, scale, wide, order, i)
            if self.removed[i] != 0.0:
                text = percent(self.removed[i])
                marks.append(self._label(panel, x, rows + 1, text, role="rejected", size=10))
        return marks

    def _mark(self, kind: type[scene.Mark], panel: str, **fields: Any) -> Op:
        self.made += 1
        return kind(f"{self.number}.{self.made}", panel=f"{panel}{self.number}", **fields)

    def _label(self, panel: str, x: float, y: float, text: str, **fields: Any) -> Op:
        return self._mark(scene.Label, panel, x=round(x, 3), y=y, text=text, **{"align": "left", **fields})

    def _names(self, panel: str, order: list[int]) -> list[Op]:
        """Next to the rows: the tokens, faint if they are removed in the end."""
        lost = set().union(*self.gone)
        rows, among, names = len(order), self.recorded[0].among, []
        others = f"{among - rows:,} more" if among and panel == "few" else "all others"
        for y, token in enumerate(order):
            look = {"role": "soft" if token in lost else "ink", "bold": token == self.token, "face": "mono"}
            text = fit(self._text(token), GUTTER - 12, 11)
            names.append(self._mark(scene.Label, panel, side="left", x=1, y=y, text=text, **look))
        for y, text, role in ((rows, others, "soft"), (rows + 1, "removed", "rejected")):
            if y == rows or self.cuts:
                names.append(self._mark(scene.Label, panel, side="left", x=1, y=y, text=text, role=role))
        return names

    def _title(self, x: float, wide: float, i: int) -> Op:
        bits = self.recorded[i].entropy / math.log(2)
        mass = f", removed {percent(self.removed[i])}" if self.removed[i] != 0.0 else ""
        lines = [self.titles[i], f"entropy {bits:.2f} bits{mass}"]
        look = {"bold": True, "role": "ink", "w": wide, "priority": 1, "hover": lines}
        words = self.titles[i]
        if len(self.columns) > SIDE_BY_SIDE:  # on a phone the number stands below its name
            words, look = words.replace(" ", "  ", 1), look | {"stack": True, "dy": 0}
        return self._label("titles", x, 9, words, **look)

    def _cell(self, panel: str, x: float, scale: float, y: int, token: int, i: int) -> list[Op]:
        """One token after one stage: its bar and number, an outline where it is removed, nothing from then
        on.
        """
        p, here = self.tables[i].get(token), token == self.token
        if p is not None:
            look = {"state": "chosen", "fill": "filled"} if here else {"fill": "amount", "weight": 0.9}
            lines = f"{self._text(token)}: p {probability(p)}, {self.titles[i]}"
            number = {
                "role": "ink" if here else "soft",
                "bold": here,
                "priority": 1 if here else 3,
                "size": sizes.TINY,
            }
            bar = self._bar(panel, x, y, p * scale, hover=[lines], node=self.node, **look)
            return [bar, self._label(panel, x + p * scale + 0.4, y, percent(p), weight=p, **number)]
        if any(token in gone for gone in self.gone[:i]):
            return []
        if token not in self.gone[i]:
            return [self._label(panel, x + 0.4, y, "·", role="soft")]
        before = self.tables[i - 1].get(token, 0.0)
        lines = [f"{self._text(token)}: removed by {self.titles[i]}", f"p {probability(before)} before"]
        width = max(before * scale, 0.5)
        bar = self._bar(panel, x, y, width, state="rejected", fill="dotted", hover=lines, node=self.node)
        return [bar, self._label(panel, x + width + 0.4, y, "✕", role="rejected", size=10)]

    def _bar(self, panel: str, x: float, y: int, width: float, **fields: Any) -> Op:
        width = round(max(width, 0.15), 3)
        return self._mark(scene.Cell, panel, x=round(x + width / 2, 3), y=y, w=width, h=0.66, **fields)

    def _rest(self, panel: str, x: float, scale: float, wide: float, order: list[int], i: int) -> list[Op]:
        """The mass of tokens that are not listed, so that all is accounted for: a bar to the scale of the
        others, visibly cut where its stage has no room for it.
        """
        left = max(0.0, 1.0 - math.fsum(self.tables[i].get(token, 0.0) for token in order))
        if left < 5e-6:
            return []
        y, width, among = len(order), left * scale, self.recorded[i].among
        more = f"{among - sum(t in self.tables[i] for t in order):,} more tokens" if among else "the rest"
        look = {"fill": "outline", "state": "unreached", "hover": [f"{more}: {percent(left)}"]}
        room = wide - NUMBER
        if width <= room:
            bars = [self._bar(panel, x, y, width, **look)]
        else:
            look["hover"] = [*look["hover"], "this bar is cut: it is longer than there is room for"]
            half = (room - CUT) / 2
            bars = [self._bar(panel, at, y, half, **look) for at in (x, x + half + CUT)]
            cut = {"align": "center", "role": "unreached", "priority": 1, "size": sizes.TINY}
            bars.append(self._label(panel, x + room / 2, y, "//", **cut))
        number = {"role": "soft", "weight": left, "size": sizes.TINY}
        return [*bars, self._label(panel, x + min(width, room) + 0.4, y, percent(left), **number)]

    # ---- the draw ----------------------------------------------------------------------------
    def _draw(self) -> list[Op]:
        """The random number on the running sum of the last stage, tokens in the vocabulary's order."""
        text = self._text(self.token)
        if self.draw is None:
            words = f"nothing was drawn: {text} was chosen by its score"
            if self.sampled:
                words = f"{text} was drawn; with which number is not recorded"
            words += self._undrawn()
            return [self._label("draw", LEFT, 9, words, role="soft", priority=1)]
        u, low, high = (self.draw.total, *(self.draw.parts.get(name) for name in ("low", "high")))
        between = "" if low is None else f", {digits(low)} to {digits(high)}"
        words = f"u = {digits(u)} falls on {text}{between}{self._undrawn()}"
        marks = [self._label("draw", LEFT, 9, words, role="ink", priority=1)]
        pieces = self._pieces(low, high)
        if math.fsum(end - start for _, start, end in pieces) < 1 - 1e-6:
            marks.append(self._piece(0.0, 1.0, None))  # the others' places are not recorded
        marks += [self._piece(start, end, token) for token, start, end in pieces]
        at = {"x": round(LEFT + ACROSS * u, 3), "y": DRAW_TOP - 3, "size": sizes.TEXT}
        return [*marks, self._mark(scene.Symbol, "draw", glyph="triangle", role="amber", **at)]

    def _undrawn(self) -> str:
        """The stages that have no column, by name."""
        left = [title for i, title in enumerate(self.titles) if i not in self.columns]
        return " · without a column: " + ", ".join(left) if left else ""

    def _pieces(self, low: float | None, high: float | None) -> list[tuple[int, float, float]]:
        """(token, from, to) of all tokens if all are recorded, else of the one that was taken."""
        last, table = self.recorded[-1], self.tables[-1]
        if last.among is not None and last.among <= len(last.top):
            pieces, start = [], 0.0
            for token in sorted(table):
                pieces.append((token, start, start + table[token]))
                start += table[token]
            return pieces
        return [] if low is None else [(self.token, low, high)]

    def _piece(self, start: float, end: float, token: int | None) -> Op:
        wide, here = ACROSS * (end - start), token == self.token
        place = {"x": round(LEFT + ACROSS * start + wide / 2, 3), "y": (DRAW_TOP + DRAW_BOTTOM) / 2}
        look = {"w": round(wide, 3), "h": DRAW_BOTTOM - DRAW_TOP, "state": "chosen"}
        if token is None:
            return self._mark(scene.Cell, "draw", **place, **look | {"state": "unreached"}, fill="tint")
        shared = {"text": self._text(token), "hover": [f"{self._text(token)}: {percent(end - start)}"]}
        return self._mark(scene.Cell, "draw", **place, **look, fill="filled" if here else "tint", **shared)

    # ---- words -------------------------------------------------------------------------------
    def _text(self, token: int) -> str:
        return self.nodes.word(token)

    def sentence(self) -> str:
        """The place in words, for screen readers."""
        first, last = (table.get(self.token) for table in (self.tables[0], self.tables[-1]))
        parts = [f"{self._text(self.token)}: {percent(first)} in the model"]
        if len(self.tables) > 1:
            parts.append(f"{percent(last)} after the processors")
        for title, mass in zip(self.titles, self.removed, strict=True):
            if mass != 0.0:
                parts.append(f"{title} removed {percent(mass)}")
        if self.draw is not None:
            parts.append(f"u {digits(self.draw.total)}")
        return ", ".join(parts) + "."


def percent(p: float | None) -> str:
    """`23 %`, `6.7 %`, `.04 %`; `?` if unknown."""
    if p is None:
        return "?"
    share = 100 * p
    if share >= 9.95:
        return f"{share:.0f} %"
    if share < 0.005:
        return "< .01 %" if share else "0 %"
    return digits(share, 1 if share >= 0.0995 else 2) + " %"


def digits(value: float, places: int = 4) -> str:
    """`.6312`."""
    return f"{value:.{places}f}".removeprefix("0") if value < 1 else f"{value:.{places}f}"
