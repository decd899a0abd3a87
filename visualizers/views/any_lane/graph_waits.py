"""The graph of what a parallel decoder's positions waited for: how many iterations were unavoidable?

x is the position; its row says how many iterations it needed at least: the longest chain of positions each of
which waited for the one before. A node appears once its position is final, when its row is known. Links are
waits; the longest chain of all is drawn strong, with filled boxes.
"""

from decoders.trace.events import Propose
from decoders.trace.number_format import many
from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.graphs.links import Waits, critical_path
from visualizers.scene import sizes
from visualizers.scene.layout import Graph, Layout
from visualizers.scene.marks import Op
from visualizers.scene.view import Header

WIDE, TALL = 0.8, 0.72  # of a position's box, in columns and rows
NAMED = 6  # tokens of the longest chain that the heading names


class Waiting:
    """Columns count generated tokens from 1; row n is what needs n iterations at least (0: given)."""

    TOP = 0.4

    def __init__(self, header: Header):
        self.header, self.waits = header, Waits(header)
        self.rows = 0  # rows named so far
        self.given = 0
        self.chain: list[int] = []  # positions of the longest chain
        self.used: set[int] = set()  # iterations in which something became final

    def head(self) -> Layout:
        """Question and layout."""
        return Graph(
            question="Which positions waited for which others? How many iterations were unavoidable?",
            first=1,
            row=sizes.ROW,
            row_tall=44,
            column=sizes.WORD,
            column_narrow=54,
            wide=66,
            widest=84,
            overview="rows",
            left=92,
            left_narrow=30,
            axis="token position",
            legend=[
                ["cell:accepted", "■", "accepted", "final; filled: on the longest chain of waits"],
                ["hook", "└", "link", "waited for"],
                ["cell:prompt", "□", "soft", "given"],
                ["cell:forced", "⚑", "forced", "inserted by hand"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: positions that are final now, what they waited for, and the longest chain."""
        ops = [op for event in step.of(Propose) if event.given for op in self._given(event)]
        final = self.waits.read(step)
        for place in final:
            ops += self._birth(place)
        if not final:
            return ops
        nodes = self.waits.graph.nodes
        self.used |= {nodes[place]["iteration"] for place in final}
        if max(nodes[place]["min_iterations"] for place in final) > len(self.chain):
            ops += self._lead(critical_path(self.waits.graph).positions)
        lead, rest, short = self._words()
        ops.append(scene.Change("heading", lead=lead, heading=rest, short=short))
        ops.append(scene.Front(final[-1], nodes[final[-1]]["min_iterations"] + 0.75))
        return [*ops, scene.Say(f"{len(nodes)} final. {lead}{rest}")]

    def _given(self, event) -> list[Op]:
        """The box of a token that the lane begins with: final before anything ran."""
        self.given += 1
        forced, text = event.source == "person", visible(self.header.vocabulary.get(event.token, b"?"))
        state = {"state": "prompt", "fill": "tint"}
        if forced:
            state = {"state": "forced", "fill": "outline", "glyph": "⚑"}
        hover = [f"{text}: " + ("inserted by hand" if forced else "copied from another lane")]
        place = {"panel": "graph", "x": self.given, "y": 0, "w": WIDE, "h": TALL, "node": event.node}
        cell = scene.Cell(f"g{self.given}", **place, **state, text=text, hover=hover)
        return [cell] if self.given > 1 else [scene.Change("graph", y0=-0.6), row(0, "given"), cell]

    def _birth(self, place: int) -> list[Op]:
        """A position, the names of rows down to its own, and a link from each one that it waited for."""
        known, ops = self.waits.graph.nodes[place], []
        while self.rows < known["min_iterations"]:
            self.rows += 1
            ops.append(row(self.rows, f"{many(self.rows, 'iteration')}"))
        at = {"panel": "graph", "x": place, "y": known["min_iterations"], "w": WIDE, "h": TALL}
        look = {"state": "accepted", "fill": "tint", "text": self._word(place), "hover": self._hover(place)}
        look["cell"] = [place, 0]  # the end of its links
        ops.append(scene.Cell(f"p{place}", **at, **look))
        for source in sorted(self.waits.graph.predecessors(place)):
            high = self.waits.graph.nodes[source]["min_iterations"]
            ends = {
                "x0": source,
                "y0": high,
                "x1": place,
                "y1": known["min_iterations"],
                "to": {"cell": [place, 0]},
            }
            hover = [f"{self._named(source)} → {self._named(place)}: waited for it"]
            key = f"h{source}-{place}"
            ops.append(scene.Hook(key, panel="graph", **ends, strong=False, hover=hover))
        return ops

    def _lead(self, chain: list[int]) -> list[Op]:
        """Makes the longest chain strong, and the one before weak again where they differ."""
        before, self.chain = self.chain, chain
        ops = [
            scene.Change(f"p{place}", fill="filled" if place in chain else "tint")
            for place in sorted(set(before) ^ set(chain))
        ]
        old, new = (set(zip(path, path[1:], strict=False)) for path in (before, chain))
        return ops + [scene.Change(f"h{a}-{b}", strong=(a, b) in new) for a, b in sorted(old ^ new)]

    def _words(self) -> tuple[str, str, str]:
        """Heading: its bold words, the rest, and a short form of the rest."""
        lead = unavoidable(len(self.chain), len(self.used))
        if len(self.chain) < 2:
            return lead, ": no position waited for another yet.", "."
        names = [self._word(place) for place in self.chain]
        shown = " → ".join(names if len(names) <= NAMED else [*names[:2], "…", *names[2 - NAMED :]])
        return lead, f": {shown} is the longest chain of waits.", "."

    def _hover(self, place: int) -> list[str]:
        known = self.waits.graph.nodes[place]
        needed = f"final in iteration {known['iteration']}, at least {known['min_iterations']} needed"
        since = known["right_from"]
        early = "it was not guessed earlier"
        if since < known["iteration"]:
            early = f"already guessed in iteration {since}"
        waited = [self._named(source) for source in sorted(self.waits.graph.predecessors(place))]
        waits = f"waited for {', '.join(waited[:3])}" if waited else "no wait was detected"
        return [f"{self._named(place)}: {needed}", f"{early}; {waits}"]

    def _named(self, place: int) -> str:
        return f"{self._word(place)} (token {place})"

    def _word(self, place: int) -> str:
        return visible(self.header.vocabulary.get(self.waits.graph.nodes[place]["token"], b"?"))


def unavoidable(needed: int, used: int) -> str:
    """How many of the iterations that were run the longest chain of waits takes by itself."""
    return f"At least {needed} of {many(used, 'iteration')} {'was' if needed == 1 else 'were'} unavoidable"


def row(y: int, name: str) -> Op:
    """A row and its name at the left."""
    place = {"panel": "graph", "y0": y - 0.5, "y1": y + 0.5}
    return scene.Row(f"r{y}", **place, text=name, short=str(y))
