"""Canvas branches: the canvases that each forward scored, how confident each leaves the model of the rest,
and the best.

A fold over Propose, Verdict, Rank ("mean confidence"), Forward and Cell (with a level: of one branch). Each
iteration is a table: a row per canvas, with its score as a bar and the masks as a strip.
"""

from decoders.trace.events import Cell, Forward
from decoders.trace.number_format import many
from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Table, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability
from visualizers.views.diffusion.cell_states import FILLED, hover, look

ANCHOR = "canvas anchor"  # level of the current canvas
HEADER, GAP, CELL = 0.9, 0.4, 0.86  # heights in rows
BAR, STRIP, WIDEST = (0.5, 5.0), 6.0, 32  # columns of the bar and of the strip; positions of a strip
TICK = 0.16


@view("canvas_branches", "Canvas branches", reads=has(Rank, name=ScoreName.MEAN_CONFIDENCE))
class CanvasBranches:
    """x: a bar for C from 0 to 1, then positions of the block; y: iterations, and in each its canvases."""

    def __init__(self, header: Header):
        self.nodes, self.prompt = Nodes(header), len(header.prompt)
        self.length = int(header.number("block_length", 0))
        self.masks: set[int] = set()
        self.forwards = self.tokens = self.filled = self.canvases = self.extra = 0
        self.y = 0.0

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Table(
            question="Which canvas leaves the model most confident? How likely was its extra token?",
            ops=[
                heading(),
                scene.Panel("tables", y0=-0.1, y1=8, share=1, grow=True),
            ],
            row_tall=30,
            column=sizes.LETTER,
            column_narrow=7,
            wide=28,
            widest=40,
            columns=int(STRIP) + WIDEST,
            left=112,
            left_narrow=64,
            right=62,
            right_narrow=34,
            legend=[
                ["cell:accepted", "■", "accepted", "filled now; as a bar: C of the winner"],
                ["cell:bonus", "■", "bonus", "the token that a branch adds"],
                ["cell:forced", "⚑", "forced", "filled because some position must be"],
                ["cell:amount", "▪", "soft", "mask; the stronger the grey, the surer its most likely token"],
                ["cell:chosen", "▏", "chosen", "C of the anchor"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The table of one iteration."""
        cells: dict[str | None, dict[int, object]] = {}
        scores: dict[str, object] = {}
        canvases = 1
        for event in step.events:
            match event:
                case Cell() if event.state == "mask":
                    self.masks.add(event.position)
                case Cell() if event.state != "trimmed":
                    cells.setdefault(event.level, {})[event.position] = event
                case Rank(name=ScoreName.MEAN_CONFIDENCE):
                    scores[event.level] = event
                case Forward():
                    self.forwards, canvases = self.forwards + 1, event.rows
                    self.tokens, self.canvases = self.tokens + event.tokens, self.canvases + event.rows
        _, verdicts, _ = self.nodes.read(step)
        if None not in cells:
            return []
        filled = {p: e for p, e in cells[None].items() if e.state in FILLED}
        self.filled += len(filled)
        self.extra += sum(event.state == "lookahead" for event in filled.values())
        scores = {level: score for level, score in scores.items() if level in cells}
        if ANCHOR not in scores:  # one canvas, nothing to compare
            scores, cells[ANCHOR] = {}, cells[None]
        winner = next((level for level, s in scores.items() if accepted(verdicts.get(s.node))), ANCHOR)
        names = list(scores) or [ANCHOR]
        top = round(self.y + HEADER, 3)
        positions = self._strip(cells[None])
        ops = [self._caption(scores, winner, len(filled))]
        for at, level in enumerate(names):
            won = {p: e for p, e in filled.items() if level == winner}
            ops += self._table_row(at, level, top + at, scores, winner, verdicts)
            ops += self._cells(at, top + at, positions, cells[level] | won)
        self.masks -= filled.keys()
        self.y = round(top + len(names) + GAP, 3)
        heading = self._heading()
        say = f"Iteration {self.forwards}: {many(canvases, 'canvas', 'canvases')}, "
        return [
            *ops,
            heading,
            scene.Front(1, self.y),
            scene.Say(f"{say}{many(len(filled), 'position')} filled."),
        ]

    # ---- marks -----------------------------------------------------------------------------------
    def _strip(self, cells: dict) -> list[int]:
        """The positions of the block that is filled; of a long one those from its first mask on."""
        low, last = min(cells), max(self.masks | set(cells))
        if 0 < self.length <= WIDEST:
            low -= (low - self.prompt) % self.length
            return list(range(low, min(low + self.length, last + 1)))
        return list(range(low, min(low + WIDEST, last + 1)))

    def _caption(self, scores: dict, winner: str, filled: int) -> Op:
        text = f"iteration {self.forwards}, +{filled}"
        if scores:
            best, anchor = scores[winner], scores[ANCHOR]
            text += f": C {probability(best.total)}"
            text += ", the anchor" if winner == ANCHOR else f", anchor {probability(anchor.total)}"
            text += ", a tie" if best.parts.get("tie") else ""
        place = {"panel": "tables", "x": 0.5, "y": round(self.y + HEADER / 2, 3), "align": "left"}
        look_ = {"text": text, "role": "ink", "face": "sans", "priority": 0}
        return scene.Label(f"h{self.forwards}", **place, **look_)

    def _table_row(self, at: int, level: str, y: float, scores, winner: str, verdicts) -> list[Op]:
        score, name = scores.get(level), "anchor"
        if level != ANCHOR:
            node = score.node
            name = self.nodes.text(node)
        won = level == winner
        top = y if at else self.y
        place = {"panel": "tables", "y0": round(top, 3), "y1": round(y + 1, 3), "rule": False}
        names = {"text": "", "bold": name} if won else {"text": name}
        text = names | {"label_y": round(y + 0.5, 3)}
        right = {"right": "", "right_short": ""}
        if score is not None:
            number = probability(score.total)
            right = {"right": f"C {number}", "right_short": number}
            right = {"right": "C", "right_short": "", "right_bold": number} if won else right
        ops: list[Op] = [scene.Row(f"r{self.forwards}.{at}", **place, **text, **right)]
        if score is None:
            return ops
        verdict = verdicts.get(score.node)
        hovers = (
            (self.nodes.reason(verdict) or "").split("; ")
            if verdict and level != ANCHOR
            else [f"anchor: C {number}"]
        )
        ops += self._bar(f"{at}", y, score.total, won, hovers)
        if level != ANCHOR:
            ops.append(self._tick(f"{at}", y, scores[ANCHOR].total))
        return ops

    def _bar(self, key: str, y: float, amount: float, won: bool, hovers: list[str]) -> list[Op]:
        x, w = BAR
        box = {"panel": "tables", "y": round(y + 0.5, 3), "h": 0.5, "hover": hovers}
        state = "accepted" if won else "pruned"
        whole = {"x": x + w / 2, "w": w, "state": state, "fill": "none"}
        ops = [scene.Cell(f"o{self.forwards}.{key}", **box, **whole)]
        if amount > 0.01:
            wide = round(w * amount, 3)
            part = {
                "x": round(x + wide / 2, 3),
                "w": wide,
                "state": state,
                "fill": "filled" if won else "tint",
            }
            ops.append(scene.Cell(f"c{self.forwards}.{key}", **box, **part))
        return ops

    def _tick(self, key: str, y: float, amount: float) -> Op:
        x, w = BAR
        place = {
            "panel": "tables",
            "x": round(x + w * amount, 3),
            "y": round(y + 0.5, 3),
            "w": TICK,
            "h": 0.8,
        }
        look_ = {"state": "chosen", "fill": "filled", "hover": [f"the anchor's C: {probability(amount)}"]}
        return scene.Cell(f"t{self.forwards}.{key}", **place, **look_)

    def _cells(self, at: int, y: float, positions: list[int], cells: dict) -> list[Op]:
        ops = []
        for i, position in enumerate(positions):
            event = cells.get(position)
            if event is None and position in self.masks:
                continue  # of a long block
            place = {"panel": "tables", "x": STRIP + i + 0.5, "y": round(y + 0.5, 3), "w": 0.94, "h": CELL}
            if event is None:
                shown, fields = "", {"state": "chosen", "fill": "tint", "hover": ["filled before"]}
            else:
                shown = self.nodes.word(event.token)
                fields = {"state": "prompt", "fill": "amount", "weight": round(event.confidence or 0.0, 3)}
                fields = look(event.state) if event.state in FILLED else fields
                fields |= {"hover": hover(event, shown)}
            key = f"g{self.forwards}.{at}.{position}"
            ops.append(scene.Cell(key, **place, **fields, text=shown))
        return ops

    def _heading(self) -> Op:
        lead = f"{self.extra} of {many(self.filled, 'position')} by look-ahead"
        per = self.canvases / self.forwards
        text = f", the others by the policy alone, in {many(self.forwards, 'forward')}; "
        work = f"{many(self.tokens, 'token')} evaluated"
        words = {"heading": f"{text}{work}, {per:.1f} canvases per forward.", "short": f"; {work}."}
        return scene.Change("heading", lead=lead, **words)


def accepted(verdict) -> bool:
    """Whether a branch won."""
    return verdict is not None and verdict.status == "accepted"
