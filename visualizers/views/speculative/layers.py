"""Layers: which layers of the target ran for each draft and each verification, and which were left out.

A fold over Forward (its scope says which layers ran, if not all), Propose, Verdict, Commit and Measure (of
the levels "adopted" and "not adopted": how good a choice of layers is). A column is what ran for one token: a
forward, or several side by side; forwards that choose layers share one.
"""

from dataclasses import dataclass, field

from decoders.engine.layers import Layers as LayerSet
from decoders.trace.events import Forward, Propose
from decoders.trace.scores import Measure
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout, heading, token_line
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import GLYPHS, STATES, look
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import three_digits

WIDE = 0.86  # of a column
BESIDE = 3  # forwards that stand side by side in one column; more are drawn as one
CHECKED, WRITTEN = 0.75, 0.95  # greys of layers that check, and of those that write without a check
NAMED = 3  # about how many layers are named at the left
ADOPTED, LEFT = "adopted", "not adopted"  # levels of the scores that are read


@dataclass
class Column:
    """What ran for one token, and what came of it."""

    kind: str
    forwards: list = field(default_factory=list)
    born: list = field(default_factory=list)  # Propose events after these forwards
    choices: list = field(default_factory=list)  # scores of a choice of layers


@view("layers", "Layers", reads=has(Forward, model="target", kind="draft"))
class Layers:
    """x counts columns from 1; y, upwards, the target's layers, an attention below its MLP."""

    model, question = "target", "Which layers ran for which token? Which were skipped?"
    outlined = "a second stream beside it"  # what the outline of a cell means

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.total: int | None = None  # layers, once a forward has recorded it
        self.column = self.written = 0
        self.waiting: list[tuple[int, list]] = []  # columns whose height is not known yet: x, what to draw
        self.passes = self.drafted = self.drafts = 0.0  # forwards; those that drafted, and how many they were
        # the column in which the newest choice was adopted, its number
        self.best: tuple[int, float] | None = None
        self.judged = False  # whether there is a panel for choices

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Columns(
            question=self.question,
            column=sizes.SHORT,
            ops=[
                heading(),
                scene.Panel("layers", y0=1, y1=0, share=1),
                token_line(),
            ],
            wide=42,
            left=66,
            left_narrow=34,
            clip=True,
            gap=sizes.GAP,
            overview="piled",
            axis="forwards, in order",
            legend=[
                ["cell:accepted", "■", "accepted", "drafts a token: accepted"],
                ["cell:rejected", "✕", "rejected", "drafts a token: rejected"],
                ["cell:unreached", "◌", "unreached", "drafts a token: wasted"],
                ["cell:amount", "▪", "soft", "verifies, or writes"],
                ["cell:live", "▣", "live", "chooses what to skip"],
                ["cell:outline", "▯", "soft", self.outlined],
            ],
        )

    def feed(self, step) -> list[Op]:
        """A column for each token of the step, and for each choice of layers."""
        _, verdicts, commits = self.nodes.read(step)
        if any(isinstance(e, Propose) and e.given for e in step.events):
            return []
        self.written += len(commits)
        ops: list[Op] = []
        columns = gathered(step.events, self.model)
        for at, column in enumerate(columns):
            self.column += 1
            ops += self._column(column, verdicts, first=at == 0)
        if not columns:
            return []
        return [
            *ops,
            *self._heading(),
            scene.Front(self.column, 0),
            scene.Say(self._caption(columns, len(commits))),
        ]

    # ---- one column --------------------------------------------------------------------------
    def _column(self, column: Column, verdicts, first: bool) -> list[Op]:
        accepted = [e for e in column.born if e.node in verdicts and verdicts[e.node].status == "accepted"]
        column.born.sort(key=lambda e: e not in accepted)  # in a level of a tree, accepted nodes come first
        x, state = self.column, self._state(column, verdicts)
        parts = [part_of(forward) for forward in column.forwards]
        ops = self._height(parts)
        self.passes += sum(forward.share for forward in column.forwards)
        if column.kind == "draft" and column.born:
            self.drafts += 1
            self.drafted += sum(forward.share for forward in column.forwards)
        if first and x > 1:
            ops.append(scene.Guide(f"g{x}", panel="layers", x=x - 0.5))
        if self.total is None:
            self.waiting.append((x, [column, parts, state]))
        else:
            ops += self._blocks(x, column, parts, state)
        ops += self._token(x, column, state)
        for score in column.choices:
            ops += self._choice(x, score)
        if self.best is not None and self.best[0] < x:  # the choice in use keeps its score
            line = {"panel": "found", "points": [[x - 1, self.best[1]], [x, self.best[1]]], "role": "ink"}
            ops.append(scene.Path(f"p{x}", **line, width=1.6))
            self.best = (x, self.best[1])
        return ops

    def _state(self, column: Column, verdicts) -> str:
        """What became of the column's first token, `live` where layers were chosen."""
        if column.kind == "plan":
            return "live"
        if not column.born:
            return "prompt"
        node = column.born[0].node
        return STATES[verdicts[node].status] if node in verdicts else "chosen"

    def _height(self, parts) -> list[Op]:
        """Once the number of layers is known: their rows, and the columns that waited for it."""
        known = next((part.total for part in parts if part is not None), None)
        if self.total is not None or known is None:
            return []
        self.total = known
        every = max(1, round(known / NAMED))
        ops: list[Op] = [scene.Change("layers", y0=known)]
        for layer in range(1, known + 1):
            named = layer % every == 0
            text = {"text": f"layer {layer}", "short": str(layer)} if named else {"text": ""}
            ops.append(scene.Row(f"r{layer}", panel="layers", y0=layer, y1=layer - 1, **text))
        for x, words in self.waiting:
            ops += self._blocks(x, *words)
        return ops

    def _blocks(self, x: int, column: Column, parts: list, state: str) -> list[Op]:
        """The layers that ran, one box per layer; after them the whole column."""
        whole = LayerSet.first(self.total, self.total)
        shown = [part or whole for part in parts]
        if len(shown) > BESIDE:
            shown = [LayerSet(self.total, union(p.attention for p in shown), union(p.mlp for p in shown))]
        hovers = [self._hover(column, forward) for forward in column.forwards[: len(shown)]]
        look = {"state": state, "fill": "filled"}
        if column.kind == "plan":
            look = {"state": "live", "fill": "filled"}
        elif column.kind != "draft":
            look = {
                "state": "prompt",
                "fill": "amount",
                "weight": CHECKED if column.kind == "verify" else WRITTEN,
            }
        elif state in ("unreached", "prompt"):
            look = {"state": "unreached", "fill": "dotted"}
        wide, ops = WIDE / len(shown), []
        for at, part in enumerate(shown):
            place = {"panel": "layers", "x": round(x - WIDE / 2 + (at + 0.5) * wide, 4), "w": round(wide, 4)}
            place["hover"] = hovers[at]
            back = {"y": self.total / 2, "h": self.total, "state": "prompt", "fill": "tint"}
            ops.append(scene.Cell(f"c{x}.{at}", **place, **back, aside=True))
            fill = {"fill": "outline"} if aside(column, at) and look["fill"] == "filled" else {}
            for i, (low, high) in enumerate(boxes(part)):
                box = {"y": (low + high) / 2, "h": round(high - low, 4)}
                ops.append(scene.Cell(f"b{x}.{at}.{i}", **place, **box, **look | fill, aside=True))
        return ops

    def _token(self, x: int, column: Column, state: str) -> list[Op]:
        """The first token that resulted from the column."""
        if not column.born:
            return []
        first, others = column.born[0], [self.nodes.text(e.node) for e in column.born[1:]]
        words = [f"{self.nodes.text(first.node)}  {state}"]
        if others:
            words.append(f"and {len(others)} beside it: " + " ".join(others[:6]))
        fields = look(state) | ({"glyph": GLYPHS[state]} if state in GLYPHS else {})
        text = {"text": self.nodes.text(first.node), "node": first.node, "hover": words}
        return [scene.Cell(f"t{x}", panel="tokens", x=x, y=0, w=0.98, h=1, **fields, **text)]

    def _choice(self, x: int, score) -> list[Op]:
        """The score of a choice of layers: a ring, or a dot if it is used from now on."""
        ops: list[Op] = []
        if not self.judged:
            self.judged = True
            ticks = [[0, "0"], [1, "1"]]
            ops.append(scene.Panel("found", y0=2.1, y1=-0.3, px=36, ticks=ticks))
        used, y = score.level == ADOPTED, round(score.total, 4)
        hover = [f"{score.name} {three_digits(score.total)}: {score.level}"]
        if used and self.best is not None:
            before, value = self.best
            points = [[before, value], [x, value], [x, y]]
            ops.append(scene.Path(f"a{x}", panel="found", points=points, role="ink", width=1.6))
        if used:
            self.best = (x, y)
        look = {"glyph": "dot" if used else "ring", "role": "ink" if used else "soft"}
        ops.append(scene.Symbol(f"d{x}", panel="found", x=x, y=y, hover=hover, **look))
        if used:
            label = {"text": three_digits(score.total), "priority": 2, "dy": -10}
            ops.append(scene.Label(f"l{x}", panel="found", x=x, y=y, **label))
        return ops

    # ---- words -------------------------------------------------------------------------------
    def _hover(self, column: Column, forward) -> list[str]:
        """Which layers ran in a forward, what for, and at what cost."""
        what = {"plan": "chooses layers", "draft": "drafts", "verify": "checks"}.get(column.kind, "writes")
        scope = forward.scope or "all layers"
        tokens = f"{forward.tokens} token" + ("" if forward.tokens == 1 else "s")
        return [f"{what}: {scope}", f"{100 * forward.share:.0f} % of the blocks, {tokens}"]

    def _heading(self) -> list[Op]:
        """What a token cost so far, and how large a part of the model drafted it."""
        whose = "model" if self.model == "target" else self.model
        each = f"{self.passes / max(1, self.written):.2f} forwards of the whole {whose} per token"
        share = (
            f"; a drafted token ran {100 * self.drafted / self.drafts:.0f} % of its blocks."
            if self.drafts
            else "."
        )
        return [scene.Change("heading", lead=each, heading=share)]

    def _caption(self, columns: list[Column], committed: int) -> str:
        drafts = sum(column.kind == "draft" and bool(column.born) for column in columns)
        parts = [
            f"{committed} committed",
            *([f"{drafts} drafted with part of the layers"] if drafts else []),
        ]
        return ", ".join(parts) + "."


def gathered(events, model: str) -> list[Column]:
    """The forwards of `model` in a step as columns: a new one begins where something was proposed since the
    last forward, or another kind of forward runs.
    """
    columns: list[Column] = []
    for event in events:
        match event:
            case Forward() if event.kind != "lens" and event.model == model:
                last = columns[-1] if columns else None
                if last is None or last.kind != event.kind or last.born:
                    columns.append(Column(event.kind))
                columns[-1].forwards.append(event)
            case Propose() if columns:
                columns[-1].born.append(event)
            case Measure() if columns and event.level in (ADOPTED, LEFT):
                columns[-1].choices.append(event)
    return columns


def aside(column: Column, at: int) -> bool:
    """Whether a forward of a column is another stream through the layers, by the start of its scope."""
    scope = column.forwards[at].scope or ""
    return bool(scope) and not scope.startswith(("layers", "attention")) and not scope[0].isdigit()


def part_of(forward) -> LayerSet | None:
    """The layers that ran; None if all did."""
    return LayerSet.read(forward.scope) if forward.scope else None


def union(sets) -> frozenset[int]:
    """The union of the sets."""
    return frozenset().union(*sets)


def boxes(part: LayerSet) -> list[tuple[float, float]]:
    """The blocks that ran, as heights from 0: layer i (from 0) is its attention, then its MLP."""
    ends = {(True, True): (0.0, 1.0), (True, False): (0.0, 0.5), (False, True): (0.5, 1.0)}
    ran = [(i, ends.get((i in part.attention, i in part.mlp))) for i in range(part.total)]
    return [(i + box[0], i + box[1]) for i, box in ran if box]
