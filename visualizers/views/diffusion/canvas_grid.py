"""Canvas grid: every position in every iteration, from mask to token, and when each was filled.

A fold over Cell, Depend(kind "causal" or "conflict") and Measure ("joint_cost"): columns are positions, rows
iterations, downwards. Where a lane measured conflicts, column 0 has what each forward lost, and the two
tokens that go together least are joined.
"""

from decoders.trace.events import Cell, Depend
from decoders.trace.number_format import many
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, has, view
from visualizers.views.diffusion.cell_states import FILLED, bits, fields

ASKS = (
    "In which order were the positions filled? How confident was the model of each?",
    "What did each forward fill, and how many bits did filling it together cost (first column)?",
)
CONFLICT_BITS = -1.0  # bits: a pair is joined if one token makes the other at most half as likely
DEAREST = 6.0  # bits at which a forward's cost has the darkest grey


@view("canvas_grid", "Canvas grid", reads=has(Cell, level=None, state="mask"))
class CanvasGrid:
    """Columns count new positions from 1; a row has the cells that its forward looked at."""

    def __init__(self, header: Header):
        self.header, self.prompt = header, len(header.prompt)
        self.filled: dict[int, int] = {}  # column -> iteration in which it was filled
        self.rows: set[int] = set()
        self.first = 0 if header.parameters.get("conflicts") else 1  # column 0 has the costs
        self.total = 0.0  # bits that all forwards lost
        self.chain: dict[int, int] = {}  # column -> forwards of the longest chain of waits that ends there

    def head(self) -> Layout:
        """Title, question and layout."""
        return Rounds(
            question=ASKS[not self.first],
            first=self.first,
            column=sizes.SLOT,
            wide=46,
            tightest=14,
            steady=True,
            tightest_narrow=6,
            left=52,
            left_narrow=30,
            right=104,
            right_narrow=34,
            clip=True,
            overview="rows",
            axis="position",
            legend=[
                ["cell:accepted", "■", "accepted", "filled now"],
                ["cell:bonus", "■", "bonus", "filled by a branch"],
                ["cell:tolerated", "■", "tolerated", "filled near an anchor"],
                ["cell:forced", "⚑", "forced", "filled because some position must be, or by hand"],
                ["cell:live", "■", "live", "changed"],
                ["cell:amount", "▪", "soft", "candidate; the stronger the grey, the more likely"],
                ["cell:pruned", "✕", "pruned", "after the end"],
                ["hook", "└", "link", "waited for"],
                ["path:rejected", "⎵", "rejected", "filled together, but hardly fit together"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: a row for each of its iterations."""
        rows: dict[int, list] = {}
        links, costs, pairs = [], [], []
        for event in step.events:
            match event:
                case Cell() if event.level is None and event.state != "mask":
                    rows.setdefault(event.iteration, []).append(event)
                case Depend() if event.kind == "causal":
                    links.append(event)
                case Depend() if event.kind == "conflict":
                    pairs.append(event)
                case Measure(name=ScoreName.JOINT_COST):
                    costs.append(event)
        ops = [op for iteration in sorted(rows) for op in self._row(iteration, rows[iteration])]
        ops += [op for event in links for op in self._link(event)]
        ops += [op for event in pairs for op in self._conflict(event)]
        ops += [op for event in costs for op in self._cost(event)]
        if self.header.parameters.get("dependencies") and rows:
            self._lengthen(links, max(rows))
            used = many(max(rows), "forward")
            ops.append(
                scene.Say(f"{used}, of which the longest chain of waits needs {max(self.chain.values())}.")
            )
        return ops

    def _lengthen(self, links: list, iteration: int) -> None:
        """The chains of waits that end in the positions filled in this iteration."""
        for column in [x for x, at in self.filled.items() if at == iteration]:
            sources = [e.source - self.prompt + 1 for e in links if e.target - self.prompt + 1 == column]
            self.chain[column] = 1 + max((self.chain.get(source, 0) for source in sources), default=0)

    def _row(self, y: int, cells: list) -> list[Op]:
        ops, now, entropies = [], 0, []
        for event in cells:
            x = event.position - self.prompt + 1
            shown = visible(self.header.vocabulary.get(event.token, b"?"))
            place = {"x": x, "y": y, "w": 1, "h": 1, "cell": [event.position, y]}
            if event.state in FILLED:
                self.filled[x], now = y, now + 1
            elif event.state != "trimmed" and event.entropy is not None:
                entropies.append(event.entropy)
            key = f"g{x}-{y}-{event.state == 'trimmed':d}"
            ops.append(scene.Cell(key, **place, **fields(event, shown)))
        if y not in self.rows:
            self.rows.add(y)
            left = f"H {bits(sum(entropies) / len(entropies)):.2f}" if entropies else "full" if y else "fixed"
            row = {"y0": y - 0.5, "y1": y + 0.5, "text": f"iter {y}", "short": str(y), "rule": False}
            counts = {"right": left, "right_short": "", "right_bold": f"+{now}" if now else ""}
            ops.append(scene.Row(f"r{y}", **row, **counts))
        front = max((x for x, at in self.filled.items() if at == y), default=1)
        ops.append(scene.Front(front, y + 0.6))
        ops.append(scene.Say(f"Iteration {y}: {many(now, 'position')} filled, {len(self.filled)} in all."))
        return ops

    def _link(self, event) -> list[Op]:
        """A hook from a position to a later one that waited for it, both filled."""
        source, target = (p - self.prompt + 1 for p in (event.source, event.target))
        if source not in self.filled or target not in self.filled:
            return []
        ends = {"x0": source, "y0": self.filled[source], "x1": target, "y1": self.filled[target]}
        hover_ = [
            f"position {target} waited for position {source}",
            "masking that one again changes this one",
        ]
        return [scene.Hook(f"h{source}-{target}", **ends, strong=False, hover=hover_)]

    def _conflict(self, event) -> list[Op]:
        """A bracket below two positions that were filled together, with how much less likely one makes the
        other.
        """
        if bits(event.weight) > CONFLICT_BITS:
            return []
        first, second = (p - self.prompt + 1 for p in (event.source, event.target))
        y, low, high = self.filled[first] + 0.42, min(first, second), max(first, second)
        points = [[low, y], [low, y + 0.14], [high, y + 0.14], [high, y]]
        less = 2 ** -bits(event.weight)
        hover_ = [
            f"positions {low} and {high}: filled in one forward",
            f"once position {first} is filled, the other is {less:,.1f} times less likely",
        ]
        name = f"c{low}-{high}"
        return [scene.Path(name, points=points, role="rejected", width=2, hover=hover_)]

    def _cost(self, event) -> list[Op]:
        """What a forward lost: how much more likely its tokens are independently than one after the other."""
        y, cost = int(event.parts["iteration"]), bits(event.total)
        self.total += cost
        size = f"{abs(cost):.1f}".removeprefix("0")  # a narrow column
        shown = ("−" if cost < 0 else "") + size if abs(cost) >= 0.05 else "0"
        place = {"x": 0, "y": y, "w": 0.9, "h": 0.8, "text": shown}
        weight = round(0.75 * min(1.0, max(0.0, cost) / DEAREST), 3)
        hover_ = [
            f"{many(int(event.parts['tokens']), 'token')} filled together cost {cost:.2f} bits",
            f"{self.total:.2f} bits so far: the log of the marginals' product over the chain rule's",
        ]
        look = {"state": "prompt", "fill": "amount", "weight": weight, "hover": hover_}
        return [scene.Cell(f"k{y}", **place, **look)]
