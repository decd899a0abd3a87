"""One round: why some tokens were accepted and others not. Each step shows its own round, as a whole tree.

A visited node carries a test bar: a box from 0 to 1, filled to the probability of its test, usually min(1,
p/q), with a tick at u; a tick inside the fill means passed (Leviathan et al. 2023). A greedy verifier draws
no u: its fill is 0 or 1.
"""

import math
from collections import Counter
from dataclasses import replace

from decoders.explain.verdicts import status_in_words
from decoders.trace.number_format import many
from decoders.trace.reasons import Code
from decoders.trace.scores import Measure
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.drafted import OF_DRAFTS
from visualizers.scene.layout import Layout, Tree
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import STATES
from visualizers.scene.view import Header, view
from visualizers.scene.words import compared, source_lines, three_digits

BAR, AT = 0.42, 0.07  # width of a test bar and its distance from its node, in columns
OWN = 1.5  # rows between the path and the target's own token
# columns in which an edge turns down: to the left of the numbers below the test bar where it starts
BEND = 0.05
FEW = 3  # never-reached leaves of one parent that are drawn; if there are more, one ring stands for all
TESTED, LEAF = 3.2, 1.6  # rows of a node with a test bar: with numbers below it, or beside it
MIN_ROW = 18  # least height of a row in pixels, so that names and numbers of tested nodes fit
WRITERS = {"draft 2": " ²", "draft 3": " ³", "draft 4": " ⁴"}  # which draft model guessed, if not the first
TICK = 0.035  # width of the tick at u, in columns
RING, RING_OF_MANY, MANY = 0.62, 0.45, 30  # rows of a never-reached leaf; smaller above this many nodes
SETTLED = ["accepted", "resampled", "bonus", "chosen", "forced", "finished"]
PUNCTUATION = ".,:;'`-_·"  # of few pixels: named in quotes
# a watched number is near the heading above the first, and drawn no higher than the second; in limits
HIGH, MAX_WATCHED = 0.7, 3.0
ORDER = [*SETTLED, "rejected", "live", "pruned", "unreached"]  # of siblings, top to bottom


@view("one_round", "One round", reads=OF_DRAFTS)
class OneRound:
    """x is draft depth (0: the committed text); the path is straight, the target's own token above it."""

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        self.shown: list[str] = []  # ids of the marks of the round on show
        self.rounds = 0

    def head(self) -> Layout:
        """Title, question, layout and legend; every round brings its own panel."""
        return Tree(
            question="Why was this token accepted and that one not?",
            column=sizes.WORD,
            column_narrow=54,
            tight=44,
            tightest=30,
            widest=300,
            row_tall=44,
            columns="panel",
            right=96,
            right_narrow=48,
            axis="draft depth",
            patched=True,
            legend=[
                ["node:accepted", "●", "accepted", "accepted: u lies in the filled part, often min(1, p/q)"],
                ["node:rejected", "✕", "rejected", "rejected"],
                ["node:resampled", "◆", "resampled", "the target's own instead"],
                ["node:bonus", "★", "bonus", "bonus"],
                ["node:unreached", "○", "unreached", "never reached"],
            ],
            overview=None,
        )

    def feed(self, step) -> list[Op]:
        """Hides the previous round and draws this one."""
        born, verdicts, commits = self.nodes.read(step)
        if not born or any(event.given for event in born):  # the lane's given beginning is not a round
            return []
        self.rounds += 1
        hidden = [scene.Change(key, gone=True) for key in self.shown]
        close = self._close(born, verdicts)
        marks = self._round(born, verdicts, commits, close) + self._watched(step, born)
        self.shown = [mark.id for mark in marks]
        marks[0].columns = max(self._depth(e.node, born) + (e.node in close) for e in born)
        deepest = max(
            [1, *(self._depth(n, born) for n in commits), *(self._depth(n, born) + 1 for n in close)]
        )
        return [*hidden, *marks, scene.Front(deepest, 0)]

    # ---- layout ------------------------------------------------------------------------------
    @staticmethod
    def _close(born, verdicts) -> set[int]:
        """Tested leaves with tested siblings: their bars are close, so their numbers stand beside them."""
        tested = [
            e for e in born if e.node in verdicts and verdicts[e.node].status in ("accepted", "rejected")
        ]
        parents, siblings = {e.parent for e in born}, Counter(e.parent for e in tested)
        return {e.node for e in tested if e.node not in parents and siblings[e.parent] > 1}

    def _depth(self, node: int, born) -> int:
        start = min(self.nodes.position[e.node] for e in born)
        return self.nodes.position.get(node, start) - start + 1

    def _state(self, node: int, verdicts, commits) -> str:
        if node in verdicts:
            return STATES.get(verdicts[node].status, "live")
        return "chosen" if node in commits else "live"

    def _rows(self, born, states, commits) -> tuple[dict[int, float], float]:
        """Rows of the nodes (a first child keeps its parent's, a leaf takes the next) and their number."""
        here = {e.node for e in born}
        children: dict[int, list] = {}
        for event in born:
            children.setdefault(event.parent, []).append(event)
        folded = self._folded(born, states)
        many = len(born) > MANY
        row: dict[int, float] = {}
        free = OWN if "resampled" in states.values() else 0.0
        roots = [p for p in children if p not in here]
        pending = [(root, None) for root in reversed(roots)]
        while pending:
            node, home = pending.pop()
            if home is None:
                home = free
            row[node] = home
            if states.get(node) in ("accepted", "rejected"):
                free = max(free, home + (TESTED if node in children else LEAF))
            elif states.get(node, "unreached") not in ("unreached", "pruned"):
                free = max(free, home + 1)
            own = [e for e in children.get(node, []) if states[e.node] == "resampled"]
            pending += [(e.node, max(0.0, home - OWN)) for e in own]  # the target's own token, above the path
            rest = [e for e in children.get(node, []) if e not in own and e.node not in folded]
            rest.sort(key=lambda e: (e.node not in commits, ORDER.index(states[e.node]), e.slot))
            if not rest:
                free = max(free, home + (RING_OF_MANY if many else RING))
            pending += [(e.node, home if i == 0 else None) for i, e in reversed(list(enumerate(rest)))]
        row |= {node: row[ring] for node, ring in folded.items()}
        return row, max([free, *(y + 1 for y in row.values())])

    @staticmethod
    def _folded(born, states) -> dict[int, int]:
        """Never-reached nodes that the ring of another node stands for: node -> that node. In a large tree
        all but the first branch of a parent, else leaves of a parent with more than a few.
        """
        children: dict[int, list] = {}
        for event in born:
            children.setdefault(event.parent, []).append(event.node)
        folded: dict[int, int] = {}
        for parent, nodes in children.items():  # from the root on
            if parent in folded:
                continue
            limbs = [node for node in nodes if states[node] == "unreached"]
            if len(born) > MANY:
                rest = limbs[1:] if len(limbs) > 2 or any(node in children for node in limbs[1:]) else []
            else:
                rest = [node for node in limbs if node not in children]
                rest = rest if len(rest) > FEW else []
            pending = list(rest)
            while pending:
                node = pending.pop()
                folded[node] = folded.get(rest[0], rest[0])
                pending += children.get(node, [])
        return {node: ring for node, ring in folded.items() if node != ring}

    # ---- marks -------------------------------------------------------------------------------
    def _round(self, born, verdicts, commits, close) -> list[Op]:
        states = {e.node: self._state(e.node, verdicts, commits) for e in born}
        rows, height = self._rows(born, states, commits)
        panel = f"p{self.rounds}"
        here = {e.node for e in born}
        marks: list[Op] = [scene.Panel(panel, y0=0, y1=height, rows=round(height, 3), share=1)]
        if any(state in ("accepted", "rejected") for state in states.values()):
            marks[0].min_row = MIN_ROW
        for root in [n for n in rows if n not in here]:
            marks.append(
                scene.Node(
                    f"r{self.rounds}.{root}",
                    node=root,
                    x=0,
                    y=rows[root],
                    state="chosen",
                    text=self._name(root),
                    hover=["the text so far ends here"],
                )
            )
        parents = {e.node: e.parent for e in born}
        folded = self._folded(born, states)
        for event in born:
            if event.node in folded:
                marks.append(self._hidden(event, rows, born, verdicts))
                continue
            made = self._node(event, rows, states, verdicts, born, parents, event.node in close)
            own = [event.node, *(node for node, ring in folded.items() if ring == event.node)]
            if len(own) > 1:
                names = ", ".join(self.nodes.text(n) for n in own[:8]) + (", …" if len(own) > 8 else "")
                hover = [f"{many(len(own), 'drafted token')}, never reached", names]
                made[-1] = replace(made[-1], text="", note=str(len(own)), note_priority=3, hover=hover)
            marks += made
        for mark in marks[1:]:
            mark.panel = panel
        return marks

    def _watched(self, step, born) -> list[Op]:
        """A panel below for a number that a method compares with its limit at nodes of this round."""
        here = {e.node for e in born}
        scores = [e for e in step.of(Measure) if e.limit is not None]
        scores = [e for e in scores if e.node in here]
        if not scores:
            return []
        panel, name = f"w{self.rounds}", scores[0].name
        limits = {self._depth(e.node, born): e.limit for e in scores}
        top = max(1.0, *limits.values())
        # higher values are drawn at this height
        high = max(top, min(max(e.total for e in scores), MAX_WATCHED * top))
        at = {e.node: (self._depth(e.node, born), round(min(e.total, high), 4)) for e in scores}
        same = len(set(limits.values())) == 1
        limit_text = f"; limit {three_digits(limits[min(limits)])}." if same else "; limits dashed."
        ends = [[0.5, limits[min(limits)]], [max(limits) + 0.5, limits[max(limits)]]]
        if not same:
            ends = [[x + side, limit] for x, limit in sorted(limits.items()) for side in (-0.5, 0.5)]
        marks: list[Op] = [
            scene.Panel(panel, y0=1.6 * high, y1=-0.05 * high, px=82, lead=name, heading=limit_text),
            scene.Path(f"{panel}l", points=ends, role="live", width=1.4, dash="dash"),
        ]
        if len(at) > 1:
            points = [list(place) for place in sorted(at.values())]
            marks.append(scene.Path(f"{panel}p", points=points, role="ink", width=1.6))
        for event in scores:
            x, y = at[event.node]
            lines = [f"{part} {three_digits(value)}" for part, value in sorted(event.numbers.items())]
            hover = [f"{self.nodes.text(event.node)}  {name} {three_digits(event.total)}", ", ".join(lines)]
            dot = {"x": x, "y": y, "glyph": "dot", "role": "ink", "hover": hover, "node": event.node}
            marks.append(scene.Symbol(f"{panel}.{event.node}", **dot))
            label = {"text": three_digits(event.total), "align": "center", "priority": 3}
            below = 14 if y > HIGH * high else -12  # the heading is above a high dot
            marks.append(scene.Label(f"{panel}v{event.node}", x=x, y=y, dy=below, **label))
        return [replace(mark, panel=panel) for mark in marks]

    def _hidden(self, event, rows, born, verdicts) -> Op:
        """A leaf that another one's ring stands for: counted, not drawn."""
        place = {"x": self._depth(event.node, born), "y": rows[event.node], "drawn": False}
        hover = self._hover(event, verdicts.get(event.node))
        return scene.Node(f"n{event.node}", node=event.node, state="unreached", **place, hover=hover)

    def _node(self, event, rows, states, verdicts, born, parents, beside) -> list[Op]:
        node, state, x, y = event.node, states[event.node], self._depth(event.node, born), rows[event.node]
        verdict = verdicts.get(node)
        above = f"n{event.parent}" if event.parent in parents else f"r{self.rounds}.{event.parent}"
        mark = scene.Node(
            f"n{node}",
            node=node,
            parent=above,
            x=x,
            y=y,
            state=state,
            text=self._name(node) + WRITERS.get(event.source, ""),
            bold=state not in ("unreached", "live", "pruned"),
            priority={"unreached": 7, "rejected": 0, "resampled": 0}.get(state, 2),
            hover=self._hover(event, verdict),
        )
        tested = event.parent in parents and verdicts.get(event.parent) is not None
        edge = scene.Edge(
            f"e{node}",
            x0=x - 1 + (AT + BAR if tested and state == "resampled" else 0),
            y0=rows[event.parent],
            x1=x,
            y1=y,
            state=state,
            weight=0.5,
            **{"bend": BEND} if y > rows[event.parent] else {},
        )
        if verdict is None or state not in ("accepted", "rejected") or verdict.p is None:
            if state in ("resampled", "bonus") and verdict is not None:
                mark.note, mark.note_more = f"p {three_digits(verdict.p)}", status_in_words(verdict.status)
                mark.note_priority = 1
            return [edge, mark]
        no_q = event.source == "draft" or any(reason.code is Code.CERTAIN_DRAFT for reason in verdict.why)
        return [edge, *self._test(node, x, y, state, verdict, beside, no_q), mark]

    def _test(self, node: int, x: float, y: float, state: str, verdict, beside: bool, no_q: bool) -> list[Op]:
        """The test bar, its tick at u and the numbers, below it or beside it. no_q: says if q is missing."""
        ratio = verdict.passes
        if verdict.u is None or ratio is None:
            ratio = 1.0 if state == "accepted" else 0.0
        left = x + AT
        box = {"y": y, "h": 0.1, "tall": 11, "state": state}
        marks = [scene.Cell(f"b{node}", **box, x=left + BAR / 2, w=BAR, fill="outline")]
        if ratio > 0.02:
            width = BAR * ratio
            marks.append(
                scene.Cell(f"f{node}", **box, x=round(left + width / 2, 4), w=round(width, 4), fill="filled")
            )
        if verdict.u is not None:
            at = round(left + BAR * verdict.u, 4)
            tick = {"state": "chosen", "tall": 19, "x": at, "w": TICK, "fill": "filled"}
            marks.append(scene.Cell(f"u{node}", **(box | tick)))
        lines = [f"{k} {three_digits(v)}" for k, v in (("p", verdict.p), ("q", verdict.q)) if v is not None]
        lines += ["no q"] if verdict.q is None and no_q else []
        lines += [f"u {verdict.u:.3f}".replace(" 0.", " .")] if verdict.u is not None else []
        words = "  ".join(lines)
        where = {"x": round(left + BAR + 0.05, 4), "y": y} if beside else {"x": left, "y": y, "dy": 16}
        look = {"align": "left", "priority": 1 if state == "rejected" else 3, "stack": True}
        return [*marks, scene.Label(f"l{node}", **where, text=words, **look)]

    def _name(self, node: int) -> str:
        """The token above its node; a dot or a comma alone would be lost on the node's own mark."""
        text = self.nodes.text(node)
        return f"“{text}”" if len(text) == 1 and text in PUNCTUATION else text

    def _hover(self, event, verdict) -> list[str]:
        text = self.nodes.text(event.node)
        if verdict is None:
            q = f", q {three_digits(math.exp(min(0.0, event.logprob)))}" if event.logprob is not None else ""
            return [f"{text}  drafted, not verified{q}"]
        numbers = compared(verdict)
        first = f"{text}  {status_in_words(verdict.status)}" + (f": {numbers}" if numbers else "")
        reason = self.nodes.reason(verdict)
        return [first, *([reason] if reason else []), *source_lines(event.source)]
