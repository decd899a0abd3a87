"""Parallel grid: what stood at each position after each iteration, and when it became final.

A fold over Cell and Depend(kind="causal"): rows are iterations, columns positions. Never looks ahead: whether
a guess was right is known only when the frontier passes its column, and only then is its cell outlined. After
the dependency grid of Santilli et al. 2023 (Parallel Jacobi decoding, DDGviz).
"""

from decoders.trace.events import Cell, Depend, Propose
from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.graphs.links import Waits
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, has, view
from visualizers.views.any_lane.graph_waits import unavoidable

LINKS = 3  # waited-for links drawn into one position, strongest first
GUESS_TEXT = {
    "guess": "first guess",
    "changed": "a guess, changed in this iteration",
    "kept": "a guess, unchanged",
}


@view("parallel_grid", "Parallel grid", reads=has(Cell, level=None, state={"guess", "settled"}))
class ParallelGrid:
    """Columns count generated tokens from 1, rows are iterations from 0 (the first guess), downwards."""

    def __init__(self, header: Header):
        self.header = header
        self.prompt = len(header.prompt)
        self.frontier = 0  # columns 1..frontier are final
        self.rows: set[int] = set()  # iterations that have been drawn
        # unsettled column -> [(iteration, token)], oldest first
        self.stood: dict[int, list[tuple[int, int]]] = {}
        self.settled: dict[int, int] = {}  # column -> iteration in which it became final
        self.words: dict[int, str] = {}  # settled column -> its token as text
        self.longest: dict[int, int] = {}  # column -> the last column to settle of those it waited for
        self.chain: set[str] = set()  # hooks of the chain that ends in the newest final column
        self.waits = Waits(header) if header.parameters.get("dependencies") else None  # if they are tested
        self.needed, self.used = 0, 0  # iterations that were unavoidable, and those that were run
        self.waited: dict[int, list[tuple[float, int]]] = {}  # column -> [(weight, column it waited for)]

    def head(self) -> Layout:
        """Title, question and layout of the view."""
        return Rounds(
            question="How many positions became final per iteration? Which were right early?",
            column=sizes.SLOT,
            wide=46,
            row=sizes.BOX,
            left=52,
            left_narrow=30,
            right=104,
            right_narrow=34,
            clip=True,
            fold_rows="settled",
            overview="rows",
            legend=[
                ["cell:filled", "■", "accepted", "settled now"],
                ["cell:outline", "□", "accepted", "right early"],
                ["symbol:amber", "•", "live", "changed"],
                ["path", "━", "ink", "frontier"],
                ["hook", "└", "link", "waited for"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: new cells, the next stair, and earlier cells now known to have been right."""
        cells: dict[int, list] = {}
        given: list[Op] = []
        for event in step.events:
            match event:
                case Propose() if event.given:
                    given.append(self._given(event))
                case Cell() if event.level is None:
                    cells.setdefault(event.iteration, []).append(event)
                case Depend() if event.kind == "causal":
                    link = (event.weight, self._column(event.source))
                    self.waited.setdefault(self._column(event.target), []).append(link)
        ops = given + [op for iteration in sorted(cells) for op in self._row(iteration, cells[iteration])]
        if self.waits and ops and isinstance(ops[-1], scene.Say):
            ops[-1].sentence += self._unavoidable(step)
        return ops

    def _unavoidable(self, step) -> str:
        """How many of the iterations so far the longest chain of waits takes by itself."""
        final = [self.waits.graph.nodes[place] for place in self.waits.read(step)]
        self.needed = max([self.needed, *(known["min_iterations"] for known in final)])
        self.used += len({known["iteration"] for known in final})
        return f" {unavoidable(self.needed, self.used)}." if self.used else ""

    def _given(self, event) -> Op:
        """The cell of a token that the lane begins with, above the first guess: final before anything ran."""
        self.frontier += 1
        forced, shown = event.source == "person", visible(self.header.vocabulary.get(event.token, b"?"))
        hover = [f"{shown}: " + ("inserted by hand" if forced else "copied from another lane")]
        look = (
            {"state": "forced", "fill": "outline", "glyph": "⚑"}
            if forced
            else {"state": "prompt", "fill": "tint"}
        )
        place = {"x": self.frontier, "y": 0, "w": 1, "h": 1, "node": event.node}
        return scene.Cell(f"g{self.frontier}", **place, **look, text=shown, hover=hover)

    def _column(self, position: int) -> int:
        return position - self.prompt + 1

    def _row(self, y: int, cells: list) -> list[Op]:
        """One iteration: the strip of what was final before, cells, stair, links, the row's words."""
        before = self.frontier
        now = sorted(self._column(cell.position) for cell in cells if cell.state == "settled")
        self.frontier = max([before, *now])
        ops: list[Op] = []
        if before and y not in self.rows:
            across, down = {"x0": 0.5, "x1": before + 0.5}, {"y0": y - 0.46, "y1": y + 0.46}
            ops.append(scene.Band(f"b{y}", **across, **down, role="accepted", columns=True))
        for cell in cells:
            ops += self._settle(cell) if cell.state == "settled" else self._guess(cell)
        for column in now:
            ops += self._links(column, y)
        if now:
            ops += self._focus(now[-1])
        if y in self.rows:  # a new block's first guesses join the row in which the last block ended
            return ops
        self.rows.add(y)
        ops.append(scene.Path(f"f{y}", points=stair(y, before, self.frontier), role="ink", width=3))
        ops.append(
            scene.Row(
                f"r{y}",
                y0=y - 0.5,
                y1=y + 0.5,
                rule=False,
                first=before + 1,
                text=f"iter {y}" if y else "guess",
                short=str(y),
                right=f"{self.frontier} settled",
                right_short="",
                right_bold=f"+{len(now)}" if now else "",
            )
        )
        ops.append(scene.Front(self.frontier + 1, y + 0.6))
        named = f"Iteration {y}" if y else "First guess"
        ops.append(scene.Say(f"{named}: {len(now)} settled, {self.frontier} in all."))
        return ops

    def _mark(self, cell, state: str, fill: str, hover: list[str]) -> Op:
        x, y = self._column(cell.position), cell.iteration
        place = {"x": x, "y": y, "w": 1, "h": 1}
        look = {"state": state, "fill": fill, "text": self._shown(cell), "hover": hover}
        return scene.Cell(f"g{x}-{y}", **place, **look, cell=[cell.position, y])

    def _guess(self, cell) -> list[Op]:
        """The cell of a position that is not final, with an amber dot if its token changed.

        A new block may put a guess where the last pass of the block before left an output: that cell changes.
        """
        x, y, text = self._column(cell.position), cell.iteration, GUESS_TEXT.get(cell.state, "a guess")
        stood = self.stood.setdefault(x, [])
        hover = [f"{self._shown(cell)}: {text}", "whether it is right is not known yet"]
        changed = cell.state == "changed"
        if stood and stood[-1][0] == y:
            dotted = stood.pop()[2]
            stood.append((y, cell.token, dotted))
            dot = [scene.Change(f"d{x}-{y}", gone=not changed)] if dotted else []
            return [scene.Change(f"g{x}-{y}", text=self._shown(cell), hover=hover), *dot]
        stood.append((y, cell.token, changed))
        ops = [self._mark(cell, "prompt", "tint", hover)]
        if changed:
            place = {"x": x + 0.38, "y": y - 0.33}
            ops.append(scene.Symbol(f"d{x}-{y}", **place, glyph="dot", role="amber", size=4))
        return ops

    def _settle(self, cell) -> list[Op]:
        """The cell of a position that is final now; its earlier cells with the same token change."""
        x, y, shown = self._column(cell.position), cell.iteration, self._shown(cell)
        early = [row for row, token, _ in self.stood.pop(x, []) if token == cell.token]
        sources = len({source for _, source in self.waited.get(x, [])})
        since = f"already guessed in iteration {early[0]}" if early else "it was not guessed earlier"
        waits = f"; waited for {sources} earlier position{'s' if sources > 1 else ''}" if sources else ""
        ops = [self._mark(cell, "accepted", "filled", [f"{shown}: final in iteration {y}", since + waits])]
        hover = [
            f"{shown}: right already, ahead of the frontier",
            f"known only since iteration {y}, when the frontier passed; until then a guess like the others",
        ]
        known = {"state": "accepted", "fill": "outline", "hover": hover}
        self.settled[x], self.words[x] = y, shown
        return ops + [scene.Change(f"g{x}-{row}", **known) for row in early]

    def _links(self, column: int, y: int) -> list[Op]:
        """Hooks to `column`'s cell from the cells it waited for; only links that a test found."""
        weights: dict[int, float] = {}
        for weight, source in self.waited.pop(column, []):
            if source in self.settled and source < column:
                weights[source] = max(weight, weights.get(source, weight))
        nearest = sorted(weights, key=lambda source: (-weights[source], -self.settled[source], -source))[
            :LINKS
        ]
        if nearest:
            self.longest[column] = max(nearest, key=lambda source: (self.settled[source], source))
        ends = {"x1": column, "y1": y, "strong": False, "to": {"cell": [column + self.prompt - 1, y]}}
        how = "found by putting its old token back: then this one fell back too"
        return [
            scene.Hook(
                f"h{source}-{column}",
                x0=source,
                y0=self.settled[source],
                **ends,
                hover=[f"{self._final(source)} → {self._final(column)}: waited for it", how],
            )
            for source in nearest
        ]

    def _final(self, column: int) -> str:
        """`␣dog (token 5, final in iteration 3)`."""
        return f"{self.words[column]} (token {column}, final in iteration {self.settled[column]})"

    def _focus(self, column: int) -> list[Op]:
        """Emphasises the chain of waits that ends in `column`: each link is a forward that cannot be saved.

        Only the difference from the chain before is sent, so a step stays short however long the chain.
        """
        chain: set[str] = set()
        while column in self.longest:
            chain.add(f"h{self.longest[column]}-{column}")
            column = self.longest[column]
        before, self.chain = self.chain, chain
        return [scene.Change(key, strong=key in chain) for key in sorted(before ^ chain)]

    def _shown(self, cell) -> str:
        return visible(self.header.vocabulary.get(cell.token, b"?"))


def stair(y: int, before: int, after: int) -> list[list[float]]:
    """The frontier's piece in row `y`: along the top of what settled, then down at its right end."""
    right = [[after + 0.5, y - 0.5], [after + 0.5, y + 0.5]]
    return [[before + 0.5, y - 0.5], *right] if after > before else right
