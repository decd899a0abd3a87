"""The graph of a lane's tokens: what was drafted or opened, what became of it, and what all its texts share.

x is the token position, a row is a path. Of a draft every node is drawn; of a search those that were opened,
ended, merged or committed: a node says how many more candidates it had. The path that a round commits stays
in its row, other drafted nodes take the next free rows below; branches of a search get rows of their own, in
the order in which they began. So no node ever moves, and lines stay in the gaps between columns. Merged nodes
stay, with an arrow to the node that they became.
"""

import math

from decoders.refusal import Refusal
from decoders.trace.costs import Costs
from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.number_format import many
from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.analysis.distribution_stages import tolerated
from visualizers.graphs.lattice import merged
from visualizers.graphs.token_tree import is_draft, read, trunk
from visualizers.scene import sizes
from visualizers.scene.layout import Graph, Layout, scroll_row
from visualizers.scene.marks import Op
from visualizers.scene.verdict_marks import GLYPHS, STATES, look
from visualizers.scene.view import Header
from visualizers.scene.words import compared, probability, source_lines

WIDE, TALL = 0.8, 0.72  # of a token's box, in columns and rows
ENDS = (-0.34, -0.17, 0.0, 0.17, 0.34)  # x offsets of the ends of texts without a box
NEVER_OPENED = ("no verdict", "pruned", "never reached")


class Tokens:
    """Columns count generated tokens from 1 (0: the end of the prompt), rows from 0 downwards."""

    TOP = -0.6

    def __init__(self, header: Header):
        self.header, self.root = header, len(header.prompt) - 1
        self.graph = trunk(header)
        self.row: dict[int, int] = {self.root: 0}  # drawn node -> row
        self.taken: dict[int, set[int]] = {0: {0}}  # row -> its columns with a node
        self.ends: dict[int, int] = {}  # node -> texts that end after it without a box
        self.verdicts: dict[int, Verdict] = {}
        self.source: dict[int, str] = {}
        self.opened: dict[int, int] = {}  # node -> its place in the order of opening
        self.meets: set[int] = set()  # nodes that others became
        self.tolerated: set[int] = set()
        self.drafted: set[int] = set()
        self.costs = Costs()
        self.merges = 0
        self.shared: set[int] = set()  # tokens that all texts found have in common
        self.dotted: set[int] = set()  # tokens that were ever among them
        self.lattice: dict | None = None  # attributes of the lattice's graph, once a text has ended
        self.front = 0

    def head(self) -> Layout:
        """Question, layout, the end of the prompt."""
        text = visible(self.header.vocabulary.get(self.header.prompt[-1], b"?"))
        place = {"panel": "graph", "node": self.root, "x": 0, "y": 0, "w": WIDE, "h": TALL, "text": text}
        seen = {"state": "prompt", "fill": "tint", "hover": [f"{text}  the end of the prompt"]}
        return Graph(
            question="What was expanded or drafted? Where do paths meet? What do all texts share?",
            first=0,
            row=sizes.BOX,
            row_tall=44,
            column=sizes.WORD,
            column_narrow=54,
            wide=66,
            widest=84,
            overview="rows",
            axis="token position",
            ops=[
                scroll_row(0, "graph", -0.5, 0.5),
                scene.Cell(f"n{self.root}", **place, **seen),
            ],
            legend=[
                ["cell:chosen", "■", "chosen", "taken"],
                ["cell:accepted", "■", "accepted", "accepted"],
                ["cell:tolerated", "≈", "tolerated", "accepted, though not the target's best"],
                ["cell:rejected", "✕", "rejected", "rejected"],
                ["cell:resampled", "◆", "resampled", "the target's own instead, or two paths meet"],
                ["cell:bonus", "★", "bonus", "bonus"],
                ["cell:finished", "■", "finished", "finished text"],
                ["cell:prompt", "□", "soft", "expanded"],
                ["cell:unreached", "◌", "unreached", "never reached"],
                ["cell:pruned", "✕", "pruned", "given up"],
                ["cell:live", "○", "live", "not verified"],
                ["cell:forced", "⚑", "forced", "inserted by hand"],
                ["path", "→", "link", "merged into the same node"],
                ["symbol", "•", "ink", "in every finished text"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: new nodes, what became of others, and what the whole graph says now."""
        read(self.graph, self.header, step)
        touched = self._take_in(step)
        if not touched:
            return []
        fresh = [node for node in touched if node not in self.row and self._is_drawn(node)]
        ops = self._place(fresh)
        known = [node for node in touched if node in self.row and node not in fresh]
        ops += [op for node in known for op in self._restate(node)]
        ops += [op for node in touched for op in self._merge(node)]
        if any(self._status(node) in ("finished", "merged") for node in touched):
            ops += self._share()
        words = self._words()
        ops.append(scene.Change("heading", lead=words[0], heading=words[1], short=words[2]))
        path = [e.nodes[-1] for e in step.of(Commit) if e.nodes]
        here = max((self._column(n) for n in touched if n in self.row), default=0)
        if path and not self.drafted:  # a search ends at the text that it takes, however far it has searched
            self.front = self._column(path[-1])
        else:
            self.front = here if self.drafted else max(self.front, here)
        low = self.row[path[-1]] if path else len(self.taken) - 1
        caption = f"Step {step.index + 1}: {words[0]}{words[1]}"
        return [*ops, scene.Front(self.front, low + 0.5), scene.Say(caption)]

    # ---- what the step says ------------------------------------------------------------------
    def _take_in(self, step) -> list[int]:
        """The nodes that the step's events are about, parents before their children."""
        touched: dict[int, None] = {}
        for event in step.events:
            match event:
                case Propose():
                    self.source[event.node] = event.source
                    self.opened.setdefault(event.parent, len(self.opened))
                    if is_draft(self.graph.nodes[event.node]):
                        self.drafted.add(event.node)
                    touched.update({event.parent: None, event.node: None})
                case Verdict():
                    self.verdicts[event.node] = event
                    touched[event.node] = None
                    if event.status == "merged" and event.into in self.graph:
                        self.meets.add(event.into)
                        touched[event.into] = None
                case Commit():
                    touched.update(dict.fromkeys(event.nodes))
        self.tolerated |= tolerated(step, self.header.parameters)
        self.costs.add(step)
        return [node for node in touched if node > self.root]

    def _status(self, node: int) -> str:
        return self.graph.nodes[node]["status"]

    def _is_drawn(self, node: int) -> bool:
        known = self.graph.nodes[node]
        never_opened = known["status"] in NEVER_OPENED and node not in self.opened and not known["committed"]
        return node in self.drafted or node in self.meets or not never_opened

    # ---- places ------------------------------------------------------------------------------
    def _column(self, node: int) -> int:
        return self.graph.nodes[node]["depth"]

    def _parent(self, node: int) -> int:
        return next(self.graph.predecessors(node))

    def _place(self, fresh: list[int]) -> list[Op]:
        """New nodes, each with all that continues straight after it: first what was committed, then what was
        rejected, so that it is close.
        """
        ops, waiting, nodes = [], set(fresh), self.graph.nodes
        first = sorted(fresh, key=lambda n: (not nodes[n]["committed"], nodes[n]["status"] != "rejected"))
        for node in first:
            while node in waiting:
                top = node
                while self._parent(top) in waiting:
                    top = self._parent(top)
                chain = self._chain(top, waiting)
                waiting -= set(chain)
                ops += self._end(top) if self._is_end(chain) else self._put(chain)
        return ops

    def _put(self, chain: list[int]) -> list[Op]:
        """Boxes for a chain of new nodes, in one row."""
        row, ops = self._free_row(chain), []
        for at in range(len(self.taken), row + 1):
            self.taken[at] = set()
            ops.append(scroll_row(at, "graph", at - 0.5, at + 0.5))
        self.row |= dict.fromkeys(chain, row)
        self.taken[row] |= {self._column(node) for node in chain}
        return ops + [op for node in chain for op in self._birth(node)]

    def _chain(self, node: int, waiting: set[int]) -> list[int]:
        """`node`, the child that is committed, else the first, and so on, as far as they are new."""
        chain = [node]
        while below := [n for n in self.graph.successors(chain[-1]) if n in waiting]:
            chain.append(min(below, key=lambda n: not self.graph.nodes[n]["committed"]))
        return chain

    def _straight(self, node: int) -> bool:
        """Whether a node may continue its parent's row: nothing is there from its column on."""
        return all(column < self._column(node) for column in self.taken[self.row[self._parent(node)]])

    def _is_end(self, chain: list[int]) -> bool:
        """Whether this is a text that ends at once beside a path that continues straight: it needs no row."""
        node, *after = chain
        known = self.graph.nodes[node]
        plain = known["status"] == "finished" and not known["committed"] and node not in self.drafted
        return plain and not after and not self._straight(node)

    def _free_row(self, chain: list[int]) -> int:
        """The row where a chain has room: its parent's, or one below it."""
        first, parent = chain[0], self._parent(chain[0])
        home = self.row[parent]
        if not self.drafted:
            return home if self._straight(first) else len(self.taken)
        aside = self.graph.nodes[parent]["committed"] or parent == self.root
        return self._below(home + (aside and not self.graph.nodes[first]["committed"]), chain)

    def _below(self, row: int, chain: list[int]) -> int:
        columns = {self._column(node) for node in chain}
        while columns & self.taken.get(row, set()):
            row += 1
        return row

    # ---- marks -------------------------------------------------------------------------------
    def _birth(self, node: int) -> list[Op]:
        x, y = self._column(node), self.row[node]
        place = {"panel": "graph", "node": node, "x": x, "y": y, "w": WIDE, "h": TALL}
        look = {**self._look(self._state(node)), "text": self._word(node), "hover": self._hover(node)}
        return [self._line(node, x - WIDE / 2, y), scene.Cell(f"n{node}", **place, **look)]

    def _line(self, node: int, x: float, y: float) -> Op:
        """The line from a node's parent to (x, y)."""
        start = {"x0": self._column(node) - 1 + WIDE / 2, "y0": self.row[self._parent(node)]}
        end = {"x1": round(x, 3), "y1": y}
        return scene.Edge(f"e{node}", panel="graph", **start, **end, state=self._edge(node))

    def _end(self, node: int) -> list[Op]:
        """A text that ends beside others: a small square below the row of its parent, in its own column."""
        parent = self._parent(node)
        self.row[node], count = self.row[parent], self.ends.get(parent, 0)
        self.ends[parent] = count + 1
        x, y = self._column(node) + ENDS[min(count, len(ENDS) - 1)], self.row[node] + 0.48
        place = {"panel": "graph", "node": node, "x": x, "y": y}
        look = {"state": "finished", "hover": self._hover(node), "drawn": count < len(ENDS)}
        return [self._line(node, x, y), scene.Node(f"n{node}", **place, **look)]

    def _restate(self, node: int) -> list[Op]:
        changed = {**self._look(self._state(node)), "hover": self._hover(node)}
        return [scene.Change(f"n{node}", **changed), scene.Change(f"e{node}", state=self._edge(node))]

    def _state(self, node: int) -> str:
        status, known = self._status(node), self.graph.nodes[node]
        if node in self.tolerated:
            return "tolerated"
        if status in ("finished", "forced") or (node in self.drafted and status in STATES):
            return STATES[status]
        if node in self.meets:
            return "resampled"
        if known["committed"]:
            return STATES[status] if status in ("accepted", "resampled", "bonus") else "chosen"
        if status in STATES:
            return STATES[status]
        return "live" if node in self.drafted else "prompt"

    def _edge(self, node: int) -> str:
        """Edges are grey in a search, strong where they were taken; in a draft they look like the nodes they
        lead to.
        """
        state = self._state(node)
        if state == "prompt" or (state in ("resampled", "finished") and not self.drafted):
            return "chosen" if self.graph.nodes[node]["committed"] else "pruned"
        return state

    @staticmethod
    def _look(state: str) -> dict:
        opened = {"fill": "outline"} if state == "prompt" else {}
        return {**look(state), **opened, "glyph": GLYPHS.get(state, "")}

    def _merge(self, node: int) -> list[Op]:
        """The arrow from a node to the one that it became: down or up beside its column, then along a gap
        between rows.
        """
        into = self.graph.nodes[node].get("into")
        if self._status(node) != "merged" or into not in self.row or node not in self.row:
            return []
        (x0, y0), (x1, y1) = ((self._column(n), self.row[n]) for n in (node, into))
        side, above = WIDE / 2, -1 if y0 < y1 else 1
        gap, between = x0 + side + 0.1, y1 + 0.5 * above
        points = [[x0 + side, y0], [gap, y0], [gap, between], [x1, between], [x1, y1 + TALL / 2 * above]]
        self.merges += 1
        look = {"role": "link", "width": 1.4, "head": True}
        points = [[round(x, 3), round(y, 3)] for x, y in points]
        return [scene.Path(f"m{node}.{self.merges}", panel="graph", points=points, **look)]

    # ---- what the whole graph says -----------------------------------------------------------
    def _share(self) -> list[Op]:
        """Counts the texts that were found, and dots the tokens that all of them have."""
        try:
            self.lattice = merged(self.graph.subgraph(self.row), self.root).graph
        except Refusal:  # the merges form a cycle: there are no texts to count
            return []
        shared, before = {n for n in self.lattice["shared"] if n in self.row}, self.shared
        self.shared = shared
        ops = [scene.Change(f"s{n}", gone=True) for n in sorted(before - shared)]
        for node in sorted(shared - before):
            if node in self.dotted:
                ops.append(scene.Change(f"s{node}", gone=False))
                continue
            self.dotted.add(node)
            x, y = self._column(node) - WIDE / 2 + 0.06, self.row[node] - 0.48  # above its box
            place = {"panel": "graph", "x": round(x, 3), "y": round(y, 3)}
            dot = {"glyph": "dot", "role": "ink", "size": 5, "node": node}
            ops.append(scene.Symbol(f"s{node}", **place, **dot))
        return ops

    def _words(self) -> tuple[str, str, str]:
        """Heading: its bold words, the rest, and a short form of the rest."""
        if self.drafted:
            sent, accepted = self.costs.drafted_nodes, self.costs.accepted
            ways = len(sent) - len(sent & {self.costs.parents[node] for node in sent})
            lead = f"{many(len(sent), 'token')} drafted in {many(len(self.costs.rounds), 'round')}"
            rest = f": {many(ways, 'different continuation')}, {many(accepted, 'token')} accepted."
            return lead, rest, f": {accepted:,} accepted."
        opened = f"{many(len(self.row) - 1, 'token')} in the graph"
        aside = self.graph.number_of_nodes() - self.root - len(self.row)
        never = f"{aside:,} more offered but never expanded"
        if not self.lattice or not self.lattice["ends"]:
            return opened, f", {never}: no text has ended yet.", ": none has ended."
        ends = many(len(self.lattice["ends"]), "finished text")
        if not self.merges:
            over = opened.removesuffix(" in the graph")
            rest = f" over {over}, {never}; {len(self.shared)} in all of them (•)."
            return ends, rest, f": {many(len(self.shared), 'token')} in all of them (•)."
        lead = many(self.lattice["texts"], "way")
        rest = f" to {many(len(self.lattice['ends']), 'end')}, {many(self.merges, 'token')} merged, {never}; "
        shared = f"{len(self.shared)} in all of them (•)."
        return lead, rest + shared, f" to {many(len(self.lattice['ends']), 'end')}; {shared}"

    def _word(self, node: int) -> str:
        return visible(self.header.vocabulary.get(self.graph.nodes[node]["token"], b"?"))

    def _hover(self, node: int) -> list[str]:
        """What became of a node with the numbers that decided it; then why, and what else was offered."""
        verdict, known = self.verdicts.get(node), self.graph.nodes[node]
        became = verdict.status if verdict else "taken" if known["committed"] else ""
        if not became:
            opened = f"expanded as number {self.opened.get(node)}"
            became = "drafted, not verified" if node in self.drafted else opened
        numbers = compared(verdict) if verdict else ""
        left = sum(child not in self.row for child in self.graph.successors(node))
        if "logprob" in known and not numbers:
            numbers = f"p {probability(math.exp(min(0.0, known['logprob'])))}"
        lines = [known["reason"]] if "reason" in known else source_lines(self.source.get(node))
        more = [f"{many(left, 'candidate')} after it never expanded"] if left else []
        second = [", ".join([*lines, *more])] if lines or more else []
        return [f"{self._word(node)}  {became}" + (f": {numbers}" if numbers else ""), *second]
