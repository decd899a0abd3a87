"""Value against entropy: what a method set for each token, against how uncertain the model was there.

A fold over Distribution (of the target, before processors), Measure (with `scale`, where its scale ends),
Propose and Commit. A point is a committed token: x is the entropy in bits, y the number; a panel for each of
the first two names.
"""

import math
from dataclasses import dataclass, field
from statistics import StatisticsError, correlation

from decoders.trace.events import Distribution
from decoders.trace.number_format import many
from decoders.trace.scores import Measure
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.axis_scale import Scale
from visualizers.scene.layout import Columns, Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import score_name
from visualizers.views.any_lane.values_per_token import SCALED, number

PANELS = 2
BITS = 8  # columns of one bit each: the window moves where entropies exceed 7.5
MIN_SPAN = 0.2  # least share of the whole scale that a panel shows
FEW = 8  # least number of points at which a correlation is shown
QUESTION = "Does the method sample more freely where the model is uncertain?"


@dataclass
class Cloud:
    """The points of one name: bits, numbers, and the mark of the newest."""

    bits: list[float] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    newest: str | None = None
    scale: Scale = field(default_factory=lambda: Scale(1.0))

    def together(self) -> str:
        """Pearson's correlation of both; a dash where it is undefined or there are too few points."""
        try:
            r = correlation(self.bits, self.numbers) if len(self.bits) >= FEW else None
        except StatisticsError:  # one of them never changes
            r = None
        return "—" if r is None else f"{r:+.2f}".replace("-", "−")


@view(
    "value_against_entropy",
    "Value against entropy",
    reads=(SCALED, has(Distribution, view="target", level=None)),
)
class ValueAgainstEntropy:
    """A panel for each number; the newest point is marked and named."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.bits: dict[int, float] = {}  # node -> entropy of what the target offered after it
        self.clouds: dict[str, Cloud] = {}
        self.widest = float(BITS - 1)

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        panels = [
            panel
            for at in range(PANELS)
            for panel in (
                scene.Panel(f"h{at}", panel=f"h{at}", y0=0, y1=1, px=17),
                scene.Panel(f"n{at}", y0=1, y1=0, share=1, ticks=[]),
            )
        ]
        return Columns(
            question=QUESTION,
            ops=[
                heading(),
                *panels,
            ],
            first=0,
            columns=BITS,
            column=24,
            widest=400,
            gap=sizes.GAP,
            left=44,
            axis="entropy, bits",
            legend=[
                ["symbol:live", "★", "live", "the newest token"],
                ["symbol:ink", "●", "ink", "a token before it"],
            ],
            overview=None,
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: a point in each panel for each token that was committed."""
        scores: dict[int, list] = {}
        for event in step.events:
            match event:
                case Distribution() if event.view == "target" and event.level is None:
                    self.bits[event.node] = event.entropy / math.log(2)
                case Measure() if event.scale is not None and event.scale > 0:
                    scores.setdefault(event.node, []).append(event)
        _, _, commits = self.nodes.read(step)
        ops: list[Op] = []
        captions = []
        for node in commits:
            bits = self.bits.get(self.nodes.parent[node])
            mine = [score for score in scores.get(node, []) if self._has_room(score.name)]
            if bits is None or not mine:
                continue
            words = f"{self.nodes.text(node)}: {', '.join(map(number, mine))}"
            captions.append(f"{words} at {bits:.2f} bits")
            self.widest = max(self.widest, math.floor(bits + 0.5))
            for score in mine:
                ops += self._point(score, node, bits, words)
        if not ops:
            return []
        lead = "; ".join(f"{score_name(name)} {cloud.together()}" for name, cloud in self.clouds.items())
        count = max(len(cloud.bits) for cloud in self.clouds.values())
        rest, short = (
            f": correlation with the entropy, over {many(count, 'token')}.",
            f": correlation, {many(count, 'token')}.",
        )
        heading = scene.Change("heading", lead=lead, heading=rest, short=short)
        return [*ops, heading, scene.Front(self.widest, 0), scene.Say(". ".join(captions) + ".")]

    def _has_room(self, name: str) -> bool:
        return name in self.clouds or len(self.clouds) < PANELS

    def _point(self, score, node: int, bits: float, words: str) -> list[Op]:
        """A number of one token; the point before it is no longer the newest."""
        ops: list[Op] = []
        if score.name not in self.clouds:
            ops.append(self._named(score))
        cloud, at = self.clouds[score.name], list(self.clouds).index(score.name)
        cloud.bits.append(bits)
        cloud.numbers.append(score.total)
        if cloud.scale.grow([score.total]):
            ops.append(scene.Change(f"n{at}", **cloud.scale.panel()))
        if cloud.newest:
            ops.append(scene.Change(f"d{cloud.newest}", role="ink", glyph="dot"))
            ops.append(scene.Change(f"l{cloud.newest}", gone=True))
        cloud.newest = f"{at}-{node}"
        place = {"panel": f"n{at}", "x": round(bits, 4), "y": round(score.total, 4)}
        shared = {"hover": [words, f"the target's entropy there: {bits:.2f} bits"], "node": node}
        dy = 13 if 2 * score.total > cloud.scale.low + cloud.scale.high else -13
        text = {"text": self.nodes.text(node), "face": "mono", "role": "ink", "dy": dy}
        return [
            *ops,
            scene.Symbol(f"d{cloud.newest}", **place, glyph="star", role="live", **shared),
            scene.Label(f"l{cloud.newest}", **place, **text, priority=1),
        ]

    def _named(self, score) -> Op:
        """The name of a number that occurs for the first time, above its panel."""
        high, panel = score.scale, f"h{len(self.clouds)}"
        self.clouds[score.name] = Cloud(scale=Scale(MIN_SPAN * high, 0.0, high))
        return scene.Change(panel, lead=score_name(score.name), heading=f", between 0 and {high:g}")
