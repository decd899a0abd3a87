"""Memory: the state of every slot of the cache, by position and layer; bytes against the full cache; and the
divergence from the model with its full cache, token by token.

A fold over Cell (levels "all layers" and "layer N"), Measure and Commit. One column per position, the
prompt's first; one row for all layers until layers differ, then one per layer.
"""

import math

from decoders.trace.events import Cell
from decoders.trace.scores import Measure, ScoreName
from visualizers import scene
from visualizers.scene.layout import Columns, Layout, heading, token_line
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view

ALL = "all layers"
ROW, MAX_LAYERS = 17, 48  # pixels of a layer's row; most layers for which there is room
FLOOR, DECADES = 1e-4, 5  # where the scale of KL begins, and its powers of ten
LOOKS = {  # state -> how its cell looks
    "full": {"state": "chosen", "fill": "tint"},
    "sink": {"state": "forced", "fill": "tint", "glyph": "⚑"},
    "quantised": {"state": "prompt", "fill": "amount", "weight": 0.5},
    "pruned_channels": {"state": "prompt", "fill": "amount", "weight": 0.3},
    "projected": {"state": "prompt", "fill": "amount", "weight": 0.3},
    "clustered": {"state": "live", "fill": "tint", "glyph": "◆"},
    "evicted": {"state": "unreached", "fill": "dashed", "glyph": "·"},
}
WORDS = {"pruned_channels": "keys without some channels", "quantised": "in few bits", "sink": "kept for all"}
QUESTION = "What is kept of each token in each layer? What does that cost in accuracy?"


@view("memory", "Memory", reads=has(Measure, name=ScoreName.MEMORY_BYTES))
class Memory:
    """x: positions from 1, the prompt's too; above, KL on a scale of powers of ten; below, the map."""

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        self.count = len(header.prompt)  # columns with a token
        self.layers = 0  # rows of single layers; 0: one row for all
        self.state: dict[tuple[int, int], str] = {}  # (layer, position) -> state; layer -1: all
        self.token: dict[int, int] = dict(enumerate(header.prompt))
        self.before: list[float] | None = None  # the newest point of the trace of KL
        self.begun, self.kl = False, []
        self.first: int | None = None  # the first column whose most likely token differs
        self.bytes: tuple[float, float] | None = None

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        ticks = [[0, "≤ 10⁻⁴"], [0.4, "0.01"], [0.8, "1"]]
        return Columns(
            question=QUESTION,
            column=26,
            wide=44,
            left=84,
            left_narrow=64,
            ops=[
                heading(px_narrow=52),
                scene.Panel("kl", y0=1.08, y1=-0.08, px=84, ticks=ticks),
                token_line(),
                scene.Panel("map", y0=-0.6, y1=self._rows() - 0.4, px=max(40, ROW * self._rows())),
            ],
            legend=[
                ["cell:chosen", "▪", "chosen", "full"],
                ["cell:forced", "⚑", "forced", "first token, kept for all"],
                ["cell:amount", "▪", "soft", "quantised, projected, without channels"],
                ["cell:live", "◆", "live", "stands for a cluster"],
                ["cell:unreached", "◌", "unreached", "evicted"],
                ["symbol:ink", "●", "ink", "KL from the full cache, in nats"],
                ["symbol:live", "◇", "live", "its top-1 token differs"],
            ],
        )

    def _rows(self) -> int:
        """The number of rows of the map."""
        name = self.header.parameters.get("memory")
        return 12 if name in ("subgen", "flowcut") else 1

    def feed(self, step) -> list[Op]:
        """The ops of one step: new tokens, changed slots, KL and bytes."""
        _, _, commits = self.nodes.read(step)
        ops = [] if self.begun else [self._token(place, self.token[place]) for place in range(self.count)]
        self.begun = True
        scores = {e.node: e for e in step.of(Measure) if e.name == ScoreName.KL_FROM_FULL_CACHE}
        for node in commits:
            self.token[self.count] = self.nodes.token.get(node, -1)
            ops.append(self._token(self.count, self.token[self.count], node))
            self.count += 1
            if node in scores:
                ops += self._drift(self.count, node, scores[node])
        cells = [e for e in step.of(Cell) if e.level and (e.level == ALL or layer_of(e.level) is not None)]
        ops += self._slots(cells)
        sizes = [e for e in step.of(Measure) if e.name == ScoreName.MEMORY_BYTES]
        if not sizes:
            return ops
        self.bytes = sizes[-1].total, sizes[-1].parts.get("full", 0.0)
        return [*ops, self._heading(), scene.Front(self.count, 0), scene.Say(self._say(len(cells)))]

    def _token(self, place: int, token: int, node: int | None = None) -> Op:
        """The chip of a position."""
        text = self.nodes.word(token)
        shape = {"state": "prompt" if node is None else "chosen", "fill": "tint"}
        where = {"panel": "tokens", "x": place + 1, "y": 0, "w": 0.96, "h": 1}
        own = {} if node is None else {"node": node}
        return scene.Cell(f"t{place}", **where, **shape, **own, text=text, hover=[text])

    def _drift(self, x: int, node: int, score: Measure) -> list[Op]:
        """A dot of the trace of KL, and the line to it."""
        y = min(1.0, max(0.0, math.log10(max(score.total, FLOOR) / FLOOR) / DECADES))
        changed, ops = bool(score.parts.get("changed")), []
        self.kl.append(score.total)
        if changed and self.first is None:
            self.first = x
        here = [x, round(y, 4)]
        if self.before is not None:
            ops.append(scene.Path(f"p{x}", panel="kl", points=[self.before, here], role="soft", width=1.4))
        self.before = here
        words = [f"{self.nodes.text(node)}: KL {score.total:.2g} nats from the full cache"]
        words += ["the full cache's top-1 token differs"] if changed else []
        look = {"glyph": "diamond", "role": "live"} if changed else {"glyph": "dot", "role": "ink"}
        return [*ops, scene.Symbol(f"d{x}", panel="kl", x=x, y=here[1], node=node, hover=words, **look)]

    def _slots(self, cells: list[Cell]) -> list[Op]:
        """The map's cells that changed; all of them where layers differ for the first time."""
        ops: list[Op] = []
        named = [layer_of(cell.level) + 1 for cell in cells if cell.level != ALL]
        if named and not self.layers:
            self.layers = min(MAX_LAYERS, max(named))
            ops = [scene.Change(f"m-1.{place}", gone=True) for _, place in self.state]
            ops += [scene.Change("r-1", gone=True)] if self.state else []
            ops += [self._row(layer, f"layer {layer + 1}") for layer in range(self.layers)]
            known, self.state = self.state, {}
            for (_, place), state in known.items():
                ops += [self._cell(layer, place, state) for layer in range(self.layers)]
        elif not self.state and cells and not self.layers:
            ops = [self._row(-1, ALL)]
        for cell in cells:
            rows = range(self.layers) if self.layers else [-1]
            if cell.level != ALL:
                rows = [row for row in rows if row == layer_of(cell.level)]
            self.token.setdefault(cell.position, cell.token)
            ops += [self._cell(row, cell.position, cell.state) for row in rows]
        return ops

    def _row(self, layer: int, text: str) -> Op:
        y = max(0, layer)
        return scene.Row(f"r{layer}", panel="map", y0=y - 0.5, y1=y + 0.5, text=text, rule=False)

    def _cell(self, layer: int, place: int, state: str) -> Op:
        """A slot, drawn or drawn again."""
        known, shape = (
            (layer, place) in self.state,
            {"glyph": "", "weight": 0} | LOOKS.get(state, LOOKS["full"]),
        )
        self.state[layer, place] = state
        name = ALL if layer < 0 else f"layer {layer + 1}"
        hover = [f"{self.nodes.word(self.token[place])} in {name}: {WORDS.get(state, state)}"]
        if known:
            return scene.Change(f"m{layer}.{place}", **shape, hover=hover)
        where = {"panel": "map", "x": place + 1, "y": max(0, layer), "w": 0.92, "h": 0.86}
        return scene.Cell(f"m{layer}.{place}", **where, **shape, hover=hover)

    def _heading(self) -> Op:
        """`61% of the full cache`, and the mean KL."""
        kept, full = self.bytes
        lead = f"{kept / full:.0%} of the full cache" if full else "nothing kept yet"
        rest = f" ({kept / 1024:,.0f} of {full / 1024:,.0f} KB)"
        if self.kl:
            rest += f"; KL {sum(self.kl) / len(self.kl):.2g} nats on average"
            rest += (
                f", the top-1 token first differs at position {self.first}."
                if self.first
                else ", no token changed."
            )
        return scene.Change("heading", lead=lead, heading=rest)

    def _say(self, changed: int) -> str:
        kept, full = self.bytes
        last = f" KL {self.kl[-1]:.2g} at the newest token." if self.kl else ""
        return (
            f"{kept / full:.0%} of the full cache's bytes.{last}"
            if full
            else f"{changed} slots changed.{last}"
        )


def layer_of(level: str) -> int | None:
    """3 of `layer 3`; None for a level of another kind."""
    first, _, number = level.partition(" ")
    return int(number) if first == "layer" and number.isdecimal() else None
