"""Draft rounds: what the draft offered in each round, how far the target followed, and what it wrote instead.

A fold over Propose, Verdict and Commit: rows are rounds, columns token positions, so that good rounds are
long steps of a staircase. Chains and trees are one picture: verification only ever looks at children of the
path, so the path and its tested siblings show everything and need no edges. Serves any strategy whose steps
propose and verify.
"""

from dataclasses import replace
from typing import Any

from decoders.explain.verdicts import status_in_words
from decoders.trace.costs import Costs, DraftRound
from decoders.trace.events import Verdict
from decoders.trace.number_format import many
from visualizers import scene
from visualizers.analysis.distribution_stages import tolerated
from visualizers.scene import sizes
from visualizers.scene.drafted import OF_DRAFTS
from visualizers.scene.layout import Layout, Rounds
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import GLYPHS, STATES, folds_to, look
from visualizers.scene.view import Header, view
from visualizers.scene.words import compared, source_lines
from visualizers.views.any_lane.step_captions import drafting

# heights in rows: path cells, tried siblings, the foot with the rings
CELL, SIBLING, RINGS = 0.78, 0.72, 0.42
UNDRAFTED = DraftRound((), 0, 0, False)  # of a step that sent no draft to the target
MAX_TRIED = 4  # above four tried siblings at one place, three are drawn and the rest counted


@view("draft_rounds", "Draft rounds", reads=OF_DRAFTS)
class DraftRounds:
    """One band of rows a round; its height is known when it is verified, and it never moves."""

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        self.rounds, self.costs = 0, Costs()
        self.drafted: set[int] = set()  # nodes that were guessed, not decoded by the target
        self.tolerated: set[int] = set()  # accepted, though the target would have written another token
        # cells drawn before their verdict: node -> its Propose and its row
        self.waiting: dict[int, tuple] = {}
        self.cells: dict[str, dict[int, Op]] = {}  # row -> node -> its cell
        self.y = 0.0  # top of the next round
        self.start = 1  # first column of the round

    def head(self) -> Layout:
        """Title, question, the two panels (committed text above, rounds below) and the legend."""
        panels = [
            scene.Panel("text", y0=0, y1=1, px=30, rule=True),
            scene.Panel("rounds", y0=-0.15, y1=6, share=1, grow=True),
        ]
        expected = self.header.number("max_new_tokens", 0)
        lengths = [self.header.number(k, 0) for k in ("num_assistant_tokens", "prompt_lookup_num_tokens")]
        widths = self.header.parameters.get("widths")
        lengths += [len(widths)] if isinstance(widths, str | list) else []
        depth = max([int(length) for length in lengths if length], default=5) + 1
        return Rounds(
            question="What did the draft offer? How far did the target follow? What did it write instead?",
            ops=panels,
            row=sizes.TALL,
            wide=46,
            left=84,
            left_narrow=52,
            by_depth=min(12, max(3, depth)),
            fold_rows="stairs",
            columns=int(expected) + 2 if expected else None,
            legend=[
                ["cell:accepted", "■", "accepted", "accepted"],
                ["cell:tolerated", "≈", "tolerated", "accepted, though not the target's best"],
                ["cell:rejected", "✕", "rejected", "rejected"],
                ["cell:resampled", "◆", "resampled", "the target's own instead"],
                ["cell:bonus", "★", "bonus", "bonus"],
                ["cell:chosen", "■", "chosen", "decoded without a draft"],
                ["cell:unreached", "◌", "unreached", "drafted, never reached"],
                ["node:unreached", "○", "unreached", "drafted, never reached (a number: how many)"],
                ["cell:live", "○", "live", "not verified"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """One step is one round: its cells, its row, and the committed text above."""
        born, verdicts, commits = self.nodes.read(step)
        made = self.costs.add(step) or UNDRAFTED
        self.tolerated |= tolerated(step, self.header.parameters)
        tried = [e.node for e in step.events if isinstance(e, Verdict)]  # in the order of the tests
        if not born and not commits:
            return []
        if any(e.given for e in born):  # the lane's given beginning is not a round
            front = max(self.nodes.position[n] for n in commits)
            caption = f"Begins with {many(len(commits), 'given token')}."
            return [*self._text(commits, verdicts), scene.Front(front, 0), scene.Say(caption)]
        self.rounds += 1
        columns = [self.nodes.position.get(n, 0) for n in [*commits, *(e.node for e in born)]]
        self.start = min(columns)
        drafted = [e for e in born if e.source != "target"]
        self.drafted |= {e.node for e in drafted}
        parents = [e.parent for e in drafted]
        chain = len(set(parents)) == len(parents)
        ops, height = self._cells(born, verdicts, commits, tried, chain)
        top, self.y = self.y, self.y + height + 0.26
        row = scene.Row(
            f"r{self.rounds}",
            panel="rounds",
            y0=top - 0.13,
            y1=top + height + 0.13,
            text=f"round {self.rounds}",
            short=str(self.rounds),
            bold=f"+{len(commits)}",
            label_y=top + CELL / 2,
            first=self.start,
            last=max(columns),
            folds_to=folds_to(ops),
        )
        self.cells[row.id] = {op.node: op for op in ops if isinstance(op, scene.Cell)}
        ops += self._late(verdicts)
        self.waiting.update((e.node, (e, row.id)) for e in drafted if e.node not in verdicts)
        caption = scene.Say(drafting(self.rounds, made, verdicts, commits, self.nodes))
        return [row, *ops, *self._text(commits, verdicts), scene.Front(max(columns), top + height), caption]

    def _late(self, verdicts) -> list[Op]:
        """Verdicts on tokens from an earlier round change their cells, which stay in place."""
        ops, rows = [], []
        for node in [n for n in verdicts if n in self.waiting]:
            event, row = self.waiting.pop(node)
            hover = self._hover(node, {node: event}, verdicts)
            state = self._state(node, verdicts)
            glyph = {"glyph": GLYPHS[state]} if state in GLYPHS else {}
            ops.append(scene.Change(f"n{node}", **look(state), hover=hover, **glyph))
            if node in self.cells[row]:
                self.cells[row][node] = replace(self.cells[row][node], **look(state))
            rows.append(row)
        ends = {row: folds_to(self.cells[row].values()) for row in rows}
        return ops + [scene.Change(row, folds_to=end) for row, end in ends.items()]

    # ---- one round ---------------------------------------------------------------------------
    def _cells(self, born, verdicts, commits, tried, chain) -> tuple[list[Op], float]:
        """All cells of a round and its height in rows."""
        by_node = {e.node: e for e in born}
        path = {self.nodes.position[n]: n for n in commits if n in by_node}
        order = {node: i for i, node in enumerate(tried)}
        columns: dict[int, list[int]] = {}
        for event in sorted(born, key=lambda e: (order.get(e.node, len(order)), e.slot)):
            if path.get(self.nodes.position[event.node]) != event.node:
                columns.setdefault(self.nodes.position[event.node], []).append(event.node)
        ops, height = [], CELL
        for column in sorted(path.keys() | columns.keys()):
            made, low = self._column(
                column, path.get(column), columns.get(column, []), by_node, verdicts, chain
            )
            ops += made
            height = max(height, low)
        return ops, height

    def _column(self, column, on_path, others, by_node, verdicts, chain) -> tuple[list[Op], float]:
        """The cells of one round in one column, top to bottom, and where they end below the round's top."""
        state = {n: self._state(n, verdicts) for n in others}
        rejected = [n for n in others if state[n] == "rejected"]
        rings = [n for n in others if state[n] == "unreached" or state[n] == "pruned"]
        rest = [n for n in others if n not in rejected and n not in rings]
        make = lambda node, y, h, **more: self._cell(node, column, y, h, by_node, verdicts, **more)
        top = self.y
        if chain and on_path is not None and len(rejected) == 1 and not rest and not rings:
            half = (
                CELL - 0.02
            ) / 2  # the rejected token in the lower half of the cell of the one that replaced it
            return [make(on_path, top + half / 2, half), make(rejected[0], top + CELL - half / 2, half)], CELL
        ops, y = [], top
        if on_path is not None:
            ops.append(make(on_path, y + CELL / 2, CELL))
            y += CELL + 0.04
        if chain and on_path is None:
            rest, rings = rest + rejected + rings, []
            rejected = []
        for index, node in enumerate(rest + rejected):
            if len(rejected) > MAX_TRIED and index >= len(rest) + MAX_TRIED - 1:
                ops.append(make(node, y + 0.1, 0.2, drawn=False))
                continue
            ops.append(make(node, y + (CELL if chain else SIBLING) / 2, CELL if chain else SIBLING))
            y += (CELL if chain else SIBLING) + 0.04
        if len(rejected) > MAX_TRIED:
            text = f"✕ {len(rejected) - MAX_TRIED + 1} more"
            ops.append(
                scene.Label(
                    f"m{self.rounds}.{column}",
                    panel="rounds",
                    x=column,
                    depth=column - self.start + 1,
                    y=y + 0.14,
                    text=text,
                )
            )
            y += 0.3
        if not ops:
            y += CELL + 0.04  # beyond the path: at the height of the other columns' rings
        ops += self._rings(rings, column, y + RINGS / 2, by_node, verdicts)
        return ops, y - top + (RINGS if rings else 0)

    def _cell(self, node, column, y, h, by_node, verdicts, **more: Any) -> Op:
        state = self._state(node, verdicts)
        mark = scene.Cell(
            f"n{node}",
            panel="rounds",
            node=node,
            x=column,
            y=round(y, 4),
            w=1,
            depth=column - self.start + 1,
            h=round(h, 4),
            **look(state),
            text=self.nodes.text(node),
            hover=self._hover(node, by_node, verdicts),
            **more,
        )
        if state in GLYPHS:
            mark.glyph = GLYPHS[state]
        return mark

    def _rings(self, rings, column, y, by_node, verdicts) -> list[Op]:
        """Never reached: up to four rings, or one ring and a number. Every node keeps its mark."""
        ops = []
        for index, node in enumerate(rings):
            few = len(rings) <= 4
            shift = 0.17 * (index - (len(rings) - 1) / 2) if few else -0.16
            mark = scene.Node(
                f"n{node}",
                panel="rounds",
                node=node,
                x=round(column + shift, 4),
                y=round(y, 4),
                depth=round(column - self.start + 1 + shift, 4),
                state="unreached",
                hover=self._hover(node, by_node, verdicts),
            )
            if not few and index == 0:
                mark.note, mark.note_priority = str(len(rings)), 3
                mark.hover = [f"{many(len(rings), 'drafted token')}, never reached", self._list(rings)]
            elif not few:
                mark.drawn = False
            ops.append(mark)
        return ops

    def _list(self, nodes) -> str:
        shown = ", ".join(self.nodes.text(n) for n in nodes[:8])
        return shown + (f" and {len(nodes) - 8} more" if len(nodes) > 8 else "")

    def _state(self, node, verdicts) -> str:
        if node in self.tolerated:
            return "tolerated"
        if node in verdicts:
            return STATES.get(verdicts[node].status, "live")
        return "live" if node in self.drafted else "chosen"

    # ---- words -------------------------------------------------------------------------------
    def _hover(self, node, by_node, verdicts) -> list[str]:
        verdict, event = verdicts.get(node), by_node.get(node)
        lines = [self.nodes.text(node)]
        if verdict is None:
            return [f"{lines[0]}  drafted, not verified"]
        numbers = compared(verdict)
        first = f"{lines[0]}  {status_in_words(verdict.status)}" + (f": {numbers}" if numbers else "")
        siblings = [n for n, e in by_node.items() if event and e.parent == event.parent and n != node]
        words = [
            f"{self.nodes.text(n)} {status_in_words(verdicts[n].status)}"
            for n in siblings[:4]
            if n in verdicts
        ]
        second = self.nodes.reason(verdict) or ("same place: " + ", ".join(words) if words else "")
        return [first, *([second] if second else []), *source_lines(event.source if event else None)]

    def _text(self, commits, verdicts) -> list[Op]:
        forced = {n for n in commits if n in verdicts and verdicts[n].status == "forced"}
        return [
            scene.Label(
                f"t{n}",
                panel="text",
                node=n,
                x=self.nodes.position[n],
                y=0.72,
                rises=True,
                face="mono",
                role="ink",
                bold=True,
                priority=0,
                w=1,
                size=sizes.TEXT,
                text=("⚑" if n in forced else "") + self.nodes.text(n),
            )
            for n in commits
        ]
