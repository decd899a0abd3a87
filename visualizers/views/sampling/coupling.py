"""Coupling: for each token the table from which it was drawn, symbols against likely tokens.

A fold over Propose and Measure ("coupling": how much of a token's mass each sign has; "belief": what the
reader believes, and which sign is meant). Each token of the text is a table with one row per sign: the belief
before, its cells, and the belief after.
"""

from decoders.trace.events import Step
from decoders.trace.scores import Measure, ScoreName
from visualizers.scene import sizes
from visualizers.scene.layout import Table
from visualizers.scene.step_table import Column, Contents, Entry, StepTable
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

SIGN, BEFORE = Column(0.5, 1.4), Column(1.9, 1.6, "was")
FIRST, WIDE, AFTER = 3.6, 1.8, 1.6  # where the columns of tokens begin; widths of one and of the last column
MAX_COLUMNS = 7  # columns of tokens
CHOSEN = {"state": "chosen", "fill": "filled"}


@view("coupling", "Coupling", reads=has(Measure, name=ScoreName.COUPLING))
class Coupling(StepTable):
    """Tables: tokens of the text, and in each a row for each sign, below them the model's own."""

    layout = Table(
        question="How much of each token's probability encodes each symbol?",
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
                "mass of a cell; was, is: belief before and after; q: mass",
            ],
        ],
    )

    def __init__(self, header: Header):
        super().__init__(header)
        self.belief: dict[str, float] = {}

    def table(self, step: Step) -> Contents | None:
        """The table of the token that a step drew."""
        masses, after, drawn = {}, None, None
        _, _, commits = self.nodes.read(step)
        for event in step.of(Measure):
            if event.name == ScoreName.COUPLING:
                masses[event.node] = event
            elif event.name == ScoreName.BELIEF and event.node not in commits:
                self.belief = dict(event.parts)
            elif event.name == ScoreName.BELIEF:
                after, drawn = event, event.node
        if after is None or drawn not in masses:
            return None
        shown = list(masses)[:MAX_COLUMNS]
        tokens = [
            Column(FIRST + at * WIDE, WIDE, self.nodes.text(node), strong=node == drawn)
            for at, node in enumerate(shown)
        ]
        last = Column(FIRST + len(shown) * WIDE, AFTER, "is")
        cells = [(column, masses[node]) for column, node in zip(tokens, shown, strict=True)]
        rows = [self._row(at, sign, cells, last, after, drawn) for at, sign in enumerate(after.parts)]
        rows.append(self._margin(cells))
        self.belief = dict(after.parts)
        number = Column(SIGN.x, SIGN.w, f"{self.tables + 1}")
        says = f"Token {self.tables + 1}: {self.nodes.text(drawn)} is drawn from the row of {after.level}"
        return Contents([number, BEFORE, *tokens, last], rows, f"{says}, belief {after.total:.2f}.")

    def _row(self, at: int, sign: str, cells: list, last: Column, after: Measure, drawn: int) -> list[Entry]:
        """A sign: the belief in it, its share of each token, and the belief after the token."""
        meant, key = sign == after.level, f"c{self.tables + 1}.{at}"
        before, later = self.belief.get(sign, 0.0), after.parts[sign]
        hover = [f"sign {sign}: belief {probability(before)}, then {probability(later)}"]
        row = [
            Entry(key, SIGN, sign, hover, **(CHOSEN if meant else {})),
            Entry(key + "b", BEFORE, short(before), hover, before),
            Entry(key + "a", last, short(later), hover, later),
        ]
        for number, (column, event) in enumerate(cells):
            mass = event.parts.get(sign, 0.0)
            of = (
                f"{self.nodes.text(event.node)} for {sign}: {probability(mass)} of {probability(event.total)}"
            )
            look = CHOSEN if meant and event.node == drawn else {}
            text = short(mass) if mass else ""
            row.append(Entry(f"{key}.{number}", column, text, [of, *hover], mass, **look, node=event.node))
        return row

    def _margin(self, cells: list) -> list[Entry]:
        """The model's own row: what the columns add up to."""
        key = f"c{self.tables + 1}.q"
        hover = ["q: the model's own distribution; the cells of a column add up to it"]
        masses = [
            Entry(f"{key}{at}", column, short(event.total), hover, fill="outline")
            for at, (column, event) in enumerate(cells)
        ]
        return [Entry(key, SIGN, "q", hover), *masses]


def short(p: float) -> str:
    """Two places: `.28`, `.00`, `1.00`."""
    return "1.00" if p > 0.995 else f"{p:.2f}".removeprefix("0")
