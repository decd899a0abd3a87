"""Graph: a lane as the graph that NetworkX sees, with nodes that stay where they are while it grows.

x is the token position. If a lane tested what its positions waited for, the nodes are positions
(`graph_waits.py`); else they are tokens: what was drafted, or what a search opened (`graph_tokens.py`). Knows
no strategy.
"""

from visualizers.scene.marks import Header, Op, view
from visualizers.views.any_lane.graph_tokens import Tokens
from visualizers.views.any_lane.graph_waits import Waiting


@view("graph", "Graph")
class Graph:
    """One of two graphs, by whether the lane tests dependencies. `head` and `feed` are those of the graph."""

    def __init__(self, header: Header):
        self.shape = Waiting(header) if header.parameters.get("dependencies") else Tokens(header)

    def head(self) -> dict:
        """Title, question, layout and panels."""
        panels = [
            {
                "id": "heading",
                "panel": "heading",
                "kind": "panel",
                "y0": 0,
                "y1": 1,
                "px": 20,
                "px_narrow": 36,
            },
            {"id": "graph", "kind": "panel", "y0": self.shape.TOP, "y1": 1, "share": 1, "grow": True},
        ]
        own = self.shape.head()
        return {
            "title": self.title,
            "row": 28,
            "row_tall": 44,
            "column": 60,
            "column_narrow": 54,
            "wide": 66,
            "widest": 84,
            "right": 8,
            "overview": "rows",
            **own,
            "ops": [*panels, *own.get("ops", [])],
        }

    def feed(self, step) -> list[Op]:
        """The ops of one step."""
        return self.shape.feed(step)
