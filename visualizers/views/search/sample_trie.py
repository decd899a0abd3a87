"""Sample trie: the texts that a sampler drew one after another, as one trie, and what it learned of prefixes.

A fold over Propose, Verdict and Measure ("allowed future": the bound c~ of a prefix, with the probability of
its last token under the mask alone and with what was learned).
"""

from decoders.trace.number_format import many
from decoders.trace.scores import Measure, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Tree, heading, scroll_row
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view

BAR = 0.8  # columns of a bar of probability 1
STATES = {"rejected": "rejected", "finished": "finished", "pruned": "pruned"}


def small(value: float) -> str:
    """`1`, `.34`, `2e-6`: a probability in few characters."""
    if value >= 0.005:
        return f"{value:.2f}".removeprefix("0").replace("1.00", "1")
    return f"{value:.0e}".replace("e-0", "e-").replace("e-", "e−") if value else "0"


@view("sample_trie", "Sample trie", reads=has(Measure, name=ScoreName.ALLOWED_FUTURE))
class SampleTrie:
    """x counts tokens; a prefix that branches off begins a row. Bars: masked, and learned."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        root = self.nodes.root
        self.row: dict[int, int] = {root: 0}
        self.forked: set[int] = set()  # nodes whose first child has their row
        self.rows, self.texts = 1, 0
        self.bound = 1.0  # c~ of the prompt
        self.states: dict[int, str] = {}
        self.bars: dict[tuple[int, str], str] = {}  # node and kind -> its bar: a new one for each text

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Tree(
            question="Which texts were drawn? Which prefixes does a mask alone sample too often?",
            ops=[
                heading(),
                scene.Panel("trie", y0=-0.6, y1=5, share=1, grow=True),
            ],
            first=1,
            row=62,
            column=sizes.WORD,
            wide=74,
            left=20,
            right=20,
            notes="under",
            patched=True,
            legend=[
                ["node:live", "○", "live", "a prefix; the number is c~, of what is allowed after it"],
                ["node:finished", "■", "finished", "the end of a text"],
                ["node:rejected", "✕", "rejected", "a dead end"],
                ["cell:prompt", "▭", "soft", "probability of the token under the mask alone"],
                ["cell:chosen", "■", "chosen", "the same with c~ of what it leads to"],
            ],
            overview=None,
        )

    def feed(self, step) -> list[Op]:
        """New prefixes, and the numbers that a finished text changed."""
        born, verdicts, commits = self.nodes.read(step)
        ops = [op for event in born for op in self._birth(event)]
        for node, verdict in verdicts.items():
            ops += self._judged(node, verdict)
        for event in step.events:
            if isinstance(event, Measure) and event.name == ScoreName.ALLOWED_FUTURE:
                ops += self._learned(event)
        if commits:
            ops += [scene.Change(f"n{n}", state="chosen") for n in commits if n in self.states]
        lead = f"{many(self.texts, 'text')} drawn"
        heading = f"; of what the model would write alone, at most {small(self.bound)} is allowed."
        deepest = max((self.nodes.position[e.node] for e in born), default=1)
        ops.append(scene.Change("heading", lead=lead, heading=heading))
        return [*ops, scene.Front(deepest, self.rows), scene.Say(lead + heading)]

    def _birth(self, event) -> list[Op]:
        """A node on its parent's row if it is the first there, else on a new row."""
        parent, node = event.parent, event.node
        if parent not in self.row:
            return []
        self.row[node] = self.row[parent] if parent not in self.forked else self.rows
        new = self.row[node] == self.rows or not self.states
        self.rows = max(self.rows, self.row[node] + 1)
        self.forked.add(parent)
        x, y, text = self.nodes.position[node], self.row[node], self.nodes.text(node)
        self.states[node] = "live"
        place = {"panel": "trie", "x": x, "y": y, "node": node}
        mark = scene.Node(f"n{node}", **place, state="live", text=text, hover=[text])
        ends = {"x0": x - 1, "y0": self.row[parent], "x1": x, "y1": y}
        rows = [scroll_row(y, "trie", y - 0.55, y + 0.45)] if new else []
        return [*rows, scene.Edge(f"e{node}", panel="trie", **ends, state="live"), mark]

    def _judged(self, node: int, verdict) -> list[Op]:
        state = STATES.get(verdict.status)
        if state is None or node not in self.states or self.states[node] == state:
            return []
        if state == "pruned":  # another text was taken: this one was drawn all the same
            return []
        self.states[node] = state
        return [scene.Change(f"n{node}", state=state)]

    def _learned(self, event) -> list[Op]:
        """c~ of a prefix, and its bars."""
        node = event.node
        if node == self.nodes.root:
            self.bound, self.texts = event.total, self.texts + 1
            return []
        if node not in self.states:
            return []
        masked, learned = event.parts["masked"], event.parts["learned"]
        hover = [
            f"{self.nodes.text(node)}: c~ {small(event.total)}",
            f"under the mask alone {small(masked)}, with what was learned {small(learned)}",
        ]
        note = small(event.total) if event.total < 1.0 else ""
        ops: list[Op] = [scene.Change(f"n{node}", note=note, hover=hover)]
        x, y = self.nodes.position[node], self.row[node]
        for name, value, down, look in (
            ("m", masked, 0.4, {"state": "prompt", "fill": "outline"}),
            ("l", learned, 0.53, {"state": "chosen", "fill": "filled"}),
        ):
            width = round(max(0.02, BAR * value), 4)
            place = {"panel": "trie", "x": x, "y": y + down, "w": width, "h": 0.1, "node": node}
            key = f"{name}{node}.{self.texts}"
            ops.append(scene.Cell(key, **place, **look, hover=hover))
            if (before := self.bars.get((node, name))) is not None:
                ops.append(scene.Change(before, gone=True))
            self.bars[node, name] = key
        return ops
