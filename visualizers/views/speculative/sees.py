"""Sees: what a trained head's guess of each depth looks at, in the draft of one round.

A fold over Measure (named "sees": its total is how many tokens from the root on a guess of that depth looks
at, its parts which of the target's states), Propose, Distribution (of the draft) and Verdict. Each step shows
its own round: the columns are the newest tokens that the target has read, the root, which it has chosen but
not read, and one path of the draft.
"""

import math

from decoders.trace.number_format import many
from decoders.trace.scores import Measure, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout, heading, token_line
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import GLYPHS, STATES, look
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

OWN = ("resampled", "bonus")
NEWEST, ALL = "the newest state", "all states"
SEVERAL, FIRST = "several layers", "the first layers"
READ, ROWS = 2, 8  # columns of tokens that the target has read; most depths shown
DEPENDENT = (
    "Path-dependent",
    ": a guess looks at the drafted tokens above it, so branches have distributions of their own.",
)
NOTHING = "Nothing has been drafted yet."
INDEPENDENT = ("Path-independent", ": one distribution per depth, the same on every branch.")


@view("sees", "Sees", reads=has(Measure, name=ScoreName.SEES))
class Sees:
    """x: read tokens, the root, the path; y: the depths of the draft, each with what its guess looks at."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.reach: dict[int, int] = {}  # depth -> tokens from the root on that a guess looks at
        self.states: dict[str, float] = {}  # which states of the target it reads
        self.offset = 0  # drafted tokens before the root: 1 if the target's own token is part of the draft
        self.shown: list[str] = []  # ids of the marks of the round on show
        self.rounds = self.named = 0  # depths whose rows are there

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Columns(
            question="What may the guess of each depth look at?",
            column=sizes.WORD,
            wide=76,
            widest=110,
            tightest=36,
            left=64,
            left_narrow=56,
            right=104,
            right_narrow=44,
            axis=None,
            clip=True,
            ops=[
                heading(px_narrow=52, heading=NOTHING),
                scene.Panel("kinds", y0=-0.5, y1=0.5, px=18),
                token_line(),
                scene.Panel("guesses", y0=-0.1, y1=ROWS + 0.1, px=28 * ROWS),
            ],
            legend=[
                ["cell:amount", "▪", "soft", "state of the target that it reads"],
                ["cell:prompt", "▪", "soft", "token that it looks at"],
                ["cell:unreached", "◌", "unreached", "not seen"],
                ["cell:live", "▣", "live", "the guess on the shown path"],
            ],
            overview=None,
        )

    def feed(self, step) -> list[Op]:
        """Hides the previous round and draws this one, once something is known and drafted."""
        born, verdicts, _ = self.nodes.read(step)
        drafted = drafted_of(born, verdicts)
        for event in step.events:
            if isinstance(event, Measure) and event.name == ScoreName.SEES and event.number is not None:
                self.reach[event.number] = int(event.total)
                self.states, self.offset = event.parts, int(event.node in drafted)
        path = path_of(drafted, verdicts)
        if not self.reach or len(path) <= self.offset:
            return []
        self.rounds += 1
        root = path[self.offset - 1] if self.offset else drafted[path[0]].parent
        path = path[self.offset :][: min(ROWS, len(self.reach))]
        names = self._names(len(path))
        marks = [*self._top(root, path, verdicts), *self._rows(root, path, drafted)]
        hidden = [scene.Change(key, gone=True) for key in self.shown]
        self.shown = [op.id for op in marks if isinstance(op, scene.Mark)]
        lead, heading = DEPENDENT if self.is_dependent() else INDEPENDENT
        return [
            *hidden,
            *names,
            *marks,
            scene.Change("heading", lead=lead, heading=heading),
            scene.Front(READ + 1 + len(path), len(path)),
            scene.Say(f"Round {self.rounds}: {many(len(path), 'depth')}. {lead}{heading}"),
        ]

    def is_dependent(self) -> bool:
        """Whether a guess looks at drafted tokens: the root alone is the same for all branches."""
        return max(self.reach.values()) > 1

    def _names(self, deepest: int) -> list[Op]:
        """Rows of depths that were not drafted before."""
        new = range(self.named + 1, deepest + 1)
        self.named = max(self.named, deepest)
        rows = {"panel": "guesses", "rule": False, "right": ""}
        return [scene.Row(f"row{k}", y0=k - 1, y1=k, text=f"depth {k}", **rows) for k in new]

    # ---- marks -------------------------------------------------------------------------------
    def _top(self, root: int, path: list[int], verdicts: dict) -> list[Op]:
        """The titles of the columns, and their tokens."""
        read = list(self.nodes.upwards(self.nodes.parent.get(root)))[:READ][::-1]
        first = READ + 1 - len(read)
        more = "… " if len(read) == READ and self.nodes.parent.get(read[0], -1) >= 0 else ""
        names = {first: f"{more}read", READ + 1: "root", READ + 2: "drafted path"}
        ops = [
            scene.Label(f"k{self.rounds}.{x}", panel="kinds", x=x - 0.46, y=0, text=text, align="left")
            for x, text in names.items()
        ]
        for x, node in enumerate([*read, root, *path], first):
            status = verdict_of(verdicts, node) if node in path else None
            state = STATES.get(status, "prompt") if x <= READ else STATES.get(status, "chosen")
            glyph = {"glyph": GLYPHS[state]} if state in GLYPHS else {}
            shape = {"state": "prompt", "fill": "tint"} if state == "prompt" else look(state)
            hover = [self.nodes.text(node), *([status] if status else [])]
            place = {"panel": "tokens", "x": x, "y": 0, "w": 0.92, "h": 1, "node": node}
            text = {"text": self.nodes.text(node), "hover": hover}
            ops.append(scene.Cell(f"t{self.rounds}.{x}", **place, **shape, **glyph, **text))
        return ops

    def _rows(self, root: int, path: list[int], drafted: dict) -> list[Op]:
        """For each depth of the path what its guess looks at, and the guess."""
        parents: dict[int, list[int]] = {}  # depth -> the nodes below which something was drafted there
        depths = {root: 0}
        for node, event in drafted.items():
            if event.parent in depths:
                depths[node] = depths[event.parent] + 1
                above = parents.setdefault(depths[node], [])
                if event.parent not in above:
                    above.append(event.parent)
        ops = []
        for depth, node in enumerate(path, 1):
            reach = self.reach[depth]
            sights = {self._ancestor(parent, depth - 1, reach - 1) for parent in parents[depth]}
            ops += [self._state(depth, x) for x in range(1, READ + 1)]
            for back in range(depth):  # the root and the path above the guess
                ops.append(self._token(depth, back, [root, *path][back], seen=back < reach))
            branches = len(parents[depth])
            ops.append(self._guess(depth, node, drafted[node].logprob, len(sights), branches))
            short = f"{len(sights)} for {branches}"
            words = f"{len(sights)} for {many(branches, 'branch', 'branches')}"
            ops.append(scene.Change(f"row{depth}", right=words, right_short=short))
        return ops

    def _state(self, depth: int, x: int) -> Op:
        """A state of the target, or that it is not read."""
        whole = ALL in self.states or FIRST in self.states
        seen = whole or (NEWEST in self.states and x == READ)
        place = {"panel": "guesses", "x": x, "y": depth - 0.5, "w": 0.92, "h": 0.84}
        if not seen:
            words = "the target's state at this token is not read"
            return scene.Cell(f"s{self.rounds}.{depth}.{x}", **place, **look("unreached"), hover=[words])
        text, what, weight = self._read()
        shade = {"state": "prompt", "fill": "amount", "weight": weight}
        hover = [f"{what} at this token{' and at all earlier ones' if whole and x == 1 else ''}"]
        return scene.Cell(f"s{self.rounds}.{depth}.{x}", **place, **shade, text=text, hover=hover)

    def _read(self) -> tuple[str, str, float]:
        """What is read of the target at a token: in one word, in a sentence, and its grey."""
        if FIRST in self.states:
            return "early", "what the target's first layers made of the text", 0.2
        if SEVERAL in self.states:
            return "layers", "several of the target's layers", 0.6
        return "state", "the target's state", 0.35

    def _token(self, depth: int, back: int, node: int, seen: bool) -> Op:
        """The root or a drafted token above the guess."""
        place = {"panel": "guesses", "x": READ + 1 + back, "y": depth - 0.5, "w": 0.92, "h": 0.84}
        shape = {"state": "prompt", "fill": "tint"} if seen else look("unreached")
        text = {"text": self.nodes.text(node)} if seen else {}
        what = "the root" if back == 0 else f"the drafted token of depth {back}"
        how = ", through the target's first layers" if FIRST in self.states else ""
        visibility = f"seen at depth {depth}{how}" if seen else f"not seen at depth {depth}"
        hover = [f"{what}, {self.nodes.text(node)}, is {visibility}"]
        return scene.Cell(f"p{self.rounds}.{depth}.{back}", **place, **shape, **text, hover=hover)

    def _guess(self, depth: int, node: int, logprob: float | None, sights: int, branches: int) -> Op:
        """The guess on the shown path, and the number of branches with one."""
        place = {"panel": "guesses", "x": READ + 1 + depth, "y": depth - 0.5, "w": 0.92, "h": 0.84}
        q = None if logprob is None else math.exp(logprob)
        own = f"{many(sights, 'distribution')} for {many(branches, 'branch', 'branches')} of depth {depth}"
        hover = [f"{self.nodes.text(node)}  q {probability(q)}", own]
        text = {"text": self.nodes.text(node), "hover": hover, "node": node}
        return scene.Cell(f"g{self.rounds}.{depth}", **place, **look("live"), **text)

    def _ancestor(self, node: int, depth: int, wanted: int) -> int | None:
        """The ancestor at depth `wanted` of a node at `depth`; None above the root, which no guess sees."""
        if wanted < 0:
            return None
        for _ in range(depth - wanted):
            node = self.nodes.parent[node]
        return node


def verdict_of(verdicts: dict, node: int) -> str | None:
    """The status of a node, None without a verdict."""
    return verdicts[node].status if node in verdicts else None


def drafted_of(born: list, verdicts: dict) -> dict:
    """The nodes of a round's draft that the target was asked about, as Propose events by node: those that got
    a verdict, but for the target's own token and what was pruned before.
    """
    return {e.node: e for e in born if verdict_of(verdicts, e.node) not in (None, "pruned", *OWN)}


def path_of(drafted: dict, verdicts: dict) -> list[int]:
    """One path of a draft, from its first node on: the accepted one, and after it always the first child."""
    below: dict[int, list[int]] = {}
    for node, event in drafted.items():
        below.setdefault(event.parent, []).append(node)
    path, node = [], next((e.parent for e in drafted.values() if e.parent not in drafted), None)
    while children := below.get(node):
        node = next((n for n in children if verdict_of(verdicts, n) == "accepted"), children[0])
        path.append(node)
    return path
