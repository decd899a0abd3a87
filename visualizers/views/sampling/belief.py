"""Belief: how confident a reader becomes, token by token, of a symbol hidden in the text, letter by letter.

A fold over Propose, Measure ("belief": its parts are the belief in each sign, its level the symbol being
sent; on a node of an earlier step a new letter begins with it. "letter": the letter ends here, its level says
what was sent and what is read) and Commit. Bits are entropies of beliefs: a letter adds the entropy of its
first belief, and the entropy of the newest is still unread.
"""

import math

from decoders.trace.number_format import many
from decoders.trace.scores import Measure, ScoreName
from visualizers import scene
from visualizers.scene.layout import Columns, Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

CELL, STEPS = 0.9, 4  # height of a cell in rows; the scale shows at least this many bits


@view("belief", "Belief", reads=has(Measure, name=ScoreName.BELIEF))
class Belief:
    """x: tokens; above the bits, below a row for each sign."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.max_signs = len(header.word("weights", "letter"))  # most signs possible
        self.rows: dict[str, int] = {}  # sign -> its row
        self.column, self.first = 0, 1  # tokens so far; the first of the newest letter's
        self.ended, self.right = 0, 0  # letters read; how many of them correctly
        self.belief: dict[str, float] = {}
        self.meant: str | None = None
        self.budget, self.settled = 0.0, 0.0  # bits of all letters; the same without what was left unread
        self.ceiling = STEPS
        self.before = (0, 0.0, 0.0)  # column, budget and bits read of the token before

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        panels = [
            heading(),
            scene.Panel("bits", y0=self.ceiling, y1=0, share=0.3, from_px=260, ticks=ticks(self.ceiling)),
            scene.Panel("text", y0=-0.1, y1=2.1, px=44),
            scene.Panel("signs", y0=-0.6, y1=self.max_signs - 0.4, share=0.7),
        ]
        rows = [
            scene.Row(f"r{name}", panel="text", y0=y, y1=y + 1, text=name, rule=False)
            for y, name in enumerate(("tokens", "letters"))
        ]
        return Columns(
            question="How confident is the receiver of the hidden letter after each token?",
            ops=[*panels, *rows],
            left=70,
            left_narrow=54,
            legend=[
                ["path:live", "╌", "live", "bits of the letters begun so far"],
                ["path:ink", "━", "ink", "bits of them already read"],
                ["cell:amount", "▪", "soft", "belief in a symbol"],
                ["cell:live", "▣", "live", "the symbol being sent"],
                ["cell:accepted", "■", "accepted", "letter read correctly"],
                ["cell:rejected", "✕", "rejected", "letter read incorrectly"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: a letter that begins, a token with the belief after it, a letter that ends."""
        beliefs = [e for e in step.of(Measure) if e.name == ScoreName.BELIEF]
        _, _, commits = self.nodes.read(step)
        ops: list[Op] = []
        for event in beliefs:
            ops += self._token(event) if event.node in commits else self._begin(event)
        updated = {e.node for e in beliefs}
        for node in commits:
            if node not in updated:
                self.column += 1
                ops.append(self._word(node, []))
        for event in step.events:
            if isinstance(event, Measure) and event.name == ScoreName.LETTER:
                ops += self._end(event)
        if not ops:
            return []
        heading = {
            "lead": f"{self.right} of {many(self.ended, 'letter')} read right",
            "heading": f", {self._bits()}",
        }
        ops.append(scene.Change("heading", **(heading | {"short": f", {self._bits()}"})))
        return [*ops, scene.Front(self.column, 0), scene.Say(self._say(step))]

    def _begin(self, event) -> list[Op]:
        """A new letter: what is unread of the one before stays unread."""
        brought = bits(event.parts.values())
        self.settled, self.first = self.read + brought, self.column + 1
        self.budget += brought
        self.belief, self.meant = dict(event.parts), event.level
        ops: list[Op] = []
        for sign in event.parts:
            if sign not in self.rows:
                row = self.rows[sign] = len(self.rows)
                place = {"panel": "signs", "y0": row - 0.5, "y1": row + 0.5, "rule": False}
                ops.append(scene.Row(f"sign{row}", **place, text=sign))
        return ops

    @property
    def read(self) -> float:
        """Bits read of all letters."""
        return self.settled - bits(self.belief.values())

    def _token(self, event) -> list[Op]:
        """The column of a token."""
        self.column += 1
        x, node = self.column, event.node
        was, self.belief, self.meant = self.belief, dict(event.parts), event.level
        hover = [
            f"{self.nodes.text(node)}: {event.level} is meant, belief {probability(event.total)}",
            f"{self._bits()}",
        ]
        ops = self._line()
        ops.append(self._word(node, hover))
        for sign, belief in event.parts.items():
            ops.append(self._cell(x, sign, belief, was.get(sign, 0.0), node))
        return ops

    def _end(self, event) -> list[Op]:
        """A letter's box under its tokens: what was sent, and what is read."""
        right = event.parts["right"] == 1.0
        self.ended, self.right = self.ended + 1, self.right + right
        place = {"panel": "text", "x": (self.first + self.column) / 2, "y": 1.5, "h": 0.86}
        look = {"state": "accepted" if right else "rejected", "fill": "tint", "text": event.level}
        hover = [f"sent → read: {event.level}, with belief {probability(event.total)}"]
        wide = self.column - self.first + 0.96
        return [scene.Cell(f"l{self.ended}", **place, w=wide, **look, hover=hover)]

    def _line(self) -> list[Op]:
        """The bits after this token, joined to those of the token before."""
        ops: list[Op] = []
        if self.budget > self.ceiling:
            self.ceiling = 2 ** math.ceil(math.log2(self.budget))
            ops.append(scene.Change("bits", y0=self.ceiling, ticks=ticks(self.ceiling)))
        x, now = self.column, (self.column, self.budget, self.read)
        x0, budget, read = self.before
        stair = [[x0 + 0.5, round(budget, 4)], [x0 + 0.5, round(now[1], 4)], [x + 0.5, round(now[1], 4)]]
        look = {"role": "live", "width": 1.4, "dash": "dash"}
        ops.append(scene.Path(f"b{x}", panel="bits", points=stair, **look))
        points = [[x0 + 0.5, round(read, 4)], [x + 0.5, round(now[2], 4)]]
        ops.append(scene.Path(f"i{x}", panel="bits", points=points, role="ink", width=1.8))
        self.before = now
        return ops

    def _word(self, node: int, hover: list[str]) -> Op:
        place = {"panel": "text", "x": self.column, "y": 0.5, "w": 0.96, "h": 0.86}
        look = {"state": "chosen", "fill": "tint", "text": self.nodes.text(node), "node": node}
        return scene.Cell(f"t{self.column}", **place, **look, hover=hover)

    def _cell(self, x: int, sign: str, belief: float, was: float, node: int) -> Op:
        place = {"panel": "signs", "x": x, "y": self.rows[sign], "w": 0.96, "h": CELL}
        meant = sign == self.meant
        look = {"state": "live" if meant else "prompt", "fill": "tint" if meant else "amount"}
        shared = {
            "hover": [f"belief in {sign}: {probability(was)}, then {probability(belief)}"],
            "node": node,
        }
        text = {"text": probability(belief) if belief >= 0.005 else ""}
        return scene.Cell(f"s{x}.{sign}", **place, **look, weight=round(0.5 * belief, 4), **text, **shared)

    def _bits(self) -> str:
        return f"{self.read:.1f} of {self.budget:.1f} bits read after {many(self.column, 'token')}"

    def _say(self, step) -> str:
        likeliest = max(self.belief, key=self.belief.__getitem__, default="?")
        belief = self.belief.get(likeliest, 0.0)
        return f"Step {step.index + 1}: sign {likeliest} has belief {belief:.2f}; {self._bits()}."


def bits(probs) -> float:
    """The entropy of these probabilities, in bits."""
    return -sum(p * math.log2(p) for p in probs if p > 0.0)


def ticks(ceiling: float) -> list[list]:
    """The labels of the scale."""
    return [[0, "0"], [ceiling, f"{ceiling:g} bits"]]
