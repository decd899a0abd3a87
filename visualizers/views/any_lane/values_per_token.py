"""Values per token: numbers that a method sets for each token, as traces over the text and as bars below the
tokens.

A fold over Measure (with `scale`, where its scale ends), Propose and Commit. Each committed token has a
column, and each of the first two names a trace and a row of bars. All traces share a panel, each relative to
its own scale.
"""

from decoders.trace.scores import Measure
from visualizers import scene
from visualizers.scene.layout import Columns, Layout, heading, token_line
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.text_spans import LEGEND, TextSpans, bands
from visualizers.scene.view import Header, Reads, view
from visualizers.scene.words import score_name

# the looks of as many values as there is room for
LOOKS = ({"role": "ink", "glyph": "dot", "dash": ""}, {"role": "live", "glyph": "diamond", "dash": "dash"})
BAR, WIDE = 0.5, 0.84  # height in rows, width in columns of a full bar
EMPTY, FULL = 0.12, 0.75  # greys of a bar's scale and of the bar
QUESTION = "What value was set for each token? Where did it rise and fall?"


SCALED = Reads((Measure,), lambda event: event.scale is not None and event.scale > 0)


@view("values_per_token", "Values per token", reads=SCALED)
class ValuesPerToken:
    """Above, a trace for each number; below, the tokens, and under each token a bar per number."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.spans = TextSpans(header)
        self.column = 0
        self.columns: dict[int, int] = {}  # node -> column
        self.names: list[str] = []  # of the values, in order of appearance
        self.before: dict[str, list[float]] = {}  # name -> the newest point of its trace
        self.seen: dict[str, list[float]] = {}

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        ticks = [[0, "0"], [0.5, "½"], [1, "full"]]
        return Columns(
            question=QUESTION,
            left=98,
            left_narrow=84,
            ops=[
                heading(),
                scene.Panel("traces", y0=1.08, y1=-0.08, share=1, ticks=ticks),
                token_line(),
                scene.Panel("bars", y0=-0.1, y1=len(LOOKS) + 0.1, px=20 * len(LOOKS)),
            ],
            legend=[
                ["symbol:ink", "●", "ink", "the first number, as a share of its scale"],
                ["symbol:live", "◇", "live", "the second"],
                ["cell:amount", "▬", "soft", "position on its scale"],
                ["cell:dashed", "▭", "soft", "not set for this token"],
                *LEGEND,
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: a column for each token that was committed."""
        scores: dict[int, list] = {}
        for event in step.events:
            if isinstance(event, Measure) and event.scale is not None and event.scale > 0:
                scores.setdefault(event.node, []).append(event)
        _, _, commits = self.nodes.read(step)
        ops, captions = [], []
        for node in commits:
            self.column += 1
            self.columns[node] = self.column
            ops += bands(self.spans.feed(node, self.nodes.token[node]), self.columns, "traces")
            mine = scores.get(node, [])
            words = [self.nodes.text(node) + (": " + ", ".join(map(number, mine)) if mine else "")]
            words += [extra(mine[0])] if mine and extra(mine[0]) else []
            look = {"state": "chosen" if mine else "prompt", "fill": "tint" if mine else "dashed"}
            place = {"panel": "tokens", "x": self.column, "y": 0, "w": 0.96, "h": 1}
            text = {"text": self.nodes.text(node), "hover": words, "node": node}
            ops.append(scene.Cell(f"t{self.column}", **place, **look, **text))
            for event in mine:
                ops += self._value(event, node, words)
            captions.append(words[0])
        if not captions:
            return []
        return [*ops, *self._heading(), scene.Say(". ".join(captions) + ".")]

    def _value(self, score, node: int, words: list[str]) -> list[Op]:
        """One number of one token: a piece of its trace, and its bar. Nothing if all room is taken."""
        ops = []
        if score.name not in self.names:
            if len(self.names) == len(LOOKS):
                return []
            ops.append(self._row(score.name))
        at, x = self.names.index(score.name), self.column
        look, share = LOOKS[at], round(min(1.0, max(0.0, score.total / score.scale)), 4)
        if before := self.before.get(score.name):
            line = {"role": look["role"], "width": 1.8} | ({"dash": look["dash"]} if look["dash"] else {})
            ops.append(scene.Path(f"p{at}-{x}", panel="traces", points=[before, [x, share]], **line))
        self.before[score.name] = [x, share]
        shared = {"hover": words, "node": node}
        look = {"glyph": look["glyph"], "role": look["role"]}
        ops.append(scene.Symbol(f"d{at}-{x}", panel="traces", x=x, y=share, **look, **shared))
        scale = {"panel": "bars", "y": at + 0.5, "h": BAR, "state": "prompt", "fill": "amount", **shared}
        ops.append(scene.Cell(f"f{at}-{x}", x=x, w=WIDE, weight=EMPTY, **scale))
        if share:
            place = {"x": round(x - WIDE / 2 + WIDE * share / 2, 4), "w": round(WIDE * share, 4)}
            ops.append(scene.Cell(f"b{at}-{x}", **place, weight=FULL, **scale))
        self.seen[score.name].append(score.total)
        return ops

    def _row(self, name: str) -> Op:
        """The row of a number that occurs for the first time."""
        at = len(self.names)
        self.names.append(name)
        self.seen[name] = []
        return scene.Row(f"r{at}", panel="bars", y0=at, y1=at + 1, text=score_name(name), rule=False)

    def _heading(self) -> list[Op]:
        """The newest numbers, and the range of each so far."""
        if not self.names:
            return []
        lead = ", ".join(f"{score_name(name)} {self.seen[name][-1]:.2f}" for name in self.names)
        spans = (
            f"{score_name(n)} from {min(self.seen[n]):.2f} to {max(self.seen[n]):.2f}" for n in self.names
        )
        means = ", ".join(f"{sum(self.seen[n]) / len(self.seen[n]):.2f}" for n in self.names)
        rest = {"heading": f"; so far {', '.join(spans)}.", "short": f"; on average {means}."}
        return [scene.Change("heading", lead=lead.replace("-", "−"), **rest)]


def number(score) -> str:
    """`temperature 0.53`."""
    return f"{score_name(score.name)} {score.total:.2f}".replace("-", "−")


def extra(score) -> str:
    """What else was recorded: `entropy 1.20, kept 4`."""
    text = (
        f"{score_name(name)} {int(value) if value == int(value) else round(value, 2)}"
        for name, value in score.parts.items()
    )
    return ", ".join(text)
