"""An index over the nodes of a trace: which token follows which, for code that walks the tree.

Knows prompts and Propose events, nothing of verdicts and pictures; imports no torch.
"""

from collections.abc import Iterator, Sequence

from decoders.trace.events import Propose


class NodeIndex:
    """Parent, token and position of every node. Positions count from the prompt's last token, which has 0:
    the first new token has 1. The parent of the prompt's first token is -1, which is no node.
    """

    def __init__(self, prompt: Sequence[int]):
        self.root = len(prompt) - 1  # the prompt's last node
        self.parent = {node: node - 1 for node in range(len(prompt))}
        self.token = dict(enumerate(prompt))
        self.position = {node: node - self.root for node in range(len(prompt))}

    def add(self, event: Propose) -> None:
        """Takes in a node that was proposed."""
        self.parent[event.node], self.token[event.node] = event.parent, event.token
        self.position[event.node] = self.position.get(event.parent, 0) + 1

    def upwards(self, node: int | None) -> Iterator[int]:
        """`node`, its parent and so on, up to the prompt's first token."""
        while node in self.parent:
            yield node
            node = self.parent[node]

    def path(self, node: int | None) -> list[int]:
        """The nodes below the prompt, from the first one to `node`; none if `node` stands in the prompt."""
        path = []
        while node in self.parent and node > self.root:
            path.append(node)
            node = self.parent[node]
        return path[::-1]

    def children(self) -> dict[int, list[int]]:
        """Node -> the nodes that follow it, in order of birth."""
        children: dict[int, list[int]] = {}
        for node, parent in self.parent.items():
            if parent >= 0:
                children.setdefault(parent, []).append(node)
        return children
