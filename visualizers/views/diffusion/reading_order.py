"""Reading order: the open window of the current forward in the order of the text and in the order in which
the model read it, and which masks were near and certain enough to be filled.

A fold over Cell (those with an entropy, and those of level "input"), Forward and Commit. Each step shows its
own forward; the numbers in the heading count from the start. After WeDLM (Liu et al. 2025).
"""

from decoders.trace.events import Cell, Commit, Forward
from decoders.trace.number_format import many
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, view
from visualizers.scene.words import probability
from visualizers.views.diffusion.cell_states import FILLED
from visualizers.views.diffusion.entropy_bars import bar, ceiling, line, panels, ticks, word

LOOKS = {  # what stood at a position when it was read
    "cached": ({"state": "chosen", "fill": "outline"}, "final: it stays in the cache"),
    "filled": ({"state": "chosen", "fill": "dashed"}, "filled, but a mask precedes it: read again"),
    "mask": ({"state": "prompt", "fill": "dotted"}, "a mask"),
}
TEXT, READ = 0, 2  # rows of the two orders


@view("reading_order", "Reading order")
class ReadingOrder:
    """x: positions of the window in the text's order, or places in the order of reading."""

    def __init__(self, header: Header):
        self.header, self.prompt = header, len(header.prompt)
        self.tau = header.number("tau", 0.0)
        self.penalty = header.number("distance_penalty", 0.0)
        self.columns = 2 * int(header.number("window", 4))
        self.forwards = self.tokens = self.cached = self.written = 0
        self.shown: list[str] = []

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        heading, entropies, tokens = panels()
        return Columns(
            question="In which order did the model read? Which masks were near and certain enough?",
            column=sizes.SHORT,
            ops=[
                heading,
                scene.Panel("order", y0=TEXT - 0.5, y1=READ + 0.5, px=84, rule=True),
                entropies,
                tokens,
            ],
            column_narrow=22,
            tight=34,
            tightest=20,
            columns=self.columns,
            left=64,
            left_narrow=44,
            axis=None,
            legend=[
                ["cell:chosen", "□", "chosen", "in the cache; dashed: read again"],
                ["cell:dotted", "┄", "soft", "mask"],
                ["path:link", "╲", "link", "read out of order"],
                ["path:live", "╌", "live", "tau less lambda per position"],
                ["cell:accepted", "■", "accepted", "filled in this forward"],
            ],
            overview=None,
        )

    def feed(self, step) -> list[Op]:
        """Hides the previous forward and draws this one."""
        masks, read = [], []
        for event in step.events:
            match event:
                case Cell() if event.level == "input":
                    read.append(event)
                case Cell() if event.level is None and event.entropy is not None:
                    masks.append(event)
                case Forward() if event.kind != "prefill":
                    self.forwards, self.tokens = self.forwards + 1, self.tokens + event.tokens
                case Commit():
                    self.written += len(event.nodes)
        if not masks or not read:
            return []
        self.cached += sum(event.state == "cached" for event in read)
        hidden = [scene.Change(key, gone=True) for key in self.shown]
        low, key = min(event.position for event in read), str(masks[0].iteration)
        marks = [*self._orders(key, read, low), *self._bars(key, masks, low)]
        self.shown = [mark.id for mark in marks]
        top = self._top(masks)
        scale = scene.Change("entropies", y0=top, ticks=ticks(top))
        return [*hidden, *marks, scale, *self._heading(masks), scene.Front(1, 0)]

    def _orders(self, key: str, read: list, low: int) -> list[Op]:
        """Two rows of what was read, and a line between the places of each position."""
        ops = []
        for y, name, short in ((TEXT, "text order", "text"), (READ, "read order", "read")):
            row = {"y0": y - 0.5, "y1": y + 0.5, "text": name, "short": short, "rule": False}
            ops.append(scene.Row(f"o{key}-{y}", panel="order", **row))
        for at, event in enumerate(read, 1):
            x, shown = event.position - low + 1, word(self.header, event.token)
            look, says = LOOKS[event.state]
            text = "" if event.state == "mask" else shown
            where = f"position {event.position - self.prompt + 1}, read as number {at} of {len(read)}"
            look = {**look, "text": text, "w": 0.96, "h": 0.8, "hover": [f"{shown}: {says}", where]}
            points = [[x, TEXT + 0.42], [at, READ - 0.42]]
            style = {"role": "link" if x != at else "line", "width": 1.8 if x != at else 1}
            ops += [
                scene.Path(f"l{key}-{at}", panel="order", points=points, **style),
                scene.Cell(f"u{key}-{at}", panel="order", x=x, y=TEXT, **look),
                scene.Cell(f"p{key}-{at}", panel="order", x=at, y=READ, **look),
            ]
        return ops

    def _top(self, masks: list) -> float:
        highest = max(cell.entropy for cell in masks)
        return ceiling(max(highest, min(self.tau, 1.5 * highest)))

    def _bars(self, key: str, masks: list, low: int) -> list[Op]:
        """The entropy of every mask at its position in the text, and the line that it must stay below."""
        ops = []
        for cell in masks:
            ops += bar(self.header, f"{key}-{cell.position}", cell.position - low + 1, cell)
        first, last = (at(cell.position for cell in masks) - low + 1 for at in (min, max))
        points = slanted(self.tau, self.penalty, first, last, self._top(masks))
        if points:
            ops.append(line(f"s{key}", points, "live", dashed=True))
        return ops

    def _heading(self, masks: list) -> list[Op]:
        now = sum(cell.state in FILLED for cell in masks)
        cached = probability(self.cached / self.tokens)
        lead = f"{self.written / self.forwards:.2f} tokens per forward, {cached} cached per token read"
        rest = f"; forward {self.forwards}: {now} of {many(len(masks), 'mask')} filled."
        return [scene.Change("heading", lead=lead, heading=rest, short="."), scene.Say(lead + rest)]


def slanted(tau: float, penalty: float, first: int, last: int, top: float) -> list[list[float]]:
    """The part of `tau - penalty * (x - first)` that lies between 0 and `top`, from half a column before the
    first mask to half a column after the last; empty if there is none.
    """
    low, high = first - 0.5, last + 0.5
    if penalty:
        low, high = max(low, first + (tau - top) / penalty), min(high, first + tau / penalty)
    elif tau > top:
        return []
    if low >= high:
        return []
    return [[round(x, 4), tau - penalty * (x - first)] for x in (low, high)]
