"""Ranks: what the draft guessed at each depth, the most likely first, with its tree drawn into that table.

A fold over Propose, Distribution (of the draft) and Verdict. Each step shows its own round: a column per
depth has the guesses below the path that was kept. If the guesses of a depth are the same on every branch,
all of the tree stands in the table; otherwise nodes of other branches are counted below it.
"""

import math

from decoders.trace.events import Distribution
from decoders.trace.number_format import many
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.drafted import OF_DRAFTS
from visualizers.scene.layout import Columns, Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import GLYPHS, STATES, look
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability
from visualizers.views.speculative.sees import NOTHING, OWN, drafted_of, path_of, verdict_of

ROWS = 8  # most ranks shown
DARKEST = 0.55  # grey of a guess that is certain
# of several nodes in one cell, the first of these states is shown
WORTH = ("accepted", "rejected", "unreached")


@view("ranks", "Ranks", reads=(has(Distribution, view="draft", level=None), OF_DRAFTS))
class Ranks:
    """x: depths, the root first; y: ranks, the most likely guess at the top."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.shown: list[str] = []  # ids of the marks of the round on show
        self.rounds = 0

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        rows = [
            scene.Row(f"row{r}", panel="table", y0=r, y1=r + 1, text=f"rank {r + 1}", rule=False)
            for r in range(ROWS)
        ]
        return Columns(
            question="Which of the guesses of each depth became the tree, and which one was right?",
            column=sizes.PHRASE,
            wide=96,
            widest=150,
            left=64,
            left_narrow=52,
            axis=None,
            clip=True,
            ops=[
                heading(px_narrow=52, heading=NOTHING),
                scene.Panel("depths", y0=-0.5, y1=0.5, px=20),
                scene.Panel("table", y0=-0.1, y1=ROWS + 1.1, px=26 * (ROWS + 1)),
                *rows,
            ],
            legend=[
                ["cell:accepted", "■", "accepted", "accepted"],
                ["cell:rejected", "✕", "rejected", "rejected"],
                ["cell:unreached", "◌", "unreached", "never reached"],
                ["cell:resampled", "◆", "resampled", "the target's own token"],
                ["cell:bonus", "★", "bonus", "bonus"],
                ["cell:amount", "▪", "soft", "guessed, not in the tree; darker: more likely"],
            ],
            overview=None,
        )

    def feed(self, step) -> list[Op]:
        """Hides the previous round and draws this one, if anything was drafted."""
        born, verdicts, _ = self.nodes.read(step)
        own = [e for e in born if verdict_of(verdicts, e.node) in OWN]
        drafted = drafted_of(born, verdicts)
        offers = {
            e.node: [int(token) for token, _ in e.top]
            for e in step.events
            if isinstance(e, Distribution) and e.view == "draft" and e.level is None
        }
        probs = {
            (e.node, int(token)): math.exp(logprob)
            for e in step.events
            if isinstance(e, Distribution) and e.view == "draft" and e.level is None
            for token, logprob in e.top
        }
        path = path_of(drafted, verdicts)
        if not path or drafted[path[0]].parent not in offers:
            return []
        self.rounds += 1
        above = [drafted[path[0]].parent, *path[:-1]]  # column j has what was guessed below above[j]
        columns = [offers.get(node, [])[:ROWS] for node in above]
        cells, elsewhere = self._placed(drafted, offers, columns, above[0])
        target = self._target(own, drafted, offers, columns, above[0])
        marks = [
            *self._names(len(columns), above[0]),
            *self._edges(cells, drafted, verdicts),
            *self._cells(columns, above, cells, verdicts, probs, target),
            *self._elsewhere(elsewhere),
        ]
        hidden = [scene.Change(key, gone=True) for key in self.shown]
        self.shown = [op.id for op in marks]
        lead, heading = self._words(path, verdicts, target, own)
        return [
            *hidden,
            *marks,
            scene.Change("heading", lead=lead, heading=heading),
            scene.Front(1 + len(columns), 1),
            scene.Say(f"{lead}{heading}"),
        ]

    # ---- where nodes stand -------------------------------------------------------------------
    def _placed(self, drafted: dict, offers: dict, columns: list, root: int) -> tuple[dict, list[int]]:
        """(node -> its depth (from 1) and rank (from 0), for nodes drafted from the guesses of their column;
        how many others there are, depth by depth).
        """
        cells, depth, elsewhere = {}, {root: 0}, [0] * len(columns)
        for node, event in drafted.items():
            if event.parent not in depth:
                continue
            at = depth[node] = depth[event.parent] + 1
            if at > len(columns):
                continue
            same = offers.get(event.parent, [])[:ROWS] == columns[at - 1]
            if same and event.token in columns[at - 1]:
                cells[node] = (at, columns[at - 1].index(event.token))
            else:
                elsewhere[at - 1] += 1
        return cells, elsewhere

    def _target(self, own: list, drafted: dict, offers: dict, columns: list, root: int) -> tuple | None:
        """Depth, rank and state of the target's own token, if the draft had guessed there: rank None if it
        is not among the listed ones.
        """
        for event in own:
            depth, node = 1, event.parent
            while node != root and node in drafted:
                depth, node = depth + 1, drafted[node].parent
            if node == root and depth <= len(columns) and event.parent in offers:
                column = columns[depth - 1]
                rank = column.index(event.token) if event.token in column else None
                return depth, rank, event.node
        return None

    # ---- marks -------------------------------------------------------------------------------
    def _names(self, count: int, root: int) -> list[Op]:
        """Above each column its depth; the root stands in front of the table."""
        names = {1: "root"} | {1 + depth: f"depth {depth}" for depth in range(1, count + 1)}
        ops = [
            scene.Label(f"d{self.rounds}.{x}", panel="depths", x=x, y=0, text=text)
            for x, text in names.items()
        ]
        place = {"panel": "table", "x": 1, "y": 0.5, "w": 0.7, "h": 0.84, "node": root}
        text = {"text": self.nodes.text(root), "hover": [f"{self.nodes.text(root)}, the root"]}
        return [*ops, scene.Cell(f"root{self.rounds}", **place, **look("chosen"), **text)]

    def _edges(self, cells: dict, drafted: dict, verdicts: dict) -> list[Op]:
        """From each place in the tree to those below it, once for each pair; the kept path is drawn last."""
        pairs: dict[tuple, bool] = {}
        for node, (depth, rank) in cells.items():
            parent = drafted[node].parent
            if depth > 1 and parent not in cells:
                continue
            start = cells[parent] if depth > 1 else (0, 0)
            kept = verdict_of(verdicts, node) == "accepted"
            pairs[(start, (depth, rank))] = pairs.get((start, (depth, rank)), False) or kept
        ops = []
        for number, ((start, end), kept) in enumerate(sorted(pairs.items(), key=lambda pair: pair[1])):
            place = {"x0": start[0] + 1.35, "y0": start[1] + 0.5, "x1": end[0] + 0.65, "y1": end[1] + 0.5}
            state = "accepted" if kept else "pruned"
            weight = {"weight": 1.0 if kept else 0.1}
            ops.append(scene.Edge(f"e{self.rounds}.{number}", panel="table", **place, state=state, **weight))
        return ops

    def _cells(self, columns, above, cells, verdicts, probs, target) -> list[Op]:
        """The table: guesses that are in the tree by their verdicts, the others by their probability."""
        inside: dict[tuple, list[int]] = {}
        for node, place in cells.items():
            inside.setdefault(place, []).append(node)
        ops = []
        for depth, column in enumerate(columns, 1):
            for rank, token in enumerate(column):
                q, nodes = probs[(above[depth - 1], token)], inside.get((depth, rank), [])
                word = self.nodes.word(token)
                hover = [f"{word}  rank {rank + 1} of depth {depth}, q {probability(q)}"]
                shape = {"state": "prompt", "fill": "amount", "weight": round(DARKEST * q, 4)}
                if nodes:
                    states = [STATES.get(verdict_of(verdicts, n), "live") for n in nodes]
                    state = min(states, key=lambda s: WORTH.index(s) if s in WORTH else len(WORTH))
                    shape = look(state) | ({"glyph": GLYPHS[state]} if state in GLYPHS else {})
                    hover.append(f"{many(len(nodes), 'node')} of the tree: " + ", ".join(sorted(set(states))))
                elif target is not None and target[:2] == (depth, rank):
                    state = STATES[verdicts[target[2]].status]
                    shape = look(state) | {"glyph": GLYPHS[state]}
                    hover.append("the target's own token; not in the tree")
                place = {"panel": "table", "x": depth + 1, "y": rank + 0.5, "w": 0.7, "h": 0.84}
                place |= {"node": nodes[0]} if nodes else {}
                ops.append(
                    scene.Cell(f"c{self.rounds}.{depth}.{rank}", **place, **shape, text=word, hover=hover)
                )
        return ops

    def _elsewhere(self, counts: list[int]) -> list[Op]:
        """Below each column how many nodes of the tree have other guesses."""
        return [
            scene.Label(f"o{self.rounds}.{depth}", panel="table", x=depth + 1, y=ROWS + 0.5, text=f"+{count}")
            for depth, count in enumerate(counts, 1)
            if count
        ]

    # ---- words -------------------------------------------------------------------------------
    def _words(self, path: list[int], verdicts: dict, target, own: list) -> tuple[str, str]:
        """How far the target followed, and at which rank its own token stood."""
        kept = sum(verdict_of(verdicts, node) == "accepted" for node in path)
        lead = f"Round {self.rounds}: {kept} accepted"
        if target is None:
            bonus = [e.node for e in own if verdict_of(verdicts, e.node) == "bonus"]
            return lead, f"; the target added {self.nodes.text(bonus[0])}." if bonus else "."
        depth, rank, node = target
        where = f"was rank {rank + 1}" if rank is not None else f"is not among the {ROWS} most likely"
        return lead, f"; the target's own {self.nodes.text(node)} {where} of depth {depth}."
