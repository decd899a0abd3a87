"""Canvas drafts: what each forward verified, the path that was accepted, and where a draft went wrong.

A fold over Propose, Verdict, Forward and Cell (with a level: what a drafted canvas adds; without: what was
filled). A forward is a small tree: the current canvas is at the left, and right of each canvas are those that
may follow it.
"""

from decoders.explain.verdicts import status_in_words
from decoders.trace.events import Cell, Forward, Propose
from decoders.trace.number_format import many
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import STATES
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability
from visualizers.views.diffusion.cell_states import FILLED

SOURCE, LEVEL = "canvas", "canvas {}"  # source of drafted nodes; level of the cells that one adds
GAP, HEIGHT, WIDTH = 0.5, 0.84, 0.86  # between forwards, of a box; in rows and columns
LOOKS = {  # status of a draft -> fill and glyph of its box
    "accepted": ("filled", ""),
    "rejected": ("outline", "✕"),
    "never reached": ("dashed", ""),
    "merged": ("tint", ""),
}


@view("canvas_drafts", "Canvas drafts", reads=has(Propose, source=SOURCE))
class CanvasDrafts:
    """x: steps ahead of the canvas, 0 the canvas itself; y: forwards, and in each the drafts that branched
    off.
    """

    def __init__(self, header: Header):
        self.nodes, self.prompt = Nodes(header), len(header.prompt)
        self.masks: set[int] = set()
        self.forwards = self.tokens = self.filled = self.accepted = 0
        self.y = 0.0

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Rounds(
            question="Which drafted steps did a forward verify? Where did the model choose otherwise?",
            ops=[
                heading(),
                scene.Panel("drafts", y0=-0.1, y1=8, share=1, grow=True),
            ],
            first=0,
            row_tall=32,
            column=sizes.PHRASE,
            column_narrow=60,
            tight=50,
            clip=True,
            columns="seen",
            wide=96,
            widest=130,
            left=78,
            left_narrow=20,
            right=96,
            right_narrow=26,
            axis="steps ahead",
            legend=[
                ["cell:accepted", "■", "accepted", "drafted and verified; pale: filled without a draft"],
                ["cell:chosen", "▢", "chosen", "the current canvas, its number of masks"],
                ["cell:rejected", "✕", "rejected", "drafted, but the model chooses otherwise"],
                ["cell:unreached", "┄", "unreached", "after a rejected one"],
                ["cell:pruned", "▢", "pruned", "the same canvas, reached in another order"],
            ],
            overview=None,
        )

    def feed(self, step) -> list[Op]:
        """The tree of one forward."""
        added: dict[str, list] = {}  # level -> its cells
        own, verified, canvases = [], [], 1
        for event in step.events:
            match event:
                case Cell() if event.level is not None:
                    added.setdefault(event.level, []).append(event)
                case Cell() if event.state == "mask":
                    self.masks.add(event.position)
                case Cell() if event.state in FILLED:
                    (verified if event.state == "verified" else own).append(event)
                case Forward():
                    self.forwards, canvases = self.forwards + 1, event.rows
                    self.tokens += event.tokens
        born, verdicts, _ = self.nodes.read(step)
        born = {e.node: e for e in born if e.source == SOURCE}
        if not own:
            return []
        before = len(self.masks)
        self.masks -= {event.position for event in own + verified}
        now = before - len(self.masks)
        self.filled += now
        path, row, depth, rows = layout(born, verdicts)
        ops = self._row(rows, canvases, now)
        ops.append(self._box("m", 0, 0, f"{before:,} ▢", "chosen", "outline", "", [many(before, "mask")]))
        for node, event in born.items():
            verdict = verdicts[node]
            parent = target_of(event.parent, verdicts)
            at = depth.get(parent, 0), row.get(parent, 0)
            ops.append(self._edge(f"{node}", at, (depth[node], row[node]), STATES[verdict.status]))
            ops.append(self._draft(event, verdict, depth[node], row[node], added.get(LEVEL.format(node), [])))
        end = len(path)
        self.accepted += end
        ops.append(self._edge("own", (end, 0), (end + 1, 0), "accepted"))
        hover = [self._words(own), "the model's own next step"]
        ops.append(self._box("own", end + 1, 0, self._short(own), "accepted", "tint", "", hover))
        ops.append(self._heading())
        ops.append(scene.Front(end + 1, self.y + rows))
        kept = f"{len(path)} of {many(len(born), 'draft')} accepted"
        ops.append(scene.Say(f"Forward {self.forwards}: {kept}, {many(now, 'position')} filled."))
        self.y += rows + GAP
        return ops

    # ---- marks -----------------------------------------------------------------------------------
    def _row(self, rows: int, canvases: int, now: int) -> list[Op]:
        place = {"panel": "drafts", "y0": round(self.y, 3), "y1": round(self.y + rows, 3), "rule": False}
        names = {"text": f"forward {self.forwards}", "short": f"{self.forwards}", "label_y": self.y + 0.5}
        right = {"right": many(canvases, "canvas", "canvases"), "right_short": "", "right_bold": f"+{now}"}
        return [scene.Row(f"r{self.forwards}", **place, **names, **right)]

    def _box(self, key: str, x: float, y: float, text: str, state: str, fill: str, glyph: str, hover) -> Op:
        place = {"panel": "drafts", "x": x, "y": round(self.y + y + 0.5, 3), "w": WIDTH, "h": HEIGHT}
        look = {"state": state, "fill": fill} | ({"glyph": glyph} if glyph else {})
        return scene.Cell(f"b{self.forwards}.{key}", **place, **look, text=text, hover=hover)

    def _edge(self, key: str, start: tuple, end: tuple, state: str) -> Op:
        ends = {"x0": start[0] + WIDTH / 2, "x1": end[0] - WIDTH / 2}
        ends |= {"y0": round(self.y + start[1] + 0.5, 3), "y1": round(self.y + end[1] + 0.5, 3)}
        look = {"state": state, "weight": 0.5, "panel": "drafts"}
        return scene.Edge(f"e{self.forwards}.{key}", **ends, **look)

    def _draft(self, event, verdict, x: int, y: int, cells: list) -> Op:
        fill, glyph = LOOKS[verdict.status]
        numbers = []
        if verdict.p is not None:
            numbers.append(f"p {probability(verdict.p)} now")
        if verdict.q is not None:
            numbers.append(f"{probability(verdict.q)} when drafted")
        explanation = {
            "merged": "the same canvas was reached in another order",
            "never reached": "after a rejected draft, so not looked at",
        }.get(verdict.status, "")
        first = self.nodes.reason(verdict) or f"{self._words(cells)}: {status_in_words(verdict.status)}"
        hover = [first, ", ".join(numbers) or explanation]
        state = STATES[verdict.status]
        return self._box(f"{event.node}", x, y, self._short(cells), state, fill, glyph, hover)

    def _heading(self) -> Op:
        text = f": {many(self.filled, 'position')} in {many(self.forwards, 'forward')}"
        text += f"; {many(self.tokens, 'token')} evaluated."
        lead = f"{many(self.accepted, 'forward')} saved"  # each accepted draft is a step of the policy alone
        return scene.Change("heading", lead=lead, heading=text)

    # ---- words -----------------------------------------------------------------------------------
    def _short(self, cells: list) -> str:
        """`12 ␣cat`, or `12 ␣cat +3` of a step that fills more."""
        first = cells[0]
        more = f" +{len(cells) - 1}" if len(cells) > 1 else ""
        return f"{first.position - self.prompt + 1} {self.nodes.word(first.token)}{more}"

    def _words(self, cells: list) -> str:
        named = [f"{c.position - self.prompt + 1} “{self.nodes.word(c.token)}”" for c in cells[:4]]
        rest = f" and {len(cells) - 4} more" if len(cells) > 4 else ""
        return ("position " if len(cells) == 1 else "positions ") + ", ".join(named) + rest


def target_of(node: int, verdicts: dict) -> int:
    """The node itself, or the one that it was merged into."""
    verdict = verdicts.get(node)
    return verdict.into if verdict is not None and verdict.into is not None else node


def layout(born: dict, verdicts: dict) -> tuple[list[int], dict[int, int], dict[int, int], int]:
    """(accepted path, row of each node, depth of each node, rows): the path is straight, in row 0; branches
    hang below it, later ones higher, so that no lines cross.
    """
    children: dict[int, list[int]] = {}
    depth: dict[int, int] = {}
    for node, event in sorted(born.items()):
        children.setdefault(target_of(event.parent, verdicts), []).append(node)
    roots = [parent for parent in children if parent not in born]
    waiting = [(node, 1) for root in roots for node in children[root]]
    while waiting:
        node, depth[node] = waiting.pop()
        waiting += [(child, depth[node] + 1) for child in children.get(node, [])]
    path = sorted((n for n in born if verdicts[n].status == "accepted"), key=depth.get)
    row, free = dict.fromkeys(path, 0), 1
    for above in [*path[::-1], *roots]:
        for node in children.get(above, []):
            limb = [(node, free)] if node not in row else []
            while limb:
                here, at = limb.pop()
                row[here] = at if at is not None else free
                free = max(free, row[here] + 1)
                below = children.get(here, [])
                limb += [(child, row[here] if i == 0 else None) for i, child in enumerate(below)][::-1]
    return path, row, depth, free
