"""Entropy trace: how uncertain the model was at each token, what it chose, and where the text could have
forked.

A fold over Distribution, Propose and Commit. One column per committed token, drawn from the target's raw
distribution at the token's parent, however many steps earlier that was recorded. It never looks ahead.
"""

import math

from decoders.trace.events import Commit, Distribution, Propose
from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout, token_line
from visualizers.scene.marks import Op
from visualizers.scene.text_spans import LEGEND, TextSpans, bands
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import cells, fit, probability

FORK_BITS = 2.2  # a column is a fork when its entropy is above this many bits ...
FORK_SECOND = 0.15  # ... and its second token has more than this probability
# least heights of the picture in pixels at which the most likely tokens, and alternatives, are named in it,
# not only in hovers: at least 60 % of its height belongs to the curve
ROOMY, ROOMIEST = 320, 520
TOP = 5  # tokens stacked in the lower panel
FORCED = {"state": "forced", "fill": "outline", "glyph": "⚑"}
NO_BREAK = "\u00a0"
QUESTION = (
    "Where was the model uncertain? Where did it choose an unlikely token? Where could the text have forked?"
)


@view("entropy", "Entropy", reads=has(Distribution, view="target", level=None))
class Entropy:
    """Columns are committed tokens; the upper panel is in bits, the lower one has the five most likely
    tokens, the rest is white.
    """

    def __init__(self, header: Header):
        self.header = header
        self.tokens: dict[int, tuple[int, int]] = {}  # node -> (parent, token)
        self.given: dict[int, str] = {}  # node that the lane began with -> "copied" or "person"
        # node -> (its most likely [token, logprob] pairs, bits)
        self.offers: dict[int, tuple[list, float]] = {}
        self.spans = TextSpans(header)
        self.columns: dict[int, int] = {}  # node -> its column
        self.column = 0  # committed tokens so far; the next one stands in column + 1
        self.ceiling = 6  # top of the bits panel; only ever grows, in steps of 2
        self.fork_bits = header.number("fork_entropy", FORK_BITS)
        self.fork_second = header.number("fork_second", FORK_SECOND)

    def head(self) -> Layout:
        """Title, question and layout of the view."""
        fork = f"fork: > {self.fork_bits:g} bits, second > {probability(self.fork_second)}"
        return Columns(
            question=QUESTION,
            left=34,
            ops=panels(),
            legend=[
                ["step", "▂▃", "soft", "entropy (bits)"],
                ["symbol:dot", "●", "ink", "chosen = top, at −log₂ p"],
                ["symbol:diamond", "◇", "ink", "chosen, not top"],
                ["band:amber", "▮", "live", fork],
                *LEGEND,
                ["bar", "■", "soft", "top 5"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: a column for each token that was committed."""
        ops: list[Op] = []
        for event in step.events:
            match event:
                case Propose():
                    self.tokens[event.node] = (event.parent, event.token)
                    if event.given:
                        self.given[event.node] = event.source
                case Distribution() if event.view == "target" and event.level is None:
                    self.offers[event.node] = (event.top[:TOP], event.entropy / math.log(2))
                case Commit():
                    for node, logprob in zip(event.nodes, event.logprobs, strict=True):
                        ops += self._column(node, logprob)
        captions = [op.hover[0] for op in ops if isinstance(op, scene.Cell)]
        return [*ops, scene.Say(". ".join(captions) + ".")] if captions else ops

    def _column(self, node: int, logprob: float | None) -> list[Op]:
        """All marks in the column of one committed token."""
        self.column += 1
        self.columns[node] = self.column
        parent, token = self.tokens[node]
        top, bits = self.offers.get(parent, ([], None))
        x, key, likeliest = self.column, f"c{self.column}", not top or top[0][0] == token
        surprisal = None if logprob is None else max(0.0, -logprob / math.log(2))
        shared = {"hover": self._hover(token, surprisal, top, bits), "node": node}
        ops = self._grow(max(bits or 0.0, surprisal or 0.0))
        ops += bands(self.spans.feed(node, token), self.columns, "bits")
        if bits is not None:
            ops.append(scene.Step(f"{key}-step", panel="bits", x=x, y=round(bits, 4), node=node))
            ops += self._bars(key, x, top, node)
            if bits > self.fork_bits and len(top) > 1 and math.exp(top[1][1]) > self.fork_second:
                ops += self._fork(key, x, top, bits, token)
        look = {"glyph": "dot" if likeliest else "diamond", "role": "ink", **shared}
        if surprisal is not None:
            y, end = round(surprisal, 4), round(bits or 0.0, 4)
            ops.append(scene.Stem(f"{key}-stem", panel="bits", x=x, y0=y, y1=end))
            ops.append(scene.Symbol(f"{key}-chosen", panel="bits", x=x, y=y, **look))
        if top:
            y = round(share_height(token, top), 4)
            ops.append(scene.Symbol(f"{key}-share", panel="mass", x=x, y=y, **look))
        look = {"state": "chosen", "fill": "tint" if likeliest else "outline"}
        if node in self.given:
            copied = self.given[node] == "copied"
            look = {"state": "prompt", "fill": "tint"} if copied else FORCED
            shared["hover"] = [
                shared["hover"][0] + (": copied from another lane" if copied else ": inserted by hand")
            ]
        look |= {"text": self._shown(token), **shared}
        return [*ops, scene.Cell(f"{key}-token", panel="tokens", x=x, y=0, w=0.96, h=1, **look)]

    def _bars(self, key: str, x: int, top: list, node: int) -> list[Op]:
        """The stacked top tokens of one column; `top`: [token, log-probability], most likely first."""
        ops, low = [], 0.0
        for rank, (token, logprob) in enumerate(top):
            high = low + math.exp(logprob)
            place = {"panel": "mass", "x": x, "w": 0.84, "y0": round(low, 4), "y1": round(high, 4)}
            line = f"{self._shown(token)}: p {probability(high - low)}, rank {rank + 1}"
            ops.append(scene.Bar(f"{key}-bar{rank}", **place, rank=rank, node=node, hover=[line]))
            low = high
        return ops

    def _grow(self, bits: float) -> list[Op]:
        """A change of the bits panel when `bits` no longer fits under its ceiling."""
        if bits <= self.ceiling:
            return []
        self.ceiling = 2 * math.ceil(bits / 2)
        return [scene.Change("bits", y0=self.ceiling, ticks=ticks(self.ceiling))]

    def _fork(self, key: str, x: int, top: list, bits: float, token: int) -> list[Op]:
        """The amber column with ▼, and above it the two most likely tokens that were not taken."""
        others = [(fit(self._shown(t), 60, 11), probability(math.exp(lp))) for t, lp in top if t != token][:2]
        widest = max(cells(shown) for shown, _ in others)
        ops = [
            scene.Band(f"{key}-band-{panel}", panel=panel, x0=x - 0.47, x1=x + 0.47, role="amber")
            for panel in ("bits", "mass", "tokens")
        ]
        ops.append(scene.Symbol(f"{key}-fork", panel="forks", x=x, y=0.3, glyph="triangle", role="amber"))
        look = {
            "face": "mono",
            "role": "ink",
            "size": sizes.SMALL,
            "align": "center",
            "priority": 3,
            "weight": round(bits, 3),
        }
        for line, (shown, p) in enumerate(others):
            # Both lines have the same width: a collision drops both or neither; the higher entropy stays.
            text = NO_BREAK + shown + NO_BREAK * (widest - cells(shown) + 1) + p + NO_BREAK
            ops.append(
                scene.Label(f"{key}-other{line}", panel="forks", x=x, y=2.1 - 0.95 * line, text=text, **look)
            )
        return ops

    def _hover(self, token: int, surprisal: float | None, top: list, bits: float | None) -> list[str]:
        """Two lines: the chosen token with its numbers, and what else was on offer."""
        first = self._shown(token)
        if surprisal is not None:
            first += f": p {probability(2**-surprisal)}, {surprisal:.2f} bits"
        if bits is not None:
            first += f"; entropy {bits:.2f} bits" + (", a surprise" if (surprisal or 0) > bits else "")
        rank = next((i for i, (t, _) in enumerate(top, 1) if t == token), None)
        if top and rank is None:
            first += f"; not among the {len(top)} most likely"
        elif rank is not None and rank > 1:
            first += f"; rank {rank}"
        others = " · ".join(f"{self._shown(t)} {probability(math.exp(lp))}" for t, lp in top if t != token)
        return [first, f"instead of {others}"] if others else [first]

    def _shown(self, token: int) -> str:
        return visible(self.header.vocabulary.get(token, b"?"))


def panels() -> list[Op]:
    """From top to bottom: what could have come, bits, probability mass, the tokens. y0 is a panel's top."""
    shares = [[0, "0"], [0.5, ".5"], [1, "1"]]
    return [
        scene.Panel("forks", y0=2.8, y1=0, px=42, from_px=ROOMIEST),
        scene.Panel("bits", y0=6, y1=0, share=0.82, ticks=ticks(6)),
        scene.Panel("mass", y0=1.1, y1=0, share=0.18, ticks=shares, from_px=ROOMY),
        token_line(),
    ]


def ticks(ceiling: int) -> list:
    """[value, text] pairs at even bits, at most five of them."""
    every = 2 * math.ceil(ceiling / 8)
    return [[value, str(value)] for value in range(0, ceiling + 1, every)]


def share_height(token: int, top: list) -> float:
    """Where the chosen token's mark stands in the stack: the middle of its piece, or of the white rest."""
    low = 0.0
    for candidate, logprob in top:
        high = low + math.exp(logprob)
        if candidate == token:
            return (low + high) / 2
        low = high
    return (low + 1) / 2
