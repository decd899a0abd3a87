"""Banks: the beam tree of a search that divides its beam by how much of a constraint each text has met.

A fold over what the beam tree reads, and Measure: "bank_slots" (what a bank got in a step; its number is the
bank's) and "met" (how much a text has met). Each bank is a band of rows: its slots on top, its texts below.
"""

from dataclasses import replace

from decoders.trace.number_format import many
from decoders.trace.scores import Measure, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout
from visualizers.scene.marks import Op
from visualizers.scene.tree_rows import Slots
from visualizers.scene.view import Header, has, view
from visualizers.views.search.beam_tree import BeamTree

ABOVE, BETWEEN = 1.6, 0.5  # rows for the slots of a band, and between two bands
SHARES, OTHERS = 16.0, 8.0  # most rows of all bands together: those with room for words, and closer ones
TIGHT = 0.3  # rows between two texts beyond an equal share


class BankRows(Slots):
    """A band for each bank: its slots, rows for an equal share of `width` texts and one more, closer ones
    for others.
    """

    def __init__(self, banks: int, width: int, root: int):
        share = min(width, width // banks + 1)
        self.apart = min(1.0, SHARES / (banks * share))
        tight = min(TIGHT, self.apart, OTHERS / (banks * max(1, width - share)))
        below = [min(i, share - 1) * self.apart + max(0, i - share + 1) * tight for i in range(width)]
        band = ABOVE + below[-1] + 1 + BETWEEN
        self.tops = [round(b * band, 4) for b in range(banks)]
        self.groups = [[round(top + ABOVE + down, 4) for down in below] for top in self.tops]
        self.close = {y for group in self.groups for y in group[share:]}  # rows without room for words
        self.own = {y for group in self.groups for y in group}
        self.height = max(self.own) + 1
        self.row: dict[int, float] = {root: ABOVE}  # the first of bank 0, however many there are


@view("banks", "Banks", reads=has(Measure, name=ScoreName.BANK_SLOTS))
class Banks(BeamTree):
    """x counts generated tokens from 1, y is a bank, and in it one of `num_beams` rows."""

    def __init__(self, header: Header):
        super().__init__(header)
        self.slots = BankRows(1, self.rows, self.nodes.root)
        self.banks = 0
        self.lit: set[int] = set()  # nodes that met a token
        self.met: dict[int, str] = {}  # what a hover says of it
        self.bank: dict[int, int] = {}  # node -> its bank

    def head(self) -> Layout:
        """As the beam tree, but how many rows there will be is not known yet."""
        head = super().head()
        legend = [entry for entry in head.legend if entry[0] not in ("band:panel", "tick:rejected")]
        return replace(
            head,
            rows=None,
            row=sizes.ROW,
            left=76,
            left_narrow=52,
            question="How much of the phrases does each text contain? How many slots does each bank have?",
            legend=[
                *legend,
                ["cell", "▪", "soft", "slots of a bank"],
                ["symbol:rejected", "▲", "rejected", "a phrase is broken: its tokens are unmet again"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of the beam tree, and the slots of each bank, what lights up, and what broke."""
        shares = [e for e in step.of(Measure) if e.name == ScoreName.BANK_SLOTS]
        ops = self._open(len(shares)) if shares and not self.banks else []
        met = [e for e in step.of(Measure) if e.name == ScoreName.MET]
        self.lit |= {e.node for e in met if e.parts.get("newly met")}
        for event in met:
            self.bank[event.node] = event.number or 0
            self.met[event.node] = f"{many(int(event.total), 'token')} of the phrases met"
        ops += super().feed(step)
        column = self.farthest
        ops += [op for event in shares for op in self._slots(event, column)]
        ops += [op for event in met if event.parts.get("no longer met") for op in self._broken(event)]
        return ops

    def _open(self, banks: int) -> list[Op]:
        """The bands, once it is known how many there are."""
        self.banks, root = banks, self.nodes.root
        self.slots = BankRows(banks, self.rows, root)
        ops: list[Op] = []
        for bank, top in enumerate(self.slots.tops):
            bottom = self.slots.groups[bank][-1] + 0.5
            text = f"{bank} of {banks - 1} met"
            rows = {"y0": round(top - 0.5, 4), "y1": round(bottom, 4)}
            ops.append(scene.Row(f"r{bank}", text=text, short=f"{bank} met", **rows))
        return ops

    def _slots(self, event, column: int) -> list[Op]:
        """One cell: the slots that a bank got in a step."""
        bank = min(event.number or 0, len(self.slots.tops) - 1)
        count, competing = int(event.total), int(event.parts.get("candidates", 0))
        hover = f"bank {bank}: {many(competing, 'candidate')} for {many(count, 'slot')}"
        place = {"x": column, "y": self.slots.tops[bank], "w": 0.8, "h": 0.7}
        look = {"state": "live", "fill": "amount", "weight": round(count / self.rows, 4)}
        return [scene.Cell(f"b{bank}.{column}", text=str(count), hover=[hover], **place, **look)]

    def _broken(self, event) -> list[Op]:
        """A sign below the token that left a phrase before its end."""
        node, lost = event.node, int(event.parts["no longer met"])
        if node not in self.looks:
            return []
        place = {"x": self.nodes.position[node], "y": round(self.slots.row[node] + 0.4 * self.slots.apart, 4)}
        hover = [f"{self.nodes.text(node)} breaks a phrase: {many(lost, 'token')} unmet again"]
        return [scene.Symbol(f"x{node}", glyph="triangle", role="rejected", hover=hover, **place)]

    def _group(self, event) -> int:
        """The bank of a node, else its parent's."""
        return self.bank.get(event.node, self.group.get(event.parent, 0))

    def _quiet(self, node: int, look: tuple) -> bool:
        """Only what met a token is labelled, and the spine, where there is room."""
        wanted = node in self.lit or look[3]
        return not wanted or self.slots.row[node] in self.slots.close

    def _hover(self, event, born, scores, verdicts) -> list[str]:
        lines = super()._hover(event, born, scores, verdicts)
        return [", ".join(filter(None, (lines[0], self.met.get(event.node)))), *lines[1:]]
