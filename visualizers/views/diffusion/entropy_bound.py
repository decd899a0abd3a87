"""Entropy bound: for the current forward, the entropies of the masks in rising order, their sum without the
largest against gamma, and which tokens are in the cache.

A fold over Cell: those with an entropy, and those of level "input", which say what a forward read. Each step
shows its own forward; below it the rows of its block and the newest blocks. After the EB-Sampler (Ben-Hamu et
al. 2025) and Set Block Decoding (Gat et al. 2025).
"""

from decoders.trace.events import Cell
from decoders.trace.number_format import many
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, has, view
from visualizers.views.diffusion.cell_states import FILLED, hover
from visualizers.views.diffusion.entropy_bars import (
    FILLED_NOW,
    WAITING,
    bar,
    ceiling,
    line,
    panels,
    ticks,
    word,
)

MIN_COLUMNS = 8


@view("entropy_bound", "Entropy bound", reads=has(Cell, level="input", state="filled"))
class EntropyBound:
    """x: masks by rising entropy above, positions of the block in the grid, blocks in the cache strip."""

    def __init__(self, header: Header):
        self.header, self.prompt = header, len(header.prompt)
        self.gamma = header.number("gamma", 0.0)
        self.columns = max(MIN_COLUMNS, int(header.number("block_length", MIN_COLUMNS)))
        self.blocks: list[list[int]] = []  # the positions of each block
        self.tokens: dict[int, int] = {}  # position -> token, of those that are filled
        self.cached: set[int] = set()
        self.shown: list[str] = []  # marks of the forward on show
        self.grid: list[str] = []  # marks of the block on show
        self.row = 0  # next row of the block's grid

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        heading, entropies, tokens = panels()
        return Columns(
            question="How many masks were filled together? What bounds that?",
            ops=[
                heading,
                entropies,
                tokens,
                scene.Panel("grid", y0=-0.5, y1=4.5, share=0.9, grow=True, rule=True),
                scene.Panel("cache", y0=-0.5, y1=0.5, px=26, rule=True),
            ],
            column_narrow=36,
            tight=34,
            columns=self.columns,
            row=sizes.ROW,
            row_tall=30,
            left=64,
            left_narrow=44,
            axis=None,
            legend=[
                ["cell:accepted", "■", "accepted", "filled in this forward"],
                ["cell:chosen", "□", "chosen", "filled before, or in the cache"],
                ["cell:prompt", "▪", "soft", "a mask and its most likely token"],
                ["path:ink", "━", "ink", "sum of the entropies so far, without the largest"],
                ["path:live", "╌", "live", "gamma"],
            ],
            overview=None,
        )

    def feed(self, step) -> list[Op]:
        """Hides the previous forward and draws this one."""
        masks, read, new = [], [], []
        for event in step.events:
            if not isinstance(event, Cell):
                continue
            if event.level == "input":
                read.append(event)
            elif event.level is None and event.state == "mask":
                new.append(event.position)
            elif event.level is None and event.entropy is not None:
                masks.append(event)
        if not masks:
            return []
        ops = [scene.Change(key, gone=True) for key in self.shown]
        if new:
            self.blocks.append(new)
            ops += [scene.Change(key, gone=True) for key in self.grid]
            self.grid, self.row = [], 0
        self.cached |= {event.position for event in read if event.state == "cached"}
        now = [cell for cell in masks if cell.state in FILLED]
        top, marks = self._bound(masks, len(now))
        row = self._row(masks)
        self.tokens |= {cell.position: cell.token for cell in now}
        marks += self._strip(masks[0].iteration)
        self.shown = [m.id for m in marks]
        self.grid += [m.id for m in row]
        self.row += 1
        scale = scene.Change("entropies", y0=top, ticks=ticks(top))
        return [*ops, *marks, *row, scale, *self._heading(masks, now), scene.Front(1, self.row)]

    def _bound(self, masks: list, filled: int) -> tuple[float, list[Op]]:
        """(top of the panel, bars by rising entropy, the curve of their bound, and gamma)."""
        order = sorted(masks, key=lambda cell: (cell.entropy, cell.position))
        bounds, total = [], 0.0
        for cell in order:
            bounds.append(total)  # the sum of all before it, as it is the largest itself
            total += cell.entropy
        drawn = filled + 1  # up to the first that exceeds gamma
        top = ceiling(max([order[-1].entropy, *bounds[:drawn]]))
        key = f"{masks[0].iteration}"
        ends = {"x0": 0.5, "x1": filled + 0.5, "role": "accepted"}
        marks = [scene.Band(f"f{key}", panel="entropies", **ends)]
        for x, cell in enumerate(order, 1):
            marks += bar(self.header, f"{key}-{x}", x, cell)
        points = [[x, bound] for x, bound in enumerate(bounds, 1) if bound <= top]
        if len(points) > 1:
            marks.append(line(f"s{key}", points, "ink"))
        for x, bound in points:
            hover_ = [
                f"{many(x, 'token')}: sum without the largest {bound:.3f} nats",
                f"gamma {self.gamma:g}",
            ]
            dot = {"x": x, "y": round(bound, 4), "glyph": "dot", "role": "ink", "hover": hover_}
            marks.append(scene.Symbol(f"d{key}-{x}", panel="entropies", **dot))
        if self.gamma <= top:
            ends = [[0.5, self.gamma], [len(order) + 0.5, self.gamma]]
            marks.append(line(f"g{key}", ends, "live", dashed=True))
        return top, marks

    def _row(self, masks: list) -> list[Op]:
        """This forward's row of the block's grid."""
        cells = {cell.position: cell for cell in masks}
        key = f"{masks[0].iteration}"
        row = {"y0": self.row - 0.5, "y1": self.row + 0.5, "rule": False}
        name = {"text": f"forward {key}", "short": key}
        ops = [scene.Row(f"r{key}", panel="grid", **row, **name)]
        for x, position in enumerate(self.blocks[-1], 1):
            place = {"panel": "grid", "x": x, "y": self.row, "w": 1, "h": 0.9}
            if position in cells:
                cell = cells[position]
                look, shown = FILLED_NOW if cell.state in FILLED else WAITING, word(self.header, cell.token)
                words = hover(cell, shown)
            else:
                shown = word(self.header, self.tokens[position])
                look, words = {"state": "chosen", "fill": "outline"}, [f"{shown}: filled before"]
            ops.append(scene.Cell(f"c{key}-{x}", **place, **look, text=shown, hover=words))
        return ops

    def _strip(self, iteration: int) -> list[Op]:
        """The newest blocks, and which of them have their keys and values in the cache."""
        first = max(0, len(self.blocks) - self.columns)
        row = {"y0": -0.5, "y1": 0.5, "text": "in cache", "short": "cache", "rule": False}
        ops = [scene.Row(f"k{iteration}", panel="cache", **row)]
        for number, block in enumerate(self.blocks[first:], first + 1):
            kept = all(position in self.cached for position in block)
            look = {"state": "chosen", "fill": "outline"} if kept else {"state": "live", "fill": "dashed"}
            first_word = word(self.header, self.tokens[block[0]]) if block[0] in self.tokens else ""
            says = "read causally, in the cache" if kept else "open: read again in every forward"
            place = {"panel": "cache", "x": number - first, "y": 0, "w": 0.96, "h": 0.86}
            hover_ = [f"block {number}, {many(len(block), 'position')}", says]
            look |= {"text": first_word, "hover": hover_}
            ops.append(scene.Cell(f"k{iteration}-{number}", **place, **look))
        return ops

    def _heading(self, masks: list, now: list) -> list[Op]:
        filled, largest = sum(cell.entropy for cell in now), max(cell.entropy for cell in now)
        lead = (
            f"Block {len(self.blocks)}, forward {self.row}: {len(now)} of {many(len(masks), 'mask')} filled"
        )
        rest = (
            f"; sum of their entropies without the largest {filled - largest:.3f}, gamma {self.gamma:g} nats."
        )
        short = f"; {filled - largest:.3f}, gamma {self.gamma:g} nats."
        return [
            scene.Change("heading", lead=lead, heading=rest, short=short),
            scene.Say(lead + rest),
        ]
