"""Graph: a lane as the graph that NetworkX sees, with nodes that stay where they are while it grows.

x is the token position. If a lane tested what its positions waited for, the nodes are positions
(`graph_waits.py`); else they are tokens: what was drafted, or what a search opened (`graph_tokens.py`). Knows
no strategy.
"""

from dataclasses import replace

from visualizers import scene
from visualizers.scene.layout import Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, view
from visualizers.views.any_lane.graph_tokens import Tokens
from visualizers.views.any_lane.graph_waits import Waiting


@view("graph", "Graph")
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
