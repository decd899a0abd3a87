"""Writing order: which part of a text was written when, where the model became uncertain, and where it jumped
to.

A fold over Propose (whose source names the zone), Measure (a largest probability with its `limit`), Verdict,
Commit and Note. x is the order of writing, a zone is a row, from the top in the order of the text.
"""

from decoders.trace.events import Commit, Note, Propose, Verdict
from decoders.trace.number_format import many
from decoders.trace.scores import Measure, ScoreName
from visualizers import scene
from visualizers.scene.layout import Columns, Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import STATES
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

PARTS = ("prefix", "middle", "suffix", "left to right")
SHARES = [[0, "0"], [0.5, ".5"], [1, "1"]]
QUESTION = "In which order were the parts of the text written? Where did the model jump to the end?"


@view("writing_order", "Writing order", reads=has(Measure, name=ScoreName.LARGEST_PROBABILITY))
class WritingOrder:
    """Above, the largest probability and its limit; below, the tokens in the row of their zone."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.column: dict[int, int] = {}  # node -> when it was written; 1 is the first
        self.last: tuple[int, int] | None = None  # column and row of the newest token
        self.jumps = self.forced = 0

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        rows = [
            scene.Row(f"z{at}", panel="rows", y0=at, y1=at + 1, text=zone) for at, zone in enumerate(PARTS)
        ]
        return Columns(
            question=QUESTION,
            left=96,
            left_narrow=80,
            axis="order of writing",
            ops=[
                heading(),
                scene.Panel("number", y0=1.05, y1=0, share=1, ticks=SHARES),
                scene.Panel("rows", y0=-0.1, y1=len(PARTS) + 0.1, px=34 * len(PARTS)),
                *rows,
            ],
            legend=[
                ["step", "▂▃", "soft", "largest probability"],
                ["path:live", "╌", "live", "tau"],
                ["band:amber", "▒", "live", "below tau"],
                ["cell:chosen", "■", "chosen", "the text"],
                ["cell:forced", "⚑", "forced", "forced"],
                ["cell:pruned", "✕", "pruned", "not kept"],
                ["path:link", "➝", "soft", "jump to another part"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: a column for each token that was written, and what became of tokens."""
        ops: list[Op] = []
        for event in step.events:
            match event:
                case Propose():
                    self.nodes.add(event)
                    if event.source in PARTS:
                        ops += self._written(event.node, PARTS.index(event.source))
                case Measure() if event.limit is not None and event.node in self.column:
                    ops += self._sure(event)
                case Verdict() if event.node in self.column:
                    ops += self._judged(event)
                case Commit():
                    mine = [node for node in event.nodes if node in self.column]
                    ops += [scene.Change(f"t{node}", state="chosen") for node in mine]
        if not ops:
            return []
        lead = f"{many(len(self.column), 'token')} written"
        rest = f"; {many(self.jumps, 'jump')} between parts, {many(self.forced, 'token')} forced."
        captions = [e.text for e in step.events if isinstance(e, Note)]
        return [
            *ops,
            scene.Change("heading", lead=lead, heading=rest, short=rest),
            scene.Say(" ".join([lead + rest, *captions])),
        ]

    def _written(self, node: int, row: int) -> list[Op]:
        """A token's cell; an arrow to it where it stands in another part than the one before."""
        x = self.column[node] = len(self.column) + 1
        place = {"panel": "rows", "x": x, "y": row + 0.5, "w": 0.96, "h": 0.86, "node": node}
        look = {"state": "live", "fill": "tint", "text": self.nodes.text(node)}
        ops = [scene.Cell(f"t{node}", **place, **look, hover=[f"{self.nodes.text(node)}: {PARTS[row]}"])]
        if self.last is not None and self.last[1] != row:
            self.jumps += 1
            down = 0.1 if self.last[1] < row else 0.9
            points = [[x - 0.5, self.last[1] + 0.5], [x - 0.5, row + down]]
            ops.append(scene.Path(f"j{x}", panel="rows", points=points, role="link", width=1.6, head=True))
        self.last = (x, row)
        return [*ops, scene.Front(x, row + 0.5)]

    def _sure(self, score) -> list[Op]:
        """The largest probability where a token was chosen, against its limit."""
        x, limit = self.column[score.node], score.limit
        text = f"largest probability {probability(score.total)}, tau {limit:g}"
        ops = [
            scene.Step(f"s{x}", panel="number", x=x, y=round(score.total, 4), node=score.node),
            scene.Path(
                f"l{x}",
                panel="number",
                points=[[x - 0.5, limit], [x + 0.5, limit]],
                role="live",
                width=1.4,
                dash="dash",
            ),
            scene.Change(f"t{score.node}", hover=[f"{self.nodes.text(score.node)}: {text}"]),
        ]
        if score.total < limit:
            ops.append(scene.Band(f"b{x}", panel="number", x0=x - 0.5, x1=x + 0.5, role="amber"))
        return ops

    def _judged(self, verdict) -> list[Op]:
        """What became of a token; one merged into its place in the text is part of it."""
        state = "chosen" if verdict.status in ("merged", "finished") else STATES[verdict.status]
        changes = {"state": state, "fill": "outline" if state in ("pruned", "forced") else "tint"}
        if state == "forced":
            self.forced += 1
            changes["glyph"] = "⚑"
        if reason := self.nodes.reason(verdict):
            changes["hover"] = [self.nodes.text(verdict.node), reason]
        return [scene.Change(f"t{verdict.node}", **changes)]
