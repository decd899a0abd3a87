"""Graph: a lane as the graph that NetworkX sees, with nodes that stay where they are while it grows.

x is the token position. If a lane tested what its positions waited for, the nodes are positions
(`graph_waits.py`); else they are tokens: what was drafted, or what a search opened (`graph_tokens.py`).
"""

from dataclasses import replace

from decoders.trace.events import Depend, Propose
from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene.layout import Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, Reads, view
from visualizers.views.any_lane.graph_tokens import Tokens
from visualizers.views.any_lane.graph_waits import Waiting


def connects(event: Propose | Rank | Depend) -> bool:
    """Whether a draft has a second choice, a search has a queue, or a position waited for others."""
    match event:
        case Propose():
            return event.slot > 0 and event.source not in ("target", "lookahead")
        case Rank():
            return event.name == ScoreName.PRIORITY
        case Depend():
            return event.kind == "causal"


@view("graph", "Graph", reads=Reads((Propose, Rank, Depend), connects))
class Graph:
    """One of two graphs, by whether the lane tests dependencies. `head` and `feed` are those of the graph."""

    def __init__(self, header: Header):
        self.shape = Waiting(header) if header.parameters.get("dependencies") else Tokens(header)

    def head(self) -> Layout:
        """Title, question, layout and panels."""
        panels = [
            heading(),
            scene.Panel("graph", y0=self.shape.TOP, y1=1, share=1, grow=True),
        ]
        own = self.shape.head()
        return replace(own, ops=[*panels, *own.ops])

    def feed(self, step) -> list[Op]:
        """The ops of one step."""
        return self.shape.feed(step)
