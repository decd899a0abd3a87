"""Canvas: the text as it fills, out of order. It shows masks, what the model would put there now, and what is
final.

A fold over Cell: one mark per position, in the order of the text.
"""

from decoders.trace.events import Cell
from decoders.trace.number_format import many
from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, has, view
from visualizers.views.diffusion.cell_states import FILLED, fields

COLUMNS = 8  # positions per line


@view("canvas", "Canvas", reads=has(Cell, level=None, state="mask"))
class Canvas:
    """x is the place in a line, y the line; what was filled in this step is green, what was filled before
    dark, and a candidate the greyer the more likely.
    """

    def __init__(self, header: Header):
        self.header, self.prompt = header, len(header.prompt)
        self.seen: set[int] = set()  # positions with a mark
        self.filled: set[int] = set()
        self.newest: list[int] = []

    def head(self) -> Layout:
        """Title, question and layout; positions come with the first step."""
        return Rounds(
            question="Where does the text appear first? What would the model put at the masks?",
            column=sizes.MARKED,
            column_narrow=38,
            wide=72,
            widest=220,
            axis=None,
            columns=COLUMNS,
            row_tall=72,
            left=40,
            left_narrow=30,
            legend=[
                ["cell:accepted", "■", "accepted", "filled now"],
                ["cell:bonus", "■", "bonus", "filled by a branch"],
                ["cell:chosen", "□", "chosen", "filled before"],
                [
                    "cell:amount",
                    "▪",
                    "soft",
                    "most likely token of a mask; the stronger the grey, the more likely",
                ],
                ["cell:dotted", "┄", "soft", "mask"],
                ["cell:pruned", "✕", "pruned", "after the end"],
            ],
            overview=None,
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step."""
        cells: dict[int, object] = {}
        for event in step.events:
            if isinstance(event, Cell) and event.level is None:
                cells[event.position] = event
        if not cells:
            return []
        ops: list[Op] = []
        for position in self.newest:
            if position not in cells:
                ops.append(scene.Change(f"c{position}", state="chosen", fill="outline", glyph=""))
        self.newest = []
        for position, event in sorted(cells.items()):
            ops += self._cell(position, event)
        now = len(self.newest)
        ops.append(scene.Say(f"{many(now, 'position')} filled, {len(self.filled)} in all."))
        return ops

    def _cell(self, position: int, event) -> list[Op]:
        shown = visible(self.header.vocabulary.get(event.token, b"?"))
        if event.state == "mask":
            look = {"text": "", "state": "prompt", "fill": "dotted", "hover": ["mask", "not looked at yet"]}
        else:
            look = {"glyph": "", **fields(event, shown)}  # of a mark that had another state before
        look["cell"] = [position, event.iteration]
        if event.state in FILLED:
            self.newest.append(position)
            self.filled.add(position)
        if position in self.seen:
            return [scene.Change(f"c{position}", **look)]
        self.seen.add(position)
        at = position - self.prompt
        place = {"x": at % COLUMNS + 1, "y": at // COLUMNS, "w": 1, "h": 0.86}
        ops: list[Op] = []
        if at % COLUMNS == 0:
            row = {"y0": place["y"] - 0.5, "y1": place["y"] + 0.5, "text": str(at + 1), "rule": False}
            ops.append(scene.Row(f"r{at}", **row))
        return [*ops, scene.Cell(f"c{position}", **place, **look)]
