"""Fragments: rounds of a speculation that ends where a fragment of syntax ends, and what each round cut off.

A fold over Propose, Verdict and Commit. A cell is a token, a diamond the mark that ends a fragment, which has
no column of its own.
"""

from decoders.trace.number_format import many
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import GLYPHS, folds_to, look
from visualizers.scene.view import Header, view

CELL = 0.78  # height of a cell in rows
# of several in a column, the first is shown
STATUS = {"accepted": 0, "pruned": 1, "rejected": 2, "never reached": 3}
STATE = {"accepted": "accepted", "pruned": "tolerated", "rejected": "rejected", "never reached": "unreached"}
WORDS = {
    "accepted": "passed",
    "pruned": "passed, and was cut",
    "rejected": "rejected",
    "never reached": "never reached",
}


@view("fragments", "Fragments")
class Fragments:
    """Columns are tokens other than marks, rows are rounds; a round begins with the target's own token."""

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        self.mark = header.word("mark").encode()
        self.column: dict[int, int] = {self.nodes.root: 0}
        self.rounds, self.ended, self.begun, self.left = 0, 0, 1, 0.5
        self.own: int | None = None  # the newest token, with which the next round begins

    def head(self) -> Layout:
        """Title, question, the two panels and the legend."""
        return Rounds(
            question="Where does each round end? What passed, and was cut with an incomplete fragment?",
            column=sizes.MARKED,
            ops=[
                scene.Panel("text", y0=0, y1=1, px=30, rule=True),
                scene.Panel("rounds", y0=-0.1, y1=6, share=1, grow=True),
            ],
            row=sizes.TALL,
            wide=52,
            left=84,
            left_narrow=52,
            right=96,
            right_narrow=12,
            axis="token, marks not counted",
            legend=[
                ["cell:chosen", "■", "chosen", "the target's own token"],
                ["cell:accepted", "■", "accepted", "guessed, and passed"],
                ["cell:tolerated", "✂", "tolerated", "passed, but cut: its fragment is not complete"],
                ["cell:rejected", "✕", "rejected", "rejected"],
                ["cell:unreached", "◌", "unreached", "never reached"],
                ["symbol:diamond", "◆", "soft", "the mark at the end of a fragment"],
                ["band:panel", "▒", "soft", "every other fragment"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """One step is one round: a row of cells, and the text above."""
        born, verdicts, commits = self.nodes.read(step)
        for event in born:
            self.column[event.node] = self.column[event.parent] + (not self._is_mark(event.node))
        if not commits:
            return []
        row, ops = self.rounds, []
        kept = [n for n in commits if n in verdicts and verdicts[n].status == "accepted"]
        if verdicts:
            self.rounds += 1
            shown = self._shown(born, verdicts)
            cells = [op for node in shown for op in self._cell(node, verdicts.get(node), row, kept)]
            ops = [self._row(row, kept, shown, cells), *cells]
        ops += [op for node in commits for op in self._text(node)]
        self.own = commits[-1]
        wide = max(self.column[n] for n in [*commits, *(e.node for e in born)])
        return [*ops, scene.Front(wide, row + 1), scene.Say(self._caption(verdicts, kept, commits))]

    def _is_mark(self, node: int) -> bool:
        return bool(self.mark) and self.header.vocabulary.get(self.nodes.token[node]) == self.mark

    def _shown(self, born: list, verdicts: dict) -> list[int]:
        """The round's first token, and of each place among the guesses the node that fared best."""
        best: dict[int, int] = {}
        for event in born:
            verdict = verdicts.get(event.node)
            if verdict is None or verdict.status not in STATUS:
                continue
            place = self.nodes.position[event.node]
            if place not in best or STATUS[verdict.status] < STATUS[verdicts[best[place]].status]:
                best[place] = event.node
        first = [] if self.own is None else [self.own]
        return [*first, *(best[place] for place in sorted(best))]

    def _cell(self, node: int, verdict, row: int, kept: list[int]) -> list[Op]:
        """A token as a cell, a mark as a diamond."""
        status = verdict.status if verdict and node != self.own else None
        state = STATE.get(status, "chosen")
        text = self.nodes.text(node)
        hover = [f"{text}: {WORDS.get(status, 'the target wrote it itself at the end of the round before')}"]
        if status and (reason := self.nodes.reason(verdict)):
            hover.append(reason)
        x, y = self.column[node], row + 0.5
        shared = {"panel": "rounds", "node": node, "hover": hover}
        if self._is_mark(node):
            role = "soft" if state in ("chosen", "accepted") else state
            return [scene.Symbol(f"n{row}.{node}", **shared, x=x + 0.5, y=y, glyph="diamond", role=role)]
        glyph = {"tolerated": "✂"}.get(state) or GLYPHS.get(state)
        place = {"x": x, "y": y, "w": 0.86, "h": CELL}
        return [scene.Cell(f"n{row}.{node}", **shared, **place, **look(state), text=text, glyph=glyph)]

    def _row(self, row: int, kept: list[int], shown: list[int], cells: list[Op]) -> Op:
        columns = [self.column[node] for node in shown]
        whole = sum(map(self._is_mark, [*kept, *([self.own] if self.own is not None else [])]))
        return scene.Row(
            f"r{row}",
            panel="rounds",
            y0=row,
            y1=row + 1,
            text=f"round {row + 1}",
            short=str(row + 1),
            right=many(whole, "fragment"),
            right_short="",
            first=min(columns, default=1),
            last=max(columns, default=1),
            folds_to=folds_to(cells),
        )

    def _text(self, node: int) -> list[Op]:
        """The token in the text above; a mark ends a fragment, and every second one has a band."""
        if not self._is_mark(node):
            place = {"panel": "text", "node": node, "x": self.column[node], "y": 0.72, "w": 1, "rises": True}
            words = {"face": "mono", "role": "ink", "bold": True, "priority": 0, "size": sizes.TEXT}
            return [scene.Label(f"t{node}", **place, **words, text=self.nodes.text(node))]
        self.ended += 1
        ops: list[Op] = []
        right = self.column[node] + 0.5
        if self.ended % 2 and right > self.left:
            ops = [scene.Band(f"b{self.ended}", x0=self.left, x1=right, role="panel")]
        self.left = right
        return ops

    def _caption(self, verdicts: dict, kept: list[int], commits: list[int]) -> str:
        if not verdicts:
            return f"The target writes {''.join(self.nodes.text(n) for n in commits)} without a draft."
        cut = sum(v.status == "pruned" for v in verdicts.values())
        lost = f", {cut} that passed {'was' if cut == 1 else 'were'} cut" if cut else ""
        whole, passed = many(sum(map(self._is_mark, kept)), "mark"), many(len(kept), "guess", "guesses")
        return f"Round {self.rounds}: {passed} kept, with {whole}{lost}."
