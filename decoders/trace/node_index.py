"""An index over the nodes of a trace, for code that walks the tree.

Imports no torch.
"""

from collections.abc import Iterator, Sequence

from decoders.trace.events import Propose


class NodeIndex:
    """Parent, token and position of every node. The prompt's last token has position 0, the first new token
    1. The parent of the prompt's first token is -1.
    """

    def __init__(self, prompt: Sequence[int]):
        self.root = len(prompt) - 1  # the prompt's last node
        self.parent = {node: node - 1 for node in range(len(prompt))}
        self.token = dict(enumerate(prompt))
        self.position = {node: node - self.root for node in range(len(prompt))}

    def add(self, event: Propose) -> None:
        """Adds a proposed node."""
        self.parent[event.node], self.token[event.node] = event.parent, event.token
        self.position[event.node] = self.position.get(event.parent, 0) + 1

    def upwards(self, node: int | None) -> Iterator[int]:
        """`node`, its parent and so on, up to the prompt's first token."""
        while node in self.parent:
            yield node
            node = self.parent[node]

    def path(self, node: int | None) -> list[int]:
        """The nodes below the prompt, from the first one to `node`; empty if `node` is in the prompt."""
        path = []
        while node in self.parent and node > self.root:
            path.append(node)
            node = self.parent[node]
        return path[::-1]

    def children(self) -> dict[int, list[int]]:
        """Node -> its children, in the order in which they were proposed."""
        children: dict[int, list[int]] = {}
        for node, parent in self.parent.items():
            if parent >= 0:
                children.setdefault(parent, []).append(node)
        return children
