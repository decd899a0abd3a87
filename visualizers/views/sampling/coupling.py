"""Coupling: for each token the table from which it was drawn, symbols against likely tokens.

A fold over Propose and Measure ("coupling": how much of a token's mass each sign has; "belief": what the
reader believes, and which sign is meant). Each token of the text is a table with one row per sign: the belief
before, its cells, and the belief after. Knows no strategy.
"""

from dataclasses import replace

from decoders.trace.scores import Measure, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Table, scroll_row
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

HEADER, GAP, CELL = 0.9, 0.4, 0.9  # heights in rows
# Columns of a table: where it begins, how many it takes.
SIGN, BEFORE, TOKENS, WIDE, AFTER = (0.5, 1.4), (1.9, 1.6), 3.6, 1.8, 1.6
MAX_COLUMNS = 7  # columns of tokens
DARKEST = 0.6  # so that numbers on grey stay readable


@view("coupling", "Coupling", reads=has(Measure, name=ScoreName.COUPLING))
class Coupling:
    """x: the columns of the tables; y: tokens of the text, and in each table its signs."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.y, self.tables = 0.0, 0
        self.belief: dict[str, float] = {}

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Table(
            question="How much of each token's probability encodes each symbol?",
            ops=[scene.Panel("tables", y0=-0.1, y1=8, share=1, grow=True)],
            widest=80,
            column=sizes.LETTER,
            column_narrow=18,
            wide=34,
            columns=18,
            legend=[
                ["cell:chosen", "■", "chosen", "the token drawn, and the symbol to be sent"],
                [
                    "cell:prompt",
                    "▪",
                    "soft",
                    "mass of a cell; was, is: belief before, after; q: mass of the token",
                ],
            ],
        )

    def feed(self, step) -> list[Op]:
        """One table: a heading, a row for each sign, and below it the model's own row."""
        columns, after, drawn = {}, None, None
        _, _, commits = self.nodes.read(step)
        for event in step.events:
            if not isinstance(event, Measure):
                continue
            if event.name == ScoreName.COUPLING:
                columns[event.node] = event
            elif event.name == ScoreName.BELIEF and event.node not in commits:
                self.belief = dict(event.parts)
            elif event.name == ScoreName.BELIEF:
                after, drawn = event, event.node
        if after is None or drawn not in columns:
            return []
        self.tables += 1
        shown = list(columns)[:MAX_COLUMNS]
        ops = self._heading(shown, drawn)
        for row, sign in enumerate(after.parts):
            ops += self._row(row, sign, [columns[n] for n in shown], after, drawn)
        ops += self._margin(len(after.parts), [columns[n] for n in shown], drawn)
        self.belief = dict(after.parts)
        self.y += HEADER + len(after.parts) + 1 + GAP
        caption = f"Token {self.tables}: {self.nodes.text(drawn)} is drawn from the row of {after.level}"
        return [*ops, scene.Front(1, self.y), scene.Say(f"{caption}, belief {after.total:.2f}.")]

    def _heading(self, shown: list[int], drawn: int) -> list[Op]:
        """The names of the columns, and where a window that scrolls may begin."""
        ops: list[Op] = [scroll_row(self.tables, "tables", self.y, self.y + HEADER)]
        names = [(f"{self.tables}", SIGN, "soft"), ("was", BEFORE, "soft")]
        for at, node in enumerate(shown):
            names.append((self.nodes.text(node), (TOKENS + at * WIDE, WIDE), role(node == drawn)))
        names.append(("is", (TOKENS + len(shown) * WIDE, AFTER), "soft"))
        for at, (text, (x, w), look) in enumerate(names):
            place = {"panel": "tables", "x": x + w / 2, "y": round(self.y + HEADER / 2, 3), "w": w}
            words = {"text": text, "role": look, "bold": look == "ink", "align": "center", "priority": 0}
            ops.append(scene.Label(f"h{self.tables}.{at}", **place, **words))
        return ops

    def _row(self, row: int, sign: str, columns: list, after, drawn: int) -> list[Op]:
        """A sign: the belief in it, its cells, and the belief after the token."""
        meant, key, y = sign == after.level, f"{self.tables}.{row}", self.y + HEADER + row + 0.5
        before, later = self.belief.get(sign, 0.0), after.parts[sign]
        hover = [f"sign {sign}: belief {probability(before)}, then {probability(later)}"]
        ops = [self._cell(key, SIGN, y, sign, 0.0, meant, hover)]
        ops.append(self._cell(key + "b", BEFORE, y, short(before), before, False, hover))
        for at, column in enumerate(columns):
            mass, here = column.parts.get(sign, 0.0), column.node == drawn
            hover_text = f"{self.nodes.text(column.node)} for {sign}: {probability(mass)}"
            words = [f"{hover_text} of {probability(column.total)}", *hover]
            place = (TOKENS + at * WIDE, WIDE)
            text = short(mass) if mass else ""
            cell = self._cell(f"{key}.{at}", place, y, text, mass, meant and here, words)
            ops.append(replace(cell, node=column.node))
        end = (TOKENS + len(columns) * WIDE, AFTER)
        return [*ops, self._cell(key + "a", end, y, short(later), later, False, hover)]

    def _margin(self, row: int, columns: list, drawn: int) -> list[Op]:
        """The model's own row: what the columns add up to."""
        y, key = self.y + HEADER + row + 0.5, f"{self.tables}.q"
        hover = ["q: the model's own distribution; the cells of a column add up to it"]
        ops = [self._cell(key, SIGN, y, "q", 0.0, False, hover)]
        for at, column in enumerate(columns):
            place = (TOKENS + at * WIDE, WIDE)
            cell = self._cell(f"{key}{at}", place, y, short(column.total), 0.0, False, hover)
            ops.append(replace(cell, fill="outline"))
        return ops

    def _cell(
        self,
        key: str,
        place: tuple[float, float],
        y: float,
        text: str,
        amount: float,
        here: bool,
        hover: list[str],
    ) -> Op:
        x, w = place
        where = {"panel": "tables", "x": round(x + w / 2, 3), "y": round(y, 3), "w": w - 0.08, "h": CELL}
        look = {"state": "chosen", "fill": "filled"} if here else {"state": "prompt", "fill": "amount"}
        weight = {"weight": round(DARKEST * min(1.0, amount), 4)}
        return scene.Cell(f"c{key}", **where, **look, **weight, text=text, hover=hover)


def role(drawn: bool) -> str:
    """The drawn token stands out."""
    return "ink" if drawn else "soft"


def short(p: float) -> str:
    """Two places: `.28`, `.00`, `1.00`."""
    return "1.00" if p > 0.995 else f"{p:.2f}".removeprefix("0")
