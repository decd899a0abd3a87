"""Contrast: the two distributions at each position, the result of contrasting them, and what each token
gained.

A fold over Distribution (views target, unwanted, combined), Measure, Propose and Commit. One column per
committed token, drawn from what was recorded at the token's parent. It never looks ahead.
"""

import math

from decoders.trace.events import Commit, Distribution, Propose
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout, token_line
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import fit, probability
from visualizers.views.any_lane.entropy import share_height

FLOOR = -3  # bits at the foot of the panel of gains
LOW = 260  # height of a picture in pixels below which the gains are shown in hovers only
TOP = 5  # tokens stacked in each of the panels
VIEWS = {"target": "wanted", "unwanted": "unwanted", "combined": "combined"}  # view of an event -> panel
QUESTION = "What did the second distribution offer? What came of contrasting the two? Which tokens gained?"


@view("contrast", "Contrast", reads=has(Measure, name=ScoreName.CONTRAST))
class Contrast:
    """Columns are committed tokens; above, what the token gained in bits, below it a stack for each view."""

    def __init__(self, header: Header):
        self.header = header
        self.tokens: dict[int, tuple[int, int]] = {}  # node -> (parent, token)
        self.given: set[int] = set()  # nodes that the lane began with
        self.offers: dict[int, dict[str, tuple]] = {}  # node -> view -> (most likely pairs, bits, title)
        self.gains: dict[int, float] = {}  # node -> log2 of the wanted view's probability over the other's
        self.column = 0
        self.ceiling = 4  # of the panel of gains; only ever grows, in steps of 2

    def head(self) -> Layout:
        """Title, question and layout of the view."""
        return Columns(
            question=QUESTION,
            gap=sizes.GAP,
            left=76,
            overview="piled",
            ops=panels(),
            legend=[
                ["bar", "■", "soft", "top 5 of each distribution; above: bits gained"],
                ["symbol:dot", "●", "ink", "chosen = top of this distribution"],
                ["symbol:diamond", "◇", "ink", "chosen, not top of this distribution"],
                ["symbol:triangle", "▼", "live", "the model alone takes another token"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: a column for each token that was committed."""
        ops: list[Op] = []
        committed: list[int] = []
        for event in step.events:
            match event:
                case Propose():
                    self.tokens[event.node] = (event.parent, event.token)
                    if event.given:
                        self.given.add(event.node)
                case Distribution() if event.view == "unwanted" or (
                    event.view in VIEWS and event.level is None
                ):
                    here = self.offers.setdefault(event.node, {})
                    here[event.view] = (event.top[:TOP], event.entropy / math.log(2), event.level)
                case Measure(name=ScoreName.CONTRAST):
                    others = [value for name, value in event.parts.items() if name != "wanted"]
                    self.gains[event.node] = (event.parts["wanted"] - others[0]) / math.log(2)
                case Commit():
                    committed += event.nodes
        for node in committed:
            ops += self._column(node)
        captions = [op.hover[0] for op in ops if isinstance(op, scene.Cell) and op.panel == "tokens"]
        return [*ops, scene.Say(". ".join(captions) + ".")] if captions else ops

    def _column(self, node: int) -> list[Op]:
        """All marks in the column of one committed token."""
        self.column += 1
        parent, token = self.tokens[node]
        offers, x, key = self.offers.get(parent, {}), self.column, f"c{self.column}"
        ops: list[Op] = []
        for name, panel in VIEWS.items():
            if name in offers:
                ops += self._stack(f"{key}-{panel}", x, panel, offers[name], token, node)
        ops += self._gain(key, x, node)
        model = offers["target"][0][0][0] if "target" in offers else token
        if "combined" in offers and model != token:
            ops += self._changed(key, x, model, math.exp(offers["target"][0][0][1]))
        look = {"state": "chosen", "fill": "tint" if model == token else "outline"}
        if node in self.given:
            look = {"state": "prompt", "fill": "tint"}
        hover = self._hover(token, node, offers)
        place = {"panel": "tokens", "x": x, "y": 0, "w": 0.96, "h": 1}
        return [
            *ops,
            scene.Cell(f"{key}-token", **place, **look, text=self._shown(token), hover=hover, node=node),
        ]

    def _stack(self, key: str, x: int, panel: str, offer: tuple, token: int, node: int) -> list[Op]:
        """The most likely tokens of one view, stacked, and where the chosen one stands among them."""
        top, bits, title = offer
        name = title or panel
        ops, low = [], 0.0
        for rank, (candidate, logprob) in enumerate(top):
            high = low + math.exp(logprob)
            place = {"panel": panel, "x": x, "w": 0.84, "y0": round(low, 4), "y1": round(high, 4)}
            lines = f"{self._shown(candidate)}: p {probability(high - low)}, rank {rank + 1} {name}"
            ops.append(scene.Bar(f"{key}-bar{rank}", **place, rank=rank, node=node, hover=[lines]))
            low = high
        glyph = "dot" if top and top[0][0] == token else "diamond"
        y = round(share_height(token, top), 4)
        lines = [f"{name}: entropy {bits:.2f} bits"]
        look = {"glyph": glyph, "role": "ink", "hover": lines, "node": node}
        return [*ops, scene.Symbol(f"{key}-share", panel=panel, x=x, y=y, **look)]

    def _gain(self, key: str, x: int, node: int) -> list[Op]:
        """A bar from 0 to the token's gain: the bits by which the wanted view favours it over the other."""
        gain = self.gains.get(node)
        if gain is None:
            return []
        ops: list[Op] = []
        if gain > self.ceiling:
            self.ceiling = 2 * math.ceil(gain / 2)
            ops.append(scene.Change("gain", y0=self.ceiling, ticks=scale(self.ceiling)))
        low, high = sorted((0.0, round(max(gain, FLOOR), 4)))  # losses beyond the panel are only text
        less = "more" if gain >= 0 else "less"
        lines = [f"the amplified view gives it {abs(gain):.2f} bits {less} than the other"]
        place = {"panel": "gain", "x": x, "w": 0.5, "y0": low, "y1": high}
        return [*ops, scene.Bar(f"{key}-gain", **place, rank=1, node=node, hover=lines)]

    def _changed(self, key: str, x: int, model: int, p: float) -> list[Op]:
        """The amber column with ▼, and above it the token that the model alone finds most likely."""
        ops = [
            scene.Band(f"{key}-band-{panel}", panel=panel, x0=x - 0.47, x1=x + 0.47, role="amber")
            for panel in ("gain", *VIEWS.values(), "tokens")
        ]
        ops.append(scene.Symbol(f"{key}-changed", panel="other", x=x, y=0.3, glyph="triangle", role="amber"))
        look = {"face": "mono", "role": "ink", "size": sizes.SMALL, "align": "center", "priority": 3}
        text = f"{fit(self._shown(model), 60, 11)} {probability(p)}"
        return [*ops, scene.Label(f"{key}-model", panel="other", x=x, y=1.2, text=text, **look)]

    def _hover(self, token: int, node: int, offers: dict) -> list[str]:
        """Two lines: the token with what it gained, and what each view finds most likely."""
        first = self._shown(token)
        if node in self.gains:
            gain = self.gains[node]
            first += f": gained {'+' if gain >= 0 else '−'}{abs(gain):.2f} bits"
        likeliest = [
            f"{offers[name][2] or panel} {self._shown(offers[name][0][0][0])} "
            f"{probability(math.exp(offers[name][0][0][1]))}"
            for name, panel in VIEWS.items()
            if offers.get(name, ([],))[0]
        ]
        return [first, "most likely: " + " · ".join(likeliest)] if likeliest else [first]

    def _shown(self, token: int) -> str:
        return visible(self.header.vocabulary.get(token, b"?"))


def panels() -> list[Op]:
    """From top to bottom: the model's own choice, bits gained, the three views, the tokens."""
    return [
        scene.Panel("other", y0=1.9, y1=0, px=28),
        scene.Panel("gain", y0=4, y1=FLOOR, share=0.28, ticks=scale(4), from_px=LOW),
        *(
            scene.Panel(panel, y0=1.12, y1=-0.06, share=0.24, ticks=[[0.5, panel]])
            for panel in VIEWS.values()
        ),
        token_line(),
    ]


def scale(ceiling: int) -> list:
    """[value, text] pairs of the gains, in bits."""
    return [[0, "0 bits"], [ceiling, f"+{ceiling}"], [FLOOR, f"−{-FLOOR}"]]
