"""Experts: where each layer of a mixture of experts sent the tokens of the text, under one routing or two.

A fold over Table ("strong experts" and "weak experts" of a node, one for each layer, which is its number),
Measure ("divergence" of the two views after it), Propose and Commit. A column is a committed token: its
experts are those that read the token before it, and so computed its logits. Never looks ahead.
"""

import math
from collections import Counter

from decoders.trace.scores import Measure, ScoreName, Table
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout, token_line
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view

STRONG, WEAK = ScoreName.STRONG_EXPERTS, ScoreName.WEAK_EXPERTS
WIDE = 0.92  # of a column's width, which a layer's experts share
HIGH = {STRONG: (0.27, 0.42), WEAK: (0.73, 0.32)}  # middle and height of a routing's cells in a layer's row
CEILING = 2  # bits at the top of the upper panel, at first


@view("experts", "Experts", reads=has(Table, name=ScoreName.STRONG_EXPERTS))
class Experts:
    """x: committed tokens from 1, and the share of all so far at 0, in each its experts; y: layers."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.column = 0
        self.seen: dict[int, list] = {}  # node -> scores of experts
        self.apart: dict[int, float] = {}  # node -> bits between the two views after it
        self.used: dict[int, Counter] = {}  # layer -> expert -> tokens that the strong routing sent there
        self.experts = 0  # per layer
        self.ceiling = CEILING

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Columns(
            question="Which experts did each layer send the tokens to? How much did it matter?",
            ops=[
                scene.Panel("apart", y0=CEILING, y1=0, px=44, ticks=ticks(CEILING)),
                token_line(),
                scene.Panel("grid", y0=-0.1, y1=6, share=1, grow=True),
            ],
            first=0,
            row=sizes.LINE,
            row_min=13,
            row_tall=56,
            wide=50,
            left=52,
            overview="piled",
            clip=True,
            legend=[
                ["cell:chosen", "■", "chosen", "processed by this expert"],
                ["cell:live", "▣", "live", "by this one in the weak view"],
                ["cell:amount", "▪", "soft", "share of all tokens so far"],
                ["bar", "▂", "soft", "KL of strong and weak (bits)"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """A column for each token that was committed."""
        for event in step.events:
            if isinstance(event, Table) and event.name in (STRONG, WEAK):
                self.seen.setdefault(event.node, []).append(event)
            elif isinstance(event, Measure) and event.name == ScoreName.DIVERGENCE:
                self.apart[event.node] = event.total / math.log(2)
        _, _, committed = self.nodes.read(step)
        ops: list[Op] = []
        for node in committed:
            ops += self._column(node)
        captions = [op.hover[0] for op in ops if isinstance(op, scene.Cell) and op.panel == "tokens"]
        return [*ops, scene.Front(self.column, 1), scene.Say(". ".join(captions) + ".")] if captions else ops

    def _column(self, node: int) -> list[Op]:
        """All marks of one committed token."""
        self.column += 1
        parent, x = self.nodes.parent[node], self.column
        scores, bits = self.seen.get(parent, []), self.apart.get(parent)
        ops = [] if self.experts or not scores else self._layers(scores)
        hover = [self.nodes.text(node) + ("" if bits is None else f": the views are {bits:.2f} bits apart")]
        if scores:
            hover.append(f"processed by these experts: {self.nodes.text(parent)}")
        if bits is not None:
            ops += self._apart(x, node, bits, hover)
        if scores:
            place = {"panel": "grid", "x": x, "y": len(self.used) / 2, "w": WIDE + 0.04, "h": len(self.used)}
            ops.append(scene.Cell(f"b{x}", **place, state="prompt", fill="tint", node=node, hover=hover))
        for score in scores:
            ops += self._cells(score, x, node)
        if any(score.name == STRONG for score in scores):
            ops += self._shares()
        look = {"state": "chosen", "fill": "tint", "text": self.nodes.text(node), "hover": hover}
        return [*ops, scene.Cell(f"t{x}", panel="tokens", x=x, y=0, w=0.96, h=1, node=node, **look)]

    def _layers(self, scores: list) -> list[Op]:
        """The rows of all layers, and a cell for each expert's share of the tokens."""
        self.experts = round(scores[0].parts["of"])
        ops: list[Op] = []
        for layer in dict.fromkeys(layer_of(score) for score in scores):
            self.used[layer] = Counter()
            place = {"panel": "grid", "y0": layer - 1, "y1": layer, "short": str(layer)}
            ops.append(scene.Row(f"r{layer}", **place, text=f"layer {layer}"))
            for expert in range(1, self.experts + 1):
                look = {"state": "prompt", "fill": "amount", "weight": 0.0, "hover": [f"expert {expert}"]}
                place = self._place(layer, expert, 0) | {"y": layer - 0.5, "h": 0.8}
                ops.append(scene.Cell(f"u{layer}.{expert}", **place, **look))
        return ops

    def _place(self, layer: int, expert: int, x: int, routing: str = STRONG) -> dict:
        """Where an expert stands in a column."""
        (middle, high), wide = HIGH[routing], WIDE / self.experts
        across = round(x - WIDE / 2 + (expert - 0.5) * wide, 4)
        return {"panel": "grid", "x": across, "w": round(0.86 * wide, 4), "y": layer - 1 + middle, "h": high}

    def _apart(self, x: int, node: int, bits: float, hover: list[str]) -> list[Op]:
        ops: list[Op] = []
        if bits > self.ceiling:
            self.ceiling = 2 * math.ceil(bits / 2)
            ops.append(scene.Change("apart", y0=self.ceiling, ticks=ticks(self.ceiling)))
        place = {"panel": "apart", "x": x, "y0": 0, "y1": round(bits, 4), "w": 0.5}
        return [*ops, scene.Bar(f"k{x}", **place, rank=1, node=node, hover=hover)]

    def _cells(self, score, x: int, node: int) -> list[Op]:
        """The experts of one layer in one of the two routings, the weak one's below."""
        layer, strong, ops = layer_of(score), score.name == STRONG, []
        for expert, (weight, *_) in score.by_number.items():
            routing = "strong" if strong else "weak"
            text = f"layer {layer}, expert {expert}: weight {weight:.2f} in the {routing} view"
            look = {"state": "chosen" if strong else "live", "fill": "filled"}
            place = self._place(layer, expert, x, score.name)
            key = f"{'s' if strong else 'w'}{x}.{layer}.{expert}"
            ops.append(scene.Cell(key, **place, **look, node=node, hover=[text]))
            if strong:
                self.used[layer][expert] += 1
        return ops

    def _shares(self) -> list[Op]:
        """How much of the text so far each expert has read, as a grey."""
        ops: list[Op] = []
        for layer, counts in self.used.items():
            for expert in range(1, self.experts + 1):
                share = counts[expert] / self.column
                text = f"layer {layer}, expert {expert}: read {100 * share:.0f} % of the tokens so far"
                ops.append(scene.Change(f"u{layer}.{expert}", weight=round(share, 4), hover=[text]))
        return ops


def layer_of(score) -> int:
    """The layer of a score, from 1."""
    return score.number or 1


def ticks(ceiling: int) -> list:
    """[value, text] pairs of the upper panel."""
    return [[0, "0 bits"], [ceiling, str(ceiling)]]
